//! Demo events for a first start: on sale, upcoming and ended.
//!
//! All artists, titles and venues are fictional. Times are relative to the clock. A catalog that
//! already has an event is left unchanged.

use std::time::Duration;

use urr_contracts::catalog::{CreateEvent, Error, NewTicketType};
use urr_db::{Tx, transaction};
use urr_kernel::{Krw, LayoutId, Timestamp};
use urr_rpc::Ctx;

use crate::{
    Failure,
    events::{self, store, store::NewEvent},
    service::Service,
};

/// Inserts the demo events in one transaction. Returns `false` if the catalog already has events.
pub async fn seed(service: &Service) -> Result<bool, Error> {
    let ctx = Ctx::system(&service.ids, &service.clock);
    fill(service).await.map_err(|failure| ctx.reveal("demo", failure))
}

async fn fill(service: &Service) -> Result<bool, Failure> {
    if service.db.read("catalog.any", async |tx: &mut Tx<'_>| Ok::<_, Failure>(store::any(tx).await?)).await?
    {
        return Ok(false);
    }
    let mut plans: Vec<NewEvent> = Vec::new();
    for event in demo_events(service.clock.now()) {
        plans.push(events::plan(service, service.ids.next(), event).await?);
    }
    if let Some(last) = plans.last_mut() {
        last.id = fixed(LAST_EVENT);
    }
    let filled = transaction!(service.db, "catalog.demo", async |tx: &mut Tx<'_>| {
        for plan in &plans {
            store::insert(tx, plan).await?;
        }
        Ok::<_, Failure>(())
    });
    match filled {
        Ok(()) => Ok(true),
        // Another process inserted the demo events concurrently.
        Err(failure) if failure.cause().is_some_and(urr_db::Error::is_unique_violation) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// The last demo event has a fixed id. If two processes start together, its unique key makes one of
/// the transactions fail. It is inserted last so that the second process blocks only on the first
/// one's commit.
const LAST_EVENT: &str = "00000000-0000-7000-8000-000000000100";

/// Id of a hall inserted by the first migration.
fn hall(number: u32) -> LayoutId {
    fixed(&format!("00000000-0000-7000-8000-0000000000{number:02}"))
}

fn fixed<T: std::str::FromStr>(id: &str) -> T {
    id.parse().unwrap_or_else(|_| unreachable!("fixed ids are valid UUIDs"))
}

const HOUR: Duration = Duration::from_hours(1);
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
/// Korea Standard Time is UTC+9 all year, without daylight saving time.
const KOREA_MICROS: i64 = 9 * 60 * 60 * 1_000_000;

/// The given time of day in Korea, `days` after today.
fn korea(now: Timestamp, days: i64, hour: i64, minute: i64) -> Timestamp {
    let today = (now.as_micros() + KOREA_MICROS).div_euclid(DAY_MICROS) + days;
    Timestamp::from_micros(today * DAY_MICROS - KOREA_MICROS + (hour * 60 + minute) * 60 * 1_000_000)
}

/// The second full hour from now, so that a visitor can see the countdown reach zero.
fn soon(now: Timestamp) -> Timestamp {
    let hour = 60 * 60 * 1_000_000;
    Timestamp::from_micros((now.as_micros().div_euclid(hour) + 1) * hour).after(HOUR)
}

fn demo_events(now: Timestamp) -> Vec<CreateEvent> {
    let at = |days, hour, minute| korea(now, days, hour, minute);
    vec![
        CreateEvent {
            layout: Some(hall(1)),
            ..event(
                "구름공방 소극장 콘서트 〈느린 오후〉",
                "구름공방",
                ("모퉁이 소극장", "서울특별시 마포구 가온길 12"),
                "손으로 만든 악기로 들려주는 아홉 곡.\nCloud Workshop: A Slow Afternoon",
                [at(-5, 10, 0), at(13, 23, 59), at(14, 19, 0)],
            )
        },
        CreateEvent {
            layout: Some(hall(2)),
            ..event(
                "은하수제비 3집 발매 기념 콘서트 〈궤도〉",
                "은하수제비",
                ("한빛나루 대극장", "서울특별시 영등포구 나루터로 301"),
                "새 앨범 전곡을 스무 명의 현악과 함께 처음으로.\nGalaxy Dumplings: Orbit",
                [at(-3, 10, 0), at(29, 23, 59), at(30, 19, 30)],
            )
        },
        CreateEvent {
            ticket_types: standing_tickets(),
            ..event(
                "네온까치 스탠딩 라이브 〈막차까지〉",
                "네온까치",
                ("차고지 라이브홀", "서울특별시 성동구 종점길 7"),
                "전석 스탠딩. 막차가 떠날 때까지 멈추지 않습니다.\nNeon Magpie: Until the Last Train",
                [at(-1, 10, 0), at(17, 23, 59), at(18, 20, 0)],
            )
        },
        CreateEvent {
            layout: Some(hall(3)),
            ..event(
                "파도상점 전국투어 〈만조〉 - 서울",
                "파도상점",
                ("물마루 체육관", "서울특별시 송파구 너울로 88"),
                "여섯 도시를 도는 투어의 첫날.\nWave Store: High Tide",
                [soon(now), at(34, 18, 0), at(35, 18, 0)],
            )
        },
        CreateEvent {
            layout: Some(hall(2)),
            ..event(
                "열두시의 온실 단독 공연 〈밤에 피는〉",
                "열두시의 온실",
                ("한빛나루 대극장", "서울특별시 영등포구 나루터로 301"),
                "자정에만 열리는 온실을 무대로 옮겼습니다.\nGreenhouse at Twelve: Blooming by Night",
                [at(7, 20, 0), at(44, 18, 0), at(45, 19, 0)],
            )
        },
        CreateEvent {
            layout: Some(hall(1)),
            ..event(
                "도토리극단 가족 음악극 〈숲속 시계탑〉",
                "도토리극단",
                ("모퉁이 소극장", "서울특별시 마포구 가온길 12"),
                "다섯 살부터 함께 보는 음악극.\nAcorn Company: The Clock Tower in the Woods",
                [at(-40, 10, 0), at(-4, 23, 59), at(-3, 15, 0)],
            )
        },
    ]
}

fn event(
    title: &str,
    artist: &str,
    (venue, address): (&str, &str),
    description: &str,
    [sale_start_at, sale_end_at, event_at]: [Timestamp; 3],
) -> CreateEvent {
    CreateEvent {
        title: title.to_owned(),
        description: Some(description.to_owned()),
        venue: venue.to_owned(),
        address: Some(address.to_owned()),
        artist_name: Some(artist.to_owned()),
        event_at,
        sale_start_at,
        sale_end_at,
        poster_image_url: None,
        layout: None,
        ticket_types: Vec::new(),
        max_seats_per_reservation: None,
        max_seats_per_user: None,
    }
}

fn standing_tickets() -> Vec<NewTicketType> {
    let tickets = [
        ("스탠딩", 88_000, 500, "무대 앞 스탠딩 구역"),
        ("얼리버드", 69_000, 100, "먼저 오는 백 명을 위한 스탠딩"),
        ("발코니", 99_000, 60, "2층 발코니 스탠딩"),
    ];
    tickets.into_iter().map(ticket_type).collect()
}

fn ticket_type((name, won, total_quantity, description): (&str, i64, u32, &str)) -> NewTicketType {
    NewTicketType {
        name: name.to_owned(),
        price: Krw::new(won).unwrap_or_else(|_| unreachable!("fixed prices are valid amounts")),
        total_quantity,
        description: description.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use urr_contracts::catalog::EventStatus::{Ended, OnSale, Upcoming};

    use super::*;
    use crate::events::rules;

    #[test]
    fn demo_has_events_of_every_status_at_any_time_of_day() {
        let midnight: Timestamp = "2026-03-01T00:00:00+09:00".parse().unwrap();
        for minutes in 0..24 * 60 {
            let now = midnight.after(Duration::from_secs(minutes * 60 + 1));
            let status =
                |event: &CreateEvent| rules::status(None, event.sale_start_at, event.sale_end_at, now);
            let events = demo_events(now);
            let statuses: Vec<_> = events.iter().map(status).collect();
            assert_eq!(statuses, [OnSale, OnSale, OnSale, Upcoming, Upcoming, Ended], "at {now}");
            for event in events {
                rules::draft(event).unwrap();
            }
        }
    }

    #[test]
    fn times_of_day_are_in_korea_standard_time() {
        let now: Timestamp = "2026-03-01T23:30:00Z".parse().unwrap();
        assert_eq!(korea(now, 0, 19, 30), "2026-03-02T19:30:00+09:00".parse().unwrap());
        assert_eq!(korea(now, -1, 0, 0), "2026-03-01T00:00:00+09:00".parse().unwrap());
        assert_eq!(soon(now), "2026-03-02T01:00:00Z".parse().unwrap());
    }
}
