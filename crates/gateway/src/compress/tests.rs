//! What is compressed, what is not, and that cached responses are never mixed up.

use std::io::Read as _;

use axum::response::IntoResponse as _;
use flate2::read::GzDecoder;

use super::*;

fn answer(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

async fn through(compressor: &Compressor, response: Response) -> (HeaderMap, Vec<u8>) {
    let (parts, body) = compressor.compress(true, response).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.headers, body.to_vec())
}

fn plain(compressed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(compressed).read_to_end(&mut plain).unwrap();
    plain
}

#[tokio::test]
async fn text_of_1_kb_is_compressed_and_labelled() {
    let compressor = Compressor::new();
    for size in [1_024, INLINE_BYTES, INLINE_BYTES + 1, 1_000_000] {
        let text = "a crowd ".repeat(size / 8 + 1)[..size].to_owned();
        let (headers, body) = through(&compressor, answer("application/json", text.clone())).await;
        assert_eq!(headers[header::CONTENT_ENCODING], "gzip");
        assert_eq!(headers[header::CONTENT_LENGTH], body.len().to_string());
        assert_eq!(headers[header::VARY], "accept-encoding");
        assert!(body.len() < size);
        assert_eq!(plain(&body), text.as_bytes());
    }
}

#[tokio::test]
async fn small_binary_or_sensitive_responses_are_not_compressed() {
    let text = || "a".repeat(2_000);
    let with = |name: HeaderName, value: &'static str| {
        let mut response = answer("text/html", text());
        response.headers_mut().insert(name, HeaderValue::from_static(value));
        response
    };
    let stream = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from(text()))]);
    let mut passed = answer("text/html", text());
    passed.extensions_mut().insert(Passed);
    let mut partial = answer("text/html", text());
    *partial.status_mut() = StatusCode::PARTIAL_CONTENT;
    let alone = [
        ("short", answer("text/html", "a".repeat(1_023))),
        ("huge", answer("text/html", vec![b'a'; 8 * 1024 * 1024 + 1])),
        ("a picture", answer("image/png", text())),
        ("events", answer("text/event-stream", text())),
        ("unknown", answer("application/octet-stream", text())),
        ("untyped", Response::new(Body::from(text()))),
        ("a stream", answer("text/html", Body::from_stream(stream))),
        ("compressed", with(header::CONTENT_ENCODING, "br")),
        ("with a cookie", with(header::SET_COOKIE, "access_token=x")),
        ("no transform", with(header::CACHE_CONTROL, "public, no-transform")),
        ("passed on", passed),
        ("a part", partial),
    ];
    let compressor = Compressor::new();
    for (what, response) in alone {
        let before = response.headers().get(header::CONTENT_ENCODING).cloned();
        let (headers, body) = through(&compressor, response).await;
        assert_eq!(headers.get(header::CONTENT_ENCODING), before.as_ref(), "{what}");
        assert!(body.is_empty() || body[0] == b'a', "{what}");
    }
    let refused = compressor.compress(false, answer("text/html", text())).await;
    assert!(!refused.headers().contains_key(header::CONTENT_ENCODING));
    assert_eq!(refused.headers()[header::VARY], "accept-encoding", "uncompressed responses need `Vary` too");
}

#[tokio::test]
async fn a_strong_etag_is_weakened_and_restored() {
    let compressor = Compressor::new();
    for (tag, expected) in [("\"7\"", "W/\"7\""), ("W/\"7\"", "W/\"7\"")] {
        let mut response = answer("application/json", "a".repeat(2_000));
        response.headers_mut().insert(header::ETAG, HeaderValue::from_static(tag));
        let (headers, _) = through(&compressor, response).await;
        assert_eq!(headers[header::ETAG], expected);
    }
    for (sent, shown) in
        [("W/\"7\"", "\"7\""), ("\"7\"", "\"7\""), ("\"6\", W/\"7\"", "\"6\", \"7\""), ("*", "*")]
    {
        let mut headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(sent))]);
        strengthen(&mut headers);
        assert_eq!(headers[header::IF_NONE_MATCH], shown);
    }
}

#[tokio::test]
async fn the_same_buffer_is_compressed_once_and_others_never_share_it() {
    let compressor = Compressor::new();
    let tagged = |body: &Bytes| {
        let mut response = answer("application/json", body.clone());
        response.headers_mut().insert(header::ETAG, HeaderValue::from_static("\"7\""));
        response
    };
    let (mine, yours) = (Bytes::from("mine ".repeat(20_000)), Bytes::from("your ".repeat(20_000)));
    let (_, first) = through(&compressor, tagged(&mine)).await;
    assert_eq!(plain(&first), mine);
    let kept = Arc::clone(&compressor.lock()[0].compressed);
    let (_, again) = through(&compressor, tagged(&mine)).await;
    assert_eq!(again, first);
    assert!(Arc::ptr_eq(&kept, &compressor.lock()[0].compressed), "the cached form was not reused");

    let (_, other) = through(&compressor, tagged(&yours)).await;
    assert_eq!(plain(&other), yours, "equal tag and length must not share a cached response");
    assert_eq!(compressor.lock().len(), 2);
}

#[test]
fn the_cache_is_bounded() {
    let compressor = Compressor::new();
    let many: Vec<_> = (0..100_u8).map(|number| Bytes::from(vec![number; 2_000])).collect();
    for body in &many {
        compressor.cell(body);
    }
    assert_eq!(compressor.lock().len(), MAX_KEPT);
    assert_eq!(compressor.lock()[MAX_KEPT - 1].original, many[99]);
    for _ in 0..10 {
        compressor.cell(&Bytes::from(vec![0; 8 * 1024 * 1024]));
    }
    assert!(compressor.lock().iter().map(CompressedBuffer::bytes).sum::<usize>() <= MAX_KEPT_BYTES);
}

#[test]
fn accept_encoding_is_parsed() {
    let takes = |value: &'static str| {
        takes_gzip(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]))
    };
    for yes in ["gzip", "deflate, GZIP;q=0.5, br", "*", "x-gzip", "br;q=1.0, gzip;q=0.001"] {
        assert!(takes(yes), "{yes}");
    }
    for no in ["", "br", "gzip;q=0", "gzip; q=0.000, *", "*;q=0", "identity", "gzipped"] {
        assert!(!takes(no), "{no}");
    }
    assert!(!takes_gzip(&HeaderMap::new()));
}
