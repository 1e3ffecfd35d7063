//! HTTP handlers: parsing and responses only.

use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse as _, Response},
};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use urr_contracts::auth::{
    Account, AccountStatus, Agreement, Auth as _, ChangeProfile, DeleteAccount, Language, Me, OwnerProof,
    Register, RequestEmailVerification, Sensitive, SetRole, VerifyEmail,
};
use urr_http::{ADMIN, About, Class, Json, PUBLIC, Path, Problem, Routes, StatusCode, USER};
use urr_kernel::{Role, Timestamp, UserId};
use urr_rpc::{Ctx, problem};

use crate::api::{Api, CameFrom, Current, OnlyAdmins, OnlyUsers, Said, Tokens, forget, said, signed_in};

const OK: StatusCode = StatusCode::OK;

pub(crate) fn routes() -> Routes<Api> {
    Routes::new()
        .post("/api/auth/register", PUBLIC.limit(Class::Auth).critical(), register)
        .about(
            About::new("Makes an account and signs its owner in")
                .body::<NewAccount>()
                .answer::<Tokens>(StatusCode::CREATED)
                .refuses([StatusCode::CONFLICT]),
        )
        .get("/api/auth/me", USER, me)
        .about(About::new("The caller's account").answer::<One>(OK))
        .patch("/api/auth/me", USER.limit(Class::Auth).critical(), change)
        .about(About::new("Changes the caller's account").body::<Changes>().answer::<One>(OK))
        .delete("/api/auth/me", USER.limit(Class::Auth).critical(), close)
        .about(
            About::new("Closes the caller's account")
                .body::<Confirmed>()
                .answer::<Said>(OK)
                .refuses([StatusCode::CONFLICT]),
        )
        .post("/api/auth/email/verification", USER.limit(Class::Auth).critical(), request_verification)
        .about(
            About::new("Mails a link that proves the caller's address, unless it is proved")
                .answer::<Said>(StatusCode::ACCEPTED)
                .answer::<Said>(OK),
        )
        .post("/api/auth/email/verify", PUBLIC.limit(Class::Auth).critical(), verify)
        .about(About::new("Proves an address with a mailed link").body::<MailedLink>().answer::<Said>(OK))
        .put("/api/admin/users/{id}/role", ADMIN, set_role)
        .about(
            About::new("Gives an account another role and ends its sessions")
                .path::<UserId>("id")
                .body::<NewRole>()
                .answer::<One>(OK)
                .refuses([StatusCode::CONFLICT]),
        )
}

/// Body of `POST /api/auth/register`.
#[derive(Deserialize, JsonSchema)]
#[schemars(transform = requires_agreements)]
struct NewAccount {
    #[schemars(email, length(max = 254))]
    email: String,
    /// 8 to 128 characters.
    password: Sensitive,
    #[schemars(length(min = 1, max = 100))]
    name: String,
    #[serde(default)]
    phone: Option<String>,
    /// SERVICE and PRIVACY are required. If they are missing, the error lists which.
    #[serde(default)]
    agreements: Vec<NewAgreement>,
    #[serde(default)]
    language: Option<Language>,
}

/// The schema requires the agreements although the parser accepts a body without them, to be able
/// to return an error that lists the missing ones.
fn requires_agreements(schema: &mut Schema) {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.push("agreements".into());
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewAgreement {
    #[serde(rename = "type")]
    kind: urr_contracts::auth::TermsKind,
    #[serde(default)]
    version: Option<String>,
    agreed: bool,
}

impl From<NewAgreement> for Agreement {
    fn from(NewAgreement { kind, version, agreed }: NewAgreement) -> Self {
        Self { kind, version, agreed }
    }
}

async fn register(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    CameFrom(origin): CameFrom,
    headers: HeaderMap,
    Json(body): Json<NewAccount>,
) -> Result<Response, Problem> {
    let request = Register {
        email: body.email,
        password: body.password,
        name: body.name,
        phone: body.phone,
        agreements: body.agreements.into_iter().map(Agreement::from).collect(),
        language: body.language.unwrap_or_else(|| spoken(&headers)),
        origin,
    };
    let made = auth.register(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(signed_in(&auth, StatusCode::CREATED, "Registration completed", made))
}

/// The browser's preferred language; Korean by default.
pub(crate) fn spoken(headers: &HeaderMap) -> Language {
    let asked =
        headers.get(header::ACCEPT_LANGUAGE).and_then(|asked| asked.to_str().ok()).unwrap_or_default();
    let first = asked.trim_start().get(..2).unwrap_or_default();
    if first.eq_ignore_ascii_case("en") { Language::En } else { Language::Ko }
}

async fn me(State(Api(auth)): State<Api>, ctx: Ctx) -> Result<Json<One>, Problem> {
    let account = auth.me(&ctx, Me {}).await.map_err(|error| problem(&error))?;
    Ok(Json(One { user: account.into() }))
}

/// Body of `PATCH /api/auth/me`. Omitted fields keep their value.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "AccountChanges")]
struct Changes {
    #[serde(default)]
    name: Option<String>,
    /// `null` or an empty string removes it.
    #[serde(default, deserialize_with = "removable")]
    phone: Option<String>,
    #[serde(default)]
    language: Option<Language>,
    #[serde(default)]
    marketing: Option<bool>,
}

/// Distinguishes a `null` member from an omitted one.
fn removable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(Some(text.unwrap_or_default()))
}

async fn change(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    Json(body): Json<Changes>,
) -> Result<Json<One>, Problem> {
    let Changes { name, phone, language, marketing } = body;
    let request = ChangeProfile { name, phone, language, marketing };
    let account = auth.change_profile(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(Json(One { user: account.into() }))
}

/// Body of `DELETE /api/auth/me`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ConfirmedByPassword")]
struct Confirmed {
    /// Required if the account has a password.
    #[serde(default)]
    password: Option<Sensitive>,
}

async fn close(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
    CameFrom(origin): CameFrom,
    Current(session): Current,
    Json(body): Json<Confirmed>,
) -> Result<Response, Problem> {
    let request = DeleteAccount { proof: OwnerProof { password: body.password, session }, origin };
    auth.delete_account(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok((forget(&auth), said("Account deleted")).into_response())
}

async fn request_verification(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyUsers,
) -> Result<(StatusCode, Json<Said>), Problem> {
    let account = auth.me(&ctx, Me {}).await.map_err(|error| problem(&error))?;
    if account.email_verified {
        return Ok((OK, said("Your e-mail address is verified already")));
    }
    let request = RequestEmailVerification {};
    auth.request_email_verification(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok((StatusCode::ACCEPTED, said("Please look into your mailbox")))
}

/// Body of `POST /api/auth/email/verify`.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "MailedLink")]
struct MailedLink {
    token: Sensitive,
    /// Required if the caller is not signed in to the account.
    #[serde(default)]
    password: Option<Sensitive>,
}

async fn verify(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    CameFrom(origin): CameFrom,
    Json(MailedLink { token, password }): Json<MailedLink>,
) -> Result<Json<Said>, Problem> {
    let request = VerifyEmail { token, password, origin };
    auth.verify_email(&ctx, request).await.map_err(|error| problem(&error))?;
    Ok(said("E-mail address verified"))
}

/// Body of `PUT /api/admin/users/{id}/role`.
#[derive(Deserialize, JsonSchema)]
struct NewRole {
    role: AssignedRole,
}

/// The roles that can be assigned.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "GivenRole")]
enum AssignedRole {
    User,
    Admin,
}

impl From<AssignedRole> for Role {
    fn from(assigned: AssignedRole) -> Self {
        match assigned {
            AssignedRole::User => Self::User,
            AssignedRole::Admin => Self::Admin,
        }
    }
}

async fn set_role(
    State(Api(auth)): State<Api>,
    ctx: Ctx,
    _: OnlyAdmins,
    Path(user): Path<UserId>,
    Json(NewRole { role }): Json<NewRole>,
) -> Result<Json<One>, Problem> {
    let account =
        auth.set_role(&ctx, SetRole { user, role: role.into() }).await.map_err(|error| problem(&error))?;
    Ok(Json(One { user: account.into() }))
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OneAccount")]
struct One {
    user: AccountJson,
}

/// An account as the public API shows it to its owner and to admins.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own to clients")]
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Account")]
struct AccountJson {
    id: UserId,
    email: String,
    email_verified: bool,
    name: String,
    phone: Option<String>,
    role: Role,
    status: AccountStatus,
    language: Language,
    marketing: bool,
    second_factor: bool,
    identity_verified: bool,
    identity_verified_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl From<Account> for AccountJson {
    fn from(account: Account) -> Self {
        Self {
            id: account.id,
            email: account.email,
            email_verified: account.email_verified,
            name: account.name,
            phone: account.phone,
            role: account.role,
            status: account.status,
            language: account.language,
            marketing: account.marketing,
            second_factor: account.second_factor,
            identity_verified: account.identity_verified_at.is_some(),
            identity_verified_at: account.identity_verified_at,
            created_at: account.created_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_document_requires_agreements() {
        let schema = schemars::schema_for!(NewAccount).to_value();
        assert_eq!(schema["required"], serde_json::json!(["email", "password", "name", "agreements"]));
    }

    #[test]
    fn mails_are_in_the_language_the_browser_asks_for_first() {
        let asked = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, value.parse().unwrap());
            spoken(&headers)
        };
        assert_eq!(asked("en-GB,ko;q=0.5"), Language::En);
        assert_eq!(asked("ko-KR,en;q=0.5"), Language::Ko);
        assert_eq!(asked("f"), Language::Ko);
        assert_eq!(spoken(&HeaderMap::new()), Language::Ko);
    }
}
