//! `urr serve`: start, readiness, tokens, the lock of the data directory, signals.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    time::Duration,
};

use rustix::process::Signal;
use urr_kernel::Clock;

use crate::process::{PATIENCE, Serving, WorkDir, ask};

const USER: &str = "0197f3a0-0000-7000-8000-000000000001";

#[test]
fn it_starts_without_configuration_stops_on_sigterm_and_restarts() {
    let work_dir = WorkDir::new();
    for round in ["first", "second"] {
        let serving = work_dir.serve(&[]);
        let ready = serving.get("/health/ready");
        assert_eq!(ready.status, 200, "{round}: {ready:?}");
        assert_eq!(serving.get("/health/live").status, 200);
        assert!(serving.get("/metrics").body.contains("urr_"));
        assert_eq!(serving.get("/nowhere").status, 404);
        serving.stop();
        let log = work_dir.path().join("urr-data/tickets.db-wal");
        assert!(!log.exists(), "{round}: a clean stop checkpoints and removes the WAL");
    }
    assert!(work_dir.path().join("urr-data/secrets.toml").is_file());
}

#[test]
fn the_first_start_creates_demo_events_and_the_second_keeps_them() {
    let work_dir = WorkDir::new();
    let serving = work_dir.serve(&[]);
    let first = serving.get("/api/events").body;
    serving.stop();
    let serving = work_dir.serve(&[]);
    let second = serving.get("/api/events").body;
    serving.stop();
    let events = |body: &str| body.matches("\"title\"").count();
    assert!(events(&first) >= 3, "{first}");
    assert_eq!(events(&first), events(&second));
}

#[test]
fn without_demo_the_catalog_starts_empty() {
    let work_dir = WorkDir::new();
    let serving = work_dir.serve(&["--set", "demo=false"]);
    assert!(!serving.get("/api/events").body.contains("\"title\""));
    serving.stop();
}

#[test]
fn a_token_of_urr_token_is_accepted_and_a_missing_one_is_refused() {
    let work_dir = WorkDir::new();
    let serving = work_dir.serve(&[]);
    assert_eq!(serving.get("/api/reservations/my").status, 401);
    let token = work_dir.run(&["token", "--user", USER]).ok();
    let bearer = format!("Bearer {}", token.trim());
    let answer = serving.ask("GET", "/api/reservations/my", &[("authorization", &bearer)], "");
    assert_eq!(answer.status, 200, "{answer:?}");
    serving.stop();
}

#[test]
fn domains_are_served_without_the_role_gateway() {
    let work_dir = WorkDir::new();
    work_dir.write("urr.toml", "");
    let serving =
        work_dir.serve(&["--data-dir", "./urr-data", "--config", "urr.toml", "--roles", "tickets,catalog"]);
    let look = serving.line("  look ");
    let path = look.split_whitespace().nth(1).unwrap().split_once(&serving.address).unwrap().1;
    assert_eq!(serving.get(path).status, 200, "{look}");
    let token = work_dir.run(&["token", "--user", USER]).ok();
    let bearer = format!("Bearer {}", token.trim());
    let answer = serving.ask("GET", "/api/v1/reservations/my", &[("authorization", &bearer)], "");
    assert_eq!(answer.status, 200, "{answer:?}");
    serving.stop();
}

#[test]
fn a_second_process_on_the_same_data_directory_is_refused() {
    let work_dir = WorkDir::new();
    let serving = work_dir.serve(&[]);
    let err = work_dir.run(&["serve", "--listen", "127.0.0.1:0"]).failed();
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("urr-data") && err.contains("another process"), "{err}");
    let out = work_dir.run(&["doctor"]).out;
    assert!(out.lines().any(|line| line.starts_with("FAIL") && line.contains("another process")), "{out}");
    serving.stop();
}

#[test]
fn a_port_in_use_is_reported() {
    let work_dir = WorkDir::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let err = work_dir.run(&["serve", "--listen", &address]).failed();
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains(&address) && err.contains("in use"), "{err}");
}

#[test]
fn a_request_in_progress_is_finished_before_the_process_ends() {
    let work_dir = WorkDir::new();
    let serving = work_dir.serve(&[]);
    let mut request = HalfRequest::send(&serving);
    serving.signal(Signal::TERM);
    wait_until(|| TcpStream::connect(&serving.address).is_err());
    let answer = request.finish();
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    let (code, err) = serving.end();
    assert_eq!(code, Some(0), "{err}");
}

/// Idle connections.
fn quiet(serving: &Serving, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(&serving.address).unwrap()).collect()
}

#[test]
fn it_raises_the_soft_limit_of_open_files() {
    let work_dir = WorkDir::new();
    let serving = work_dir.serve_with_ulimit("-S -n 256");
    let _quiet = quiet(&serving, 300);
    assert_eq!(serving.get("/health/live").status, 200);
    serving.signal(Signal::TERM);
    let (code, err) = serving.end();
    assert!(code == Some(0) && !err.contains("connections cannot be accepted"), "{err}");
}

#[test]
fn with_few_files_surplus_connections_get_503_and_others_are_served() {
    let work_dir = WorkDir::new();
    let serving = work_dir.serve_with_ulimit("-n 512");
    let quiet = quiet(&serving, 150);
    let refused = serving.get("/health/live");
    assert_eq!((refused.status, &*refused.json()["code"].to_string()), (503, "\"http.overloaded\""));
    // Closed connections make room for new ones.
    drop(quiet);
    wait_until(|| serving.get("/api/events").status == 200);
    serving.signal(Signal::TERM);
    let (code, err) = serving.end();
    assert!(err.contains("512 files may be open") && err.contains("http.max_connections"), "{err}");
    assert!(code == Some(0) && !err.contains("connections cannot be accepted"), "{err}");
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let work_dir = WorkDir::new();
    let serving = work_dir.serve(&[]);
    let _request = HalfRequest::send(&serving);
    serving.signal(Signal::TERM);
    wait_until(|| TcpStream::connect(&serving.address).is_err());
    serving.signal(Signal::INT);
    let clock = Clock::system();
    let (code, err) = serving.end();
    assert_eq!(code, Some(1));
    assert!(err.contains("SIGINT came a second time"), "{err}");
    assert!(clock.ticks() < Duration::from_secs(5), "it did not wait for the request");
}

/// A request whose handler has started and waits for the body.
struct HalfRequest(TcpStream);

impl HalfRequest {
    const BODY: &str = r#"{"email":"nobody@example.com","password":"correct horse battery"}"#;

    fn send(serving: &Serving) -> Self {
        let mut stream = TcpStream::connect(&serving.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = Self::BODY.len();
        write!(
            stream,
            "POST /api/auth/login HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
             expect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        )
        .unwrap();
        // The server sends `100 Continue` when the handler reads the body.
        let mut asked = [0; 25];
        stream.read_exact(&mut asked).unwrap();
        assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
        Self(stream)
    }

    fn finish(&mut self) -> String {
        write!(self.0, "{}", Self::BODY).unwrap();
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).unwrap();
        answer
    }
}

/// Messages between processes need Kafka. It is unreachable here, which only delays messages.
const NO_KAFKA: [&str; 4] = ["--set", "bus.kind=kafka", "--set", "bus.brokers=127.0.0.1:1"];

#[test]
fn roles_in_two_processes_call_each_other() {
    let work_dir = WorkDir::new();
    let token = "internal.token=0123456789abcdef";
    let there = ["--roles", "catalog", "--set", "internal.listen=127.0.0.1:0", "--set", token];
    let catalog = work_dir.serve(&[&there[..], &NO_KAFKA].concat());
    let events = catalog.get("/api/events");
    assert_eq!(events.status, 200, "a process serves the public API of its domains: {events:?}");
    let internal = catalog.line("other processes");
    let internal = internal.split_once("http://").unwrap().1.to_owned();

    let other_dir = WorkDir::new();
    let remote = format!("remote.catalog=http://{internal}");
    let here = ["--roles", "tickets", "--set", &remote, "--set", token];
    let tickets = other_dir.serve(&[&here[..], &NO_KAFKA].concat());
    assert_eq!(tickets.get("/health/ready").status, 200);
    assert_eq!(tickets.get("/api/events").status, 404, "and of no other domain");
    let map = tickets.get(&format!("/api/seats/events/{}", an_event(&internal)));
    assert_eq!(map.status, 200, "{map:?}");

    let doctor = other_dir.run(&[&["doctor"][..], &here, &NO_KAFKA].concat());
    let line = doctor.out.lines().find(|line| line.contains("catalog at")).unwrap_or_default();
    assert!(line.starts_with("ok"), "{doctor:?}");
    let other = ["--set", "internal.token=fedcba9876543210"];
    let doctor = other_dir.run(&[&["doctor"][..], &here[..4], &other, &NO_KAFKA].concat());
    let line = doctor.out.lines().find(|line| line.contains("catalog at")).unwrap_or_default();
    assert!(line.starts_with("FAIL") && line.contains("internal.token"), "{doctor:?}");

    catalog.stop();
    let ready = tickets.get("/health/ready");
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("catalog"), "{ready:?}");
    tickets.stop();
}

/// The id of a seated event, read through the internal listener.
fn an_event(internal: &str) -> String {
    let bearer = ("authorization", "Bearer 0123456789abcdef");
    let body = r#"{"status":"on_sale","search":null,"page":1,"limit":100}"#;
    let headers = [bearer, ("content-type", "application/json")];
    let answer = ask(internal, "POST", "/internal/catalog/events", &headers, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let page: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    let events = page["events"].as_array().unwrap();
    let seated = events.iter().find(|event| !event["layout"].is_null()).unwrap_or_else(|| panic!("{page}"));
    seated["id"].as_str().unwrap().to_owned()
}

#[test]
fn the_internal_listener_requires_the_token() {
    let work_dir = WorkDir::new();
    let set = ["--set", "internal.listen=127.0.0.1:0", "--set", "internal.token=0123456789abcdef"];
    let serving = work_dir.serve(&set);
    let internal = serving.line("other processes");
    let internal = internal.split_once("http://").unwrap().1.to_owned();
    let knock = |headers: &[(&str, &str)]| {
        ask(
            &internal,
            "POST",
            "/internal/catalog/events",
            &[headers, &[("content-type", "application/json")]].concat(),
            "{}",
        )
        .status
    };
    let look = |path: &str| ask(&internal, "GET", path, &[], "").status;
    assert_eq!((look("/health/ready"), look("/metrics")), (401, 401));
    assert_eq!(look("/health/live"), 200, "liveness probes have no token");
    assert_eq!(knock(&[]), 401);
    assert_eq!(knock(&[("authorization", "Bearer 0123456789abcdee")]), 403);
    assert_eq!(
        knock(&[("authorization", "Bearer 0123456789abcdef")]),
        400,
        "accepted, but the request is empty"
    );
    assert_eq!(
        serving.ask("POST", "/internal/catalog/events", &[], "{}").status,
        404,
        "internal routes are not on the public listener"
    );
    serving.stop();
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let clock = Clock::system();
    while !condition() {
        assert!(clock.ticks() < PATIENCE, "timed out");
        std::thread::sleep(Duration::from_millis(10));
    }
}
