//! Every template with samples, in every language.

use askama::Template;
use http::{HeaderMap, StatusCode};
use urr_contracts::{
    auth::{Account, AccountStatus, Language},
    catalog::{EventDetail, EventStatus, EventSummary, TicketType},
};
use urr_kernel::{Actor, Clock, Ids, Krw, Role, Timestamp};

use crate::{
    account::{AccountPage, LoginRow, ServiceRow, SessionRow},
    control,
    error_pages::ErrorPage,
    shop,
    sign_in::{ForgotPage, LoginPage, ProviderButton, RegisterPage, ResetPage, VerifyPage},
    visitor::Visitor,
    words::Lang,
};

fn parts() -> (Clock, Ids) {
    urr_testkit::fixed()
}

fn visitor(lang: Lang, signed_in: bool) -> Visitor {
    let uri = format!("/somewhere?lang={lang}&next=%2F").parse().unwrap();
    let actor = if signed_in {
        Actor::User { id: parts().1.next(), role: Role::UnprovenAdmin }
    } else {
        Actor::Anonymous
    };
    let mut visitor = Visitor::of(&HeaderMap::new(), &uri);
    visitor.actor = actor;
    visitor
}

/// A name that would be markup without escaping.
const NASTY: &str = "<b onclick=\"x\">&'민지";

fn event(status: EventStatus, seated: bool) -> EventDetail {
    let (clock, ids) = parts();
    let now: Timestamp = clock.now();
    let summary = EventSummary {
        id: ids.next(),
        title: NASTY.to_owned(),
        description: Some(format!("하나\n{NASTY}")),
        venue: "모퉁이 소극장".to_owned(),
        address: Some("서울특별시".to_owned()),
        artist_name: Some("구름공방".to_owned()),
        event_at: now,
        sale_start_at: now,
        sale_end_at: now,
        poster_image_url: seated.then(|| "https://pictures.example/1.jpg".to_owned()),
        status,
        layout: seated.then(|| ids.next()),
        min_price: Some(Krw::new(69_000).unwrap()),
        max_price: Some(Krw::new(99_000).unwrap()),
        ticket_type_count: 0,
        places: 265,
        places_reserved: if seated { 3 } else { 265 },
    };
    let kind = TicketType {
        id: ids.next(),
        name: "스탠딩".to_owned(),
        price: Krw::new(88_000).unwrap(),
        total_quantity: 500,
        description: NASTY.to_owned(),
    };
    EventDetail {
        event: summary,
        max_seats_per_reservation: 4,
        max_seats_per_user: 4,
        ticket_types: if seated { Vec::new() } else { vec![kind] },
        created_at: now,
        updated_at: now,
    }
}

fn account_page(lang: Lang, whole: bool) -> AccountPage {
    let visitor = visitor(lang, true);
    let (clock, ids) = parts();
    let account = Account {
        id: ids.next(),
        email: "minji@example.com".to_owned(),
        email_verified: whole,
        name: NASTY.to_owned(),
        phone: None,
        role: Role::User,
        status: AccountStatus::Active,
        language: Language::Ko,
        marketing: whole,
        second_factor: whole,
        identity_verified_at: None,
        created_at: clock.now(),
    };
    let session = |current| SessionRow {
        id: "0190a1f0-0000-7000-8000-000000000001".to_owned(),
        device: NASTY.to_owned(),
        address: "192.0.2.1".to_owned(),
        method: "Google",
        used: "now".to_owned(),
        current,
    };
    let login = |failure| LoginRow {
        at: "now".to_owned(),
        device: NASTY.to_owned(),
        address: String::new(),
        method: "Google",
        failure,
    };
    let service = |since| ServiceRow { name: "google", label: "Google", since };
    AccountPage {
        shell: visitor.shell("x", Some("account.js")),
        account,
        has_password: whole,
        second_needed: !whole,
        services: if whole { vec![service(None), service(Some("then".to_owned()))] } else { Vec::new() },
        sessions: vec![session(true), session(false)],
        logins: if whole { vec![login(None), login(Some("x"))] } else { Vec::new() },
    }
}

/// Each template by file name, rendered in all its variants.
fn rendered(lang: Lang) -> Vec<(&'static str, String)> {
    let (anonymous, signed_in) = (visitor(lang, false), visitor(lang, true));
    let shell = |script| anonymous.shell("x", script);
    let way = ProviderButton {
        name: "google",
        label: "Google",
        start: "/api/auth/google/start?returnTo=%2F".to_owned(),
    };
    let mut all = vec![
        (
            "login",
            LoginPage {
                shell: shell(Some("login.js")).carrying(),
                next: "/a?b=c&d".to_owned(),
                failed: Some("x"),
                ways: vec![way],
            }
            .render(),
        ),
        (
            "login",
            LoginPage { shell: shell(None), next: "/".to_owned(), failed: None, ways: Vec::new() }.render(),
        ),
        ("forgot", ForgotPage { shell: shell(Some("links.js")) }.render()),
        ("reset", ResetPage { shell: shell(Some("links.js")).carrying() }.render()),
        ("verify", VerifyPage { shell: shell(Some("links.js")).carrying() }.render()),
        ("account", account_page(lang, true).render()),
        ("account", account_page(lang, false).render()),
        ("home", shop::home_page(&anonymous, Default::default()).render()),
        ("seats", shop::seats_page(&signed_in, event(EventStatus::OnSale, true)).render()),
        ("queue", shop::queue_page(&signed_in, event(EventStatus::OnSale, true)).render()),
        ("queue", shop::queue_page(&signed_in, event(EventStatus::OnSale, false)).render()),
    ];
    let operator = control::control_page(&signed_in, parts().1.next(), Some(NASTY.to_owned()));
    all.push(("control", operator.render()));
    let unknown = control::control_page(&signed_in, parts().1.next(), None);
    assert!(!unknown.has_page && unknown.title == unknown.id.to_string(), "the id is the only title");
    all.push(("control", unknown.render()));
    for shown in [vec![], vec![shop::event_page(&anonymous, event(EventStatus::OnSale, true), None).event]] {
        all.push(("rooms", control::rooms_page(&signed_in, shown).render()));
    }
    for shown in [vec![], vec![shop::event_page(&anonymous, event(EventStatus::OnSale, true), None).event]] {
        all.push(("admin", control::admin_page(&signed_in, shown).render()));
    }
    for finishing in [false, true] {
        let page = RegisterPage { shell: shell(Some("register.js")), next: "/".to_owned(), finishing };
        all.push(("register", page.render()));
    }
    for status in [400, 401, 404, 429, 500, 503] {
        let status = StatusCode::from_u16(status).unwrap();
        all.push(("error", ErrorPage::new(&anonymous, status, Some(NASTY.to_owned())).render()));
    }
    let states = [EventStatus::OnSale, EventStatus::Upcoming, EventStatus::Ended, EventStatus::Cancelled];
    for (status, seated) in states.into_iter().flat_map(|status| [(status, true), (status, false)]) {
        let page = shop::event_page(&anonymous, event(status, seated), Some("event.js"));
        all.push(("event", page.render()));
        let view = shop::event_page(&anonymous, event(status, seated), None).event;
        all.push(("home", shop::home_page(&anonymous, [vec![view], vec![], vec![], vec![]]).render()));
    }
    all.into_iter().map(|(name, page)| (name, page.unwrap())).collect()
}

/// The values of an attribute, wherever it occurs.
fn values<'p>(page: &'p str, attribute: &str) -> Vec<&'p str> {
    let mark = format!(" {attribute}=\"");
    page.split(&mark).skip(1).map(|rest| rest.split('"').next().unwrap_or_default()).collect()
}

fn check(what: &str, page: &str, lang: Lang) {
    assert!(page.contains(&format!("<html lang=\"{lang}\"")), "{what}: no language");
    assert_eq!(page.matches("<main ").count(), 1, "{what}");
    assert!(page.contains("<h1"), "{what}: no heading");
    assert!(!page.contains("<b onclick"), "{what}: something was not escaped");
    for inline in [" style=\"", "<style", " onclick=\"", " onload=\"", "javascript:"] {
        assert!(!page.contains(inline), "{what}: {inline} is blocked by the policy");
    }
    for script in page.split("<script").skip(1) {
        let (tag, body) = script.split_once('>').unwrap();
        assert!(tag.contains(" src=\"/static/"), "{what}: a script from elsewhere");
        assert!(body.starts_with("</script>"), "{what}: an inline script");
    }
    let mut ids = values(page, "id");
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "{what}: a duplicate id");
    for attribute in ["for", "aria-labelledby", "aria-describedby"] {
        for id in values(page, attribute) {
            assert!(ids.contains(&id), "{what}: {attribute} names {id}, which does not exist");
        }
    }
}

#[test]
fn every_template_renders_in_every_language() {
    for lang in Lang::ALL {
        for (name, page) in rendered(lang) {
            check(&format!("{name} in {lang}"), &page, lang);
        }
    }
}

#[test]
fn every_template_has_a_sample() {
    // Templates that are included in others.
    let parts = ["layout", "parts", "event_parts", "account_second", "control_chart"];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates");
    let rendered = rendered(Lang::En);
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(
            parts.contains(&name.as_str()) || rendered.iter().any(|(rendered, _)| *rendered == name),
            "{name} is rendered by no test"
        );
    }
}
