//! Request metrics by route. Looking up a metric by its labels allocates, so the handles are
//! cached.

use std::{collections::HashMap, time::Duration};

use arc_swap::ArcSwap;
use http::{Method, StatusCode};

/// Label of requests that matched no route.
const NO_ROUTE: &str = "none";

/// One entry per route, method and status. These are few and fixed, so the map soon stops changing
/// and lookups share it across cores without writing.
#[derive(Default)]
pub(super) struct Numbers(ArcSwap<HashMap<String, Vec<Handles>>>);

#[derive(Clone)]
struct Handles {
    method: &'static str,
    status: StatusCode,
    requests: metrics::Counter,
    seconds: metrics::Histogram,
}

impl Numbers {
    pub(super) fn count(&self, route: Option<&str>, method: &Method, status: StatusCode, took: Duration) {
        let (route, method) = (route.unwrap_or(NO_ROUTE), label(method));
        let known = self.0.load();
        if let Some(handles) = known.get(route).and_then(|known| find(known, method, status)) {
            handles.count(took);
            return;
        }
        let new = Handles::new(route, method, status);
        new.count(took);
        self.0.rcu(|known| {
            let mut known = HashMap::clone(known);
            let of_route = known.entry(route.to_owned()).or_default();
            if find(of_route, method, status).is_none() {
                of_route.push(new.clone());
            }
            known
        });
    }
}

fn find<'h>(known: &'h [Handles], method: &str, status: StatusCode) -> Option<&'h Handles> {
    known.iter().find(|handles| handles.status == status && handles.method == method)
}

/// Clients can invent methods; "OTHER" bounds the number of label values.
fn label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        _ => "OTHER",
    }
}

impl Handles {
    fn new(route: &str, method: &'static str, status: StatusCode) -> Self {
        let route = route.to_owned();
        let code = status.as_u16().to_string();
        Self {
            method,
            status,
            requests: metrics::counter!(
                "urr_http_requests_total", "route" => route.clone(), "method" => method, "status" => code
            ),
            seconds: metrics::histogram!("urr_http_request_seconds", "route" => route, "method" => method),
        }
    }

    fn count(&self, took: Duration) {
        self.requests.increment(1);
        self.seconds.record(took);
    }
}
