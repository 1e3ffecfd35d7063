//! Reuse of a token in a transaction that fails.

use super::*;
use crate::fixture::{home, on_each_engine};

/// Negative control of the story `refresh_token_reuse_ends_the_session_permanently`.
#[tokio::test]
async fn control_a_rolled_back_revocation_does_not_end_the_session() {
    on_each_engine(async |fixture| {
        let service = Service::new(fixture.parts());
        let user = fixture.register(&service, "minji@example.com").await;
        let renew = async |user: &SignedIn| {
            let request = Refresh { refresh_token: user.refresh_token.clone(), origin: home() };
            refresh(&service, &request).await
        };
        let renewed = renew(&user).await.unwrap();
        let presented = token_bytes(&user.refresh_token).unwrap();
        let thief = Origin { address: "198.51.100.66".to_owned(), agent: "curl".to_owned() };
        let reused: Result<(), Failure> = transaction!(service.db, "test.reuse", async |tx: &mut Tx<'_>| {
            match exchange(&service, tx, &presented, &thief).await? {
                Exchange::Reused(_) => Err(Error::RefreshReused.into()),
                Exchange::Renewed(_) => Ok(()),
            }
        });
        assert!(matches!(reused, Err(Failure::Refused(Error::RefreshReused))), "{reused:?}");
        let renewed = renew(&renewed).await.expect("the revocation was rolled back with the error");

        let request = Refresh { refresh_token: user.refresh_token.clone(), origin: thief };
        let reused = refresh(&service, &request).await;
        assert!(matches!(reused, Err(Failure::Refused(Error::RefreshReused))), "{reused:?}");
        let ended = renew(&renewed).await;
        assert!(matches!(ended, Err(Failure::Refused(Error::RefreshInvalid))), "{ended:?}");
    })
    .await;
}
