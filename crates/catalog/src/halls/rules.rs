//! Generates seats from the seat plan of a hall. Pure: the caller supplies the ids.

use std::collections::HashSet;

use urr_contracts::catalog::{Seat, Section};
use urr_kernel::{SeatId, limits::MAX_SEATS_PER_EVENT};

use crate::events::rules::MAX_PRICE;

/// Sections of one hall. The largest stadiums have a few hundred.
const MAX_SECTIONS: usize = 1_000;

/// Highest number of a section's first row. Rows are numbered throughout the hall, and no hall has
/// this many.
const MAX_START_ROW: u32 = 10_000;

/// Why a seat plan is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadLayout(String);

/// Returns the number of seats of a valid seat plan.
pub(crate) fn count(sections: &[Section]) -> Result<u32, BadLayout> {
    if sections.is_empty() || sections.len() > MAX_SECTIONS {
        return Err(BadLayout(format!("a hall has 1 to {MAX_SECTIONS} sections")));
    }
    let mut names = HashSet::new();
    let mut seats: u64 = 0;
    for section in sections {
        check(section)?;
        if !names.insert(section.name.as_str()) {
            return Err(BadLayout(format!("two sections are called {}", section.name)));
        }
        seats = seats.saturating_add(u64::from(section.rows) * u64::from(section.seats_per_row));
    }
    match u32::try_from(seats) {
        Ok(seats) if seats as usize <= MAX_SEATS_PER_EVENT => Ok(seats),
        _ => Err(BadLayout(format!("a hall has at most {MAX_SEATS_PER_EVENT} seats"))),
    }
}

fn check(section: &Section) -> Result<(), BadLayout> {
    let name = &section.name;
    if name.trim().is_empty() || section.grade.as_ref().is_some_and(|grade| grade.trim().is_empty()) {
        return Err(BadLayout("a section and its grade have names".to_owned()));
    }
    if section.rows == 0 || section.seats_per_row == 0 {
        return Err(BadLayout(format!("section {name} has no seats")));
    }
    if !(1..=MAX_START_ROW).contains(&section.start_row) {
        return Err(BadLayout(format!("section {name} starts with row 1 to {MAX_START_ROW}")));
    }
    if section.price > MAX_PRICE {
        return Err(BadLayout(format!("a seat in section {name} costs more than {MAX_PRICE}")));
    }
    Ok(())
}

/// Generates all seats of a hall: section by section, row by row, in ascending seat number.
///
/// Labels are unique: section names are unique, and the last two parts of a label are plain
/// numbers.
pub(crate) fn seats(
    sections: &[Section],
    mut next_id: impl FnMut() -> SeatId,
) -> Result<Vec<Seat>, BadLayout> {
    let mut seats = Vec::with_capacity(count(sections)? as usize);
    for section in sections {
        let Section { name, rows, seats_per_row, price, start_row, .. } = section;
        let grade = section.grade.as_ref().unwrap_or(name);
        for row in *start_row..start_row + rows {
            for number in 1..=*seats_per_row {
                seats.push(Seat {
                    id: next_id(),
                    section: name.clone(),
                    grade: grade.clone(),
                    row,
                    number,
                    label: format!("{name}-{row}-{number}"),
                    price: *price,
                });
            }
        }
    }
    Ok(seats)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use urr_kernel::{Clock, Ids, Krw, Timestamp};

    use super::*;

    fn section(name: &str, rows: u32, seats_per_row: u32) -> Section {
        let price = Krw::new(70_000).unwrap();
        Section { name: name.to_owned(), grade: None, rows, seats_per_row, price, start_row: 1 }
    }

    fn made(sections: &[Section]) -> Result<Vec<Seat>, BadLayout> {
        let ids = Ids::seeded(Clock::fixed(Timestamp::from_micros(0)), 1);
        seats(sections, || ids.next())
    }

    #[test]
    fn seats_are_generated_in_plan_order() {
        let vip = Section { start_row: 4, ..section("VIP", 2, 2) };
        let r = Section { grade: Some("good".to_owned()), start_row: 6, ..section("R", 1, 1) };
        let seats = made(&[vip, r]).unwrap();
        let labels: Vec<_> = seats.iter().map(|seat| seat.label.as_str()).collect();
        assert_eq!(labels, ["VIP-4-1", "VIP-4-2", "VIP-5-1", "VIP-5-2", "R-6-1"]);
        assert_eq!((seats[0].grade.as_str(), seats[4].grade.as_str()), ("VIP", "good"));
        assert_eq!((seats[3].row, seats[3].number), (5, 2));
    }

    #[test]
    fn the_largest_hall_is_accepted_and_one_more_seat_is_rejected() {
        assert_eq!(made(&[section("A", 1_000, 100)]).unwrap().len(), MAX_SEATS_PER_EVENT);
        assert!(made(&[section("A", 1_000, 100), section("B", 1, 1)]).is_err());
        assert!(made(&[section("A", u32::MAX, u32::MAX)]).is_err(), "the seat count must not overflow");
    }

    #[test]
    fn invalid_seat_plans_are_rejected() {
        let dear = Krw::new(MAX_PRICE.won() + 1).unwrap();
        for bad in [
            vec![],
            vec![section("A", 0, 5)],
            vec![section("A", 5, 0)],
            vec![section(" ", 1, 1)],
            vec![section("A", 1, 1), section("A", 2, 2)],
            vec![Section { start_row: 0, ..section("A", 1, 1) }],
            vec![Section { start_row: u32::MAX, ..section("A", 1, 1) }],
            vec![Section { price: dear, ..section("A", 1, 1) }],
            vec![Section { grade: Some(String::new()), ..section("A", 1, 1) }],
            vec![section("A", 1, 1); MAX_SECTIONS + 1],
        ] {
            assert!(made(&bad).is_err(), "{bad:?}");
        }
    }

    fn any_section() -> impl Strategy<Value = Section> {
        ("[A-Z]{1,2}(-[0-9]{1,2}){0,2}", 1..12_u32, 1..12_u32, 1..40_u32, 0..1_000_000_i64).prop_map(
            |(name, rows, seats_per_row, start_row, price)| Section {
                start_row,
                price: Krw::new(price).unwrap(),
                ..section(&name, rows, seats_per_row)
            },
        )
    }

    proptest! {
        #[test]
        fn labels_positions_and_ids_are_unique_and_totals_match_the_plan(
            sections in prop::collection::vec(any_section(), 1..8),
        ) {
            let names: HashSet<_> = sections.iter().map(|section| &section.name).collect();
            prop_assume!(names.len() == sections.len());
            let seats = made(&sections).unwrap();
            prop_assert_eq!(u32::try_from(seats.len()).unwrap(), count(&sections).unwrap());
            let labels: HashSet<_> = seats.iter().map(|seat| &seat.label).collect();
            let places: HashSet<_> = seats.iter().map(|seat| (&seat.section, seat.row, seat.number)).collect();
            let ids: HashSet<_> = seats.iter().map(|seat| seat.id).collect();
            prop_assert_eq!([labels.len(), places.len(), ids.len()], [seats.len(); 3]);
            let worth: i64 = seats.iter().map(|seat| seat.price.won()).sum();
            let planned: i64 = sections
                .iter()
                .map(|section| section.price.won() * i64::from(section.rows * section.seats_per_row))
                .sum();
            prop_assert_eq!(worth, planned);
        }
    }
}
