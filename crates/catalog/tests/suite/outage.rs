//! PostgreSQL outage and recovery.

use std::time::Duration;

use urr_catalog::{DOMAIN, Parts};
use urr_contracts::catalog::{Catalog as _, Error, EventOf, SaleOf};
use urr_kernel::{CommonError, EventId};
use urr_rpc::Ctx;
use urr_testkit::{fixed_clock, postgres_behind_proxy, seeded_ids, until, within};

/// An outage must be reported within two seconds; the rest is slack for a loaded machine.
const PROMPT: Duration = Duration::from_millis(2_500);
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn calls_return_unavailable_during_an_outage_and_recover_after_it() {
    let Some((mut proxy, db)) = postgres_behind_proxy(&DOMAIN).await else { return };

    let clock = fixed_clock();
    let ids = seeded_ids(&clock);
    let catalog = urr_catalog::build(Parts { db, clock: clock.clone(), ids: ids.clone() });
    assert!(urr_catalog::demo::seed(&catalog).await.unwrap());
    let (ctx, event): (_, EventId) = (Ctx::system(&ids, &clock), ids.next());
    for stalled in [false, true] {
        if stalled {
            proxy.stall().await;
        } else {
            proxy.cut().await;
        }
        assert_eq!(
            within(PROMPT, catalog.sale(&ctx, SaleOf { event })).await,
            Err(Error::Common(CommonError::Unavailable))
        );
        assert_eq!(
            within(PROMPT, catalog.event(&ctx, EventOf { event })).await,
            Err(Error::Common(CommonError::Unavailable))
        );
        assert_eq!(urr_catalog::demo::seed(&catalog).await, Err(Error::Common(CommonError::Unavailable)));
        proxy.restore().await;
        until(PATIENCE, async || catalog.sale(&ctx, SaleOf { event }).await == Err(Error::EventNotFound))
            .await;
    }
}
