//! Pages of events, seats and the waiting room.

use askama::Template;
use axum::{extract::State, response::Response};
use urr_contracts::catalog::{
    Catalog, Error, EventDetail, EventOf, EventStatus, EventSummary, ListEvents, TicketType,
};
use urr_http::{About, Line, PAGE, Path, Problem, Routes, StatusCode};
use urr_kernel::EventId;
use urr_rpc::{Ctx, problem};

use crate::{
    generated_poster::{self, GeneratedPoster},
    money, next,
    page::{go_to, page},
    site::Site,
    times,
    visitor::{Layout, Visitor},
    words::{Lang, fill},
};

/// Events per section of the home page: more than are on sale at a time.
const SHOWN: u32 = 48;

/// Past events on the home page.
const SHOWN_PAST: u32 = 6;

/// Maximum length of the description for search engines.
const MAX_SUMMARY_CHARS: usize = 160;

pub(crate) fn routes() -> Routes<Site> {
    let shown = |what| About::new(what).bare(StatusCode::OK);
    Routes::new()
        .get("/", PAGE, home)
        .about(shown("The events"))
        .get("/events/{id}", PAGE, event)
        .about(shown("One event"))
        .get("/events/{id}/seats", PAGE.after_line(Line::Page), seats)
        .about(shown("The seats of an event").bare(StatusCode::SEE_OTHER))
        .get("/queue/{id}", PAGE.after_line(Line::Page), queue)
        .about(shown("The waiting room in front of an event's seats").bare(StatusCode::SEE_OTHER))
}

/// The sale status of an event, as shown to visitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaleStatus {
    OnSale,
    Soon,
    SoldOut,
    Ended,
    Cancelled,
}

/// An event as shown on pages.
pub(crate) struct EventView {
    pub(crate) id: EventId,
    pub(crate) title: String,
    pub(crate) artist: Option<String>,
    pub(crate) venue: String,
    pub(crate) address: Option<String>,
    pub(crate) lines: Vec<String>,
    pub(crate) when: String,
    pub(crate) opens: String,
    pub(crate) opens_at: String,
    pub(crate) closes: String,
    pub(crate) price: Option<String>,
    pub(crate) places: String,
    pub(crate) left: String,
    pub(crate) state: SaleStatus,
    pub(crate) badge: &'static str,
    pub(crate) seated: bool,
    pub(crate) poster: Option<String>,
    pub(crate) generated_poster: GeneratedPoster,
}

fn view(lang: Lang, event: EventSummary) -> EventView {
    let left = event.places.saturating_sub(event.places_reserved);
    let state = match event.status {
        EventStatus::OnSale if left == 0 && event.places > 0 => SaleStatus::SoldOut,
        EventStatus::OnSale => SaleStatus::OnSale,
        EventStatus::Upcoming => SaleStatus::Soon,
        EventStatus::Ended => SaleStatus::Ended,
        EventStatus::Cancelled => SaleStatus::Cancelled,
    };
    let words = &lang.words().sale;
    EventView {
        id: event.id,
        artist: event.artist_name,
        venue: event.venue,
        address: event.address,
        lines: event.description.iter().flat_map(|text| text.lines()).map(str::to_owned).collect(),
        when: times::moment(lang, event.event_at),
        opens: times::moment(lang, event.sale_start_at),
        opens_at: event.sale_start_at.to_string(),
        closes: times::moment(lang, event.sale_end_at),
        price: event.min_price.zip(event.max_price).map(|(least, most)| money::range(lang, least, most)),
        places: money::number(event.places.into()),
        left: fill(words.left, &[("left", left.into())]),
        badge: match state {
            SaleStatus::OnSale => words.on_sale,
            SaleStatus::Soon => words.soon,
            SaleStatus::SoldOut => words.sold_out,
            SaleStatus::Ended => words.is_ended,
            SaleStatus::Cancelled => words.cancelled,
        },
        state,
        seated: event.layout.is_some(),
        // The Content Security Policy allows only HTTPS images.
        poster: event.poster_image_url.filter(|address| address.starts_with("https://")),
        generated_poster: generated_poster::of(event.id),
        title: event.title,
    }
}

/// A section of the home page.
pub(crate) struct HomeSection {
    pub(crate) heading: &'static str,
    pub(crate) id: &'static str,
    pub(crate) events: Vec<EventView>,
}

#[derive(Template)]
#[template(path = "home.html")]
pub(crate) struct HomePage {
    pub(crate) shell: Layout,
    pub(crate) sections: Vec<HomeSection>,
}

async fn home(State(Site(site)): State<Site>, ctx: Ctx, visitor: Visitor) -> Result<Response, Problem> {
    let lang = visitor.lang;
    let mut selling = events(&*site.catalog, &ctx, lang, EventStatus::OnSale, SHOWN).await?;
    let sold_out = selling.extract_if(.., |event| event.state == SaleStatus::SoldOut).collect();
    let soon = events(&*site.catalog, &ctx, lang, EventStatus::Upcoming, SHOWN).await?;
    let past = events(&*site.catalog, &ctx, lang, EventStatus::Ended, SHOWN_PAST).await?;
    page(&visitor, &home_page(&visitor, [selling, soon, sold_out, past]))
}

/// The home page, with the sections that are not empty.
pub(crate) fn home_page(visitor: &Visitor, events: [Vec<EventView>; 4]) -> HomePage {
    let words = &visitor.lang.words().sale;
    let headings = [
        ("on-sale", words.on_sale),
        ("soon", words.soon),
        ("sold-out", words.sold_out),
        ("past", words.ended),
    ];
    let sections = headings.into_iter().zip(events);
    let sections = sections.map(|((id, heading), events)| HomeSection { heading, id, events });
    HomePage {
        shell: visitor.shell(words.home_title, None),
        sections: sections.filter(|shelf| !shelf.events.is_empty()).collect(),
    }
}

/// Events on sale and upcoming ones.
pub(crate) async fn coming(catalog: &dyn Catalog, ctx: &Ctx, lang: Lang) -> Result<Vec<EventView>, Problem> {
    let mut coming = events(catalog, ctx, lang, EventStatus::OnSale, SHOWN).await?;
    coming.extend(events(catalog, ctx, lang, EventStatus::Upcoming, SHOWN).await?);
    Ok(coming)
}

async fn events(
    catalog: &dyn Catalog,
    ctx: &Ctx,
    lang: Lang,
    status: EventStatus,
    limit: u32,
) -> Result<Vec<EventView>, Problem> {
    let request = ListEvents { status: Some(status), search: None, page: 1, limit };
    let found = catalog.events(ctx, request).await.map_err(|error| problem(&error))?;
    Ok(found.events.into_iter().map(|event| view(lang, event)).collect())
}

#[derive(Template)]
#[template(path = "event.html")]
pub(crate) struct EventPage {
    pub(crate) shell: Layout,
    pub(crate) event: EventView,
    pub(crate) limit: String,
    /// Whether the visitor is an admin.
    pub(crate) operator: bool,
    pub(crate) kinds: Vec<KindRow>,
}

/// A ticket type.
pub(crate) struct KindRow {
    pub(crate) name: String,
    pub(crate) price: String,
    pub(crate) about: String,
}

impl EventPage {
    /// The description for search engines.
    pub(crate) fn summary(&self) -> String {
        self.event.lines.join(" ").chars().take(MAX_SUMMARY_CHARS).collect()
    }
}

async fn event(
    State(Site(site)): State<Site>,
    ctx: Ctx,
    visitor: Visitor,
    Path(event): Path<EventId>,
) -> Result<Response, Problem> {
    let found = one(&*site.catalog, &ctx, event).await?;
    page(&visitor, &event_page(&visitor, found, Some("event.js")))
}

async fn one(catalog: &dyn Catalog, ctx: &Ctx, event: EventId) -> Result<EventDetail, Problem> {
    catalog.event(ctx, EventOf { event }).await.map_err(|error: Error| problem(&error))
}

pub(crate) fn event_page(visitor: &Visitor, found: EventDetail, script: Option<&'static str>) -> EventPage {
    let lang = visitor.lang;
    let (each, user) = (found.max_seats_per_reservation, found.max_seats_per_user);
    let words = &lang.words().sale;
    let limit = if each < user { words.limit_both } else { words.limit_text };
    let limit = fill(limit, &[("each", each.into()), ("user", user.into())]);
    let kind = |kind: TicketType| KindRow {
        name: kind.name,
        price: money::won(lang, kind.price),
        about: kind.description,
    };
    EventPage {
        shell: visitor.shell(&found.event.title, script),
        event: view(lang, found.event),
        limit,
        operator: visitor.actor.is_admin(),
        kinds: found.ticket_types.into_iter().map(kind).collect(),
    }
}

#[derive(Template)]
#[template(path = "seats.html")]
pub(crate) struct SeatsPage {
    pub(crate) shell: Layout,
    pub(crate) event: EventView,
    pub(crate) each: u32,
    pub(crate) hint: String,
}

/// The seats page. Holds belong to a user, so the visitor must be signed in.
async fn seats(
    State(Site(site)): State<Site>,
    ctx: Ctx,
    visitor: Visitor,
    Path(event): Path<EventId>,
) -> Result<Response, Problem> {
    let found = one(&*site.catalog, &ctx, event).await?;
    let elsewhere = first_to(&visitor, &found, &format!("/events/{event}/seats"), &[EventStatus::OnSale]);
    match elsewhere.or_else(|| found.event.layout.is_none().then(|| format!("/events/{event}"))) {
        Some(path) => Ok(go_to(&path)),
        None => page(&visitor, &seats_page(&visitor, found)),
    }
}

/// Where to redirect a buyer first: to sign-in, or back to an event that is not on sale. `None`:
/// stay.
fn first_to(visitor: &Visitor, found: &EventDetail, here: &str, open: &[EventStatus]) -> Option<String> {
    if visitor.actor.user().is_none() {
        Some(next::login(here))
    } else if open.contains(&found.event.status) {
        None
    } else {
        Some(format!("/events/{}", found.event.id))
    }
}

pub(crate) fn seats_page(visitor: &Visitor, found: EventDetail) -> SeatsPage {
    let words = &visitor.lang.words().sale;
    let title = format!("{} · {}", found.event.title, words.seats_title);
    let each = found.max_seats_per_reservation;
    SeatsPage {
        shell: visitor.shell(&title, Some("seats.js")),
        each,
        hint: fill(words.chosen_none, &[("each", each.into())]),
        event: view(visitor.lang, found.event),
    }
}

#[derive(Template)]
#[template(path = "queue.html")]
pub(crate) struct QueuePage {
    pub(crate) shell: Layout,
    pub(crate) event: EventView,
}

/// The waiting room. Entries belong to a user, so the visitor must be signed in. It opens before
/// the sale does.
async fn queue(
    State(Site(site)): State<Site>,
    ctx: Ctx,
    visitor: Visitor,
    Path(event): Path<EventId>,
) -> Result<Response, Problem> {
    let found = one(&*site.catalog, &ctx, event).await?;
    let open = [EventStatus::Upcoming, EventStatus::OnSale];
    match first_to(&visitor, &found, &format!("/queue/{event}"), &open) {
        Some(path) => Ok(go_to(&path)),
        None => page(&visitor, &queue_page(&visitor, found)),
    }
}

pub(crate) fn queue_page(visitor: &Visitor, found: EventDetail) -> QueuePage {
    let title = format!("{} · {}", found.event.title, visitor.lang.words().queue.title);
    QueuePage { shell: visitor.shell(&title, Some("queue.js")), event: view(visitor.lang, found.event) }
}
