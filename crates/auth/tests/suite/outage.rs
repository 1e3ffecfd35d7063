//! An outage of PostgreSQL.

use std::time::Duration;

use urr_auth::DOMAIN;
use urr_contracts::auth::{Auth as _, Error, Login, Me, Refresh, Sensitive};
use urr_kernel::{Actor, CommonError, Role};
use urr_rpc::{Ctx, REQUEST_BUDGET};
use urr_testkit::{fixed, postgres_behind_proxy, until, within};

use super::world::{PASSWORD, home, keyed, parts, registration};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_database_outage_returns_503_and_admits_no_one() {
    let Some((mut proxy, db)) = postgres_behind_proxy(&DOMAIN).await else { return };
    let (clock, ids) = fixed();
    let auth = urr_auth::build(parts(&db, &clock, &ids, keyed(&["first"])));
    let ctx = |actor| Ctx::new(ids.next(), actor, clock.clone(), REQUEST_BUDGET);
    let anonymous = ctx(Actor::Anonymous);
    let user = auth.register(&anonymous, registration("minji@example.com")).await.unwrap();
    let as_user = ctx(Actor::User { id: user.account.id, role: Role::User });

    proxy.cut().await;
    let login = || Login {
        email: "minji@example.com".to_owned(),
        password: Sensitive::new(PASSWORD),
        origin: home(),
    };
    let refresh = || Refresh { refresh_token: user.refresh_token.clone(), origin: home() };
    assert_eq!(
        within(PATIENCE, auth.login(&anonymous, login())).await,
        Err(Error::Common(CommonError::Unavailable))
    );
    assert_eq!(
        within(PATIENCE, auth.refresh(&anonymous, refresh())).await,
        Err(Error::Common(CommonError::Unavailable))
    );
    assert_eq!(
        within(PATIENCE, auth.me(&as_user, Me {})).await,
        Err(Error::Common(CommonError::Unavailable))
    );
    let register = auth.register(&anonymous, registration("jisoo@example.com"));
    assert_eq!(within(PATIENCE, register).await, Err(Error::Common(CommonError::Unavailable)));
    proxy.restore().await;
    until(PATIENCE, async || auth.me(&as_user, Me {}).await.is_ok()).await;
    auth.login(&anonymous, login()).await.unwrap();
    auth.refresh(&anonymous, refresh()).await.unwrap();
    auth.register(&anonymous, registration("jisoo@example.com")).await.unwrap();
}
