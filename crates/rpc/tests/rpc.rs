//! One small service, called in process and over real HTTP: the same results, the same errors.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]
#![expect(missing_docs, reason = "the toy service is private to this test")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use urr_http::{Call, Client, ClientLimits};
use urr_kernel::{Actor, Clock, CommonError, Ids, Refusal, RequestId, Role, Timestamp, UserId};
use urr_rpc::{Ctx, Kind, Remote, ServiceError, internal_guard, private::async_trait, problem, service};

const TOKEN: &str = "a-token-for-tests";

service! {
    /// Echoes.
    pub trait Parrot as "parrot" -> Error {
        /// Echoes the word with the actor.
        @idempotent async fn say(Say) -> Said;
        /// Never completes.
        async fn sulk(Say) -> Said;
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Say {
    word: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    word: String,
    actor: Actor,
    request_id: RequestId,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Error {
    #[error("rude words: {}", words.join(", "))]
    Rude { words: Vec<String>, at: Timestamp },
    #[error(transparent)]
    #[serde(untagged)]
    Common(#[from] CommonError),
}

impl Refusal for Error {}

impl ServiceError for Error {
    const DOMAIN: &'static str = "parrot";

    fn kind(&self) -> Kind {
        match self {
            Self::Rude { .. } => Kind::Conflict,
            Self::Common(error) => (*error).into(),
        }
    }
}

struct Local;

#[async_trait]
impl Parrot for Local {
    async fn say(&self, ctx: &Ctx, request: Say) -> Result<Said, Error> {
        if request.word == "damn" {
            return Err(rude());
        }
        Ok(Said { word: request.word, actor: ctx.actor, request_id: ctx.request_id })
    }

    async fn sulk(&self, _: &Ctx, _: Say) -> Result<Said, Error> {
        std::future::pending().await
    }
}

fn rude() -> Error {
    Error::Rude { words: vec!["damn".to_owned()], at: Timestamp::from_micros(1_700_000_000_000_001) }
}

fn clock() -> Clock {
    Clock::system()
}

fn ctx() -> Ctx {
    ctx_with(Duration::from_secs(5))
}

fn ctx_with(budget: Duration) -> Ctx {
    let ids = Ids::random(clock());
    let actor = Actor::User { id: ids.next::<UserId>(), role: Role::Admin };
    Ctx::new(ids.next(), actor, clock(), budget)
}

#[expect(clippy::disallowed_methods, reason = "the server stops with the test's runtime")]
async fn serve() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = internal_routes(Arc::new(Local), clock(), Ids::random(clock()));
    tokio::spawn(async move { axum::serve(listener, internal_guard(routes, TOKEN)).await });
    address
}

fn remote(address: SocketAddr, token: &str) -> Remote {
    let limits = ClientLimits { pause: Duration::from_millis(1), ..ClientLimits::default() };
    Remote::new(Client::new(limits, clock()).target(&format!("http://{address}")).unwrap(), token)
}

async fn story(parrot: &dyn Parrot) {
    let ctx = ctx();
    let said = parrot.say(&ctx, Say { word: "안녕".to_owned() }).await.unwrap();
    assert_eq!(said, Said { word: "안녕".to_owned(), actor: ctx.actor, request_id: ctx.request_id });
    assert_eq!(parrot.say(&ctx, Say { word: "damn".to_owned() }).await, Err(rude()));
}

#[tokio::test]
async fn local_and_remote_behave_the_same() {
    story(&Local).await;
    story(&remote(serve().await, TOKEN)).await;
}

#[tokio::test]
async fn unreachable_service_is_its_own_unavailable() {
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let answer = remote(closed, TOKEN).say(&ctx(), Say { word: "hi".to_owned() }).await;
    assert_eq!(answer, Err(Error::Common(CommonError::Unavailable)));
}

#[tokio::test]
async fn call_ends_at_the_callers_deadline() {
    let remote = remote(serve().await, TOKEN);
    let answer = remote.sulk(&ctx_with(Duration::from_millis(50)), Say { word: "hi".to_owned() }).await;
    assert_eq!(answer, Err(Error::Common(CommonError::Unavailable)));
    let answer = remote.say(&ctx_with(Duration::ZERO), Say { word: "hi".to_owned() }).await;
    assert_eq!(answer, Err(Error::Common(CommonError::Unavailable)), "a call past its deadline is not made");
}

#[tokio::test]
async fn internal_token_is_required_and_checked() {
    let address = serve().await;
    let target = Client::new(ClientLimits::default(), clock()).target(&format!("http://{address}")).unwrap();
    let call = || Call::post_json("/internal/parrot/say", r#"{"word":"hi"}"#);
    for (header, status, code) in [
        (None, 401, "internal.token_required"),
        (Some("Basic abc"), 401, "internal.token_required"),
        (Some("Bearer wrong"), 403, "internal.token_wrong"),
        (Some("Bearer"), 401, "internal.token_required"),
        (Some("Bearer a-token-for-tests-and-more"), 403, "internal.token_wrong"),
    ] {
        let call = match header {
            Some(value) => call().header(http::header::AUTHORIZATION, value.parse().unwrap()),
            None => call(),
        };
        let answer = target.send(call).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status.as_u16(), body["code"].as_str().unwrap()), (status, code), "{header:?}");
    }
    let wrong = remote(address, "wrong").say(&ctx(), Say { word: "hi".to_owned() }).await;
    assert_eq!(
        wrong,
        Err(Error::Common(CommonError::Unavailable)),
        "a wrong token is a misconfiguration, not a client error"
    );
}

#[test]
fn problem_has_the_error_fields_beside_the_common_ones() {
    let problem = serde_json::to_value(problem(&rude())).unwrap();
    assert_eq!(problem["code"], "parrot.rude");
    assert_eq!(problem["status"], 409);
    assert_eq!(problem["words"], serde_json::json!(["damn"]));
    assert_eq!(problem["message"], problem["error"]);
    let down = serde_json::to_value(urr_rpc::problem(&Error::Common(CommonError::Unavailable))).unwrap();
    assert_eq!(down["retryAfter"], 1);
}
