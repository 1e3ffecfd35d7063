//! Mails are retried, given up, and contain no secret while queued.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use urr_contracts::auth::ForgotPassword;
use urr_db::{Error as DbError, Tx};
use urr_mail::MailError;

use super::world::{DAY, LINKS, MAILS, World, follow};

async fn states(world: &World, user: &urr_contracts::auth::SignedIn) -> Vec<(String, i64)> {
    let read: Result<_, DbError> = world
        .db
        .read("test.mails", async |tx: &mut Tx<'_>| {
            tx.all(&MAILS, &[&user.account.id], |row| Ok((row.get(0)?, row.get(1)?))).await
        })
        .await;
    read.unwrap()
}

fn state(word: &str, attempts: i64) -> Vec<(String, i64)> {
    vec![(word.to_owned(), attempts)]
}

pub(crate) async fn a_mail_is_retried_and_finally_given_up(world: &World) {
    let user = world.register("minji@example.com").await;
    *world.mailbox.refuses.lock().unwrap() = Some(|| MailError::Temporary("try later".into()));
    world.send_mails().await;
    world.send_mails().await;
    assert_eq!(states(world, &user).await, state("waiting", 1), "not retried at once");
    world.clock.advance(Duration::from_mins(1));
    *world.mailbox.refuses.lock().unwrap() = None;
    world.send_mails().await;
    assert_eq!(states(world, &user).await, state("sent", 2));
    world.clock.advance(DAY);
    world.send_mails().await;
    assert_eq!(world.mailbox.to("minji@example.com").len(), 1);

    let other = world.register("jisoo@example.com").await;
    *world.mailbox.refuses.lock().unwrap() = Some(|| MailError::Permanent("no such mailbox".into()));
    world.send_mails().await;
    assert_eq!(states(world, &other).await, state("failed", 1));

    let third = world.register("hanni@example.com").await;
    *world.mailbox.refuses.lock().unwrap() = Some(|| MailError::Temporary("try later".into()));
    for _ in 0..20 {
        world.send_mails().await;
        world.clock.advance(Duration::from_hours(1));
    }
    assert_eq!(states(world, &third).await, state("failed", 10));
}

pub(crate) async fn an_obsolete_mail_is_not_sent(world: &World) {
    let user = world.register("minji@example.com").await;
    let token = world.proof_link("minji@example.com").await;
    world.clock.advance(Duration::from_mins(1));
    let again = urr_contracts::auth::RequestEmailVerification {};
    world.auth.request_email_verification(&world.of(&user), again).await.unwrap();
    world.auth.verify_email(&world.of(&user), follow(&token, None)).await.unwrap();
    world.send_mails().await;
    assert_eq!(world.mailbox.to("minji@example.com").len(), 1, "the address was verified meanwhile");
}

pub(crate) async fn a_flood_of_registrations_does_not_delay_a_new_password(world: &World) {
    let users = 45;
    for number in 0..users {
        world.register(&format!("user{number}@example.com")).await;
        world.clock.advance(Duration::from_millis(1));
    }
    let forgot = async |number: usize| {
        let request = ForgotPassword { email: format!("user{number}@example.com") };
        world.auth.forgot_password(&world.anonymous(), request).await.unwrap();
    };
    forgot(44).await;
    let sent = || (0..users).map(|number| world.mailbox.to(&format!("user{number}@example.com")).len());
    world.send_mails().await;
    assert_eq!(world.mailbox.to("user44@example.com").len(), 1, "sent before older mails");
    assert_eq!(sent().sum::<usize>(), 20, "in a batch with others");

    for number in 0..15 {
        forgot(number).await;
        world.clock.advance(Duration::from_millis(1));
    }
    world.send_mails().await;
    assert_eq!(sent().sum::<usize>(), 40);
    let twice = sent().filter(|mails| *mails == 2).count();
    assert_eq!(twice, 10, "urgent mails take at most half of a batch");
    world.send_mails().await;
    world.send_mails().await;
    assert_eq!(sent().sum::<usize>(), users + 16, "each mail is sent once");
}

pub(crate) async fn the_database_contains_no_usable_link_token(world: &World) {
    world.register("minji@example.com").await;
    let request = ForgotPassword { email: "minji@example.com".to_owned() };
    world.auth.forgot_password(&world.anonymous(), request).await.unwrap();
    let token = world.reset_link("minji@example.com").await;
    let hashes: Result<Vec<Vec<u8>>, DbError> = world
        .db
        .read("test.links", async |tx: &mut Tx<'_>| tx.all(&LINKS, &[], |row| row.get(0)).await)
        .await;
    let bytes =
        base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, token.expose()).unwrap();
    let hashes = hashes.unwrap();
    assert!(hashes.contains(&Sha256::digest(&bytes).to_vec()));
    assert!(!hashes.contains(&bytes));
}
