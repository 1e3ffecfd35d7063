//! Admin pages for waiting rooms: those of an event, and Tier 1 rooms of other sites.

use askama::Template;
use axum::{extract::State, response::Response};
use urr_contracts::catalog::{Error, EventOf};
use urr_http::{About, Caller, PAGE, Path, Problem, Routes, StatusCode};
use urr_kernel::EventId;
use urr_rpc::{Ctx, problem};

use crate::{
    next,
    page::{go_to, page},
    shop::{self, EventView},
    site::Site,
    visitor::{Layout, Visitor},
};

pub(crate) fn routes() -> Routes<Site> {
    let about = |what| About::new(what).bare(StatusCode::OK).bare(StatusCode::SEE_OTHER);
    Routes::new()
        .get("/admin", PAGE, start)
        .about(about("What administrators can do, with links"))
        .get("/admin/queue", PAGE, rooms)
        .about(about("Every line, and the way to the room from which it is run"))
        .get("/admin/queue/{id}", PAGE, control)
        .about(about("The room from which a line is run, of an event or of any other site"))
}

#[derive(Template)]
#[template(path = "admin.html")]
pub(crate) struct AdminPage {
    pub(crate) shell: Layout,
    pub(crate) events: Vec<EventView>,
}

#[derive(Template)]
#[template(path = "rooms.html")]
pub(crate) struct RoomsPage {
    pub(crate) shell: Layout,
    pub(crate) events: Vec<EventView>,
}

#[derive(Template)]
#[template(path = "control.html")]
pub(crate) struct ControlPage {
    pub(crate) shell: Layout,
    pub(crate) id: EventId,
    pub(crate) title: String,
    /// Whether the room belongs to an event of the catalog, and not to another site.
    pub(crate) has_page: bool,
    /// User id of the viewer, to mark their own actions.
    pub(crate) me: String,
    pub(crate) tier2: [Chart; 6],
    pub(crate) tier1: [Chart; 5],
}

/// A figure that is drawn over time.
pub(crate) struct Chart {
    /// Its name in the module.
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) unit: &'static str,
}

/// The response for a visitor who may not use the admin pages; `None` for an admin.
fn elsewhere(visitor: &Visitor, path: &str) -> Result<Option<Response>, Problem> {
    if visitor.actor.user().is_none() {
        return Ok(Some(go_to(&next::login(path))));
    }
    if visitor.is_unproven_admin() {
        return Ok(Some(go_to("/account")));
    }
    Caller(visitor.actor).admin()?;
    Ok(None)
}

async fn start(State(Site(site)): State<Site>, ctx: Ctx, visitor: Visitor) -> Result<Response, Problem> {
    if let Some(way) = elsewhere(&visitor, "/admin")? {
        return Ok(way);
    }
    let events = shop::coming(&*site.catalog, &ctx, visitor.lang).await?;
    page(&visitor, &admin_page(&visitor, events))
}

pub(crate) fn admin_page(visitor: &Visitor, events: Vec<EventView>) -> AdminPage {
    AdminPage { shell: visitor.shell(visitor.lang.words().control.start, None), events }
}

async fn rooms(State(Site(site)): State<Site>, ctx: Ctx, visitor: Visitor) -> Result<Response, Problem> {
    if let Some(way) = elsewhere(&visitor, "/admin/queue")? {
        return Ok(way);
    }
    let events = shop::coming(&*site.catalog, &ctx, visitor.lang).await?;
    page(&visitor, &rooms_page(&visitor, events))
}

pub(crate) fn rooms_page(visitor: &Visitor, events: Vec<EventView>) -> RoomsPage {
    RoomsPage { shell: visitor.shell(visitor.lang.words().control.rooms, Some("rooms.js")), events }
}

async fn control(
    State(Site(site)): State<Site>,
    ctx: Ctx,
    visitor: Visitor,
    Path(event): Path<EventId>,
) -> Result<Response, Problem> {
    if let Some(way) = elsewhere(&visitor, &format!("/admin/queue/{event}"))? {
        return Ok(way);
    }
    let found = match site.catalog.event(&ctx, EventOf { event }).await {
        Ok(found) => Some(found.event.title),
        // A Tier 1 room may belong to any site; then only its id is known.
        Err(Error::EventNotFound) => None,
        Err(error) => return Err(problem(&error)),
    };
    page(&visitor, &control_page(&visitor, event, found))
}

pub(crate) fn control_page(visitor: &Visitor, id: EventId, found: Option<String>) -> ControlPage {
    let has_page = found.is_some();
    let title = found.unwrap_or_else(|| id.to_string());
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
        has_page,
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
