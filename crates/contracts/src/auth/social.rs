//! Social sign-in, and the links between provider accounts and accounts here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::Timestamp;
use uuid::Uuid;

use super::{Agreement, Language, LoginMethod, LoginOutcome, Origin, Sensitive};

/// A social sign-in provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Google, by OpenID Connect.
    Google,
    /// Kakao, by OAuth 2.
    Kakao,
    /// Naver, by OAuth 2.
    Naver,
}

impl Provider {
    /// Every provider.
    pub const ALL: [Self; 3] = [Self::Google, Self::Kakao, Self::Naver];

    /// Name in paths, settings and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Google => "google",
            Self::Kakao => "kakao",
            Self::Naver => "naver",
        }
    }

    /// Sign-in method for the history.
    pub const fn method(self) -> LoginMethod {
        match self {
            Self::Google => LoginMethod::Google,
            Self::Kakao => LoginMethod::Kakao,
            Self::Naver => LoginMethod::Naver,
        }
    }

    /// Returns the provider with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.name() == name)
    }
}

/// Requests the enabled providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListProviders {}

/// The enabled providers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Providers {
    /// In a fixed order.
    pub providers: Vec<Offer>,
}

/// An enabled provider, for the sign-in page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The provider.
    pub provider: Provider,
    /// Our client id at the provider.
    pub client_id: String,
    /// Whether redirect sign-in is available.
    pub redirect: bool,
}

/// Signs in with an ID token that Google issued to the browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoogleSignIn {
    /// The ID token; can be used once.
    pub credential: Sensitive,
    /// Cookie that binds the nonce of the ID token to this browser, if a nonce was requested.
    #[serde(rename = "slip")]
    pub state_token: Option<Sensitive>,
    /// Agreements to the terms. A new user must agree to service and privacy.
    pub agreements: Vec<Agreement>,
    /// Language of e-mails, for a new user.
    pub language: Language,
    /// Origin of the request.
    pub origin: Origin,
}

/// Result of [`GoogleSignIn`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoogleSignedIn {
    /// As after a password.
    pub outcome: LoginOutcome,
    /// URL of the user's picture at Google. It is not stored.
    pub picture: Option<String>,
}

/// Starts a redirect sign-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginRedirect {
    /// The provider.
    pub provider: Provider,
    /// Page to show afterwards: a path of this site. `None` is the start page.
    pub return_to: Option<String>,
}

/// How the browser gets to the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedirectSignIn {
    /// URL of the provider's page.
    pub location: String,
    /// Cookie for the browser. Only the browser that left can complete the sign-in.
    #[serde(rename = "slip")]
    pub state_token: Sensitive,
    /// Deadline for coming back.
    pub expires_at: Timestamp,
}

/// Completes a redirect sign-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteRedirect {
    /// The provider.
    pub provider: Provider,
    /// Cookie from [`RedirectSignIn`].
    #[serde(rename = "slip")]
    pub state_token: Option<Sensitive>,
    /// `state` parameter returned by the provider.
    pub state: Option<Sensitive>,
    /// Authorization code from the provider.
    pub code: Option<Sensitive>,
    /// Error from the provider, such as `access_denied`.
    pub refusal: Option<String>,
    /// Origin of the request.
    pub origin: Origin,
}

/// A completed redirect sign-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedirectCompleted {
    /// Page to show: a path of this site.
    pub return_to: String,
    /// Result.
    pub outcome: RedirectOutcome,
}

/// Result of a redirect sign-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "trip", rename_all = "snake_case")]
pub enum RedirectOutcome {
    /// A known user: as after a password.
    Login {
        /// Result of the sign-in.
        login: LoginOutcome,
    },
    /// A new user, who has not agreed to the terms. No account was created.
    SignUp {
        /// How to continue.
        offer: Box<SignUpOffer>,
    },
    /// The provider account is now linked to the account of the caller.
    Linked {
        /// The link.
        linked: LinkedAccount,
    },
}

/// An account that is created once the user agrees to the terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignUpOffer {
    /// Token for [`SignUp`].
    #[serde(rename = "slip")]
    pub state_token: Sensitive,
    /// Deadline for accepting the offer.
    pub expires_at: Timestamp,
    /// The provider.
    pub provider: Provider,
    /// E-mail address, if the provider returned one.
    pub email: Option<String>,
    /// Whether the provider verified the address. If not, the user enters one and verifies it by
    /// mail.
    pub email_verified: bool,
    /// Name, if the provider returned one.
    pub name: Option<String>,
}

/// Creates the offered account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignUp {
    /// Token from [`SignUpOffer`].
    #[serde(rename = "slip")]
    pub state_token: Sensitive,
    /// E-mail address, if the provider verified none.
    pub email: Option<String>,
    /// Display name; the name from the provider if absent.
    pub name: Option<String>,
    /// Agreements to the terms. Service and privacy are required.
    pub agreements: Vec<Agreement>,
    /// Language of e-mails.
    pub language: Language,
    /// Origin of the request.
    pub origin: Origin,
}

/// Requests the sign-in methods of the calling user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListLinked {}

/// Sign-in methods of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedAccounts {
    /// Whether the account has a password.
    pub password: bool,
    /// Linked provider accounts, oldest link first.
    pub accounts: Vec<LinkedAccount>,
}

/// A provider account linked to an account here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedAccount {
    /// The provider.
    pub provider: Provider,
    /// Time of linking.
    pub linked_at: Timestamp,
    /// Last sign-in with it.
    pub last_used_at: Option<Timestamp>,
}

/// Proof that the owner changes the sign-in methods of the account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerProof {
    /// The password, for an account that has one.
    pub password: Option<Sensitive>,
    /// Session of the caller's access token. An account without a password needs a recent one.
    pub session: Option<Uuid>,
}

/// Links a provider account to the calling user's account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkAccount {
    /// The provider.
    pub provider: Provider,
    /// Proof that the caller owns the account here.
    pub proof: OwnerProof,
    /// Proof of the provider account: an ID token, Google only. Without it the browser is
    /// redirected.
    pub credential: Option<Sensitive>,
    /// Cookie that binds the nonce of the ID token to this browser.
    #[serde(rename = "slip")]
    pub state_token: Option<Sensitive>,
    /// Page to show afterwards: a path of this site.
    pub return_to: Option<String>,
    /// Origin of the request.
    pub origin: Origin,
}

/// Result of [`LinkAccount`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "link", rename_all = "snake_case")]
pub enum LinkOutcome {
    /// The account is linked.
    Linked {
        /// The link.
        linked: LinkedAccount,
    },
    /// The browser must sign in at the provider first.
    #[serde(rename = "trip")]
    Redirect {
        /// How it gets there.
        #[serde(rename = "trip")]
        redirect: RedirectSignIn,
    },
}

/// Removes the link to a provider account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlinkAccount {
    /// The provider.
    pub provider: Provider,
    /// Proof that the caller owns the account here.
    pub proof: OwnerProof,
    /// Origin of the request.
    pub origin: Origin,
}
