#![doc = include_str!("../README.md")]

mod settings;

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use lambda_http::{RequestExt as _, http::Uri, request::RequestContext};
use urr_aws::Dynamo;
use urr_http::{AccessLog, Edge, EdgeParts, Limits, Problem, Respond as _};
use urr_jobs::Tasks;
use urr_kernel::{Clock, Ids};
use urr_telemetry::Health;
use urr_vwr::{Counters, Parts, Service};

pub use self::settings::{BadSetting, Settings};

/// `Retry-After` of requests that arrive before the rooms are loaded.
const COME_BACK: Duration = Duration::from_secs(2);

/// Tier 1 as a Lambda function.
pub struct Function {
    vwr: Arc<Service>,
    edge: Edge<Router>,
}

impl Function {
    /// Builds the function. Does not call AWS yet.
    pub fn new(settings: Settings, clock: &Clock, ids: &Ids) -> Result<Self, urr_aws::ConfigError> {
        let dynamo = Dynamo::connect(settings.aws, clock.clone())?;
        let prefix = &settings.table_prefix;
        let vwr = urr_vwr::build(Parts {
            db: None,
            counters: Counters::dynamo_db(dynamo, prefix, None, clock.clone(), ids.clone()),
            clock: clock.clone(),
            ids: ids.clone(),
            secrets: settings.secrets,
            tasks: Tasks::new(),
            // API Gateway and load balancers always use TLS.
            secure_cookies: true,
        });
        let router = Router::from(urr_vwr::visitor_routes(&vwr));
        let parts = EdgeParts {
            limits: Limits::default(),
            ids: ids.clone(),
            clock: clock.clone(),
            access_log: AccessLog::default(),
            health: Health::new(),
            hsts: false,
        };
        Ok(Self { vwr, edge: Edge::around(urr_http::named(router), parts) })
    }

    /// Handles one event.
    pub async fn answer(&self, request: lambda_http::Request) -> Result<Response, Infallible> {
        if let Err(error) = self.vwr.refresh_if_old().await {
            tracing::warn!(
                error,
                "cannot load the rooms: using the last known state, or 503 if there is none"
            );
        }
        if !self.vwr.is_loaded() {
            let message = "The waiting room cannot be reached. Please try again in a moment.";
            let problem = Problem::of(urr_http::codes::UNAVAILABLE, message);
            return Ok(problem.retry_after(COME_BACK).into_response());
        }
        Ok(self.edge.respond(plain(request)).await)
    }
}

/// The request as the browser sent it, without the API stage at the start of its path.
fn plain(request: lambda_http::Request) -> Request {
    let stage = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV1(context)) => context.stage.as_deref(),
        Some(RequestContext::ApiGatewayV2(context)) => context.stage.as_deref(),
        _ => None,
    };
    let path = without_stage(request.raw_http_path(), stage);
    let uri = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let (mut parts, body) = request.into_parts();
    // An invalid path is routed to `/`, which has no handler.
    parts.uri = uri.parse().unwrap_or_else(|_| Uri::from_static("/"));
    parts.extensions.clear();
    let body = match body {
        lambda_http::Body::Text(text) => Body::from(text),
        lambda_http::Body::Binary(bytes) => Body::from(bytes),
        _ => Body::empty(),
    };
    Request::from_parts(parts, body)
}

/// An HTTP API prefixes the path with its stage, unless that is the default one.
fn without_stage<'p>(path: &'p str, stage: Option<&str>) -> &'p str {
    let rest = stage.and_then(|stage| path.strip_prefix('/')?.strip_prefix(stage));
    rest.filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_stage_prefix_is_removed() {
        for (path, stage, expected) in [
            ("/prod/vwr/status/1", Some("prod"), "/vwr/status/1"),
            ("/vwr/status/1", Some("prod"), "/vwr/status/1"),
            ("/vwr/status/1", Some("$default"), "/vwr/status/1"),
            ("/vwr/status/1", Some("vw"), "/vwr/status/1"),
            ("/vwr/status/1", None, "/vwr/status/1"),
            ("/prod", Some("prod"), "/prod"),
        ] {
            assert_eq!(without_stage(path, stage), expected, "{path} on {stage:?}");
        }
    }
}
