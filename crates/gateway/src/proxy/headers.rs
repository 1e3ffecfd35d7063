//! Headers of forwarded requests and responses.

use axum::extract::Request;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use urr_http::{ClientAddress, Problem};

use crate::{address::HEARSAY, codes, inbound::HOP, origin};

/// Hop-by-hop headers (RFC 9110, section 7.6.1). `Content-Length` is among them for requests: the
/// framing on the next connection follows from the body, never from the client's header.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Our name in `Via`.
const VIA: HeaderValue = HeaderValue::from_static("1.1 urr");

/// Two gateways in a row are normal. More indicate a configuration that forwards requests in a
/// loop.
const MAX_GATEWAYS: usize = 4;

/// Prepares the headers of a request for the next connection. `mark` proves to the next gateway
/// that we forwarded it.
pub(super) fn outbound(request: &mut Request, mark: &str) -> Result<(), Problem> {
    let host = origin::host(request.uri(), request.headers());
    let client = ClientAddress::of(request.extensions());
    let id = urr_http::request_id(request.extensions());
    let headers = request.headers_mut();
    if headers.get_all(header::VIA).iter().filter(|via| **via == VIA).count() >= MAX_GATEWAYS {
        return Err(Problem::of(codes::LOOP, "This request has passed through too many gateways."));
    }
    remove_hop_by_hop(headers);
    headers.remove(header::CONTENT_LENGTH);
    // The server that reads the body sends `100 Continue`; the upstream has nothing to wait for.
    headers.remove(header::EXPECT);
    // What proxies in front of us reported has already been evaluated.
    for name in HEARSAY {
        headers.remove(name);
    }
    headers.append(header::VIA, VIA);
    headers.insert(HOP, printable(mark));
    headers.insert(X_FORWARDED_FOR, printable(&client.0.to_string()));
    if let Some(id) = id {
        headers.insert(X_REQUEST_ID, printable(&id.to_string()));
    }
    if let Some(host) = host {
        headers.insert(header::HOST, printable(host.as_str()));
    }
    if let Some(trace) = urr_telemetry::traceparent().and_then(|trace| trace.parse().ok()) {
        headers.insert(TRACEPARENT, trace);
    }
    Ok(())
}

fn printable(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("addresses, ids, hosts and marks are valid header values")
}

/// Removes hop-by-hop headers, including those named by `Connection`.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
}

/// Whether the sender closes the connection afterwards.
pub(super) fn hangs_up(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::CONNECTION).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|name| name.trim().eq_ignore_ascii_case("close"))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn sent(lines: &[(&'static str, &str)]) -> Vec<String> {
        let mut request = Request::post("/api/x").body(Body::empty()).unwrap();
        for (name, value) in lines {
            request.headers_mut().append(*name, value.parse().unwrap());
        }
        request.extensions_mut().insert(ClientAddress("192.0.2.9".parse().unwrap()));
        outbound(&mut request, "mark").unwrap();
        let lines = request.headers().iter();
        let mut lines: Vec<_> =
            lines.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        lines.sort();
        lines
    }

    #[test]
    fn hop_by_hop_headers_are_removed_and_others_forwarded() {
        let lines = sent(&[
            ("connection", "keep-alive, X-Secret"),
            ("connection", "close"),
            ("x-secret", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("proxy-authorization", "Basic x"),
            ("content-length", "99"),
            ("expect", "100-continue"),
            ("host", "urr.example"),
            ("authorization", "Bearer a"),
            ("cookie", "access_token=b"),
            ("x-queue-entry-token", "t"),
        ]);
        assert_eq!(
            lines,
            [
                "authorization: Bearer a",
                "cookie: access_token=b",
                "host: urr.example",
                "via: 1.1 urr",
                "x-forwarded-for: 192.0.2.9",
                "x-queue-entry-token: t",
                "x-urr-hop: mark",
            ]
        );
    }

    #[test]
    fn forwarding_headers_are_replaced() {
        let lines = sent(&[
            ("x-forwarded-for", "1.1.1.1, 2.2.2.2"),
            ("x-forwarded-for", "3.3.3.3"),
            ("forwarded", "for=4.4.4.4"),
            ("x-real-ip", "5.5.5.5"),
            ("x-forwarded-proto", "gopher"),
        ]);
        assert_eq!(lines, ["via: 1.1 urr", "x-forwarded-for: 192.0.2.9", "x-urr-hop: mark"]);
    }

    #[test]
    fn a_forwarding_loop_is_detected() {
        let mut request = Request::get("/").body(Body::empty()).unwrap();
        for _ in 0..MAX_GATEWAYS {
            outbound(&mut request, "mark").unwrap();
        }
        assert_eq!(outbound(&mut request, "mark").unwrap_err().code, "gateway.loop");
    }
}
