//! HTTP calls to a provider: bounded in time and size, with strict parsing.

use http::{HeaderValue, StatusCode, Uri, header};
use serde::de::DeserializeOwned;
use urr_http::{Answer, BadTarget, Call, CallError, Client, Target};

/// Our user agent.
const AGENT: HeaderValue = HeaderValue::from_static("urr");

/// Why a call to a provider failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// There was no response, or it was too large.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The provider returned an error status.
    #[error("{page} returned status {status}")]
    Status {
        /// The URL without its query.
        page: String,
        /// The status.
        status: StatusCode,
    },
    /// The response has an unexpected format. Its content is not logged: it may contain a token.
    #[error("{page} returned unexpected JSON (line {line}, column {column})")]
    Shape {
        /// The URL without its query.
        page: String,
        /// Line of the parse error.
        line: usize,
        /// Column of the parse error.
        column: usize,
    },
    /// The response must not be trusted.
    #[error("{page}: {what}")]
    Odd {
        /// The URL without its query.
        page: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The last call failed a moment ago.
    #[error("the last call failed a moment ago; not retrying yet")]
    TooSoon,
}

/// An invalid provider URL.
#[derive(Debug, thiserror::Error)]
#[error("{url} cannot be used")]
pub struct BadPage {
    url: String,
    #[source]
    why: Why,
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("not a valid URL")]
    Uri(#[from] http::uri::InvalidUri),
    #[error("it has no host")]
    NoHost,
    #[error("only a provider on this machine may be used without TLS")]
    NoTls,
    #[error(transparent)]
    Target(#[from] BadTarget),
}

/// One endpoint of a provider.
#[derive(Clone, Debug)]
pub(super) struct Page {
    target: Target,
    path: String,
}

impl Page {
    pub(super) fn new(client: &Client, url: &str) -> Result<Self, BadPage> {
        let page = || {
            let uri: Uri = url.parse()?;
            let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
                return Err(Why::NoHost);
            };
            if scheme != "https" && !is_this_machine(authority.host()) {
                return Err(Why::NoTls);
            }
            let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
            Ok(Self { target: client.target(&format!("{scheme}://{authority}"))?, path })
        };
        page().map_err(|why| BadPage { url: url.to_owned(), why })
    }

    /// The URL without its query.
    pub(super) fn name(&self) -> String {
        format!("{}{}", self.target.name(), self.path.split('?').next().unwrap_or_default())
    }

    /// Sends a GET request and parses the response.
    pub(super) async fn get<T: DeserializeOwned>(&self, bearer: Option<&str>) -> Result<T, NoAnswer> {
        let mut call = Call::get(&self.path).header(header::USER_AGENT, AGENT);
        if let Some(bearer) = bearer {
            let mut value = HeaderValue::try_from(format!("Bearer {bearer}"))
                .map_err(|_| self.odd("the token has characters that are invalid in a header"))?;
            value.set_sensitive(true);
            call = call.header(header::AUTHORIZATION, value);
        }
        let answer = self.target.send(call).await?;
        if answer.status == StatusCode::OK { self.read(&answer) } else { Err(self.status(&answer)) }
    }

    /// Sends a form. The caller checks the status.
    pub(super) async fn post(&self, form: String) -> Result<Answer, NoAnswer> {
        let call = Call::post_form(&self.path, form)
            .header(header::USER_AGENT, AGENT)
            .header(header::ACCEPT, HeaderValue::from_static("application/json"));
        Ok(self.target.send(call).await?)
    }

    /// Parses a response.
    pub(super) fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, NoAnswer> {
        serde_json::from_slice(&answer.body).map_err(|error| NoAnswer::Shape {
            page: self.name(),
            line: error.line(),
            column: error.column(),
        })
    }

    pub(super) fn status(&self, answer: &Answer) -> NoAnswer {
        NoAnswer::Status { page: self.name(), status: answer.status }
    }

    pub(super) fn odd(&self, what: &'static str) -> NoAnswer {
        NoAnswer::Odd { page: self.name(), what }
    }
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use urr_http::ClientLimits;
    use urr_testkit::fixed_clock;

    use super::*;

    #[test]
    fn remote_providers_require_tls() {
        let client = Client::new(ClientLimits::default(), fixed_clock());
        let page = Page::new(&client, "http://127.0.0.1:4/a/b?c=d").unwrap();
        assert_eq!((page.path.as_str(), page.name().as_str()), ("/a/b?c=d", "http://127.0.0.1:4/a/b"));
        assert!(Page::new(&client, "http://localhost:4").is_ok());
        for bad in
            ["http://example.com/token", "/token", "nonsense", "ftp://localhost/x", "http://127.0.0.1.evil/"]
        {
            assert!(Page::new(&client, bad).is_err(), "{bad}");
        }
    }
}
