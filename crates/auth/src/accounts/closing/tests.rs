//! Erasing batch by batch.

use std::sync::atomic::{AtomicBool, Ordering};

use urr_contracts::auth::{Auth as _, OwnerProof, Sensitive};
use urr_mail::{Mail, MailError, Mailer};

use super::*;
use crate::fixture::{PASSWORD, home, on_each_engine};

/// Keeps the copies of one account's mails: the first deletion fails.
#[derive(Default)]
struct FailingMailer(AtomicBool);

#[async_trait]
impl Mailer for FailingMailer {
    async fn send(&self, _: Mail) -> Result<(), MailError> {
        Ok(())
    }

    async fn forget(&self, _: &[Uuid]) -> std::io::Result<()> {
        if self.0.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        Err(std::io::Error::other("the disk is read only"))
    }
}

/// With the smallest batch, so that one contains only the account that cannot be erased.
#[tokio::test]
async fn a_batch_that_cannot_be_erased_is_passed_and_retried_later() {
    on_each_engine(async |fixture| {
        let mut parts = fixture.parts();
        parts.mailer = Arc::new(FailingMailer::default());
        let service = Service::new(parts);
        for email in ["first@example.com", "second@example.com", "third@example.com"] {
            let user = fixture.register(&service, email).await;
            let proof = OwnerProof { password: Some(Sensitive::new(PASSWORD)), session: None };
            let request = DeleteAccount { proof, origin: home() };
            service.delete_account(&fixture.of(&user), request).await.unwrap();
            fixture.clock.advance(Duration::from_secs(1));
        }
        fixture.clock.advance(Duration::from_hours(24 * 31));
        for expected in [
            Outcome { done: 0, more: true },
            Outcome { done: 1, more: true },
            Outcome { done: 1, more: true },
            Outcome { done: 0, more: false },
            Outcome { done: 1, more: true },
            Outcome { done: 0, more: false },
        ] {
            assert_eq!(service.erase_closed(1).await.unwrap(), expected);
        }
    })
    .await;
}
