//! The policy of a route: access, rate limit and guards. Each route declares it where it is
//! registered, so a route without one does not compile.

use std::time::Duration;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anyone.
    Public,
    /// Signed-in users.
    User,
    /// Admins.
    Admin,
}

/// Routes that share a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Sign-in, sign-up and token refresh.
    Auth,
    /// Sign-in attempts per account, from any address. Counted by `auth`, which knows the account.
    Login,
    /// The event waiting room.
    Queue,
    /// The site waiting room: its page, and joining. Many phones share one address at on-sale.
    Arrivals,
    /// Holding and releasing seats and tickets.
    Booking,
    /// Payments.
    Payments,
    /// Everything else.
    General,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 7] =
        [Self::Auth, Self::Login, Self::Queue, Self::Arrivals, Self::Booking, Self::Payments, Self::General];

    /// The name in keys, metrics and responses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Login => "login",
            Self::Queue => "queue",
            Self::Arrivals => "arrivals",
            Self::Booking => "booking",
            Self::Payments => "payments",
            Self::General => "general",
        }
    }
}

/// Whether a route needs a pass while the site waiting room of its event is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// No.
    No,
    /// A pass for the event in the path.
    Path,
    /// The same; a browser without a pass is redirected to the waiting room's page.
    Page,
    /// Buying: a pass, and also a slot of the event waiting room, for the event in the request body.
    Body,
}

/// Who may call a route, which rate limit applies, and which guards run before it. Start from
/// [`PUBLIC`], [`USER`], [`ADMIN`] or [`PAGE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Who may call it.
    pub access: Access,
    /// Its rate limit; `None` if it is not limited.
    pub limit: Option<Class>,
    /// Whether to refuse requests while the rate limiter is unavailable. For routes where guessing
    /// pays off, such as sign-in.
    pub critical: bool,
    /// Whether it needs a pass of the site waiting room.
    pub line: Line,
    /// Whether its response does not end by itself.
    pub streams: bool,
    /// Whether it is a page for browsers, which the API document leaves out.
    pub page: bool,
}

/// Anyone may call it.
pub const PUBLIC: Policy = Policy::new(Access::Public);
/// Signed-in users may call it.
pub const USER: Policy = Policy::new(Access::User);
/// Admins may call it. Admin routes are critical.
pub const ADMIN: Policy = Policy { critical: true, ..Policy::new(Access::Admin) };
/// A page. Pages are public and redirect to sign-in themselves.
pub const PAGE: Policy = Policy { page: true, ..PUBLIC };

impl Policy {
    const fn new(access: Access) -> Self {
        let (limit, line) = (Some(Class::General), Line::No);
        Self { access, limit, critical: false, line, streams: false, page: false }
    }

    /// Counts requests against this class.
    pub const fn limit(self, class: Class) -> Self {
        Self { limit: Some(class), ..self }
    }

    /// Does not count requests.
    pub const fn unlimited(self) -> Self {
        Self { limit: None, ..self }
    }

    /// Refuses requests while they cannot be counted.
    pub const fn critical(self) -> Self {
        Self { critical: true, ..self }
    }

    /// Needs a pass of the site waiting room while that is open.
    pub const fn after_line(self, line: Line) -> Self {
        Self { line, ..self }
    }

    /// The response does not end by itself.
    pub const fn streaming(self) -> Self {
        Self { streams: true, ..self }
    }
}

/// How the gateway treats the routes of one role.
#[derive(Debug, PartialEq, Eq)]
pub struct RoleRoutes {
    /// The role's name in configuration, metrics and responses.
    pub role: &'static str,
    /// The message users see while the role does not answer.
    pub unavailable: &'static str,
    /// How long the role may take to begin a response.
    pub time_limit: Duration,
    /// Whether handlers read the verified access token: its session and expiry.
    pub reads_token: bool,
    /// Whether the role issues access tokens. Its routes must work with an expired token.
    pub issues_tokens: bool,
}

impl RoleRoutes {
    /// A role with 30 seconds for a response, whose handlers need only the actor.
    pub const fn new(role: &'static str, unavailable: &'static str) -> Self {
        let time_limit = Duration::from_secs(30);
        Self { role, unavailable, time_limit, reads_token: false, issues_tokens: false }
    }
}
