//! A world for the stories: one service on the asked-for parts, a mailbox, and a clock that stands still.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use urr_contracts::auth::{
    self, Agreement, Auth, Error, Language, Login, LoginOutcome, Origin, OwnerProof, Refresh, Register,
    Revocation, Sensitive, SignedIn, TermsKind, VerifyEmail,
};
use urr_db::{Db, Sql, Tx, statements};
use urr_http::{Client, ClientLimits};
use urr_kernel::{Actor, Clock, Ids, Role, UserId};
use urr_mail::{Mailer, Sender};
use urr_passes::{
    Secret,
    access::{self, Verified, Verifier},
    challenge,
};
use urr_rpc::{Ctx, REQUEST_BUDGET, Remote, internal_guard};
use urr_testkit::{fixed, fresh_postgres, fresh_sqlite, within};

use super::{elsewhere::Elsewhere, mailbox::Mailbox};
use crate::{HashCost, Hashing, IndexKey, Parts, Pii, PiiKeys, Sandbox, Service, Settings, Social};

pub(crate) const DAY: Duration = Duration::from_hours(24);
pub(crate) const PASSWORD: &str = "correct horse battery";
/// What everything is signed with.
pub(crate) const SECRET: &str = "a secret of tests that is long enough";
pub(crate) const TOKEN: &str = "a-token-for-tests";

/// No story takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Clone, Copy)]
pub(crate) enum DbKind {
    Sqlite,
    Postgres,
}

#[derive(Clone, Copy)]
pub(crate) enum Transport {
    Local,
    Remote,
}

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
    /// What was announced within the process.
    pub(crate) announced: Arc<Mutex<Vec<Revocation>>>,
    /// How personal data is kept.
    pub(crate) pii: Pii,
    /// Where people have other accounts.
    pub(crate) elsewhere: Arc<Elsewhere>,
    _dir: Option<tempfile::TempDir>,
}

statements! {
    /// How many accounts there are.
    pub(crate) ACCOUNTS = "select count(*) from accounts";
    /// How many accounts elsewhere there are.
    pub(crate) LINKED = "select count(*) from linked_accounts";
    /// What was agreed to.
    pub(crate) TERMS = "select kind, version, agreed, at from terms_agreements where account_id = $1 order by id";
    /// Personal columns as they are on disk.
    pub(crate) PERSONAL = "select email, name, phone, email_index, pii_key from accounts where id = $1";
    /// Damages what is sealed.
    pub(crate) DAMAGE = "update accounts set email = $2 where id = $1";
    /// Who the owner is, likewise.
    pub(crate) DAMAGE_IDENTITY = "update identities set person = $2 where account_id = $1";
    /// The second factor's secret, likewise.
    pub(crate) DAMAGE_FACTOR = "update second_factors set secret = $2 where account_id = $1";
    /// Makes an account look imported.
    pub(crate) IMPORT = "update accounts set password_hash = $2 where id = $1";
    /// How a password is kept.
    pub(crate) HASH = "select password_hash from accounts where id = $1";
    /// Everything that is kept of what happened once or too often.
    pub(crate) ATTEMPTS = "select count(*) from attempts";
    /// How many attempts are counted.
    pub(crate) TRIES = "select tries from attempts where key = $1";
    /// Sessions that have not ended.
    pub(crate) LIVE = "select count(*) from sessions where account_id = $1 and ended_at is null";
    /// Refresh tokens of a session.
    pub(crate) TOKENS = "select count(*) from refresh_tokens where session_id = $1";
    /// Everything that may be forgotten.
    pub(crate) LEFT = "
        select (select count(*) from refresh_tokens) + (select count(*) from sessions) + (select count(*) from revocations)
             + (select count(*) from attempts) + (select count(*) from links) + (select count(*) from mails)
             + (select count(*) from login_history)";
    /// How mails ended.
    pub(crate) MAILS = "select state, attempts from mails where recipient = $1 order by id";
    /// Hashes of what links carry.
    pub(crate) LINKS = "select token_hash from links";
    /// Verifications of identities that an account began.
    pub(crate) CHECKS = "select count(*) from identity_checks where account_id = $1";
    /// Accounts whose owner is known.
    pub(crate) IDENTITIES = "select count(*) from identities";
    /// Who the owner of an account is, as it is on disk.
    pub(crate) IDENTITY = "select person, pii_key from identities where account_id = $1";
    /// The secret of a second factor, as it is on disk.
    pub(crate) FACTOR = "select secret, pii_key from second_factors where account_id = $1";
    /// Recovery codes that are left.
    pub(crate) RECOVERY = "select count(*) from recovery_codes where account_id = $1";
    /// Takes away what keeps a person from having two accounts.
    pub(crate) DROP_GUARD = "drop index identities_by_person";
    /// Whether an account was erased.
    pub(crate) ERASED = "select erased_at, email, name, phone, password_hash from accounts where id = $1";
}

pub(crate) type Kinds = (DbKind, Transport, Sealing);

impl World {
    /// Runs a story, unless a store that it needs cannot be had (testkit says so loudly).
    pub(crate) async fn run(kinds: Kinds, story: impl AsyncFnOnce(&World)) {
        if let Some(world) = Self::new(kinds).await {
            within(PATIENCE, story(&world)).await;
        }
    }

    pub(crate) async fn new(kinds: Kinds) -> Option<Self> {
        Self::build(kinds, |_| {}).await
    }

    /// A world with a change to its service: how negative controls are made.
    pub(crate) async fn build(
        (db, transport, sealing): Kinds,
        change: impl FnOnce(&mut Service),
    ) -> Option<Self> {
        let (clock, ids) = fixed();
        let (dir, db) = match db {
            DbKind::Sqlite => {
                let (dir, db) = fresh_sqlite(&crate::DOMAIN).await;
                (Some(dir), db)
            }
            DbKind::Postgres => (None, fresh_postgres(&crate::DOMAIN).await?),
        };
        let (mailbox, announced) = (Arc::new(Mailbox::default()), Arc::new(Mutex::new(Vec::new())));
        let pii = pii(sealing);
        let mut parts = parts(&db, &clock, &ids, pii.clone());
        parts.mailer = Arc::clone(&mailbox) as Arc<dyn Mailer>;
        let elsewhere = Elsewhere::start(&clock).await;
        parts.social = elsewhere.social(PATIENCE);
        let told = Arc::clone(&announced);
        parts.on_revoked = Arc::new(move |ended| told.lock().unwrap().extend_from_slice(ended));
        let mut service = Service::new(parts);
        change(&mut service);
        let service = Arc::new(service);
        let auth: Arc<dyn Auth> = match transport {
            Transport::Local => Arc::clone(&service) as Arc<dyn Auth>,
            Transport::Remote => Arc::new(remote(&service, &clock, &ids).await),
        };
        Some(Self { auth, service, db, clock, ids, mailbox, announced, pii, elsewhere, _dir: dir })
    }

    /// Another process on the same database.
    pub(crate) fn neighbour(&self, pii: Pii) -> Arc<Service> {
        crate::build(parts(&self.db, &self.clock, &self.ids, pii))
    }

    /// Another process on the same database, whose secrets are these.
    pub(crate) fn neighbour_with_secrets(&self, secrets: &[&str]) -> Arc<Service> {
        let mut parts = parts(&self.db, &self.clock, &self.ids, self.pii.clone());
        parts.secrets = secrets.iter().map(|secret| Secret::new(*secret).unwrap()).collect();
        crate::build(parts)
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

    /// The admin of this installation, signed in.
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

    /// Sends what waits to be sent.
    pub(crate) async fn send_mails(&self) {
        send_mails(&self.service).await;
    }

    /// What the last link to prove an address carries.
    pub(crate) async fn proof_link(&self, email: &str) -> Sensitive {
        self.link(email, "/verify-email#token=").await
    }

    /// What the last link to set a password carries.
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

    /// Whether the session's end was announced here and is told to others.
    pub(crate) async fn is_revoked(&self, user: &SignedIn) -> bool {
        let since = self.clock.now().before(Duration::from_hours(1));
        let request = auth::RevocationsSince { since, after: None };
        let told = self.auth.revocations(&self.system(), request).await.unwrap().ended;
        let is_of = |revocation: &Revocation| {
            (revocation.session, revocation.user) == (user.session, user.account.id)
        };
        let announced = self.announced.lock().unwrap().iter().any(is_of);
        assert_eq!(told.iter().any(is_of), announced, "what is told here and elsewhere is the same");
        announced
    }
}

pub(crate) fn parts(db: &Db, clock: &Clock, ids: &Ids, pii: Pii) -> Parts {
    let cost = HashCost { memory_kib: 64, passes: 1 };
    let hashing = Hashing { workers: 2, cost, patience: PATIENCE };
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

/// What the reconciler `mail.send` of a process does.
pub(crate) async fn send_mails(service: &Arc<Service>) {
    Sender::new(service.mails.clone(), service.clone()).send_due().await.unwrap();
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

/// Sealed with the last of these keys.
pub(crate) fn keyed(ids: &[&str]) -> Pii {
    let index = IndexKey::derive(b"the secret of the installation");
    let keys = ids.iter().map(|id| ((*id).to_owned(), [id.as_bytes()[0]; 32])).collect();
    let keys = ids.last().map(|id| PiiKeys::new((*id).to_owned(), keys).unwrap());
    Pii { index, keys, takes_plain: false }
}

pub(crate) fn home() -> Origin {
    Origin { address: "192.0.2.1".to_owned(), agent: "Firefox".to_owned() }
}

/// Somewhere else, each number another network.
pub(crate) fn away(number: u8) -> Origin {
    Origin { address: format!("198.51.100.{number}"), agent: "curl".to_owned() }
}

/// Follows the link that proves an address, with the password or without.
pub(crate) fn follow(token: &Sensitive, password: Option<&str>) -> VerifyEmail {
    VerifyEmail { token: token.clone(), password: password.map(Sensitive::new), origin: home() }
}

/// Proof of an account by its password.
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

#[expect(clippy::disallowed_methods, reason = "the world's server lives as long as the test's runtime")]
async fn remote(service: &Arc<Service>, clock: &Clock, ids: &Ids) -> Remote {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let service = Arc::clone(service) as Arc<dyn Auth>;
    let routes = internal_guard(auth::internal_routes(service, clock.clone(), ids.clone()), TOKEN);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Remote::new(Client::new(ClientLimits::default(), clock.clone()).target(&base).unwrap(), TOKEN)
}
