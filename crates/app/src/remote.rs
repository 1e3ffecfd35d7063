//! Calls to roles in other processes, and the route that reports this process's roles to them.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::{Json, Router, http::HeaderValue, http::header::AUTHORIZATION, routing::get};
use serde::{Deserialize, Serialize};
use urr_http::{Call, Client, ClientLimits, StatusCode, Target};
use urr_kernel::{BreakerLimits, Clock};
use urr_rpc::Remote;
use urr_telemetry::Check;

use crate::{
    config::Config,
    failure::Failure,
    roles::{Role, Roles},
};

/// Lists the roles of a process. It requires the token, so a wrong token is found before the first
/// sale.
const ROLES_PATH: &str = "/internal/roles";

/// The response of [`ROLES_PATH`].
#[derive(Debug, Serialize, Deserialize)]
struct Served {
    roles: Vec<String>,
}

/// The route [`ROLES_PATH`] of a process with these roles.
pub(crate) fn roles_route(roles: &Roles) -> Router {
    let names: Vec<String> = roles.iter().map(|role| role.name.to_owned()).collect();
    Router::new().route(ROLES_PATH, get(async move || Json(Served { roles: names })))
}

/// Limits of calls by guards: `auth` and `vwr` are polled several times a second, `queue` is called
/// for every buyer. The next response is worth more than a late one. Recovery must be noticed at
/// once, because users cannot sign in or buy until then. See docs/adr/0015.
fn brief() -> ClientLimits {
    let usual = ClientLimits::default();
    let breaker = BreakerLimits { open_for: Duration::from_secs(1), trials: 1, ..usual.breaker };
    ClientLimits { connect: Duration::from_secs(1), read: Duration::from_secs(2), tries: 1, breaker, ..usual }
}

/// A role in another process that this one calls.
#[derive(Clone)]
pub(crate) struct RemoteRole {
    /// The role.
    pub role: Role,
    target: Target,
    token: Arc<str>,
}

impl fmt::Display for RemoteRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.role.name, self.target.name())
    }
}

impl RemoteRole {
    /// Every role that this process calls and does not run.
    pub(crate) fn all(config: &Config, clock: &Clock) -> Result<Vec<Self>, Failure> {
        let usual = Client::new(ClientLimits::default(), clock.clone());
        let brief = Client::new(brief(), clock.clone());
        let token: Arc<str> = config.internal.token.as_ref().map_or("", |token| token.expose()).into();
        let remote_roles = config.needs_remote().filter_map(|role| Some((role, config.remote.of(role)?)));
        remote_roles
            .map(|(role, url)| {
                let by_guards = role.remote.as_ref().is_some_and(|used| used.by_guards.is_some());
                let client = if by_guards { &brief } else { &usual };
                let target = client.target(url.expose());
                let target =
                    target.map_err(|error| Failure::because(format!("remote.{}", role.name), &error))?;
                Ok(Self { role, target, token: Arc::clone(&token) })
            })
            .collect()
    }

    /// The client of the role's service.
    pub(crate) fn service(&self) -> Remote {
        Remote::new(self.target.clone(), &self.token)
    }

    /// Checks that the process answers, accepts our token and has the role.
    pub(crate) async fn probe(&self) -> Result<(), String> {
        let bearer = HeaderValue::from_str(&format!("Bearer {}", self.token));
        let bearer = bearer.map_err(|_| "the internal token is not printable ASCII".to_owned())?;
        // No retry: health checks repeat.
        let call = Call::get(ROLES_PATH).header(AUTHORIZATION, bearer).idempotent(false);
        let answer = self.target.send(call).await.map_err(|error| urr_telemetry::chain(&error))?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err("it rejected our internal.token; both processes need the same".to_owned());
            }
            status => return Err(format!("it answered {status}: this is not the internal listener of urr")),
        }
        let served: Served = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        if served.roles.iter().any(|role| role == self.role.name) {
            Ok(())
        } else {
            Err(format!("it has the roles {} and not {}", served.roles.join(", "), self.role.name))
        }
    }
}

#[async_trait]
impl Check for RemoteRole {
    async fn check(&self) -> Result<(), String> {
        self.probe().await
    }
}
