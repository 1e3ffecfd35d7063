//! A shop that mails its customers, and a transport with configurable failures.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use serde_json::json;
use tempfile::TempDir;
use urr_db::{Db, Domain, Error, Tx, statements, transaction};
use urr_jobs::BoxError;
use urr_kernel::{Clock, Ids, Language, Timestamp};
use urr_mail::{
    Compose, Draft, Mail, MailError, Mailer, Mails, NewMail, Queued, Sender, Template, Words,
    admin::{self, Listed},
};
use urr_testkit::{fixed, fresh_postgres, fresh_sqlite, within};
use uuid::Uuid;

/// Time limit of one test.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) static SHOP: Domain = Domain { name: "shop", migrations: &[] };

statements! {
    /// State and attempts of every mail.
    pub(crate) STATES = "select state, attempts from mails order by id";
}

const RECEIPT: Template = Template {
    ko: Words { subject: "영수증 {number}", body: "{number}번 주문" },
    en: Words { subject: "Receipt {number}", body: "Order {number}" },
};

#[derive(Clone, Copy)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// The parts of a process of the shop.
pub(crate) struct World {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) transport: Arc<Transport>,
    pub(crate) shop: Arc<Shop>,
    pub(crate) mails: Mails,
    pub(crate) sender: Arc<Sender>,
    _dir: Option<TempDir>,
}

impl World {
    /// Runs a test, unless PostgreSQL is not available, which testkit reports.
    pub(crate) async fn run(engine: Engine, story: impl AsyncFnOnce(&World)) {
        let (dir, db) = match engine {
            Engine::Sqlite => {
                let (dir, db) = fresh_sqlite(&SHOP).await;
                (Some(dir), db)
            }
            Engine::Postgres => match fresh_postgres(&SHOP).await {
                Some(db) => (None, db),
                None => return,
            },
        };
        let (clock, ids) = fixed();
        let (transport, shop) = (Arc::new(Transport::default()), Arc::new(Shop::default()));
        let mailer = Arc::clone(&transport) as Arc<dyn Mailer>;
        let mails = Mails::new(db.clone(), clock.clone(), ids.clone(), mailer);
        let sender = Arc::new(Sender::new(mails.clone(), Arc::clone(&shop) as Arc<dyn Compose>));
        let world = World { db, clock, ids, transport, shop, mails, sender, _dir: dir };
        within(LIMIT, story(&world)).await;
    }

    /// Queues and commits.
    pub(crate) async fn queue(&self, mail: &NewMail<'_>) -> Result<bool, Error> {
        transaction!(self.db, "test.queue", async |tx: &mut Tx<'_>| self.mails.queue(tx, mail).await)
    }

    /// Queues a receipt for a new customer.
    pub(crate) async fn receipt(&self, number: u32) -> Uuid {
        let customer = self.ids.next();
        let mail = NewMail { data: json!({ "number": number }), ..NewMail::new("receipt", customer) };
        assert!(self.queue(&mail).await.unwrap());
        customer
    }

    pub(crate) async fn send(&self) -> u64 {
        self.sender.send_due().await.unwrap()
    }

    /// State and attempts of every mail, in the order in which they were queued.
    pub(crate) async fn states(&self) -> Vec<(String, u32)> {
        let read: Result<_, Error> = self
            .db
            .read("test.states", async |tx: &mut Tx<'_>| {
                tx.all(&STATES, &[], |row| Ok((row.get(0)?, row.get(1)?))).await
            })
            .await;
        read.unwrap()
    }

    pub(crate) async fn failed(&self) -> Vec<Listed> {
        admin::list(&self.db, true, 10).await.unwrap()
    }
}

pub(crate) fn state(word: &str, attempts: u32) -> (String, u32) {
    (word.to_owned(), attempts)
}

/// The address of a customer.
pub(crate) fn address(customer: Uuid) -> String {
    format!("{customer}@example.com")
}

/// Composes receipts.
#[derive(Default)]
pub(crate) struct Shop {
    /// `compose` fails.
    pub(crate) is_broken: Mutex<bool>,
    /// `compose` drops every mail.
    pub(crate) is_closed: Mutex<bool>,
}

#[async_trait]
impl Compose for Shop {
    async fn compose(&self, mail: &Queued) -> Result<Draft, BoxError> {
        if *self.is_broken.lock().unwrap() {
            return Err("the address cannot be read".into());
        }
        if *self.is_closed.lock().unwrap() {
            return Ok(Draft::Drop("the shop is closed"));
        }
        let number = mail.data["number"].to_string();
        let text = RECEIPT.render(Language::En, None, &[("number", &number)]);
        Ok(Draft::Send { to: address(mail.recipient), text })
    }
}

/// How the transport fails.
pub(crate) type Fails = fn(&Mail) -> MailError;

/// Records mails, or fails as configured.
#[derive(Default)]
pub(crate) struct Transport {
    pub(crate) sent: Mutex<Vec<Mail>>,
    pub(crate) fails: Mutex<Option<Fails>>,
    /// Never answers.
    pub(crate) hangs: Mutex<bool>,
    pub(crate) forgot_before: Mutex<Option<Timestamp>>,
}

impl Transport {
    pub(crate) fn subjects(&self) -> Vec<String> {
        self.sent.lock().unwrap().iter().map(|mail| mail.subject.clone()).collect()
    }

    pub(crate) fn fail_with(&self, error: Option<fn(&Mail) -> MailError>) {
        *self.fails.lock().unwrap() = error;
    }
}

#[async_trait]
impl Mailer for Transport {
    async fn send(&self, mail: Mail) -> Result<(), MailError> {
        if *self.hangs.lock().unwrap() {
            std::future::pending::<()>().await;
        }
        if let Some(error) = *self.fails.lock().unwrap() {
            return Err(error(&mail));
        }
        self.sent.lock().unwrap().push(mail);
        Ok(())
    }

    async fn forget(&self, mails: &[Uuid]) -> std::io::Result<()> {
        self.sent.lock().unwrap().retain(|mail| !mails.contains(&mail.id));
        Ok(())
    }

    async fn forget_before(&self, then: Timestamp) -> std::io::Result<()> {
        *self.forgot_before.lock().unwrap() = Some(then);
        Ok(())
    }
}
