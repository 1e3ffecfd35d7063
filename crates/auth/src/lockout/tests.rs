//! Sign-in while no password can be compared.

use urr_contracts::auth::{Auth as _, Login, Sensitive};
use urr_kernel::Actor;

use super::*;
use crate::{
    fixture::{home, on_each_engine},
    passwords::Pool,
};

#[tokio::test]
async fn a_busy_hashing_pool_counts_no_attempt_and_does_not_reveal_accounts() {
    on_each_engine(async |fixture| {
        fixture.register(&Service::new(fixture.parts()), "minji@example.com").await;
        for pool in [Pool::full, || Pool::idle(20)] {
            let mut service = Service::new(fixture.parts());
            service.pool = pool();
            for email in ["nobody@example.com", "minji@example.com"] {
                for _ in 0..10 {
                    let password = Sensitive::new("not my password");
                    let request = Login { email: email.to_owned(), password, origin: home() };
                    let refused = service.login(&fixture.ctx(Actor::Anonymous), request).await;
                    assert_eq!(refused, Err(Error::Busy), "{email}");
                }
                let (key, now) = (key_of_strangers(&service, email), fixture.clock.now());
                let counted: Result<(u32, _), Failure> =
                    transaction!(service.db, "test.tries", async |tx: &mut Tx<'_>| {
                        Ok(store::tries(tx, &key, now).await?)
                    });
                assert_eq!(counted.unwrap().0, 0, "{email}");
            }
        }
    })
    .await;
}
