//! The room from which an operator runs the lines of an event.

use askama::Template;
use axum::{extract::State, response::Response};
use urr_contracts::catalog::EventOf;
use urr_http::{About, Caller, Path, Problem, Routes, StatusCode};
use urr_kernel::EventId;
use urr_rpc::{Ctx, problem};

use crate::{
    next,
    page::{go_to, page},
    site::Site,
    visitor::{Shell, Visitor},
};

pub(crate) fn routes() -> Routes<Site> {
    Routes::new().get("/admin/queue/{id}", control).about(
        About::new("The room from which an event's lines are run")
            .bare(StatusCode::OK)
            .bare(StatusCode::SEE_OTHER),
    )
}

#[derive(Template)]
#[template(path = "control.html")]
pub(crate) struct ControlPage {
    pub(crate) shell: Shell,
    pub(crate) id: EventId,
    pub(crate) title: String,
    /// Whose deeds are one's own.
    pub(crate) me: String,
    pub(crate) tier2: [Chart; 6],
    pub(crate) tier1: [Chart; 5],
}

/// A figure that is drawn over time.
pub(crate) struct Chart {
    /// What the module calls it.
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) unit: &'static str,
}

async fn control(
    State(Site(site)): State<Site>,
    ctx: Ctx,
    visitor: Visitor,
    Path(event): Path<EventId>,
) -> Result<Response, Problem> {
    if visitor.actor.user().is_none() {
        return Ok(go_to(&next::login(&format!("/admin/queue/{event}"))));
    }
    if visitor.is_unproven_admin() {
        return Ok(go_to("/account"));
    }
    Caller(visitor.actor).admin()?;
    let found = site.catalog.event(&ctx, EventOf { event }).await.map_err(|error| problem(&error))?;
    page(&visitor, &control_page(&visitor, event, found.event.title))
}

pub(crate) fn control_page(visitor: &Visitor, id: EventId, title: String) -> ControlPage {
    let words = &visitor.lang.words().control;
    let chart = |name, label, unit| Chart { name, label, unit };
    let waiting = || chart("waiting", words.waiting, words.people);
    let wait = || chart("wait", words.wait, words.minutes);
    let arrived = || chart("arrived", words.arrived, words.per_second);
    let admitted = || chart("admitted", words.admitted, words.per_second);
    let errors = || chart("errors", words.errors, words.errors_unit);
    ControlPage {
        shell: visitor.shell(&format!("{} · {title}", words.title), Some("control.js")),
        id,
        title,
        me: visitor.actor.user().map(|user| user.to_string()).unwrap_or_default(),
        tier2: [
            waiting(),
            chart("active", words.active, words.people),
            wait(),
            arrived(),
            admitted(),
            errors(),
        ],
        tier1: [waiting(), wait(), arrived(), admitted(), errors()],
    }
}
