//! A waiting room in front of a third-party site: a real nginx, configured as in
//! docs/edge/nginx.md, checks every request.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::{collections::BTreeMap, net::SocketAddr, path::Path, time::Duration};

use anyhow::anyhow;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    task::JoinSet,
};
use urr_e2e::{
    http::{Answer, Connection, Request},
    line::{SECRET, with_crowd},
    program::{self, free_address},
    stage::Stage,
};
use urr_kernel::{Clock, Ids, OrderKey};
use urr_passes::{
    Secret,
    vwr_pass::{self, LIFETIME, Pass, Passes},
};
use urr_testkit::{services, until};

/// The document with the configuration.
const PAGE: &str = include_str!("../../../docs/edge/nginx.md");

/// The event of its configuration.
const EVENT: &str = "0197b3c2-0000-7000-8000-0000000000aa";

const PATIENCE: Duration = Duration::from_mins(1);

/// The body of a form.
const FORM: &[u8] = br#"{"seat":"A1"}"#;

/// A browser in front of nginx.
struct Browser {
    nginx: SocketAddr,
    cookies: BTreeMap<String, String>,
}

impl Browser {
    fn new(nginx: SocketAddr) -> Self {
        Self { nginx, cookies: BTreeMap::new() }
    }

    async fn ask(&mut self, method: &str, path: &str) -> Answer {
        let origin = format!("http://{}", self.nginx);
        self.ask_from(&origin, method, path).await
    }

    /// Sends a request with any origin.
    async fn ask_from(&mut self, origin: &str, method: &str, path: &str) -> Answer {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookies = cookies.join("; ");
        let mut headers = vec![("cookie", cookies.as_str())];
        let sends = ["POST", "PUT"].contains(&method);
        if sends || method == "OPTIONS" {
            headers.push(("origin", origin));
        }
        let body = sends.then(|| FORM.to_vec());
        let request = Request { method, path, body, headers: &headers, ..Request::default() };
        let answer = Connection::to(self.nginx).send(&request).await.unwrap();
        for (_, line) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }
}

/// A site without waiting rooms. It echoes each request.
async fn shop(tasks: &mut JoinSet<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tasks.spawn(async move {
        loop {
            let (mut visitor, _) = listener.accept().await.unwrap();
            let Some(asked) = asked(&mut visitor).await else { continue };
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", asked.len());
            let body = if asked.starts_with("HEAD ") { "" } else { &asked };
            let _written = visitor.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    address
}

/// Method, target and body of a request.
async fn asked(visitor: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    loop {
        let mut more = [0; 4096];
        let count = visitor.read(&mut more).await.ok().filter(|count| *count > 0)?;
        text += std::str::from_utf8(&more[..count]).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let lines = head.lines().map(|line| line.split_once(": ").unwrap_or((line, "")));
        let length = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length: usize = length.map(|(_, length)| length.parse::<usize>().unwrap()).sum();
        if body.len() >= length {
            let (asked, _version) = head.lines().next()?.rsplit_once(' ')?;
            return Some(format!("{asked} {body}"));
        }
    }
}

/// The configurations in the document, in order.
fn blocks() -> impl Iterator<Item = &'static str> {
    PAGE.split("```nginx").skip(1).map(|block| block.split("```").next().unwrap())
}

/// nginx as documented. `more` is added to the location of the subrequest.
fn nginx(
    program: &str,
    dir: &Path,
    (urr, shop): (SocketAddr, SocketAddr),
    more: &str,
) -> (SocketAddr, Child) {
    let address = free_address();
    let servers = blocks().next().unwrap();
    let servers = servers
        .replace("internal;", &format!("internal;\n{more}"))
        .replace("127.0.0.1:3001", &urr.to_string())
        .replace("127.0.0.1:8000", &shop.to_string())
        .replace("listen 80;", &format!("listen {address};"));
    let at = dir.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {at}/{name};\n"))
        .concat();
    let config = format!(
        "daemon off;\nmaster_process off;\npid {at}/nginx.pid;\nerror_log stderr;\nevents {{}}\n\
         http {{\naccess_log off;\n{temporary}{servers}}}\n"
    );
    let file = dir.join("nginx.conf");
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new(program);
    command.arg("-p").arg(dir).arg("-e").arg("stderr").arg("-c").arg(&file).kill_on_drop(true);
    (address, command.spawn().unwrap())
}

async fn steer(stage: &Stage, verb: &str, body: Value) -> Answer {
    let path = format!("/api/admin/vwr/{verb}/{EVENT}");
    stage.connect().send(&Request::post(&path, &body).by(&stage.admin.token)).await.unwrap()
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_passes_admitted_visitors_and_redirects_others() -> anyhow::Result<()> {
    let Some(program) = services::nginx() else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let mut stage = Stage::embedded(dir.path()).await?;
    let mut tasks = JoinSet::new();
    let shop = shop(&mut tasks).await;
    let (front, _nginx) = nginx(&program, dir.path(), (stage.running.address, shop), "");
    let mut early = Browser::new(front);
    until(PATIENCE, async || tokio::net::TcpStream::connect(front).await.is_ok()).await;
    let free = early.ask("GET", "/tickets?day=1").await;
    assert_eq!((free.status, text(&free)), (200, "GET /tickets?day=1 ".to_owned()), "no room is open yet");

    let opened = steer(&stage, "activate", json!({"rate": 0})).await;
    assert_eq!(opened.status, 200, "{}", opened.show());
    let sent = early.ask("GET", "/tickets?day=1").await;
    let page = format!("/vwr/{EVENT}?to=/tickets%3Fday%3D1");
    assert_eq!((sent.status, sent.header("location")), (302, Some(page.as_str())), "{}", sent.show());
    let shown = early.ask("GET", &page).await;
    assert!(shown.status == 200 && shown.header("content-type").unwrap().starts_with("text/html"));
    let place = early.ask("POST", &format!("/vwr-api/vwr/assign/{EVENT}")).await;
    assert_eq!(place.json()["position"], 1, "{}", place.show());
    let check = format!("/vwr-api/vwr/check/{EVENT}/{}", place.json()["requestId"].as_str().unwrap());
    assert_eq!(early.ask("GET", &check).await.json()["admitted"], false);
    assert_eq!(early.ask("GET", "/tickets").await.status, 302);

    assert_eq!(steer(&stage, "advance", json!({"batchSize": 1})).await.json()["advanced"], 1);
    assert_eq!(early.ask("GET", &check).await.json()["admitted"], true);
    for method in ["GET", "POST"] {
        let inside = early.ask(method, "/tickets").await;
        assert!(inside.status == 200 && text(&inside).starts_with(method), "{}", inside.show());
    }
    let mut late = Browser::new(front);
    assert_eq!(late.ask("GET", "/tickets").await.status, 302, "another browser waits");
    assert_eq!(late.ask("GET", "/urr-check").await.status, 404, "the internal location is not public");

    stage.running.kill().await?;
    let closed = early.ask("GET", "/tickets").await;
    assert!(closed.status >= 500, "fail closed while urr is down: {}", closed.show());
    Ok(())
}

/// Requests with every method, from any origin, with parameters named like ours.
#[tokio::test(flavor = "multi_thread")]
async fn nginx_checks_every_method() -> anyhow::Result<()> {
    let Some(program) = services::nginx() else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let launch = with_crowd(program::launch(&dir.path().join("data"))?);
    let stage = Stage::up(launch).await?;
    let mut tasks = JoinSet::new();
    let shop = shop(&mut tasks).await;
    let (front, _nginx) = nginx(&program, dir.path(), (stage.running.address, shop), "");
    until(PATIENCE, async || TcpStream::connect(front).await.is_ok()).await;
    assert_eq!(steer(&stage, "activate", json!({"rate": 0})).await.status, 200);

    let target = "/search?from=a&to=b&event=1&deny=403&q=%26";
    let page = format!("/vwr/{EVENT}?to=/search%3Ffrom%3Da%26to%3Db%26event%3D1%26deny%3D403%26q%3D%2526");
    let bank = "https://bank.example";
    let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"];
    let mut browser = Browser::new(front);
    for method in methods {
        let sent = browser.ask_from(bank, method, target).await;
        assert_eq!((sent.status, sent.header("location")), (302, Some(page.as_str())), "{method}");
    }
    let now = Clock::system().now();
    let passes = Passes::new([vwr_pass::key(&Secret::new(SECRET)?)]);
    let ids = Ids::random(Clock::system());
    let pass = Pass { event: EVENT.parse()?, visitor: ids.next(), order: OrderKey::at(now), position: 1 };
    let name = vwr_pass::cookie(pass.event);
    browser.cookies.insert(name.clone(), passes.sign(&pass, ids.next(), now));
    for method in methods {
        let inside = browser.ask_from(bank, method, target).await;
        let body = if ["POST", "PUT"].contains(&method) { str::from_utf8(FORM)? } else { "" };
        let expected = if method == "HEAD" { String::new() } else { format!("{method} {target} {body}") };
        assert_eq!((inside.status, text(&inside)), (200, expected), "{method}");
        assert_eq!(inside.header("set-cookie"), None, "{method}: a fresh pass is not renewed");
    }
    // A request with an aging pass renews it, on the response of the site.
    let minutes_ago = now.before(LIFETIME / 2 + Duration::from_secs(2));
    let old = passes.sign(&pass, ids.next(), minutes_ago);
    for method in methods {
        browser.cookies.insert(name.clone(), old.clone());
        let inside = browser.ask_from(bank, method, target).await;
        assert_eq!(inside.status, 200, "{method}");
        let renewed = passes
            .verify(&browser.cookies[&name], now)
            .map_err(|_| anyhow!("the renewed pass is invalid"))?;
        assert!(renewed.expires > now.after(LIFETIME / 2 + Duration::from_secs(2)), "{method}");
    }
    Ok(())
}

/// The addition in the document for sites that other origins call.
#[tokio::test(flavor = "multi_thread")]
async fn site_can_answer_preflights_itself() -> anyhow::Result<()> {
    let Some(program) = services::nginx() else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let stage = Stage::embedded(dir.path()).await?;
    let mut tasks = JoinSet::new();
    let shop = shop(&mut tasks).await;
    let line = blocks().nth(1).expect("the document has a second configuration");
    let (front, _nginx) = nginx(&program, dir.path(), (stage.running.address, shop), line);
    until(PATIENCE, async || TcpStream::connect(front).await.is_ok()).await;
    assert_eq!(steer(&stage, "activate", json!({"rate": 0})).await.status, 200);
    let mut browser = Browser::new(front);
    let asked = browser.ask("OPTIONS", "/x?a=1&b=2").await;
    assert_eq!((asked.status, text(&asked)), (200, "OPTIONS /x?a=1&b=2 ".to_owned()));
    for method in ["GET", "POST", "PROPFIND"] {
        assert_eq!(browser.ask(method, "/x").await.status, 302, "{method}");
    }
    Ok(())
}
