//! The table itself. A parameter is called `{id}` wherever a path has one, because routers refuse two names in one place.

use super::{Access, Route, Service};
use crate::limit::Class;

pub(super) static ALL: [&[Route]; 10] =
    [AUTH, CATALOG, TICKETS, PAYMENTS, QUEUE, VWR, COMMUNITY, STATS, SITE, GATEWAY];

/// Rows of one service: method, path, who may ask, and what it is counted as if that is not [`Class::General`].
macro_rules! of {
    ($service:ident { $($method:ident $path:literal $access:ident $($mark:ident $(($class:ident))?)*;)* }) => {
        &[$(
            Route::new(stringify!($method), $path, Service::$service, Access::$access)
                $(.$mark($(Class::$class)?))*
        ),*]
    };
}

/// Accounts and sessions. Everything but `me` is counted as signing in. Whatever proves or changes who somebody is, is critical;
/// ending a session is not, because that must work when little else does. Neither is going on with one: nobody guesses 256 random
/// bits, who has the token may go on by the database alone, and an outage of an hour must not sign everybody out.
const AUTH: &[Route] = of!(Auth {
    POST   "/api/auth/register"           Public counted_as(Auth) critical;
    POST   "/api/auth/login"              Public counted_as(Auth) critical;
    POST   "/api/auth/refresh"            Public counted_as(Auth);
    POST   "/api/auth/google"             Public counted_as(Auth) critical;
    POST   "/api/auth/verify-token"       Public counted_as(Auth) critical;
    POST   "/api/auth/logout"             Public counted_as(Auth);
    GET    "/api/auth/me"                 User   uncounted;
    PATCH  "/api/auth/me"                 User   counted_as(Auth) critical;
    DELETE "/api/auth/me"                 User   counted_as(Auth) critical;
    POST   "/api/auth/password"           User   counted_as(Auth) critical;
    POST   "/api/auth/password/forgot"    Public counted_as(Auth) critical;
    POST   "/api/auth/password/reset"     Public counted_as(Auth) critical;
    POST   "/api/auth/email/verification" User   counted_as(Auth) critical;
    POST   "/api/auth/email/verify"       Public counted_as(Auth) critical;
    POST   "/api/auth/login/second-factor" Public counted_as(Auth) critical;
    POST   "/api/auth/second-factor"      User   counted_as(Auth) critical;
    DELETE "/api/auth/second-factor"      User   counted_as(Auth) critical;
    POST   "/api/auth/second-factor/confirm" User counted_as(Auth) critical;
    POST   "/api/auth/second-factor/recovery-codes" User counted_as(Auth) critical;
    POST   "/api/auth/identity/start"     User   counted_as(Auth) critical;
    POST   "/api/auth/identity/complete"  User   counted_as(Auth) critical;
    GET    "/api/auth/sessions"           User   counted_as(Auth);
    DELETE "/api/auth/sessions/{id}"      User   counted_as(Auth);
    GET    "/api/auth/history"            User   counted_as(Auth);
    GET    "/api/auth/providers"          Public counted_as(Auth);
    GET    "/api/auth/{id}/start"         Public counted_as(Auth) critical;
    GET    "/api/auth/{id}/callback"      Public counted_as(Auth) critical;
    GET    "/api/auth/sign-up"            Public counted_as(Auth);
    POST   "/api/auth/sign-up"            Public counted_as(Auth) critical;
    GET    "/api/auth/linked"         User   counted_as(Auth);
    POST   "/api/auth/link/{id}"          User   counted_as(Auth) critical;
    DELETE "/api/auth/link/{id}"          User   counted_as(Auth) critical;
    PUT    "/api/admin/users/{id}/role"   Admin;
});

/// Events, artists, halls.
const CATALOG: &[Route] = of!(Catalog {
    GET    "/api/events"                           Public;
    GET    "/api/events/{id}"                      Public;
    GET    "/api/artists"                          Public;
    GET    "/api/artists/{id}"                     Public;
    POST   "/api/artists/enrich"                   Admin;
    GET    "/api/admin/seat-layouts"               Admin;
    POST   "/api/admin/events"                     Admin;
    PUT    "/api/admin/events/{id}"                Admin;
    DELETE "/api/admin/events/{id}"                Admin;
    POST   "/api/admin/events/{id}/cancel"         Admin;
    POST   "/api/admin/events/{id}/generate-seats" Admin;
    DELETE "/api/admin/events/{id}/seats"          Admin;
    POST   "/api/admin/events/{id}/tickets"        Admin;
    PUT    "/api/admin/tickets/{id}"               Admin;
    POST   "/api/image/upload"                     Admin;
});

/// Seats, reservations, memberships, transfers.
const TICKETS: &[Route] = of!(Tickets {
    GET   "/api/time"                           Public;
    GET   "/api/tickets/event/{id}"             Public;
    GET   "/api/tickets/availability/{id}"      Public;
    GET   "/api/seats/layouts"                  Public;
    GET   "/api/seats/events/{id}"              Public after_line;
    POST  "/api/seats/reserve"                  User counted_as(Booking) body_after_line with_slot;
    GET   "/api/seats/reservation/{id}"         User;
    POST  "/api/reservations"                   User counted_as(Booking) body_after_line with_slot;
    GET   "/api/reservations/my"                User;
    GET   "/api/reservations/{id}"              User;
    POST  "/api/reservations/{id}/cancel"       User counted_as(Booking);
    GET   "/api/admin/reservations"             Admin;
    PATCH "/api/admin/reservations/{id}/status" Admin;
    POST  "/api/memberships/subscribe"          User;
    GET   "/api/memberships/my"                 User;
    GET   "/api/memberships/my/{id}"            User;
    GET   "/api/memberships/benefits/{id}"      User;
    POST  "/api/transfers"                      User;
    GET   "/api/transfers"                      User;
    GET   "/api/transfers/my"                   User;
    GET   "/api/transfers/{id}"                 User;
    POST  "/api/transfers/{id}/cancel"          User;
});

/// Payments. Looking is general; everything else is counted and critical.
const PAYMENTS: &[Route] = of!(Payments {
    POST "/api/payments/prepare"     User counted_as(Payments) critical;
    POST "/api/payments/confirm"     User counted_as(Payments) critical;
    POST "/api/payments/process"     User counted_as(Payments) critical;
    POST "/api/payments/{id}/cancel" User counted_as(Payments) critical;
    GET  "/api/payments/order/{id}"  User;
    GET  "/api/payments/user/me"     User;
});

/// The waiting room in front of one event.
const QUEUE: &[Route] = of!(Queue {
    POST "/api/queue/check/{id}"           User counted_as(Queue) after_line;
    GET  "/api/queue/status/{id}"          User counted_as(Queue);
    POST "/api/queue/heartbeat/{id}"       User counted_as(Queue);
    POST "/api/queue/leave/{id}"           User counted_as(Queue);
    GET  "/api/queue/my"                   User counted_as(Queue);
    GET  "/api/queue/admin/{id}"           Admin counted_as(Queue);
    PUT  "/api/queue/admin/threshold/{id}" Admin counted_as(Queue);
    POST "/api/queue/admin/threshold/{id}" Admin counted_as(Queue);
    POST "/api/queue/admin/clear/{id}"     Admin counted_as(Queue);
    POST "/api/queue/admin/pause/{id}"     Admin counted_as(Queue);
    POST "/api/queue/admin/resume/{id}"    Admin counted_as(Queue);
    GET  "/api/queue/admin/audit/{id}"     Admin counted_as(Queue);
    GET  "/api/queue/admin/live/{id}"      Admin counted_as(Queue) streaming;
});

/// The waiting room in front of everything, under both of its names, its page, and the answer for other people's proxies. What a
/// crowd asks again and again is not counted: answering costs less than counting, and a thousand phones share one address. Taking a
/// place is, and so is the page, which gives one to browsers without scripts.
const VWR: &[Route] = of!(Vwr {
    POST "/vwr/assign/{id}"                 Public counted_as(Arrivals);
    GET  "/vwr/check/{id}/{ticket}"         Public uncounted;
    GET  "/vwr/serving/{id}"                Public uncounted;
    GET  "/vwr/status/{id}"                 Public uncounted;
    POST "/vwr-api/vwr/assign/{id}"         Public counted_as(Arrivals);
    GET  "/vwr-api/vwr/check/{id}/{ticket}" Public uncounted;
    GET  "/vwr-api/vwr/serving/{id}"        Public uncounted;
    GET  "/vwr-api/vwr/status/{id}"         Public uncounted;
    GET  "/vwr/{id}"                        Public counted_as(Arrivals);
    GET  "/edge/check"                      Public uncounted any_method;
    POST "/api/admin/vwr/activate/{id}"     Admin;
    POST "/api/admin/vwr/deactivate/{id}"   Admin;
    GET  "/api/admin/vwr/status/{id}"       Admin;
    POST "/api/admin/vwr/advance/{id}"      Admin;
    PUT  "/api/admin/vwr/rate/{id}"         Admin;
    POST "/api/admin/vwr/pause/{id}"        Admin;
    POST "/api/admin/vwr/resume/{id}"       Admin;
    GET  "/api/admin/vwr/rooms"             Admin;
    GET  "/api/admin/vwr/live/{id}"         Admin streaming;
});

/// Posts, comments, news.
const COMMUNITY: &[Route] = of!(Community {
    GET    "/api/community/posts"                         Public;
    GET    "/api/community/posts/{id}"                    Public;
    POST   "/api/community/posts"                         User;
    PUT    "/api/community/posts/{id}"                    User;
    DELETE "/api/community/posts/{id}"                    User;
    GET    "/api/community/posts/{id}/comments"           Public;
    POST   "/api/community/posts/{id}/comments"           User;
    DELETE "/api/community/posts/{id}/comments/{comment}" User;
    GET    "/api/news"                                    Public;
    GET    "/api/news/{id}"                               Public;
    POST   "/api/news"                                    Admin;
    PUT    "/api/news/{id}"                               Admin;
    DELETE "/api/news/{id}"                               Admin;
});

/// Statistics, for operators.
const STATS: &[Route] = of!(Stats {
    GET "/api/stats/overview"         Admin;
    GET "/api/stats/daily"            Admin;
    GET "/api/stats/events"           Admin;
    GET "/api/stats/events/{id}"      Admin;
    GET "/api/stats/payments"         Admin;
    GET "/api/stats/revenue"          Admin;
    GET "/api/stats/users"            Admin;
    GET "/api/stats/hourly-traffic"   Admin;
    GET "/api/stats/conversion"       Admin;
    GET "/api/stats/cancellations"    Admin;
    GET "/api/stats/realtime"         Admin;
    GET "/api/stats/seat-preferences" Admin;
    GET "/api/stats/user-behavior"    Admin;
    GET "/api/stats/performance"      Admin;
    GET "/api/admin/dashboard"        Admin;
    GET "/api/admin/dashboard/stats"  Admin;
});

/// Pages. They show themselves to anybody and send whoever must sign in to the page where that is done, so none asks for more
/// than nothing here.
const SITE: &[Route] = of!(Site {
    GET "/"                        Public;
    GET "/search"                  Public;
    GET "/login"                   Public;
    GET "/register"                Public;
    GET "/forgot-password"         Public;
    GET "/reset-password"          Public;
    GET "/verify-email"            Public;
    GET "/account"                 Public;
    GET "/events/{id}"             Public;
    GET "/events/{id}/seats"       Public page_after_line;
    GET "/events/{id}/book"        Public page_after_line;
    GET "/queue/{id}"              Public page_after_line;
    GET "/payment/{id}"            Public;
    GET "/payment/success"         Public;
    GET "/payment/fail"            Public;
    GET "/payment-success/{id}"    Public;
    GET "/my-reservations"         Public;
    GET "/reservations/{id}"       Public;
    GET "/artists"                 Public;
    GET "/artists/{id}"            Public;
    GET "/membership-payment/{id}" Public;
    GET "/my-memberships"          Public;
    GET "/transfers"               Public;
    GET "/transfers/my"            Public;
    GET "/transfer-payment/{id}"   Public;
    GET "/community"               Public;
    GET "/community/{id}"          Public;
    GET "/news"                    Public;
    GET "/news/{id}"               Public;
    GET "/admin"                   Public;
    GET "/admin/queue"             Public;
    GET "/admin/queue/{id}"        Public;
    GET "/admin/events"            Public;
    GET "/admin/events/new"        Public;
    GET "/admin/events/edit/{id}"  Public;
    GET "/admin/reservations"      Public;
    GET "/admin/statistics"        Public;
    GET "/static/{*path}"          Public uncounted;
    GET "/favicon.ico"             Public uncounted;
    GET "/robots.txt"              Public uncounted;
});

/// What this crate answers itself, and what operators ask. Probes are never counted: a busy machine must not be taken for a dead one.
const GATEWAY: &[Route] = of!(Gateway {
    GET "/api/openapi.json" Public;
    GET "/api/docs"         Public;
    GET "/api/docs/{file}"  Public;
    GET "/health/live"      Public uncounted;
    GET "/health/ready"     Public uncounted;
    GET "/metrics"          Public uncounted;
});
