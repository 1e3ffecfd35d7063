//! Validation of events, their status, and search patterns. Pure: no clock, no database.

use std::collections::HashSet;

use urr_contracts::catalog::{
    CreateEvent, Error, EventStatus, ListEvents, MAX_EVENTS_PER_PAGE, MAX_SEATS_SETTING, NewTicketType,
};
use urr_kernel::{
    Krw, LayoutId, Timestamp,
    limits::{MAX_KRW, MAX_SEATS_PER_EVENT, MAX_SEATS_PER_RESERVATION, MAX_SEATS_PER_USER},
};

/// Characters of a title, venue or artist name: two lines on a ticket.
const MAX_NAME_CHARS: usize = 200;
/// Characters of a street address.
const MAX_ADDRESS_CHARS: usize = 300;
/// Characters of an event's description: two printed pages.
const MAX_DESCRIPTION_CHARS: usize = 5_000;
/// Characters of a poster URL: every browser and proxy accepts this length.
const MAX_URL_CHARS: usize = 2_000;
/// Characters of a ticket type's name; the limit of its column.
const MAX_TYPE_NAME_CHARS: usize = 100;
/// Characters of a ticket type's description.
const MAX_TYPE_DESCRIPTION_CHARS: usize = 1_000;
/// Ticket types of one event: a page shows all of them.
const MAX_TICKET_TYPES: usize = 50;
/// Characters of a search text: half a title.
const MAX_SEARCH_CHARS: usize = 100;

/// Highest price of one seat or ticket. The most expensive reservation stays within [`MAX_KRW`].
pub(crate) const MAX_PRICE: Krw = match Krw::new(MAX_KRW / MAX_SEATS_SETTING as i64) {
    Ok(price) => price,
    Err(_) => panic!("a fraction of the largest amount is a valid amount"),
};

/// How an event is sold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// By seat, in the hall with this seat plan.
    Seated(LayoutId),
    /// By ticket type, without seats.
    Standing(Vec<NewTicketType>),
}

/// A validated event: texts trimmed, limits filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) venue: String,
    pub(crate) address: Option<String>,
    pub(crate) artist_name: Option<String>,
    pub(crate) poster_image_url: Option<String>,
    pub(crate) event_at: Timestamp,
    pub(crate) sale_start_at: Timestamp,
    pub(crate) sale_end_at: Timestamp,
    pub(crate) max_seats_per_reservation: u32,
    pub(crate) max_seats_per_user: u32,
}

/// Validates a request to create an event.
pub(crate) fn draft(request: CreateEvent) -> Result<(Draft, Admission), Error> {
    let CreateEvent { event_at, sale_start_at, sale_end_at, layout, ticket_types, .. } = request;
    if sale_end_at <= sale_start_at {
        return Err(invalid("saleEndDate", "the sale must end after it starts"));
    }
    if event_at < sale_end_at {
        return Err(invalid("saleEndDate", "the sale must end before the performance begins"));
    }
    let (max_seats_per_reservation, max_seats_per_user) =
        seat_limits(request.max_seats_per_reservation, request.max_seats_per_user)?;
    let admission = match (layout, ticket_types.is_empty()) {
        (Some(layout), true) => Admission::Seated(layout),
        (None, false) => Admission::Standing(checked_types(ticket_types)?),
        (Some(_), false) => {
            return Err(invalid("ticketTypes", "an event with a seat layout has no ticket types"));
        }
        (None, true) => {
            return Err(invalid("ticketTypes", "an event needs a seat layout or at least one ticket type"));
        }
    };
    let draft = Draft {
        title: required("title", &request.title, MAX_NAME_CHARS)?,
        description: text("description", request.description.as_deref(), MAX_DESCRIPTION_CHARS, Lines::Many)?,
        venue: required("venue", &request.venue, MAX_NAME_CHARS)?,
        address: text("address", request.address.as_deref(), MAX_ADDRESS_CHARS, Lines::One)?,
        artist_name: text("artistName", request.artist_name.as_deref(), MAX_NAME_CHARS, Lines::One)?,
        poster_image_url: picture(request.poster_image_url.as_deref())?,
        event_at,
        sale_start_at,
        sale_end_at,
        max_seats_per_reservation,
        max_seats_per_user,
    };
    Ok((draft, admission))
}

/// Seats per reservation and per user. A missing limit is derived from the other one.
fn seat_limits(per_reservation: Option<u32>, per_user: Option<u32>) -> Result<(u32, u32), Error> {
    for (field, limit) in [("maxSeatsPerReservation", per_reservation), ("maxSeatsPerUser", per_user)] {
        if limit.is_some_and(|limit| !(1..=MAX_SEATS_SETTING).contains(&limit)) {
            return Err(invalid(field, format!("must be 1 to {MAX_SEATS_SETTING}")));
        }
    }
    let reservation = per_reservation.unwrap_or(MAX_SEATS_PER_RESERVATION.min(per_user.unwrap_or(u32::MAX)));
    let user = per_user.unwrap_or(MAX_SEATS_PER_USER.max(reservation));
    if reservation > user {
        return Err(invalid("maxSeatsPerReservation", "a reservation cannot hold more than its buyer may"));
    }
    Ok((reservation, user))
}

fn checked_types(types: Vec<NewTicketType>) -> Result<Vec<NewTicketType>, Error> {
    const FIELD: &str = "ticketTypes";
    if types.len() > MAX_TICKET_TYPES {
        return Err(invalid(FIELD, format!("an event has at most {MAX_TICKET_TYPES} ticket types")));
    }
    let mut names = HashSet::new();
    let mut places: u64 = 0;
    let mut checked = Vec::with_capacity(types.len());
    for new in types {
        let name = required(FIELD, &new.name, MAX_TYPE_NAME_CHARS)?;
        if !names.insert(name.clone()) {
            return Err(invalid(FIELD, "two ticket types have the same name"));
        }
        if new.price > MAX_PRICE {
            return Err(invalid(FIELD, format!("a ticket costs at most {MAX_PRICE}")));
        }
        if new.total_quantity == 0 {
            return Err(invalid(FIELD, "there is at least one ticket of each type"));
        }
        places += u64::from(new.total_quantity);
        let description = text(FIELD, Some(&new.description), MAX_TYPE_DESCRIPTION_CHARS, Lines::Many)?;
        checked.push(NewTicketType { name, description: description.unwrap_or_default(), ..new });
    }
    if places > MAX_SEATS_PER_EVENT as u64 {
        return Err(invalid(FIELD, format!("an event has at most {MAX_SEATS_PER_EVENT} places")));
    }
    Ok(checked)
}

/// Whether a text may contain line breaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    One,
    Many,
}

fn required(field: &str, value: &str, max: usize) -> Result<String, Error> {
    text(field, Some(value), max, Lines::One)?.ok_or_else(|| invalid(field, "must not be empty"))
}

/// Trims a text; `None` if nothing remains. Rejects control characters: PostgreSQL cannot store all
/// of them, and no page can display them.
fn text(field: &str, value: Option<&str>, max: usize, lines: Lines) -> Result<Option<String>, Error> {
    let value = value.unwrap_or_default().trim();
    if value.chars().count() > max {
        return Err(invalid(field, format!("must have at most {max} characters")));
    }
    let allowed = |c: char| !c.is_control() || (lines == Lines::Many && matches!(c, '\n' | '\r' | '\t'));
    if !value.chars().all(allowed) {
        return Err(invalid(field, "must not contain control characters"));
    }
    Ok((!value.is_empty()).then(|| value.to_owned()))
}

/// Validates a poster URL: http, https or a path of this site. Anything else, such as
/// `javascript:`, could run as code in a visitor's page.
fn picture(url: Option<&str>) -> Result<Option<String>, Error> {
    const FIELD: &str = "posterImageUrl";
    let Some(url) = text(FIELD, url, MAX_URL_CHARS, Lines::One)? else { return Ok(None) };
    let lower = url.to_ascii_lowercase();
    let host = ["http://", "https://"].iter().find_map(|scheme| lower.strip_prefix(scheme));
    // Browsers read `//` and `/\` as the start of a host name, not of a path.
    let local = url.starts_with('/') && !url[1..].starts_with(['/', '\\']);
    let remote = host.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    if (!local && !remote) || url.contains(char::is_whitespace) {
        return Err(invalid(FIELD, "must be an http or https address, or a path that starts with one slash"));
    }
    Ok(Some(url))
}

/// Returns the status of an event at `now`. The sale ends before the performance, so the sale
/// window is enough.
pub(crate) fn status(
    cancelled_at: Option<Timestamp>,
    sale_start_at: Timestamp,
    sale_end_at: Timestamp,
    now: Timestamp,
) -> EventStatus {
    if cancelled_at.is_some() {
        EventStatus::Cancelled
    } else if now < sale_start_at {
        EventStatus::Upcoming
    } else if now < sale_end_at {
        EventStatus::OnSale
    } else {
        EventStatus::Ended
    }
}

/// Name of a status in the list statement.
pub(crate) const fn status_name(status: EventStatus) -> &'static str {
    match status {
        EventStatus::Upcoming => "upcoming",
        EventStatus::OnSale => "on_sale",
        EventStatus::Ended => "ended",
        EventStatus::Cancelled => "cancelled",
    }
}

/// Parameters of the list statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) status: Option<&'static str>,
    pub(crate) pattern: Option<String>,
    pub(crate) limit: u32,
    pub(crate) offset: i64,
}

/// Validates a request to list events.
pub(crate) fn listing(request: &ListEvents) -> Result<Listing, Error> {
    if request.page == 0 {
        return Err(invalid("page", "pages are counted from 1"));
    }
    if !(1..=MAX_EVENTS_PER_PAGE).contains(&request.limit) {
        return Err(invalid("limit", format!("must be 1 to {MAX_EVENTS_PER_PAGE}")));
    }
    let search = text("q", request.search.as_deref(), MAX_SEARCH_CHARS, Lines::One)?;
    Ok(Listing {
        status: request.status.map(status_name),
        pattern: search.map(|search| pattern(&search)),
        limit: request.limit,
        offset: i64::from(request.page - 1) * i64::from(request.limit),
    })
}

/// Text that searches match against: title, artist, venue and address, lowercased like [`pattern`].
pub(crate) fn search_text(draft: &Draft) -> String {
    let parts = [Some(&draft.title), draft.artist_name.as_ref(), Some(&draft.venue), draft.address.as_ref()];
    parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Returns a LIKE pattern that matches `search` anywhere, with `%`, `_` and `\` escaped.
fn pattern(search: &str) -> String {
    let mut pattern = String::with_capacity(search.len() + 2);
    pattern.push('%');
    for c in search.to_lowercase().chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

fn invalid(field: &str, reason: impl Into<String>) -> Error {
    Error::Invalid { field: field.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests;
