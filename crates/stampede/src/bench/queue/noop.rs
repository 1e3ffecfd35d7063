//! The baseline of a status request: a no-op handler whose response has the same bytes.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_http::{Caller, Class, Json, Path, Problem, Routes, USER};
use urr_kernel::EventId;

/// The body of a status response while admissions are stopped, parsed from a real one.
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
    /// Fails unless serializing it gives the same bytes: responses of different sizes do not
    /// compare.
    pub(super) fn read(body: &str) -> anyhow::Result<Self> {
        let answer: Self = serde_json::from_str(body)
            .with_context(|| format!("the no-op handler cannot decode a status response: {body}"))?;
        let printed = serde_json::to_string(&answer)?;
        ensure!(printed == body, "the no-op handler returns {printed}, a status request {body}");
        Ok(answer)
    }
}

/// The no-op handler on the path of the real one, so that the same guards apply.
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
    fn noop_repeats_a_response_and_rejects_unknown_fields() {
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
