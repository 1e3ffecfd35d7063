//! Services for unit tests that need a private part. The suite is in `tests/suite`.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use urr_contracts::auth::{Agreement, Auth as _, Language, Origin, Register, Sensitive, SignedIn, TermsKind};
use urr_db::Db;
use urr_kernel::{Actor, Clock, Ids};
use urr_mail::{Mail, MailError, Mailer};
use urr_passes::{Secret, access, challenge};
use urr_rpc::{Ctx, REQUEST_BUDGET};
use urr_testkit::{DbKind, STORY_LIMIT, fixed, within};

use crate::{DOMAIN, HashCost, Hashing, IndexKey, Parts, Pii, PiiKeys, Service, Settings, Social};

pub(crate) const PASSWORD: &str = "correct horse battery";

/// Accepts every mail and keeps no copy.
struct NoMailer;

#[async_trait]
impl Mailer for NoMailer {
    async fn send(&self, _: Mail) -> Result<(), MailError> {
        Ok(())
    }
}

/// What the services of one test share.
pub(crate) struct Fixture {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
}

/// Runs a test on SQLite and PostgreSQL, unless PostgreSQL is not available (testkit reports it).
pub(crate) async fn on_each_engine(test: impl AsyncFn(&Fixture)) {
    for kind in [DbKind::Sqlite, DbKind::Postgres] {
        let Some((_dir, db)) = kind.open(&DOMAIN).await else { continue };
        let (clock, ids) = fixed();
        let fixture = Fixture { db, clock, ids };
        within(STORY_LIMIT, Box::pin(test(&fixture))).await;
    }
}

impl Fixture {
    pub(crate) fn parts(&self) -> Parts {
        let secret = Secret::new("a secret of tests that is long enough").expect("it is long enough");
        let cost = HashCost { memory_kib: 64, passes: 1 };
        let hashing = Hashing { workers: 2, cost, patience: Duration::from_mins(1) };
        Parts {
            db: self.db.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            access_keys: vec![access::key(&secret)],
            challenge_keys: vec![challenge::key(&secret)],
            secrets: vec![secret],
            pii: keyed(&["first"]),
            social: Social::default(),
            mailer: Arc::new(NoMailer),
            identity: None,
            on_revoked: Arc::new(|_| {}),
            login_limit: None,
            settings: Settings { hashing, ..Settings::default() },
        }
    }

    pub(crate) fn ctx(&self, actor: Actor) -> Ctx {
        Ctx::new(self.ids.next(), actor, self.clock.clone(), REQUEST_BUDGET)
    }

    pub(crate) fn of(&self, user: &SignedIn) -> Ctx {
        self.ctx(Actor::User { id: user.account.id, role: user.account.role })
    }

    pub(crate) async fn register(&self, service: &Service, email: &str) -> SignedIn {
        let agreed = |kind| Agreement { kind, version: None, agreed: true };
        let request = Register {
            email: email.to_owned(),
            password: Sensitive::new(PASSWORD),
            name: "김민지".to_owned(),
            phone: None,
            agreements: vec![agreed(TermsKind::Service), agreed(TermsKind::Privacy)],
            language: Language::Ko,
            origin: home(),
        };
        service.register(&self.ctx(Actor::Anonymous), request).await.expect("the request is valid")
    }
}

/// Personal data encrypted with the last of these keys.
pub(crate) fn keyed(ids: &[&str]) -> Pii {
    let keys = ids.iter().map(|id| ((*id).to_owned(), [id.as_bytes()[0]; 32])).collect();
    let keys = ids.last().map(|id| PiiKeys::new((*id).to_owned(), keys).expect("the key is among them"));
    Pii { index: IndexKey::derive(b"the secret of the installation"), keys, takes_plain: false }
}

pub(crate) fn home() -> Origin {
    Origin { address: "192.0.2.1".to_owned(), agent: "Firefox".to_owned() }
}
