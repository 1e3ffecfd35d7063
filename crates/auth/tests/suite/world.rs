//! Test fixture: auth on the chosen database and transport, with a mailbox and a fixed clock.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use urr_auth::{HashCost, Hashing, IndexKey, Parts, Pii, PiiKeys, Sandbox, Service, Settings, Social};
use urr_contracts::auth::{
    self, Agreement, Auth, Error, Language, Login, LoginOutcome, Origin, OwnerProof, Refresh, Register,
    Revocation, Sensitive, SignedIn, TermsKind, VerifyEmail,
};
use urr_db::{Db, Sql, Tx, statements};
use urr_jobs::Outcome;
use urr_kernel::{Actor, Clock, Ids, Role, UserId};
use urr_mail::Mailer;
use urr_passes::{
    Secret,
    access::{self, Verified, Verifier},
    challenge,
};
use urr_rpc::{Ctx, REQUEST_BUDGET};
use urr_testkit::{DbKind, STORY_LIMIT, Transport, fixed, serve_internal, within};

use super::{mailbox::Mailbox, providers::FakeProviders};

pub(crate) const DAY: Duration = Duration::from_hours(24);
pub(crate) const PASSWORD: &str = "correct horse battery";
/// The signing secret.
pub(crate) const SECRET: &str = "a secret of tests that is long enough";

/// How personal data is stored.
#[derive(Clone, Copy)]
pub(crate) enum Sealing {
    Plain,
    Sealed,
}

pub(crate) struct World {
    pub(crate) auth: Arc<dyn Auth>,
    pub(crate) service: Arc<Service>,
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) mailbox: Arc<Mailbox>,
    /// The revocations announced in this process.
    pub(crate) announced: Arc<Mutex<Vec<Revocation>>>,
    /// How personal data is stored.
    pub(crate) pii: Pii,
    /// The simulated providers.
    pub(crate) providers: Arc<FakeProviders>,
    _dir: Option<tempfile::TempDir>,
}

statements! {
    /// Number of accounts.
    pub(crate) ACCOUNTS = "select count(*) from accounts";
    /// Number of linked accounts.
    pub(crate) LINKED = "select count(*) from linked_accounts";
    /// The stored consents.
    pub(crate) TERMS = "select kind, version, agreed, at from terms_agreements where account_id = $1 order by id";
    /// The personal columns as stored.
    pub(crate) PERSONAL = "select email, name, phone, email_index, pii_key from accounts where id = $1";
    /// Makes an account look imported.
    pub(crate) IMPORT = "update accounts set password_hash = $2 where id = $1";
    /// The stored password hash.
    pub(crate) HASH = "select password_hash from accounts where id = $1";
    /// Number of attempt counters and single-use markers.
    pub(crate) ATTEMPTS = "select count(*) from attempts";
    /// The highest count of attempts.
    pub(crate) TRIES = "select tries from attempts order by tries desc limit 1";
    /// Inserts a revocation.
    pub(crate) REVOKE = "insert into revocations (id, account_id, session_id, at) values ($1, $2, $3, $4)";
    /// Number of live sessions.
    pub(crate) LIVE = "select count(*) from sessions where account_id = $1 and ended_at is null";
    /// Number of refresh tokens of a session.
    pub(crate) TOKENS = "select count(*) from refresh_tokens where session_id = $1";
    /// Number of rows that the sweep can delete.
    pub(crate) LEFT = "
        select (select count(*) from refresh_tokens) + (select count(*) from sessions) + (select count(*) from revocations)
             + (select count(*) from attempts) + (select count(*) from links) + (select count(*) from mails)
             + (select count(*) from login_history)";
    /// State of mails.
    pub(crate) MAILS = "select state, attempts from mails where recipient = $1 order by id";
    /// Hashes of link tokens.
    pub(crate) LINKS = "select token_hash from links";
    /// Number of an account's identity verifications.
    pub(crate) CHECKS = "select count(*) from identity_checks where account_id = $1";
    /// Number of stored identities.
    pub(crate) IDENTITIES = "select count(*) from identities";
    /// An account's identity as stored.
    pub(crate) IDENTITY = "select person, pii_key from identities where account_id = $1";
    /// A second factor's secret as stored.
    pub(crate) FACTOR = "select secret, pii_key from second_factors where account_id = $1";
    /// Number of unused recovery codes.
    pub(crate) RECOVERY = "select count(*) from recovery_codes where account_id = $1";
    /// Drops the index that ensures one account per person.
    pub(crate) DROP_GUARD = "drop index identities_by_person";
    /// The columns that show whether an account was erased.
    pub(crate) ERASED = "select erased_at, email, name, phone, password_hash from accounts where id = $1";
}

pub(crate) type Kinds = (DbKind, Transport, Sealing);

impl World {
    /// Runs a story. Skips it, with a warning from testkit, if a store it needs is not available.
    pub(crate) async fn run(kinds: Kinds, story: impl AsyncFnOnce(&World)) {
        if let Some(world) = Self::new(kinds).await {
            within(STORY_LIMIT, story(&world)).await;
        }
    }

    async fn new((db, transport, sealing): Kinds) -> Option<Self> {
        let (clock, ids) = fixed();
        let (dir, db) = db.open(&urr_auth::DOMAIN).await?;
        let (mailbox, announced) = (Arc::default(), Arc::default());
        let providers = FakeProviders::start(&clock).await;
        let pii = pii(sealing);
        let parts = parts(&db, &clock, &ids, pii.clone());
        let service = urr_auth::build(in_world(parts, &mailbox, &announced, &providers));
        let local = Arc::clone(&service) as Arc<dyn Auth>;
        let auth: Arc<dyn Auth> = match transport {
            Transport::Local => local,
            Transport::Remote => {
                let routes = auth::internal_routes(local, clock.clone(), ids.clone());
                Arc::new(serve_internal(routes, &clock).await)
            }
        };
        Some(Self { auth, service, db, clock, ids, mailbox, announced, pii, providers, _dir: dir })
    }

    /// The same world with a service of other parts, called in process.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Parts)) -> Self {
        let Self { db, clock, ids, mailbox, announced, pii, providers, .. } = self;
        let mut parts = in_world(parts(db, clock, ids, pii.clone()), mailbox, announced, providers);
        change(&mut parts);
        let service = urr_auth::build(parts);
        Self {
            auth: Arc::clone(&service) as Arc<dyn Auth>,
            service,
            db: db.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            mailbox: Arc::clone(mailbox),
            announced: Arc::clone(announced),
            pii: pii.clone(),
            providers: Arc::clone(providers),
            _dir: None,
        }
    }

    /// Another process on the same database.
    pub(crate) fn neighbour(&self, pii: Pii) -> Arc<Service> {
        urr_auth::build(parts(&self.db, &self.clock, &self.ids, pii))
    }

    /// Another process on the same database, with these secrets.
    pub(crate) fn neighbour_with_secrets(&self, secrets: &[&str]) -> Arc<Service> {
        let mut parts = parts(&self.db, &self.clock, &self.ids, self.pii.clone());
        parts.secrets = secrets.iter().map(|secret| Secret::new(*secret).unwrap()).collect();
        urr_auth::build(parts)
    }

    pub(crate) fn ctx(&self, actor: Actor) -> Ctx {
        Ctx::new(self.ids.next(), actor, self.clock.clone(), REQUEST_BUDGET)
    }

    pub(crate) fn anonymous(&self) -> Ctx {
        self.ctx(Actor::Anonymous)
    }

    pub(crate) fn system(&self) -> Ctx {
        self.ctx(Actor::System)
    }

    pub(crate) fn of(&self, user: &SignedIn) -> Ctx {
        self.ctx(Actor::User { id: user.account.id, role: user.account.role })
    }

    pub(crate) fn with_role(&self, id: UserId, role: Role) -> Ctx {
        self.ctx(Actor::User { id, role })
    }

    pub(crate) async fn register(&self, email: &str) -> SignedIn {
        self.auth.register(&self.anonymous(), registration(email)).await.unwrap()
    }

    pub(crate) async fn login_from(
        &self,
        email: &str,
        password: &str,
        origin: &Origin,
    ) -> Result<SignedIn, Error> {
        let password = Sensitive::new(password);
        let request = Login { email: email.to_owned(), password, origin: origin.clone() };
        match self.auth.login(&self.anonymous(), request).await? {
            LoginOutcome::SignedIn(signed_in) => Ok(*signed_in),
            needed @ LoginOutcome::SecondFactor(_) => panic!("{email} has a second factor: {needed:?}"),
        }
    }

    pub(crate) async fn login(&self, email: &str, password: &str) -> Result<SignedIn, Error> {
        self.login_from(email, password, &home()).await
    }

    pub(crate) async fn refresh_from(&self, token: &Sensitive, origin: &Origin) -> Result<SignedIn, Error> {
        let request = Refresh { refresh_token: token.clone(), origin: origin.clone() };
        self.auth.refresh(&self.anonymous(), request).await
    }

    pub(crate) async fn refresh(&self, token: &Sensitive) -> Result<SignedIn, Error> {
        self.refresh_from(token, &home()).await
    }

    /// A signed-in administrator.
    pub(crate) async fn admin(&self) -> SignedIn {
        let request = auth::EnsureAdmin {
            email: "admin@urr.example".to_owned(),
            name: "관리자".to_owned(),
            password: None,
            promote: false,
            only_if_none: true,
        };
        let made = self.auth.ensure_admin(&self.system(), request).await.unwrap();
        self.login("admin@urr.example", made.password.unwrap().expose()).await.unwrap()
    }

    /// Sends the queued mails.
    pub(crate) async fn send_mails(&self) {
        send_mails(&self.service).await;
    }

    /// The token of the last verification link.
    pub(crate) async fn proof_link(&self, email: &str) -> Sensitive {
        self.link(email, "/verify-email#token=").await
    }

    /// The token of the last reset link.
    pub(crate) async fn reset_link(&self, email: &str) -> Sensitive {
        self.link(email, "/reset-password#token=").await
    }

    async fn link(&self, email: &str, page: &str) -> Sensitive {
        self.send_mails().await;
        let mails = self.mailbox.to(email);
        let (_, rest) = mails.iter().rev().find_map(|mail| mail.text.split_once(page)).unwrap();
        Sensitive::new(rest.split_whitespace().next().unwrap())
    }

    pub(crate) async fn count(&self, sql: &'static Sql, params: &[&dyn urr_kernel::Scalar]) -> i64 {
        self.one(sql, params, |row| row.get(0)).await
    }

    pub(crate) async fn one<T>(
        &self,
        sql: &'static Sql,
        params: &[&dyn urr_kernel::Scalar],
        map: impl FnMut(&urr_db::Row<'_>) -> Result<T, urr_db::Error>,
    ) -> T {
        let found: Result<T, urr_db::Error> =
            self.db.read("test.one", async |tx: &mut Tx<'_>| tx.one(sql, params, map).await).await;
        found.unwrap()
    }

    pub(crate) async fn live_sessions(&self, user: &SignedIn) -> i64 {
        self.count(&LIVE, &[&user.account.id]).await
    }

    pub(crate) fn verify(&self, token: &Sensitive) -> Verified {
        verifier().verify(token.expose(), self.clock.now()).unwrap()
    }

    /// Whether the revocation was announced here and is in the list for others.
    pub(crate) async fn is_revoked(&self, user: &SignedIn) -> bool {
        let since = self.clock.now().before(Duration::from_hours(1));
        let request = auth::RevocationsSince { since, after: None };
        let told = self.auth.revocations(&self.system(), request).await.unwrap().ended;
        let is_of = |revocation: &Revocation| {
            (revocation.session, revocation.user) == (user.session, user.account.id)
        };
        let announced = self.announced.lock().unwrap().iter().any(is_of);
        assert_eq!(told.iter().any(is_of), announced, "announced and listed revocations are the same");
        announced
    }
}

pub(crate) fn parts(db: &Db, clock: &Clock, ids: &Ids, pii: Pii) -> Parts {
    let cost = HashCost { memory_kib: 64, passes: 1 };
    let hashing = Hashing { workers: 2, cost, patience: STORY_LIMIT };
    Parts {
        db: db.clone(),
        clock: clock.clone(),
        ids: ids.clone(),
        access_keys: vec![access::key(&secret())],
        challenge_keys: vec![challenge::key(&secret())],
        secrets: vec![secret()],
        pii,
        social: Social::default(),
        mailer: Arc::new(Mailbox::default()),
        identity: Some(Arc::new(Sandbox)),
        on_revoked: Arc::new(|_| {}),
        login_limit: None,
        settings: Settings { site_url: "https://urr.example".to_owned(), hashing, ..Settings::default() },
    }
}

/// Adds the mailbox, the list of revocations and the providers of a world.
fn in_world(
    parts: Parts,
    mailbox: &Arc<Mailbox>,
    announced: &Arc<Mutex<Vec<Revocation>>>,
    providers: &FakeProviders,
) -> Parts {
    let announced = Arc::clone(announced);
    Parts {
        mailer: Arc::clone(mailbox) as Arc<dyn Mailer>,
        on_revoked: Arc::new(move |ended| announced.lock().unwrap().extend_from_slice(ended)),
        social: providers.social(STORY_LIMIT),
        ..parts
    }
}

/// Runs a reconciler once.
pub(crate) async fn run(service: &Arc<Service>, name: &str) -> Outcome {
    let reconcilers = urr_auth::reconcilers(service);
    reconcilers.iter().find(|one| one.name() == name).unwrap().run().await.unwrap()
}

pub(crate) async fn send_mails(service: &Arc<Service>) {
    run(service, "mail.send").await;
}

fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

pub(crate) fn verifier() -> Verifier {
    Verifier::new([access::key(&secret())])
}

pub(crate) fn pii(sealing: Sealing) -> Pii {
    match sealing {
        Sealing::Plain => keyed(&[]),
        Sealing::Sealed => keyed(&["first"]),
    }
}

/// Encrypted with the last of these keys.
pub(crate) fn keyed(ids: &[&str]) -> Pii {
    let index = IndexKey::derive(b"the secret of the installation");
    let keys = ids.iter().map(|id| ((*id).to_owned(), [id.as_bytes()[0]; 32])).collect();
    let keys = ids.last().map(|id| PiiKeys::new((*id).to_owned(), keys).unwrap());
    Pii { index, keys, takes_plain: false }
}

pub(crate) fn home() -> Origin {
    Origin { address: "192.0.2.1".to_owned(), agent: "Firefox".to_owned() }
}

/// An origin in another network; each number is a different one.
pub(crate) fn away(number: u8) -> Origin {
    Origin { address: format!("198.51.100.{number}"), agent: "curl".to_owned() }
}

/// A request to verify an address, with or without the password.
pub(crate) fn follow(token: &Sensitive, password: Option<&str>) -> VerifyEmail {
    VerifyEmail { token: token.clone(), password: password.map(Sensitive::new), origin: home() }
}

/// Confirmation by password.
pub(crate) fn confirmed(password: &str) -> OwnerProof {
    OwnerProof { password: Some(Sensitive::new(password)), session: None }
}

pub(crate) fn agreed(kind: TermsKind) -> Agreement {
    Agreement { kind, version: None, agreed: true }
}

pub(crate) fn registration(email: &str) -> Register {
    Register {
        email: email.to_owned(),
        password: Sensitive::new(PASSWORD),
        name: "김민지".to_owned(),
        phone: Some("010-1234-5678".to_owned()),
        agreements: vec![agreed(TermsKind::Service), agreed(TermsKind::Privacy)],
        language: Language::Ko,
        origin: home(),
    }
}
