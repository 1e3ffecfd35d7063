//! A fake Lambda runtime API: it hands out events and accepts responses. The real binary runs
//! against it.

use std::{
    collections::HashMap,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    http::{Response, StatusCode},
    routing::{get, post},
};
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use urr_testkit::within;

/// Time limit of every wait, generous for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

type Answered = oneshot::Sender<Result<Value, String>>;

struct Shared {
    next: AsyncMutex<mpsc::Receiver<(Value, Answered)>>,
    waiting: Mutex<HashMap<String, Answered>>,
}

/// A running function.
pub(crate) struct Runtime {
    events: mpsc::Sender<(Value, Answered)>,
    child: Child,
}

impl Runtime {
    /// Starts the binary with these variables and an otherwise empty environment.
    #[expect(clippy::disallowed_methods, reason = "the server stops with the test's runtime")]
    pub(crate) async fn start(variables: &[(&str, &str)]) -> Self {
        let (events, next) = mpsc::channel(1);
        let shared = Arc::new(Shared { next: AsyncMutex::new(next), waiting: Mutex::default() });
        let routes = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next_event))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(answered))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(failed))
            .with_state(shared);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let child = Command::new(env!("CARGO_BIN_EXE_urr-vwr-lambda"))
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", address)
            .env("AWS_LAMBDA_FUNCTION_NAME", "vwr")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/vwr")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "test")
            .env("AWS_REGION", "ap-northeast-2")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { events, child }
    }

    /// Invokes the function with an event.
    pub(crate) async fn invoke(&self, event: Value) -> Value {
        let (answered, answer) = oneshot::channel();
        let invoked = async {
            self.events.send((event, answered)).await.unwrap();
            answer.await.unwrap().unwrap()
        };
        within(PATIENCE, invoked).await
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn next_event(State(shared): State<Arc<Shared>>) -> Response<Body> {
    let Some((event, answered)) = shared.next.lock().await.recv().await else {
        return Response::builder().status(StatusCode::GONE).body(Body::empty()).unwrap();
    };
    let id = format!("invocation-{}", shared.waiting.lock().unwrap().len() + 1);
    shared.waiting.lock().unwrap().insert(id.clone(), answered);
    Response::builder()
        .header("lambda-runtime-aws-request-id", id)
        .header("lambda-runtime-deadline-ms", "9999999999999")
        .header(
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:ap-northeast-2:123456789012:function:vwr",
        )
        .header("lambda-runtime-trace-id", "Root=1-5c536348-3d683b8b04734faae651f476")
        .header("content-type", "application/json")
        .body(Body::from(event.to_string()))
        .unwrap()
}

async fn answered(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: String) -> StatusCode {
    settle(&shared, &id, Ok(serde_json::from_str(&body).unwrap()))
}

async fn failed(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: String) -> StatusCode {
    settle(&shared, &id, Err(body))
}

fn settle(shared: &Shared, id: &str, outcome: Result<Value, String>) -> StatusCode {
    let answered = shared.waiting.lock().unwrap().remove(id);
    answered.map(|answered| answered.send(outcome));
    StatusCode::ACCEPTED
}
