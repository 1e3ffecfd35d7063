//! What somebody is told whose request cannot be read at all. hyper answers such a request by itself, with a status and nothing
//! else; the stream of the connection says this instead.

use std::io::IoSlice;

use axum::response::Response;
use futures_util::FutureExt as _;
use http::{StatusCode, header};
use http_body_util::BodyExt as _;

use crate::{Code, Problem, codes};

/// Gives a problem the look of all our answers.
type Dress = dyn Fn(Problem) -> Response + Send;

/// The words for one connection. It closes after them, so there is one such answer at most.
pub(crate) struct Unread {
    dress: Box<Dress>,
    words: Option<Vec<u8>>,
    said: usize,
}

impl Unread {
    /// `dress` makes the answer that a problem becomes.
    pub(crate) fn new(dress: impl Fn(Problem) -> Response + Send + 'static) -> Self {
        Self { dress: Box::new(dress), words: None, said: 0 }
    }

    /// What is still to be said instead of `theirs`.
    pub(crate) fn left(&mut self, theirs: &[IoSlice<'_>]) -> &[u8] {
        let words = self.words.get_or_insert_with(|| {
            let theirs: Vec<u8> = theirs.iter().flat_map(|slice| slice.iter().copied()).collect();
            ours(&*self.dress, &theirs).unwrap_or(theirs)
        });
        &words[self.said..]
    }

    /// Some of it was said.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.said += bytes;
    }
}

/// What we say for what hyper would. `None`: it is something else than its answer to a request that it cannot read.
fn ours(dress: &Dress, theirs: &[u8]) -> Option<Vec<u8>> {
    let theirs = Bare::read(std::str::from_utf8(theirs).ok()?)?;
    let (code, sentence) = meaning(theirs.status)?;
    let (parts, body) = dress(Problem::of(code, sentence)).into_parts();
    let body = body.collect().now_or_never()?.ok()?.to_bytes();
    let mut words = format!("HTTP/1.1 {}\r\n", parts.status).into_bytes();
    for (name, value) in &parts.headers {
        if name != header::CONTENT_LENGTH && name != header::CONNECTION {
            words.extend_from_slice(name.as_str().as_bytes());
            words.extend_from_slice(b": ");
            words.extend_from_slice(value.as_bytes());
            words.extend_from_slice(b"\r\n");
        }
    }
    let end = format!("connection: close\r\ncontent-length: {}\r\ndate: {}\r\n\r\n", body.len(), theirs.date);
    words.extend_from_slice(end.as_bytes());
    words.extend_from_slice(&body);
    Some(words)
}

/// An answer that hyper makes by itself.
#[derive(Debug, PartialEq, Eq)]
struct Bare<'t> {
    status: StatusCode,
    date: &'t str,
}

impl<'t> Bare<'t> {
    /// Nothing but a status, how the connection goes on, that there is no body, and the time.
    fn read(text: &'t str) -> Option<Self> {
        let mut lines = text.strip_suffix("\r\n\r\n")?.split("\r\n");
        let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        let mut date = None;
        for line in lines {
            match line.split_once(": ")? {
                ("connection", _) | ("content-length", "0") => {}
                ("date", at) => date = Some(at),
                _ => return None,
            }
        }
        Some(Self { status, date: date? })
    }
}

fn meaning(status: StatusCode) -> Option<(Code, &'static str)> {
    Some(match status {
        StatusCode::BAD_REQUEST => (codes::BAD_HEAD, "This is no request that can be read."),
        StatusCode::URI_TOO_LONG => (codes::URI_TOO_LONG, "The address is too long."),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            (codes::HEAD_TOO_LARGE, "The headers are too large or too many.")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;

    use super::*;

    const THEIRS: &str = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\
        date: Mon, 16 Nov 2026 14:00:00 GMT\r\n\r\n";

    fn said_for(theirs: &[&str]) -> String {
        let mut unread = Unread::new(Problem::into_response);
        let slices: Vec<_> = theirs.iter().map(|text| IoSlice::new(text.as_bytes())).collect();
        let mut said = Vec::new();
        // As slowly as somebody may take it.
        while let Some(byte) = unread.left(&slices).first().copied() {
            said.push(byte);
            unread.advance(1);
        }
        String::from_utf8(said).unwrap()
    }

    #[test]
    fn a_bare_refusal_gets_a_body_with_a_code_and_keeps_its_time() {
        let (begin, end) = THEIRS.split_at(30);
        let said = said_for(&[begin, end]);
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
        assert!(
            head.contains("\r\nconnection: close\r\n") && head.contains("\r\ndate: Mon, 16 Nov 2026"),
            "{head}"
        );
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["code"], "http.bad_head");
    }

    #[test]
    fn whatever_is_no_bare_refusal_is_said_as_it_is() {
        for theirs in [
            THEIRS.replace("400 Bad Request", "200 OK"),
            THEIRS.replace("content-length: 0", "content-length: 5") + "hello",
            THEIRS.replace("date", "x-request-id"),
            THEIRS.replace("date: ", "server: x\r\ndate: "),
            format!("{THEIRS}{THEIRS}"),
            format!("0\r\n\r\n{THEIRS}"),
            String::new(),
        ] {
            assert_eq!(said_for(&[&theirs]), theirs);
        }
    }
}
