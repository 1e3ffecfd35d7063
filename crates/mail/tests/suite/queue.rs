//! Queueing, keys, deletion.

use std::time::Duration;

use serde_json::json;
use urr_db::{Error, Kind, Tx, transaction};
use urr_jobs::BoxError;
use urr_mail::NewMail;
use uuid::Uuid;

use crate::world::{World, address, state};

const DAY: Duration = Duration::from_hours(24);

pub(crate) async fn a_mail_of_a_rolled_back_transaction_is_never_sent(world: &World) {
    let mail = NewMail::new("receipt", world.ids.next());
    let undone: Result<(), BoxError> = transaction!(world.db, "test.undo", async |tx: &mut Tx<'_>| {
        assert!(world.mails.queue(tx, &mail).await?);
        Err("on purpose".into())
    });
    assert_eq!(undone.unwrap_err().to_string(), "on purpose");
    world.clock.advance(DAY);
    assert_eq!(world.send().await, 0);
    assert!(world.transport.subjects().is_empty() && world.states().await.is_empty());
}

pub(crate) async fn a_committed_mail_is_sent_once(world: &World) {
    let customer = world.receipt(7).await;
    for _ in 0..3 {
        world.send().await;
        world.clock.advance(DAY);
    }
    let sent = world.transport.sent.lock().unwrap().clone();
    let [mail] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((mail.to.as_str(), mail.subject.as_str()), (address(customer).as_str(), "Receipt 7"));
    assert_eq!(mail.text, "Hello,\n\nOrder 7\n\nURR\n");
    assert_eq!(world.states().await, [state("sent", 1)]);
}

pub(crate) async fn a_key_is_queued_once(world: &World) {
    let customer = world.ids.next();
    let mail = |key: &str| NewMail {
        key: Some(key.to_owned()),
        data: json!({ "number": 1 }),
        ..NewMail::new("receipt", customer)
    };
    assert!(world.queue(&mail("order 1")).await.unwrap());
    assert!(!world.queue(&mail("order 1")).await.unwrap(), "while it waits");
    world.send().await;
    assert!(!world.queue(&mail("order 1")).await.unwrap(), "and after it was sent");
    assert!(world.queue(&mail("order 2")).await.unwrap());
    world.send().await;
    assert_eq!(world.transport.subjects().len(), 2);
}

pub(crate) async fn a_mail_without_recipient_is_not_queued(world: &World) {
    assert!(!world.queue(&NewMail::new("receipt", Uuid::nil())).await.unwrap());
    assert!(world.states().await.is_empty());
}

pub(crate) async fn too_much_data_refuses_the_change(world: &World) {
    let mail =
        NewMail { data: json!({ "note": "a".repeat(20_000) }), ..NewMail::new("receipt", world.ids.next()) };
    let refused = world.queue(&mail).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Constraint);
}

pub(crate) async fn mails_that_ended_long_ago_are_deleted(world: &World) {
    world.receipt(1).await;
    world.send().await;
    world.clock.advance(29 * DAY);
    world.receipt(2).await;
    assert_eq!(world.mails.sweep().await.unwrap(), 0);
    world.clock.advance(DAY);
    assert_eq!(world.mails.sweep().await.unwrap(), 1);
    assert_eq!(world.states().await, [state("waiting", 0)], "a waiting mail is not deleted");
    let forgot = *world.transport.forgot_before.lock().unwrap();
    assert_eq!(forgot, Some(world.clock.now().before(30 * DAY)));
}

pub(crate) async fn a_recipient_is_erased_with_copies(world: &World) {
    let (gone, other) = (world.receipt(1).await, world.receipt(2).await);
    world.send().await;
    world.mails.forget(gone).await.unwrap();
    let erased: Result<(), Error> =
        transaction!(world.db, "test.erase", async |tx: &mut Tx<'_>| urr_mail::erase(tx, gone).await);
    erased.unwrap();
    let left: Vec<String> = world.transport.sent.lock().unwrap().iter().map(|mail| mail.to.clone()).collect();
    assert_eq!(left, [address(other)]);
    assert_eq!(world.states().await, [state("sent", 1)]);
}
