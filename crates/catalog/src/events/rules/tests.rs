//! Tests of event validation, status and search patterns.

use std::time::Duration;

use proptest::prelude::*;
use urr_kernel::{Clock, Ids};

use super::*;

fn at(second: u64) -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000).after(Duration::from_secs(second))
}

fn kind(name: &str, won: i64, total_quantity: u32) -> NewTicketType {
    let description = String::new();
    NewTicketType { name: name.to_owned(), price: Krw::new(won).unwrap(), total_quantity, description }
}

fn request() -> CreateEvent {
    let ids = Ids::seeded(Clock::fixed(at(0)), 1);
    CreateEvent {
        title: "궤도".to_owned(),
        description: None,
        venue: "대극장".to_owned(),
        address: None,
        artist_name: None,
        event_at: at(300),
        sale_start_at: at(100),
        sale_end_at: at(200),
        poster_image_url: None,
        layout: Some(ids.next()),
        ticket_types: Vec::new(),
        max_seats_per_reservation: None,
        max_seats_per_user: None,
    }
}

fn standing(ticket_types: Vec<NewTicketType>) -> CreateEvent {
    CreateEvent { layout: None, ticket_types, ..request() }
}

/// Returns the field that validation rejects.
fn refused(request: CreateEvent) -> String {
    match draft(request) {
        Err(Error::Invalid { field, .. }) => field,
        other => panic!("expected `Invalid`, got {other:?}"),
    }
}

#[test]
fn a_valid_event_is_trimmed_and_gets_default_limits() {
    let asked = CreateEvent {
        title: "  궤도 ".to_owned(),
        description: Some(" one\n\ttwo ".to_owned()),
        address: Some("   ".to_owned()),
        artist_name: Some("은하수제비".to_owned()),
        ..request()
    };
    let (made, admission) = draft(asked.clone()).unwrap();
    assert_eq!(made.title, "궤도");
    assert_eq!(made.description.as_deref(), Some("one\n\ttwo"));
    assert_eq!(made.address, None, "a blank text becomes none");
    assert_eq!((made.max_seats_per_reservation, made.max_seats_per_user), (4, 4));
    assert_eq!(admission, Admission::Seated(asked.layout.unwrap()));
}

#[test]
fn names_have_1_to_200_characters_of_any_script() {
    let title = |title: &str| CreateEvent { title: title.to_owned(), ..request() };
    let venue = |venue: &str| CreateEvent { venue: venue.to_owned(), ..request() };
    assert!(draft(title(&"가".repeat(200))).is_ok());
    assert!(draft(venue(&"é".repeat(200))).is_ok());
    for bad in [title(""), title(" \t "), title(&"가".repeat(201)), title("a\0b"), title("a\nb")] {
        assert_eq!(refused(bad), "title");
    }
    for bad in [venue(""), venue("\u{3000}"), venue(&"가".repeat(201)), venue("a\u{7}b")] {
        assert_eq!(refused(bad), "venue");
    }
}

#[test]
fn too_long_texts_are_rejected_with_their_field_name() {
    let long = || Some("x".repeat(5_001));
    assert_eq!(refused(CreateEvent { description: long(), ..request() }), "description");
    assert_eq!(refused(CreateEvent { address: long(), ..request() }), "address");
    assert_eq!(refused(CreateEvent { artist_name: long(), ..request() }), "artistName");
    let poster = Some(format!("https://e.xyz/{}", "x".repeat(2_000)));
    assert_eq!(refused(CreateEvent { poster_image_url: poster, ..request() }), "posterImageUrl");
}

#[test]
fn the_sale_ends_after_it_starts_and_before_the_performance() {
    let times = |start, end, event| CreateEvent {
        sale_start_at: at(start),
        sale_end_at: at(end),
        event_at: at(event),
        ..request()
    };
    assert!(draft(times(1, 2, 2)).is_ok(), "a sale may end when the performance begins");
    for bad in [times(2, 2, 9), times(3, 2, 9), times(1, 3, 2), times(5, 6, 1)] {
        assert_eq!(refused(bad), "saleEndDate");
    }
}

#[test]
fn an_event_is_either_seated_or_standing() {
    let both = CreateEvent { ticket_types: vec![kind("a", 1, 1)], ..request() };
    assert_eq!(refused(both), "ticketTypes");
    assert_eq!(refused(standing(vec![])), "ticketTypes");
    let (_, admission) = draft(standing(vec![kind(" a ", 1, 1)])).unwrap();
    assert_eq!(admission, Admission::Standing(vec![kind("a", 1, 1)]));
}

#[test]
fn ticket_type_names_prices_and_quantities_are_validated() {
    assert!(draft(standing(vec![kind("a", 0, 1), kind("b", MAX_PRICE.won(), 99_999)])).is_ok());
    for bad in [
        vec![kind("", 1, 1)],
        vec![kind("a", 1, 0)],
        vec![kind("a", MAX_PRICE.won() + 1, 1)],
        vec![kind("a", 1, 1), kind("a ", 2, 2)],
        vec![kind("a", 1, 50_000), kind("b", 1, 50_001)],
        vec![kind("a", 1, u32::MAX), kind("b", 1, u32::MAX)],
        (0..=MAX_TICKET_TYPES).map(|n| kind(&n.to_string(), 1, 1)).collect(),
    ] {
        assert_eq!(refused(standing(bad)), "ticketTypes");
    }
}

#[test]
fn seat_limits_are_1_to_10_and_default_from_each_other() {
    let limits = |reservation, user| {
        let asked =
            CreateEvent { max_seats_per_reservation: reservation, max_seats_per_user: user, ..request() };
        draft(asked).map(|(draft, _)| (draft.max_seats_per_reservation, draft.max_seats_per_user)).ok()
    };
    assert_eq!(limits(None, Some(2)), Some((2, 2)));
    assert_eq!(limits(None, Some(9)), Some((4, 9)));
    assert_eq!(limits(Some(6), None), Some((6, 6)));
    assert_eq!(limits(Some(1), None), Some((1, 4)));
    assert_eq!(limits(Some(10), Some(10)), Some((10, 10)));
    for (reservation, user) in
        [(Some(0), None), (Some(11), None), (None, Some(0)), (None, Some(11)), (Some(3), Some(2))]
    {
        assert_eq!(limits(reservation, user), None, "{reservation:?} {user:?}");
    }
}

#[test]
fn a_poster_url_is_http_https_or_a_local_path() {
    let poster = |url: &str| draft(CreateEvent { poster_image_url: Some(url.to_owned()), ..request() });
    for good in ["https://images.example/a.png", "HTTP://images.example", "/posters/궤도.webp", "/"] {
        assert_eq!(poster(good).unwrap().0.poster_image_url.as_deref(), Some(good));
    }
    for bad in [
        "javascript:alert(1)",
        "data:image/png;base64,AA",
        "//evil.example/a.png",
        "/\\evil.example",
        "https://",
        "https:///a.png",
        "ftp://a.example",
        "posters/a.png",
        "https://a.example/a b.png",
    ] {
        assert!(poster(bad).is_err(), "{bad}");
    }
}

#[test]
fn status_changes_exactly_at_the_sale_start_and_end() {
    let micro = Duration::from_micros(1);
    let status_at = |now| status(None, at(100), at(200), now);
    assert_eq!(status_at(at(100).before(micro)), EventStatus::Upcoming);
    assert_eq!(status_at(at(100)), EventStatus::OnSale);
    assert_eq!(status_at(at(200).before(micro)), EventStatus::OnSale);
    assert_eq!(status_at(at(200)), EventStatus::Ended);
    assert_eq!(status(Some(at(0)), at(100), at(200), at(150)), EventStatus::Cancelled);
}

#[test]
fn status_names_in_sql_match_the_contract() {
    for status in [EventStatus::Upcoming, EventStatus::OnSale, EventStatus::Ended, EventStatus::Cancelled] {
        assert_eq!(serde_json::to_value(status).unwrap(), status_name(status));
    }
}

#[test]
fn page_and_limit_are_validated_and_become_an_offset() {
    let asked = |page, limit| listing(&ListEvents { page, limit, ..ListEvents::default() });
    assert_eq!(asked(1, 10).unwrap().offset, 0);
    assert_eq!(asked(3, 100).unwrap().offset, 200);
    assert_eq!(asked(u32::MAX, 100).unwrap().offset, (i64::from(u32::MAX) - 1) * 100);
    for (page, limit) in [(0, 10), (1, 0), (1, 101)] {
        assert!(matches!(asked(page, limit), Err(Error::Invalid { .. })), "{page} {limit}");
    }
}

#[test]
fn a_search_is_lowercased_and_wildcards_are_escaped() {
    let asked = |search: &str| {
        let request = ListEvents { search: Some(search.to_owned()), page: 1, limit: 1, status: None };
        listing(&request).map(|listing| listing.pattern)
    };
    assert_eq!(asked(" 50%_OFF\\ ").unwrap().as_deref(), Some("%50\\%\\_off\\\\%"));
    assert_eq!(asked("ÉCLAT").unwrap().as_deref(), Some("%éclat%"));
    assert_eq!(asked("  ").unwrap(), None, "a blank search matches everything");
    assert!(asked("a\0").is_err());
    assert!(asked(&"x".repeat(101)).is_err());
}

proptest! {
    #[test]
    fn status_only_moves_forward(
        start in 0..1_000_u64, length in 1..1_000_u64, one in 0..3_000_u64, other in 0..3_000_u64,
    ) {
        let order = |now| match status(None, at(start), at(start + length), at(now)) {
            EventStatus::Upcoming => 0,
            EventStatus::OnSale => 1,
            EventStatus::Ended => 2,
            EventStatus::Cancelled => 3,
        };
        prop_assert!(order(one.min(other)) <= order(one.max(other)));
        prop_assert_eq!(order(one) == 1, (start..start + length).contains(&one));
    }

    #[test]
    fn any_input_is_rejected_or_fits_the_columns(title in ".{0,300}", venue in "\\PC{0,250}") {
        if let Ok((made, _)) = draft(CreateEvent { title, venue, ..request() }) {
            for text in [&made.title, &made.venue] {
                prop_assert!((1..=200).contains(&text.chars().count()));
                prop_assert!(!text.contains('\0'));
            }
        }
    }
}
