//! HTTP routes of the seat map. Responds with 304 if the client has the current version.

use axum::{
    extract::State,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
    },
    response::{IntoResponse as _, Response},
};
use urr_http::{About, Line, PUBLIC, Path, Problem, Routes};
use urr_kernel::EventId;
use urr_rpc::{Ctx, problem};

use super::Public;
use crate::api::Api;

pub(crate) fn routes() -> Routes<Api> {
    let about = About::new("The seat map of an event, with an ETag")
        .path::<EventId>("id")
        .answer::<Public<'_>>(StatusCode::OK)
        .bare(StatusCode::NOT_MODIFIED);
    Routes::new().get("/api/seats/events/{id}", PUBLIC.after_line(Line::Path), seat_map).about(about)
}

async fn seat_map(
    State(Api(tickets)): State<Api>,
    ctx: Ctx,
    Path(event): Path<EventId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let drawn = super::seat_map(&tickets, &ctx, event).await.map_err(|error| problem(&error))?;
    let known = headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let unchanged = known.is_some_and(|tags| tags.split(',').any(|tag| tag.trim() == drawn.etag));
    let etag =
        HeaderValue::from_str(&drawn.etag).expect("a quoted hexadecimal version is a valid header value");
    let mut response = if unchanged {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], drawn.json.clone()).into_response()
    };
    response.headers_mut().insert(ETAG, etag);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}
