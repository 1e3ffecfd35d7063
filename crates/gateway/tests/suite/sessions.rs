//! Ended sessions, and the behaviour while the list of them is stale.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use urr_gateway::revoked::{Revocation, RevocationPage, RevocationSource, Revoked, STALE};
use urr_kernel::{Role, Timestamp};
use urr_passes::access::LIFETIME;
use urr_testkit::{until, within};
use uuid::Uuid;

use crate::world::{Options, PATIENCE, World, session, user};

/// Reports that no session ended, unless it is down.
#[derive(Default)]
pub(crate) struct Nobody {
    down: AtomicBool,
}

#[async_trait]
impl RevocationSource for Nobody {
    async fn since(&self, since: Timestamp, _: Option<Uuid>) -> Result<RevocationPage, String> {
        if self.down.load(Ordering::Relaxed) {
            return Err("down".to_owned());
        }
        Ok(RevocationPage { ended: Vec::new(), as_of: since, next: None })
    }
}

fn world() -> (World, Arc<Revoked>) {
    let clock = urr_testkit::fixed_clock();
    let revoked = Arc::new(Revoked::new(clock.clone(), LIFETIME));
    (World::with(Options { clock, revoked: Some(revoked.clone()), ..Options::default() }), revoked)
}

#[tokio::test]
async fn only_tokens_of_ended_sessions_are_rejected() {
    let (world, revoked) = world();
    let other = world.token_of(user(), Role::User, Uuid::from_u128(9));
    let (ended, other) = (world.bearer(Role::User), format!("Bearer {other}"));
    revoked.load(&Nobody { down: AtomicBool::new(false) }).await.unwrap();
    assert_eq!(world.get("/api/auth/me", &[("authorization", &ended)]).await.0, 200);
    revoked.add(&[Revocation { session: session(), until: world.clock.now().after(LIFETIME) }]);
    for path in ["/api/auth/me", "/api/reservations/my", "/api/events"] {
        let (status, body) = world.get(path, &[("authorization", &ended)]).await;
        assert_eq!((status, &body["code"]), (401, &json!("auth.token_revoked")), "{path}");
        assert_eq!(world.get(path, &[("authorization", &other)]).await.0, 200, "{path}");
    }
    let cookie = format!("access_token={}", world.token(Role::User));
    let cookie = [("cookie", cookie.as_str())];
    for path in ["/api/events", "/api/time", "/api/openapi.json", "/api/docs"] {
        let (status, body) = world.get(path, &cookie).await;
        assert_eq!((status, &body["user"]), (200, &json!(null)), "{path}: a browser is anonymous there");
    }
    assert_eq!(world.get("/api/reservations/my", &cookie).await.1["code"], "auth.token_revoked");
    let (status, body) = world.ask("POST", "/api/reservations", &[("authorization", &ended)]).await;
    assert_eq!((status, &body["code"]), (401, &json!("auth.token_revoked")));
    assert_eq!(
        world.get("/", &[("authorization", &ended)]).await.1["user"],
        json!(null),
        "the caller is anonymous on pages"
    );
}

#[tokio::test]
async fn with_a_stale_list_sign_in_and_admin_are_rejected_and_other_routes_continue() {
    within(PATIENCE, async {
        let (world, revoked) = world();
        let admin = world.bearer(Role::Admin);
        let admin = [("authorization", admin.as_str())];
        let dangerous =
            [("GET", "/api/admin/seat-layouts"), ("POST", "/api/auth/password"), ("POST", "/api/auth/login")];
        let harmless = [
            ("GET", "/api/reservations/my"),
            ("POST", "/api/payments/confirm"),
            ("POST", "/api/auth/logout"),
            ("POST", "/api/auth/refresh"),
        ];
        let refused = async |cause: &str| {
            for (method, path) in dangerous {
                let (status, body) = world.ask(method, path, &admin).await;
                assert_eq!((status, &body["code"]), (503, &json!("http.unavailable")), "{path}: {cause}");
                assert!(body["retryAfter"].is_u64());
            }
            for (method, path) in harmless {
                assert_eq!(world.ask(method, path, &admin).await.0, 200, "{path}: {cause}");
            }
        };
        for (method, path) in dangerous.into_iter().chain([harmless[0], harmless[1], ("GET", "/api/events")])
        {
            let (status, body) = world.ask(method, path, &admin).await;
            assert_eq!((status, &body["code"]), (503, &json!("http.unavailable")), "{path} before the list");
        }
        assert_eq!(world.get("/", &admin).await.1["user"], json!(null), "the caller is anonymous on pages");
        assert_eq!(world.get("/api/events", &[]).await.0, 200, "anonymous requests do not need the list");

        let source = Arc::new(Nobody::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(revoked.clone().watch(source.clone(), CancellationToken::new()));
        until(PATIENCE, async || revoked.is_fresh()).await;
        for (method, path) in dangerous {
            assert_eq!(world.ask(method, path, &admin).await.0, 200, "{path}");
        }

        source.down.store(true, Ordering::Relaxed);
        world.clock.advance(STALE + Duration::from_millis(1));
        until(PATIENCE, async || !revoked.is_fresh()).await;
        refused("without news").await;
        source.down.store(false, Ordering::Relaxed);
        until(PATIENCE, async || world.ask("POST", "/api/auth/password", &admin).await.0 == 200).await;
    })
    .await;
}
