//! Sample roles with routes of every kind of policy. The routes of the product are tested in `app`.

use std::time::Duration;

use axum::http::Method;
use urr_http::{ADMIN, About, Class, Line, PAGE, PUBLIC, Policy, RoleRoutes, RouteName, USER};

pub(crate) static AUTH: RoleRoutes = RoleRoutes {
    reads_token: true,
    issues_tokens: true,
    ..RoleRoutes::new("auth", "Sign-in is unavailable right now. Please try again in a moment.")
};
const AUTH_ROUTES: &[(&str, &str, Policy)] = &[
    ("POST", "/api/auth/register", PUBLIC.limit(Class::Auth).critical()),
    ("POST", "/api/auth/login", PUBLIC.limit(Class::Auth).critical()),
    ("POST", "/api/auth/refresh", PUBLIC.limit(Class::Auth)),
    ("POST", "/api/auth/google", PUBLIC.limit(Class::Auth).critical()),
    ("POST", "/api/auth/verify-token", PUBLIC.limit(Class::Auth).critical()),
    ("POST", "/api/auth/logout", PUBLIC.limit(Class::Auth)),
    ("GET", "/api/auth/me", USER),
    ("PATCH", "/api/auth/me", USER.limit(Class::Auth).critical()),
    ("DELETE", "/api/auth/me", USER.limit(Class::Auth).critical()),
    ("POST", "/api/auth/password", USER.limit(Class::Auth).critical()),
    ("POST", "/api/auth/password/forgot", PUBLIC.limit(Class::Auth).critical()),
    ("POST", "/api/auth/password/reset", PUBLIC.limit(Class::Auth).critical()),
    ("POST", "/api/auth/email/verification", USER.limit(Class::Auth).critical()),
    ("POST", "/api/auth/email/verify", PUBLIC.limit(Class::Auth).critical()),
    ("POST", "/api/auth/login/second-factor", PUBLIC.limit(Class::Auth).critical()),
    ("POST", "/api/auth/second-factor", USER.limit(Class::Auth).critical()),
    ("DELETE", "/api/auth/second-factor", USER.limit(Class::Auth).critical()),
    ("POST", "/api/auth/second-factor/confirm", USER.limit(Class::Auth).critical()),
    ("POST", "/api/auth/second-factor/recovery-codes", USER.limit(Class::Auth).critical()),
    ("POST", "/api/auth/identity/start", USER.limit(Class::Auth).critical()),
    ("POST", "/api/auth/identity/complete", USER.limit(Class::Auth).critical()),
    ("GET", "/api/auth/sessions", USER.limit(Class::Auth)),
    ("DELETE", "/api/auth/sessions/{id}", USER.limit(Class::Auth)),
    ("GET", "/api/auth/history", USER.limit(Class::Auth)),
    ("GET", "/api/auth/providers", PUBLIC.limit(Class::Auth)),
    ("GET", "/api/auth/{id}/start", PUBLIC.limit(Class::Auth).critical()),
    ("GET", "/api/auth/{id}/callback", PUBLIC.limit(Class::Auth).critical()),
    ("GET", "/api/auth/sign-up", PUBLIC.limit(Class::Auth)),
    ("POST", "/api/auth/sign-up", PUBLIC.limit(Class::Auth).critical()),
    ("GET", "/api/auth/linked", USER.limit(Class::Auth)),
    ("POST", "/api/auth/link/{id}", USER.limit(Class::Auth).critical()),
    ("DELETE", "/api/auth/link/{id}", USER.limit(Class::Auth).critical()),
    ("PUT", "/api/admin/users/{id}/role", ADMIN),
];

pub(crate) static CATALOG: RoleRoutes =
    RoleRoutes::new("catalog", "Catalog is unavailable right now. Please try again in a moment.");
const CATALOG_ROUTES: &[(&str, &str, Policy)] = &[
    ("GET", "/api/events", PUBLIC),
    ("GET", "/api/events/{id}", PUBLIC),
    ("GET", "/api/artists", PUBLIC),
    ("GET", "/api/artists/{id}", PUBLIC),
    ("POST", "/api/artists/enrich", ADMIN),
    ("GET", "/api/admin/seat-layouts", ADMIN),
    ("POST", "/api/admin/events", ADMIN),
    ("PUT", "/api/admin/events/{id}", ADMIN),
    ("DELETE", "/api/admin/events/{id}", ADMIN),
    ("POST", "/api/admin/events/{id}/cancel", ADMIN),
    ("POST", "/api/admin/events/{id}/generate-seats", ADMIN),
    ("DELETE", "/api/admin/events/{id}/seats", ADMIN),
    ("POST", "/api/admin/events/{id}/tickets", ADMIN),
    ("PUT", "/api/admin/tickets/{id}", ADMIN),
    ("POST", "/api/image/upload", ADMIN),
];

pub(crate) static TICKETS: RoleRoutes =
    RoleRoutes::new("tickets", "Tickets is unavailable right now. Please try again in a moment.");
const TICKETS_ROUTES: &[(&str, &str, Policy)] = &[
    ("GET", "/api/time", PUBLIC),
    ("GET", "/api/tickets/event/{id}", PUBLIC),
    ("GET", "/api/tickets/availability/{id}", PUBLIC),
    ("GET", "/api/seats/layouts", PUBLIC),
    ("GET", "/api/seats/events/{id}", PUBLIC.after_line(Line::Path)),
    ("POST", "/api/seats/reserve", USER.limit(Class::Booking).after_line(Line::Body)),
    ("GET", "/api/seats/reservation/{id}", USER),
    ("POST", "/api/reservations", USER.limit(Class::Booking).after_line(Line::Body)),
    ("GET", "/api/reservations/my", USER),
    ("GET", "/api/reservations/{id}", USER),
    ("POST", "/api/reservations/{id}/cancel", USER.limit(Class::Booking)),
    ("GET", "/api/admin/reservations", ADMIN),
    ("PATCH", "/api/admin/reservations/{id}/status", ADMIN),
    ("POST", "/api/memberships/subscribe", USER),
    ("GET", "/api/memberships/my", USER),
    ("GET", "/api/memberships/my/{id}", USER),
    ("GET", "/api/memberships/benefits/{id}", USER),
    ("POST", "/api/transfers", USER),
    ("GET", "/api/transfers", USER),
    ("GET", "/api/transfers/my", USER),
    ("GET", "/api/transfers/{id}", USER),
    ("POST", "/api/transfers/{id}/cancel", USER),
];

pub(crate) static PAYMENTS: RoleRoutes = RoleRoutes {
    time_limit: Duration::from_mins(1),
    ..RoleRoutes::new("payments", "Payments are not possible right now. Nothing was charged by this request.")
};
const PAYMENTS_ROUTES: &[(&str, &str, Policy)] = &[
    ("POST", "/api/payments/prepare", USER.limit(Class::Payments).critical()),
    ("POST", "/api/payments/confirm", USER.limit(Class::Payments).critical()),
    ("POST", "/api/payments/process", USER.limit(Class::Payments).critical()),
    ("POST", "/api/payments/{id}/cancel", USER.limit(Class::Payments).critical()),
    ("GET", "/api/payments/order/{id}", USER),
    ("GET", "/api/payments/user/me", USER),
];

pub(crate) static QUEUE: RoleRoutes = RoleRoutes {
    time_limit: Duration::from_secs(10),
    ..RoleRoutes::new("queue", "Queue is unavailable right now. Please try again in a moment.")
};
const QUEUE_ROUTES: &[(&str, &str, Policy)] = &[
    ("POST", "/api/queue/check/{id}", USER.limit(Class::Queue).after_line(Line::Path)),
    ("GET", "/api/queue/status/{id}", USER.limit(Class::Queue)),
    ("POST", "/api/queue/heartbeat/{id}", USER.limit(Class::Queue)),
    ("POST", "/api/queue/leave/{id}", USER.limit(Class::Queue)),
    ("GET", "/api/queue/admin/{id}", ADMIN.limit(Class::Queue)),
    ("PUT", "/api/queue/admin/threshold/{id}", ADMIN.limit(Class::Queue)),
    ("POST", "/api/queue/admin/threshold/{id}", ADMIN.limit(Class::Queue)),
    ("POST", "/api/queue/admin/clear/{id}", ADMIN.limit(Class::Queue)),
    ("POST", "/api/queue/admin/pause/{id}", ADMIN.limit(Class::Queue)),
    ("POST", "/api/queue/admin/resume/{id}", ADMIN.limit(Class::Queue)),
    ("GET", "/api/queue/admin/audit/{id}", ADMIN.limit(Class::Queue)),
    ("GET", "/api/queue/admin/live/{id}", ADMIN.limit(Class::Queue).streaming()),
];

pub(crate) static VWR: RoleRoutes =
    RoleRoutes::new("vwr", "Vwr is unavailable right now. Please try again in a moment.");
const VWR_ROUTES: &[(&str, &str, Policy)] = &[
    ("POST", "/vwr/assign/{id}", PUBLIC.limit(Class::Arrivals)),
    ("GET", "/vwr/check/{id}/{ticket}", PUBLIC.unlimited()),
    ("GET", "/vwr/serving/{id}", PUBLIC.unlimited()),
    ("GET", "/vwr/status/{id}", PUBLIC.unlimited()),
    ("POST", "/vwr-api/vwr/assign/{id}", PUBLIC.limit(Class::Arrivals)),
    ("GET", "/vwr-api/vwr/check/{id}/{ticket}", PUBLIC.unlimited()),
    ("GET", "/vwr-api/vwr/serving/{id}", PUBLIC.unlimited()),
    ("GET", "/vwr-api/vwr/status/{id}", PUBLIC.unlimited()),
    ("GET", "/vwr/{id}", PAGE.limit(Class::Arrivals)),
    ("ANY", "/edge/check", PUBLIC.unlimited()),
    ("POST", "/api/admin/vwr/activate/{id}", ADMIN),
    ("POST", "/api/admin/vwr/deactivate/{id}", ADMIN),
    ("GET", "/api/admin/vwr/status/{id}", ADMIN),
    ("POST", "/api/admin/vwr/advance/{id}", ADMIN),
    ("PUT", "/api/admin/vwr/rate/{id}", ADMIN),
    ("POST", "/api/admin/vwr/pause/{id}", ADMIN),
    ("POST", "/api/admin/vwr/resume/{id}", ADMIN),
    ("GET", "/api/admin/vwr/rooms", ADMIN),
    ("GET", "/api/admin/vwr/live/{id}", ADMIN.streaming()),
];

pub(crate) static STATS: RoleRoutes =
    RoleRoutes::new("stats", "Stats is unavailable right now. Please try again in a moment.");
const STATS_ROUTES: &[(&str, &str, Policy)] = &[
    ("GET", "/api/stats/overview", ADMIN),
    ("GET", "/api/stats/daily", ADMIN),
    ("GET", "/api/stats/events", ADMIN),
    ("GET", "/api/stats/events/{id}", ADMIN),
    ("GET", "/api/stats/payments", ADMIN),
    ("GET", "/api/stats/revenue", ADMIN),
    ("GET", "/api/stats/users", ADMIN),
    ("GET", "/api/stats/hourly-traffic", ADMIN),
    ("GET", "/api/stats/conversion", ADMIN),
    ("GET", "/api/stats/cancellations", ADMIN),
    ("GET", "/api/stats/realtime", ADMIN),
    ("GET", "/api/stats/seat-preferences", ADMIN),
    ("GET", "/api/stats/user-behavior", ADMIN),
    ("GET", "/api/stats/performance", ADMIN),
    ("GET", "/api/admin/dashboard", ADMIN),
    ("GET", "/api/admin/dashboard/stats", ADMIN),
];

pub(crate) static SITE: RoleRoutes = RoleRoutes {
    reads_token: true,
    ..RoleRoutes::new("site", "Site is unavailable right now. Please try again in a moment.")
};
const SITE_ROUTES: &[(&str, &str, Policy)] = &[
    ("GET", "/", PAGE),
    ("GET", "/search", PAGE),
    ("GET", "/login", PAGE),
    ("GET", "/register", PAGE),
    ("GET", "/forgot-password", PAGE),
    ("GET", "/reset-password", PAGE),
    ("GET", "/verify-email", PAGE),
    ("GET", "/account", PAGE),
    ("GET", "/events/{id}", PAGE),
    ("GET", "/events/{id}/seats", PAGE.after_line(Line::Page)),
    ("GET", "/events/{id}/book", PAGE.after_line(Line::Page)),
    ("GET", "/queue/{id}", PAGE.after_line(Line::Page)),
    ("GET", "/payment/{id}", PAGE),
    ("GET", "/payment/success", PAGE),
    ("GET", "/payment/fail", PAGE),
    ("GET", "/payment-success/{id}", PAGE),
    ("GET", "/my-reservations", PAGE),
    ("GET", "/reservations/{id}", PAGE),
    ("GET", "/artists", PAGE),
    ("GET", "/artists/{id}", PAGE),
    ("GET", "/membership-payment/{id}", PAGE),
    ("GET", "/my-memberships", PAGE),
    ("GET", "/transfers", PAGE),
    ("GET", "/transfers/my", PAGE),
    ("GET", "/transfer-payment/{id}", PAGE),
    ("GET", "/community", PAGE),
    ("GET", "/community/{id}", PAGE),
    ("GET", "/news", PAGE),
    ("GET", "/news/{id}", PAGE),
    ("GET", "/admin", PAGE),
    ("GET", "/admin/queue", PAGE),
    ("GET", "/admin/queue/{id}", PAGE),
    ("GET", "/admin/events", PAGE),
    ("GET", "/admin/events/new", PAGE),
    ("GET", "/admin/events/edit/{id}", PAGE),
    ("GET", "/admin/reservations", PAGE),
    ("GET", "/admin/statistics", PAGE),
    ("GET", "/static/{*path}", PAGE.unlimited()),
    ("GET", "/favicon.ico", PAGE.unlimited()),
    ("GET", "/robots.txt", PAGE.unlimited()),
];

/// Every sample role.
pub(crate) static ROLES: [&RoleRoutes; 8] =
    [&AUTH, &CATALOG, &TICKETS, &PAYMENTS, &QUEUE, &VWR, &STATS, &SITE];

/// The routes of a sample role.
pub(crate) fn names(role: &RoleRoutes) -> Vec<RouteName> {
    let rows = match role.role {
        "auth" => AUTH_ROUTES,
        "catalog" => CATALOG_ROUTES,
        "tickets" => TICKETS_ROUTES,
        "payments" => PAYMENTS_ROUTES,
        "queue" => QUEUE_ROUTES,
        "vwr" => VWR_ROUTES,
        "stats" => STATS_ROUTES,
        "site" => SITE_ROUTES,
        other => panic!("{other} is no sample role"),
    };
    let name = |(method, path, policy): &(&str, &'static str, Policy)| {
        let any_method = *method == "ANY";
        let method = if any_method { Method::GET } else { method.parse().unwrap() };
        RouteName { method, any_method, path, policy: *policy, about: About::default() }
    };
    rows.iter().map(name).collect()
}

/// Every route of the sample roles.
pub(crate) fn all() -> Vec<(&'static RoleRoutes, RouteName)> {
    ROLES.into_iter().flat_map(|role| names(role).into_iter().map(move |name| (role, name))).collect()
}

/// The policy of a sample route.
pub(crate) fn policy(method: &str, path: &str) -> Policy {
    let mut routes = all().into_iter();
    let found = routes.find(|(_, name)| name.method.as_str() == method && name.path == path);
    found.unwrap_or_else(|| panic!("{method} {path} is no sample route")).1.policy
}
