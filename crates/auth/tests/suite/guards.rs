//! Routes require a session, and internal routes require another role.

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use serde_json::json;
use tower::ServiceExt as _;
use urr_contracts::auth::{self, Auth};
use urr_kernel::Role;
use urr_rpc::internal_guard;
use urr_testkit::INTERNAL_TOKEN;

use super::{http::ask, world::World};

/// Who may use a route.
#[derive(Clone, Copy, PartialEq)]
enum For {
    Everybody,
    Users,
    Admins,
}

const ROUTES: [(&str, &str, For); 33] = [
    ("POST", "/api/auth/register", For::Everybody),
    ("GET", "/api/auth/me", For::Users),
    ("PATCH", "/api/auth/me", For::Users),
    ("DELETE", "/api/auth/me", For::Users),
    ("POST", "/api/auth/email/verification", For::Users),
    ("POST", "/api/auth/email/verify", For::Everybody),
    ("PUT", "/api/admin/users/{id}/role", For::Admins),
    ("POST", "/api/auth/identity/start", For::Users),
    ("POST", "/api/auth/identity/complete", For::Users),
    ("POST", "/api/auth/password", For::Users),
    ("POST", "/api/auth/password/forgot", For::Everybody),
    ("POST", "/api/auth/password/reset", For::Everybody),
    ("POST", "/api/auth/login/second-factor", For::Everybody),
    ("POST", "/api/auth/second-factor", For::Users),
    ("DELETE", "/api/auth/second-factor", For::Users),
    ("POST", "/api/auth/second-factor/confirm", For::Users),
    ("POST", "/api/auth/second-factor/recovery-codes", For::Users),
    ("POST", "/api/auth/login", For::Everybody),
    ("POST", "/api/auth/refresh", For::Everybody),
    ("POST", "/api/auth/logout", For::Everybody),
    ("POST", "/api/auth/verify-token", For::Everybody),
    ("GET", "/api/auth/sessions", For::Users),
    ("DELETE", "/api/auth/sessions/{id}", For::Users),
    ("GET", "/api/auth/history", For::Users),
    ("GET", "/api/auth/providers", For::Everybody),
    ("POST", "/api/auth/google", For::Everybody),
    ("GET", "/api/auth/{id}/start", For::Everybody),
    ("GET", "/api/auth/{id}/callback", For::Everybody),
    ("GET", "/api/auth/sign-up", For::Everybody),
    ("POST", "/api/auth/sign-up", For::Everybody),
    ("GET", "/api/auth/linked", For::Users),
    ("POST", "/api/auth/link/{id}", For::Users),
    ("DELETE", "/api/auth/link/{id}", For::Users),
];

pub(crate) async fn non_public_routes_refuse_anonymous_callers(world: &World) {
    let routes = urr_auth::routes(&world.service);
    let listed: Vec<_> = routes.names().iter().map(|name| (name.method.as_str(), name.path)).collect();
    let known: Vec<_> = ROUTES.iter().map(|(method, path, _)| (*method, *path)).collect();
    assert_eq!(listed, known, "every route is in the table");
    for (method, path, allowed) in ROUTES {
        let path = path.replace("{id}", "not-a-uuid");
        let asked = || ask(world, method.parse().unwrap(), &path);
        // Neither a bad path nor a bad body reveals more to an anonymous caller.
        for asked in [asked(), asked().json(&json!({ "password": 7 }))] {
            let (status, body) = asked.answer().await;
            let refused = (status, &body["code"]) == (StatusCode::UNAUTHORIZED, &json!("auth.required"));
            assert_eq!(refused, allowed != For::Everybody, "{method} {path}: {body}");
        }
        if allowed == For::Admins {
            let (status, body) = asked().by_role(Role::User).answer().await;
            assert_eq!(
                (status, &body["code"]),
                (StatusCode::FORBIDDEN, &json!("auth.admin_required")),
                "{path}"
            );
        }
    }
}

pub(crate) async fn internal_routes_require_the_internal_token(world: &World) {
    let service = std::sync::Arc::clone(&world.service) as std::sync::Arc<dyn Auth>;
    let routes = auth::internal_routes(service, world.clock.clone(), world.ids.clone());
    let routes = internal_guard(routes, INTERNAL_TOKEN);
    for method in ["register", "login", "refresh", "users", "revocations", "ensure_admin", "set_role"] {
        for (token, expected) in
            [(None, StatusCode::UNAUTHORIZED), (Some("Bearer wrong"), StatusCode::FORBIDDEN)]
        {
            let mut request = Request::post(format!("/internal/auth/{method}"));
            if let Some(token) = token {
                request = request.header(header::AUTHORIZATION, token);
            }
            let response = routes.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.status(), expected, "{method}");
        }
    }
}
