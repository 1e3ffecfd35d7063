//! Accounts, from registration to sign-out, and the first administrator.

use std::{io::Write as _, process::Stdio};

use serde_json::{Value, json};
use urr_testkit::fresh_database;

use crate::process::{Answer, Serving, WorkDir};

const PASSWORD: &str = "correct horse battery staple";
const JSON: (&str, &str) = ("content-type", "application/json");

fn post(serving: &Serving, path: &str, body: &Value) -> Answer {
    serving.ask("POST", path, &[JSON], &body.to_string())
}

fn login(serving: &Serving, email: &str, password: &str) -> Answer {
    post(serving, "/api/auth/login", &json!({ "email": email, "password": password }))
}

fn bearer(signed_in: &Answer) -> String {
    format!("Bearer {}", signed_in.json()["token"].as_str().unwrap())
}

/// Address and password from the printed line about the administrator.
fn told(line: &str) -> (String, String) {
    let (email, rest) = line.trim().strip_prefix("admin").unwrap().trim().split_once(", password ").unwrap();
    (email.to_owned(), rest.split(' ').next().unwrap().to_owned())
}

/// Registers, signs in by password, and reads the account by cookie and by bearer token. Returns
/// the response of the sign-in.
fn walk_in(serving: &Serving) -> Answer {
    let agreed = |kind: &str| json!({ "type": kind, "agreed": true });
    let registration = json!({
        "email": "Minji@example.com", "password": PASSWORD, "name": "김민지",
        "agreements": [agreed("SERVICE"), agreed("PRIVACY")],
    });
    let registered = post(serving, "/api/auth/register", &registration);
    assert_eq!(registered.status, 201, "{registered:?}");

    let wrong = login(serving, "minji@example.com", "wrong horse battery staple");
    let stranger = login(serving, "nobody@example.com", PASSWORD);
    for refused in [wrong, stranger] {
        assert_eq!(refused.status, 400, "{refused:?}");
        assert_eq!(refused.json()["code"], "auth.invalid_credentials");
    }

    let signed_in = login(serving, "minji@example.com", PASSWORD);
    assert_eq!(signed_in.status, 200, "{signed_in:?}");
    for (name, value) in [("cookie", signed_in.cookies()), ("authorization", bearer(&signed_in))] {
        let me = serving.ask("GET", "/api/auth/me", &[(name, &value)], "");
        assert_eq!(me.status, 200, "{name}: {me:?}");
        assert!(me.body.contains("minji@example.com"), "{name}: {me:?}");
        let mine = serving.ask("GET", "/api/reservations/my", &[(name, &value)], "");
        assert_eq!(mine.status, 200, "{name}: {mine:?}");
    }
    assert_eq!(serving.get("/api/auth/me").status, 401);
    signed_in
}

/// Signs out and checks that both tokens are refused.
fn walk_out(serving: &Serving, signed_in: &Answer) {
    let (cookies, page) = (signed_in.cookies(), format!("http://{}", serving.address));
    let gone = serving.ask("POST", "/api/auth/logout", &[("cookie", &cookies), ("origin", &page)], "");
    assert_eq!(gone.status, 200, "{gone:?}");
    let me = serving.ask("GET", "/api/auth/me", &[("authorization", &bearer(signed_in))], "");
    assert_eq!(me.json()["code"], "auth.token_revoked", "{me:?}");
    let refresh = json!({ "refreshToken": signed_in.json()["refreshToken"] });
    let refused = post(serving, "/api/auth/refresh", &refresh);
    assert_eq!(refused.status, 401, "{refused:?}");
    assert_eq!(refused.json()["code"], "auth.refresh_invalid");
}

#[test]
fn a_user_registers_signs_in_holds_seats_and_signs_out() {
    let work_dir = WorkDir::new();
    let serving = work_dir.serve(&[]);
    let signed_in = walk_in(&serving);

    let events = serving.get("/api/events?status=on_sale").json();
    let seated = events["events"].as_array().unwrap().iter().find(|event| !event["seat_layout_id"].is_null());
    let event = seated.unwrap()["id"].as_str().unwrap().to_owned();
    let map = serving.get(&format!("/api/seats/events/{event}")).json();
    let free = map["seats"].as_array().unwrap().iter().filter(|seat| seat["status"] == "available");
    let seats: Vec<&Value> = free.map(|seat| &seat["id"]).take(2).collect();
    let request = json!({ "eventId": event, "seatIds": seats }).to_string();
    let (cookies, page) = (signed_in.cookies(), format!("http://{}", serving.address));
    let from = |page: &str, entry: &str| {
        let headers = [JSON, ("cookie", &*cookies), ("origin", page), ("x-queue-entry-token", entry)];
        serving.ask("POST", "/api/seats/reserve", &headers, &request)
    };
    assert_eq!(from("https://evil.example", "").json()["code"], "gateway.cross_origin");
    let refused = from(&page, "");
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(refused.json()["error"], "Queue entry token required");
    assert_eq!(refused.json()["redirectTo"], "/queue");
    let line = format!("/api/queue/check/{event}");
    let work_dir = serving.ask("POST", &line, &[("cookie", &cookies), ("origin", &page)], "").json();
    assert_eq!(work_dir["status"], "active", "{work_dir}");
    let held = from(&page, work_dir["entryToken"].as_str().unwrap());
    assert!((200..300).contains(&held.status), "{held:?}");
    let mine = serving.ask("GET", "/api/reservations/my", &[("authorization", &bearer(&signed_in))], "");
    assert!(mine.body.contains(&event), "{mine:?}");

    walk_out(&serving, &signed_in);
    serving.stop();
}

/// A bcrypt hash of [`PASSWORD`].
const ELSEWHERE: &str = "$2b$04$abcdefghijklmnopqrstuu7EJV7kdjBBQxyb0HjTh9KS7.Lah/6CG";

#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_another_system_are_imported_and_their_owners_sign_in() {
    imported(&[]);
    if let Some(database) = fresh_database(&[]).await {
        let url = format!("storage.url={}", database.url);
        imported(&["--set", "storage.kind=postgres", "--set", &url]);
    }
}

fn imported(set: &[&str]) {
    let work_dir = WorkDir::new();
    work_dir.run(&[&["migrate"], set].concat()).ok();
    let line = |email: &str, hash: &str| {
        json!({ "email": email, "name": "김민지", "passwordHash": hash, "emailVerified": true }).to_string()
    };
    let import = [&["admin", "import", "people.jsonl"], set].concat();
    work_dir.write(
        "people.jsonl",
        &[line("Minji@example.com", ELSEWHERE), line("x@example.com", "md5")].join("\n"),
    );
    let refused = work_dir.run(&import).failed();
    assert!(
        refused.contains("people.jsonl: line 2: passwordHash") && refused.contains("nothing was imported"),
        "{refused}"
    );
    work_dir.write("people.jsonl", &line("Minji@example.com", ELSEWHERE));
    let said = work_dir.run(&import).ok();
    assert!(said.contains("1 accounts imported, 0 skipped"), "{said}");
    let again = work_dir.run(&import).ok();
    assert!(again.contains("0 accounts imported, 1 skipped"), "{again}");

    let serving = work_dir.serve(set);
    assert_eq!(login(&serving, "minji@example.com", "another horse").status, 400);
    // The first sign-in replaces the imported hash by one of ours.
    for _ in 0..2 {
        let signed_in = login(&serving, "minji@example.com", PASSWORD);
        assert_eq!(signed_in.status, 200, "{signed_in:?}");
    }
    serving.stop();
}

#[test]
fn the_first_start_creates_an_administrator_and_prints_the_password_once() {
    let work_dir = WorkDir::new();
    let serving = work_dir.serve(&[]);
    let (email, password) = told(&serving.line("admin "));
    let signed_in = login(&serving, &email, &password);
    assert_eq!(signed_in.status, 200, "{signed_in:?}");
    let layouts =
        serving.ask("GET", "/api/admin/seat-layouts", &[("authorization", &bearer(&signed_in))], "");
    assert_eq!(layouts.status, 200, "{layouts:?}");
    serving.stop();

    let refused = work_dir.run(&["admin", "create", "--email", "other@example.com"]).failed();
    assert!(refused.contains("an administrator already"), "{refused}");

    for (address, why) in [(email.as_str(), "no second factor"), ("nobody@example.com", "no such user")] {
        let refused = work_dir.run(&["admin", "reset-second-factor", address]).failed();
        assert!(refused.contains(why), "{refused}");
    }

    let said = work_dir.said_while_serving(&[]);
    assert!(!said.contains("admin "), "{said}");
}

#[test]
fn the_configured_administrator_signs_in_with_the_configured_password() {
    let work_dir = WorkDir::new();
    let set = ["--set", "admin.email=boss@example.com"];
    let password = work_dir.write("password", PASSWORD);
    let file = format!("admin.password_file={}", password.display());
    let set = [&set[..], &["--set", &file]].concat();
    let serving = work_dir.serve(&set);
    assert!(serving.line("admin ").contains("boss@example.com"));
    assert_eq!(login(&serving, "boss@example.com", PASSWORD).json()["user"]["role"], "admin");
    serving.stop();
}

#[test]
fn only_the_promote_flag_turns_an_existing_account_into_an_administrator() {
    let work_dir = WorkDir::new();
    // In production the first start creates no administrator by itself.
    let production = ["--set", "profile=production", "--set", "auth.cookie_secure=false"];
    let keys = ["--set", "security.secret=0123456789abcdef0123456789abcdef"];
    let index = ["--set", "auth.index_key=0123456789abcdef0123456789abcdef"];
    let mail = ["--set", "mail.kind=smtp", "--set", "mail.smtp_server=127.0.0.1:1"];
    let from = ["--set", "mail.from=URR <no-reply@urr.example>"];
    let set = [&production[..], &keys, &index, &mail, &from].concat();
    let serving = work_dir.serve(&set);
    walk_in(&serving);
    serving.stop();

    let password = work_dir.write("password", PASSWORD);
    let file = format!("admin.password_file={}", password.display());
    let named = [&set[..], &["--set", "admin.email=minji@example.com", "--set", &file]].concat();
    let said = work_dir.said_while_serving(&named);
    assert!(!said.contains("admin "), "{said}");
    let create = [&["admin", "create", "--email", "minji@example.com"][..], &set].concat();
    let refused = work_dir.run(&create).failed();
    assert!(refused.contains("--promote"), "{refused}");
    let said = work_dir.run(&[&create[..], &["--promote"]].concat()).ok();
    assert!(said.contains("keeps its password"), "{said}");

    let serving = work_dir.serve(&set);
    let signed_in = login(&serving, "minji@example.com", PASSWORD);
    assert_eq!(signed_in.json()["user"]["role"], "admin");
    let layouts =
        serving.ask("GET", "/api/admin/seat-layouts", &[("authorization", &bearer(&signed_in))], "");
    assert_eq!(layouts.json()["code"], "auth.second_factor_required", "production requires a second factor");
    serving.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_and_admin_create_work_on_postgres() {
    let Some(database) = fresh_database(&[]).await else { return };
    let work_dir = WorkDir::new();
    let url = format!("storage.url={}", database.url);
    let set = ["--set", "storage.kind=postgres", "--set", &url];
    work_dir.run(&[&["migrate"][..], &set].concat()).ok();
    let serving = work_dir.serve(&set);
    let signed_in = walk_in(&serving);
    walk_out(&serving, &signed_in);

    let create = ["admin", "create", "--email", "boss@example.com", "--password-stdin"];
    let mut command = work_dir.command(&[&create[..], &set].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{PASSWORD}").unwrap();
    let said = child.wait_with_output().unwrap();
    assert!(said.status.success() && !String::from_utf8_lossy(&said.stdout).contains(PASSWORD), "{said:?}");
    let again = work_dir.run(&[&create[..4], &set].concat()).failed();
    assert!(again.contains("an administrator already"), "{again}");

    let boss = login(&serving, "boss@example.com", PASSWORD);
    let layouts = serving.ask("GET", "/api/admin/seat-layouts", &[("authorization", &bearer(&boss))], "");
    assert_eq!(layouts.status, 200, "{layouts:?}");
    serving.stop();
}
