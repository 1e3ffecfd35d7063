//! The baseline of a status: a handler that does nothing and answers the bytes of a real one.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_http::{Caller, Class, Json, Path, Problem, Routes, USER};
use urr_kernel::EventId;

/// What a status answers while nobody is let in. It is read from a real one, so that both print the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Answer {
    status: String,
    queued: bool,
    position: u64,
    people_ahead: u64,
    people_behind: u64,
    next_poll: u32,
    threshold: u32,
    current_users: u64,
    queue_size: u64,
    paused: bool,
    event_info: Info,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Info {
    title: String,
}

impl Answer {
    /// Fails unless printing it again gives the same bytes: answers of different sizes are not to be compared.
    pub(super) fn read(body: &str) -> anyhow::Result<Self> {
        let answer: Self = serde_json::from_str(body)
            .with_context(|| format!("the no-op handler cannot answer what a status does: {body}"))?;
        let printed = serde_json::to_string(&answer)?;
        ensure!(printed == body, "the no-op handler answers {printed} where a status answers {body}");
        Ok(answer)
    }
}

/// In the place of the handler it is compared with, so that the same guards stand before it.
pub(super) fn routes(answer: Answer) -> Routes {
    Routes::new().get("/api/queue/status/{id}", USER.limit(Class::Queue), noop).with_state(Arc::new(answer))
}

async fn noop(
    State(answer): State<Arc<Answer>>,
    caller: Caller,
    Path(event): Path<EventId>,
) -> Result<Json<Answer>, Problem> {
    caller.user()?;
    let queued = !event.as_uuid().is_nil();
    Ok(Json(Answer { queued, ..Answer::clone(&answer) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &str = r#"{"status":"queued","queued":true,"position":7,"peopleAhead":6,"peopleBehind":3,"nextPoll":60,"threshold":0,"currentUsers":0,"queueSize":10,"paused":false,"eventInfo":{"title":"Benchmark 2"}}"#;

    #[test]
    fn the_no_op_answers_what_it_read_and_refuses_what_it_could_not_print() {
        assert!(Answer::read(REAL).is_ok());
        for (part, other) in [
            (r#""nextPoll""#, r#""estimatedWait":60,"nextPoll""#),
            (r#""peopleAhead":6,"#, ""),
            (r#""position":7,"peopleAhead":6"#, r#""peopleAhead":6,"position":7"#),
        ] {
            assert!(Answer::read(&REAL.replace(part, other)).is_err(), "{other}");
        }
    }
}
