//! Every public route of every domain is in the gateway's table, under its own domain.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::sync::Arc;

use urr_auth::{FileMailer, IndexKey, Pii, Social};
use urr_gateway::table::{self, Service};
use urr_http::Routes;
use urr_kernel::{Clock, Ids};
use urr_passes::{Secret, access, challenge};
use urr_tickets::gate::{GATE_TTL, SeatGate};

async fn domains() -> Vec<(Service, Routes)> {
    let (clock, ids) = urr_testkit::fixed();
    let (_files, db) = urr_testkit::fresh_sqlite(&urr_catalog::DOMAIN).await;
    let catalog = urr_catalog::build(urr_catalog::Parts { db, clock: clock.clone(), ids: ids.clone() });
    let (_files, db) = urr_testkit::fresh_sqlite(&urr_tickets::DOMAIN).await;
    let tickets = urr_tickets::build(urr_tickets::Parts {
        db,
        gate: SeatGate::memory(clock.clone(), GATE_TTL),
        catalog: catalog.clone(),
        clock: clock.clone(),
        ids: ids.clone(),
        settings: urr_tickets::Settings::default(),
        tasks: urr_jobs::Tasks::new(),
    });
    let (_files, db) = urr_testkit::fresh_sqlite(&urr_queue::DOMAIN).await;
    let queue = urr_queue::build(urr_queue::Parts {
        db,
        kv: None,
        catalog: catalog.clone(),
        clock: clock.clone(),
        ids: ids.clone(),
        secrets: vec![Secret::new("correct horse battery staple, twice").unwrap()],
        settings: urr_queue::Settings::default(),
        secure_cookies: true,
        notices: None,
    });
    let (_files, db) = urr_testkit::fresh_sqlite(&urr_vwr::DOMAIN).await;
    let vwr = urr_vwr::build(urr_vwr::Parts {
        counters: urr_vwr::Counters::memory(db.clone(), clock.clone()),
        db: Some(db),
        clock: clock.clone(),
        ids: ids.clone(),
        secrets: vec![Secret::new("correct horse battery staple, twice").unwrap()],
        tasks: urr_jobs::Tasks::new(),
        secure_cookies: false,
    });
    let auth = accounts(clock.clone(), ids.clone()).await;
    let site = urr_site::build(urr_site::Parts { auth: auth.clone(), catalog: catalog.clone(), clock, ids });
    vec![
        (Service::Auth, urr_auth::routes(&auth)),
        (Service::Catalog, urr_catalog::routes(&catalog)),
        (Service::Queue, urr_queue::routes(&queue)),
        (Service::Site, urr_site::routes(&site)),
        (Service::Tickets, urr_tickets::routes(&tickets)),
        (Service::Vwr, urr_vwr::routes(&vwr)),
    ]
}

async fn accounts(clock: Clock, ids: Ids) -> Arc<urr_auth::Service> {
    let (files, db) = urr_testkit::fresh_sqlite(&urr_auth::DOMAIN).await;
    let secret = Secret::new("correct horse battery staple, twice").unwrap();
    urr_auth::build(urr_auth::Parts {
        db,
        clock,
        ids,
        access_keys: vec![access::key(&secret)],
        challenge_keys: vec![challenge::key(&secret)],
        secrets: vec![secret],
        pii: Pii { index: IndexKey::derive(b"an index key for a test"), keys: None, takes_plain: false },
        social: Social::default(),
        mailer: Arc::new(FileMailer::new(files.path().join("mail"))),
        identity: None,
        on_revoked: Arc::new(|_| {}),
        login_limit: None,
        settings: urr_auth::Settings::default(),
    })
}

#[tokio::test]
async fn every_route_is_classified() {
    for (service, routes) in domains().await {
        assert!(!routes.names().is_empty(), "{}", service.name());
        let unclassified = table::unclassified(service, routes.names());
        assert!(unclassified.is_empty(), "add these to crates/gateway/src/table/routes.rs: {unclassified:?}");
    }
}

#[tokio::test]
async fn every_route_says_what_it_takes_and_answers() {
    for (service, routes) in domains().await {
        for name in routes.names() {
            let what = format!("{}: {} {}", service.name(), name.method, name.path);
            assert!(!name.about.summary.is_empty(), "{what} has no summary");
            let answers = !name.about.answers.is_empty() || name.about.events.is_some();
            assert!(answers, "{what} does not say what it answers");
        }
    }
}
