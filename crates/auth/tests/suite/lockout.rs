//! Throttling of password guessing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use urr_auth::{LoginLimit, NotNow};
use urr_contracts::auth::{Auth as _, Error, ForgotPassword, Login, Origin, ResetPassword, Sensitive};
use urr_kernel::CommonError;

use super::world::{PASSWORD, World, away, home};

const WRONG: &str = "not my password";

fn wait(wait_secs: u64) -> Result<(), Error> {
    Err(Error::TooManyAttempts { wait_secs })
}

/// Uses up the free attempts and continues to the maximum wait. The responses are the same for all
/// addresses.
async fn guess_until_locked(world: &World, email: &str, origin: impl Fn() -> Origin) {
    let guess = async || world.login_from(email, WRONG, &origin()).await.map(|_| ());
    for _ in 0..5 {
        assert_eq!(guess().await, Err(Error::InvalidCredentials), "{email}");
    }
    for secs in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900] {
        assert_eq!(guess().await, wait(secs), "{email}");
        assert_eq!(guess().await, wait(secs), "refused attempts do not extend the wait: {email}");
        world.clock.advance(Duration::from_secs(secs));
        assert_eq!(guess().await, Err(Error::InvalidCredentials), "{email}");
    }
}

pub(crate) async fn wrong_passwords_cause_growing_waits(world: &World) {
    let user = world.register("minji@example.com").await;
    guess_until_locked(world, "minji@example.com", || away(1)).await;
    let right = async || world.login_from("minji@example.com", PASSWORD, &away(1)).await;
    assert_eq!(right().await.map(|_| ()), wait(900), "not even the right one");
    world.clock.advance(Duration::from_mins(15));
    assert_eq!(right().await.unwrap().account, user.account);
    for _ in 0..4 {
        let guess = world.login_from("minji@example.com", WRONG, &away(2)).await;
        assert_eq!(guess, Err(Error::InvalidCredentials), "a right one resets the count");
    }
    world.clock.advance(Duration::from_hours(2));
    for _ in 0..5 {
        let guess = world.login_from("minji@example.com", WRONG, &away(2)).await;
        assert_eq!(guess, Err(Error::InvalidCredentials), "time resets the count too");
    }
}

pub(crate) async fn unknown_addresses_are_throttled_like_known_ones(world: &World) {
    guess_until_locked(world, "nobody@example.com", || away(1)).await;
}

pub(crate) async fn attackers_cannot_lock_the_owner_out_of_a_known_network(world: &World) {
    world.register("minji@example.com").await;
    guess_until_locked(world, "minji@example.com", || away(1)).await;
    let login =
        async |origin: &Origin| world.login_from("minji@example.com", PASSWORD, origin).await.map(|_| ());
    assert_eq!(login(&home()).await, Ok(()), "from where the owner registered");
    assert_eq!(login(&away(2)).await, wait(900), "an unknown network");
    let same_place = Origin { agent: "Safari".to_owned(), ..home() };
    assert_eq!(login(&same_place).await, Ok(()));

    // A user elsewhere who is not throttled sets a new password, and that network becomes known.
    let request = ForgotPassword { email: "minji@example.com".to_owned() };
    world.auth.forgot_password(&world.anonymous(), request).await.unwrap();
    let token = world.reset_link("minji@example.com").await;
    let request = ResetPassword { token, new: Sensitive::new(PASSWORD), origin: away(2) };
    world.auth.reset_password(&world.anonymous(), request).await.unwrap();
    guess_until_locked(world, "minji@example.com", || away(3)).await;
    assert_eq!(login(&away(2)).await, Ok(()));

    // An attacker in the owner's own network is throttled too.
    for _ in 0..5 {
        let guess = world.login_from("minji@example.com", WRONG, &home()).await;
        assert_eq!(guess, Err(Error::InvalidCredentials));
    }
    assert_eq!(login(&home()).await, wait(1));
}

pub(crate) async fn network_throttling_is_shared_by_all_processes(world: &World) {
    world.register("minji@example.com").await;
    // Simulates another process or a restart: its memory is empty.
    let other = world.neighbour(world.pii.clone());
    let sign_in = async |origin: Origin| {
        let (email, password) = ("minji@example.com".to_owned(), Sensitive::new(PASSWORD));
        other.login(&world.anonymous(), Login { email, password, origin }).await.map(|_| ())
    };
    for account in 0..30 {
        let guess = world.login_from(&format!("user{account}@example.com"), WRONG, &away(1)).await;
        assert_eq!(guess, Err(Error::InvalidCredentials));
        if account < 29 {
            assert_eq!(sign_in(away(1)).await, Ok(()), "right passwords neither count nor reset the count");
        }
    }
    assert_eq!(sign_in(away(1)).await, wait(1), "not even the right one");
    assert_eq!(sign_in(away(2)).await, Ok(()), "another network");
    world.clock.advance(Duration::from_secs(1));
    let guess = world.login_from("one.more@example.com", WRONG, &away(1)).await;
    assert_eq!(guess, Err(Error::InvalidCredentials));
    assert_eq!(sign_in(away(1)).await, wait(2), "the wait grows");
    world.clock.advance(Duration::from_mins(1));
    assert_eq!(sign_in(away(1)).await, Ok(()));
}

/// Allows three attempts per account.
#[derive(Default)]
struct Three(Mutex<HashMap<[u8; 16], u32>>);

#[async_trait]
impl LoginLimit for Three {
    async fn count(&self, account: [u8; 16]) -> Result<(), NotNow> {
        let mut accounts = self.0.lock().unwrap();
        let tries = accounts.entry(account).or_default();
        *tries += 1;
        if *tries > 3 { Err(NotNow::Wait(Duration::from_millis(1_500))) } else { Ok(()) }
    }
}

pub(crate) async fn attempts_per_account_are_limited_whether_right_or_wrong(world: &World) {
    let world = world.with(|parts| parts.login_limit = Some(Arc::new(Three::default())));
    let emails = ["minji@example.com", "other@example.com"];
    for email in emails {
        world.register(email).await;
        for _ in 0..3 {
            world.login(email, PASSWORD).await.unwrap();
        }
        assert_eq!(world.login(email, PASSWORD).await, Err(Error::TooManyAttempts { wait_secs: 2 }));
    }
}

struct FailingLoginLimit;

#[async_trait]
impl LoginLimit for FailingLoginLimit {
    async fn count(&self, _: [u8; 16]) -> Result<(), NotNow> {
        Err(NotNow::Unknown)
    }
}

pub(crate) async fn sign_in_is_refused_while_the_login_limit_is_unavailable(world: &World) {
    let world = world.with(|parts| parts.login_limit = Some(Arc::new(FailingLoginLimit)));
    world.register("minji@example.com").await;
    assert_eq!(
        world.login("minji@example.com", PASSWORD).await,
        Err(Error::Common(CommonError::Unavailable))
    );
}
