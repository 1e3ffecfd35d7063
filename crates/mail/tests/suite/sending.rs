//! Attempts: retried, bounded, claimed by one sender, visible to operators.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::json;
use tokio::task::JoinSet;
use urr_mail::{MailError, NewMail, admin};

use crate::world::{World, address, state};

const MINUTE: Duration = Duration::from_mins(1);

pub(crate) async fn a_transport_that_is_down_is_retried_with_backoff(world: &World) {
    world.receipt(1).await;
    world.transport.fail_with(Some(|_| MailError::Temporary("connection refused".into())));
    world.send().await;
    let waiting = admin::list(&world.db, false, 10).await.unwrap();
    let [mail] = &waiting[..] else { panic!("{waiting:?}") };
    assert!(mail.last_error.as_ref().unwrap().contains("connection refused"), "{mail:?}");
    let wait = mail.next_at.since(world.clock.now());
    assert!(wait >= MINUTE / 2 && wait <= MINUTE, "{wait:?}");
    assert_eq!(world.send().await, 0, "not before it is due");

    world.clock.advance(MINUTE);
    world.send().await;
    let again = admin::list(&world.db, false, 10).await.unwrap()[0].next_at.since(world.clock.now());
    assert!(again >= MINUTE && again <= 2 * MINUTE, "{again:?}");
    assert_eq!(world.states().await, [state("waiting", 2)]);

    world.transport.fail_with(None);
    world.clock.advance(2 * MINUTE);
    world.send().await;
    assert_eq!(world.states().await, [state("sent", 3)]);
    assert_eq!(world.transport.subjects(), ["Receipt 1"]);
}

pub(crate) async fn a_refused_mail_fails_is_listed_and_sent_again_by_an_operator(world: &World) {
    let customer = world.receipt(1).await;
    world
        .transport
        .fail_with(Some(|mail| MailError::Permanent(format!("550 <{}>: unknown", mail.to).into())));
    world.send().await;
    let failed = world.failed().await;
    let [mail] = &failed[..] else { panic!("{failed:?}") };
    assert_eq!((mail.kind.as_str(), mail.state.as_str(), mail.attempts), ("receipt", "failed", 1));
    let error = mail.last_error.clone().unwrap();
    assert!(error.contains("550 <(recipient)>: unknown") && !error.contains(&address(customer)), "{error}");
    let backlog = admin::backlog(&world.db).await.unwrap();
    assert_eq!((backlog.waiting, backlog.oldest, backlog.failed), (0, None, 1));
    world.clock.advance(60 * MINUTE);
    assert_eq!(world.send().await, 0, "a failed mail is not tried again by itself");

    world.transport.fail_with(None);
    let now = world.clock.now();
    assert_eq!(admin::retry(&world.db, Some(world.ids.next()), now).await.unwrap(), 0, "an unknown id");
    assert_eq!(admin::retry(&world.db, Some(mail.id), now).await.unwrap(), 1);
    assert_eq!(admin::retry(&world.db, None, now).await.unwrap(), 0, "it waits now");
    let backlog = admin::backlog(&world.db).await.unwrap();
    assert_eq!((backlog.waiting, backlog.failed), (1, 0));
    world.send().await;
    assert_eq!(world.states().await, [state("sent", 1)]);
    let sent = world.transport.sent.lock().unwrap().clone();
    assert_eq!((sent.len(), sent[0].id), (1, mail.id), "with the id of the first attempt");
}

pub(crate) async fn attempts_are_bounded(world: &World) {
    world.receipt(1).await;
    world.transport.fail_with(Some(|_| MailError::Temporary("try later".into())));
    for _ in 0..15 {
        world.send().await;
        world.clock.advance(60 * MINUTE);
    }
    assert_eq!(world.states().await, [state("failed", 10)]);
    assert_eq!(admin::retry(&world.db, None, world.clock.now()).await.unwrap(), 1);
    assert_eq!(world.states().await, [state("waiting", 0)], "an operator's retry starts anew");
}

pub(crate) async fn a_mail_that_cannot_be_composed_is_retried(world: &World) {
    world.receipt(1).await;
    *world.shop.is_broken.lock().unwrap() = true;
    world.send().await;
    assert_eq!(world.states().await, [state("waiting", 1)]);
    *world.shop.is_broken.lock().unwrap() = false;
    world.clock.advance(MINUTE);
    world.send().await;
    assert_eq!(world.states().await, [state("sent", 2)]);
}

pub(crate) async fn a_dropped_mail_is_neither_sent_nor_failed(world: &World) {
    world.receipt(1).await;
    *world.shop.is_closed.lock().unwrap() = true;
    world.send().await;
    assert_eq!(world.states().await, [state("dropped", 1)]);
    assert!(world.failed().await.is_empty() && world.transport.subjects().is_empty());
}

pub(crate) async fn urgent_mails_go_first_and_leave_room(world: &World) {
    for number in 0..25 {
        world.receipt(number).await;
        world.clock.advance(Duration::from_millis(1));
    }
    for number in 100..115 {
        let data = json!({ "number": number });
        let mail = NewMail { urgent: true, data, ..NewMail::new("receipt", world.ids.next()) };
        assert!(world.queue(&mail).await.unwrap());
        world.clock.advance(Duration::from_millis(1));
    }
    assert_eq!(world.send().await, 20);
    let sent: BTreeSet<String> = world.transport.subjects().into_iter().collect();
    let expected = (0..10).chain(100..110).map(|number| format!("Receipt {number}"));
    assert_eq!(sent, expected.collect());
    world.send().await;
    world.send().await;
    assert_eq!(world.transport.subjects().len(), 40, "every mail once");
}

pub(crate) async fn several_senders_send_each_mail_once(world: &World) {
    for number in 0..20 {
        world.receipt(number).await;
    }
    let mut senders = JoinSet::new();
    for _ in 0..4 {
        let sender = Arc::clone(&world.sender);
        senders.spawn(async move { sender.send_due().await });
    }
    for sent in senders.join_all().await {
        sent.unwrap();
    }
    world.send().await;
    let subjects: BTreeSet<String> = world.transport.subjects().into_iter().collect();
    assert_eq!((subjects.len(), world.transport.subjects().len()), (20, 20));
}

pub(crate) async fn a_sender_that_died_leaves_its_mail_to_the_next(world: &World) {
    world.receipt(1).await;
    *world.transport.hangs.lock().unwrap() = true;
    let mut dying = Box::pin(world.sender.send_due());
    let claimed = async || world.states().await == [state("waiting", 1)];
    // Polls the sender until it waits for the transport, then drops it.
    urr_testkit::until(MINUTE / 2, async || {
        let _ = tokio::time::timeout(Duration::from_millis(20), &mut dying).await;
        claimed().await
    })
    .await;
    drop(dying);
    *world.transport.hangs.lock().unwrap() = false;
    assert_eq!(world.send().await, 0, "the claim lasts until the next attempt is due");
    world.clock.advance(MINUTE);
    world.send().await;
    assert_eq!(world.states().await, [state("sent", 2)]);
    assert_eq!(world.transport.subjects(), ["Receipt 1"]);
}
