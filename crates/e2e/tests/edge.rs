//! A waiting room in front of somebody else's site: a real nginx, set up as docs/edge/nginx.md says, asks about every request.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::{collections::BTreeMap, net::SocketAddr, path::Path, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    process::{Child, Command},
    task::JoinSet,
};
use urr_e2e::{
    http::{Answer, Connection, Request},
    program::free_address,
    stage::Stage,
};
use urr_testkit::{services, until};

/// The page that the configuration is taken from.
const PAGE: &str = include_str!("../../../docs/edge/nginx.md");

/// The line it names.
const EVENT: &str = "0197b3c2-0000-7000-8000-0000000000aa";

const PATIENCE: Duration = Duration::from_mins(1);

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
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (cookies, origin) = (cookies.join("; "), format!("http://{}", self.nginx));
        let mut headers = vec![("cookie", cookies.as_str())];
        if method == "POST" {
            headers.push(("origin", &origin));
        }
        let body = (method == "POST").then(Vec::new);
        let request = Request { method, path, body, headers: &headers, ..Request::default() };
        let answer = Connection::to(self.nginx).send(&request).await.unwrap();
        for (_, line) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }
}

/// A site that knows nothing of waiting rooms.
async fn shop(tasks: &mut JoinSet<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tasks.spawn(async move {
        loop {
            let (mut visitor, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _read = visitor.read(&mut request).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\nconnection: close\r\n\r\nthe shop";
            let _written = visitor.write_all(answer).await;
        }
    });
    address
}

fn nginx(program: &str, dir: &Path, urr: SocketAddr, shop: SocketAddr) -> (SocketAddr, Child) {
    let address = free_address();
    let servers = PAGE.split("```nginx").nth(1).unwrap().split("```").next().unwrap();
    let servers = servers
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

#[tokio::test(flavor = "multi_thread")]
async fn nginx_lets_on_who_has_waited_and_sends_the_others_to_wait() -> anyhow::Result<()> {
    let Some(program) = services::nginx() else { return Ok(()) };
    let dir = tempfile::tempdir()?;
    let mut stage = Stage::embedded(dir.path()).await?;
    let mut tasks = JoinSet::new();
    let shop = shop(&mut tasks).await;
    let (front, _nginx) = nginx(&program, dir.path(), stage.running.address, shop);
    let mut early = Browser::new(front);
    until(PATIENCE, async || tokio::net::TcpStream::connect(front).await.is_ok()).await;
    let free = early.ask("GET", "/tickets?day=1").await;
    assert_eq!((free.status, &free.body[..]), (200, &b"the shop"[..]), "nobody has to wait yet");

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
        assert_eq!((inside.status, &inside.body[..]), (200, &b"the shop"[..]), "{method}");
    }
    let mut late = Browser::new(front);
    assert_eq!(late.ask("GET", "/tickets").await.status, 302, "another browser waits");
    assert_eq!(late.ask("GET", "/urr-check").await.status, 404, "nobody asks in nginx's place");

    stage.running.kill().await?;
    let closed = early.ask("GET", "/tickets").await;
    assert!(closed.status >= 500, "without anybody to ask, nobody comes in: {}", closed.show());
    Ok(())
}
