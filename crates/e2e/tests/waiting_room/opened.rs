//! Tier 1 is opened during a sale: users in Tier 2 continue with the cookies that their browser
//! sends, and all others wait in Tier 1.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use urr_e2e::{
    http::{Answer, Connection, Request},
    line::{self, Fan, crowd, set_threshold},
    program::{self, Launch, free_address},
    stage::Stage,
};
use urr_kernel::{EventId, SeatId};
use urr_testkit::until;

const PATIENCE: Duration = Duration::from_secs(20);

/// A browser's cookies and their paths.
#[derive(Clone, Debug, Default)]
struct Jar(Vec<(String, String, String)>);

impl Jar {
    fn keep(&mut self, answer: &Answer) {
        for (_, line) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let mut parts = line.split("; ");
            let (name, value) = parts.next().and_then(|pair| pair.split_once('=')).unwrap();
            let path = parts.clone().find_map(|part| part.strip_prefix("Path=")).unwrap();
            self.0.retain(|(kept, at, _)| (&**kept, &**at) != (name, path));
            if !parts.any(|part| part == "Max-Age=0") {
                self.0.push((name.to_owned(), path.to_owned(), value.to_owned()));
            }
        }
    }

    fn line(&self, path: &str) -> String {
        let is_for =
            |at: &str| path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let sent = self.0.iter().filter(|(_, at, _)| at == "/" || is_for(at));
        sent.map(|(name, _, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }
}

/// A user with a browser.
#[derive(Clone)]
struct Browser {
    front: SocketAddr,
    event: EventId,
    fan: Fan,
    jar: Jar,
}

impl Browser {
    async fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
        let cookies = self.jar.line(path);
        let headers = [("cookie", cookies.as_str()), ("sec-fetch-site", "same-origin")];
        let body = body.map(|body| body.to_string().into_bytes());
        let request = Request { method, path, body, headers: &headers, ..Request::default() };
        let answer = Connection::to(self.front).send(&request.by(&self.fan.token)).await?;
        self.jar.keep(&answer);
        Ok(answer)
    }

    /// Requests a page of the event. Returns the status and the redirect, if any.
    async fn page(&mut self, page: &str) -> anyhow::Result<(u16, Option<String>)> {
        let answer = self.send("GET", &page.replace("{}", &self.event.to_string()), None).await?;
        Ok((answer.status, answer.header("location").map(ToOwned::to_owned)))
    }

    async fn check(&mut self) -> anyhow::Result<(u16, Value)> {
        let answer = self.send("POST", &format!("/api/queue/check/{}", self.event), None).await?;
        Ok((answer.status, answer.json()))
    }

    async fn status(&mut self) -> anyhow::Result<Value> {
        let answer = self.send("GET", &format!("/api/queue/status/{}", self.event), None).await?;
        ensure!(answer.status == 200, "{}", answer.show());
        Ok(answer.json())
    }

    async fn leave(&mut self) -> anyhow::Result<()> {
        let answer = self.send("POST", &format!("/api/queue/leave/{}", self.event), None).await?;
        ensure!(answer.status == 200, "{}", answer.show());
        Ok(())
    }

    async fn reserve(&mut self, seat: SeatId) -> anyhow::Result<(u16, Value)> {
        let body = json!({ "eventId": self.event, "seatIds": [seat], "idempotencyKey": seat });
        let answer = self.send("POST", "/api/seats/reserve", Some(&body)).await?;
        Ok((answer.status, answer.json()))
    }

    /// Reloads the page and polls as it does. Returns the position of a waiting user.
    async fn reload(&mut self) -> anyhow::Result<Value> {
        assert_eq!(self.page("/queue/{}").await?, (200, None), "the position survives a reload");
        let (status, place) = self.check().await?;
        assert_eq!((status, &place["status"]), (200, &json!("queued")), "{place}");
        assert_eq!(self.status().await?["status"], "queued");
        Ok(place["position"].clone())
    }

    /// Loads the seat map and holds a seat.
    async fn buy(&mut self, seat: SeatId) -> anyhow::Result<()> {
        assert_eq!(self.page("/events/{}/seats").await?, (200, None));
        let map = self.send("GET", &format!("/api/seats/events/{}", self.event), None).await?;
        assert_eq!(map.status, 200, "{}", map.show());
        let (status, held) = self.reserve(seat).await?;
        assert_eq!(status, 200, "{held}");
        Ok(())
    }

    /// Waits in Tier 1, on the page for browsers without scripts. Returns whether it leads on.
    async fn turn_has_come(&mut self) -> anyhow::Result<bool> {
        Ok(self.page("/vwr/{}?plain=1").await?.0 == 302)
    }

    /// Whether every request is redirected to Tier 1 or refused.
    async fn is_sent_to_wait(&mut self, seat: SeatId) -> anyhow::Result<bool> {
        let event = self.event;
        for page in ["/queue/{}", "/events/{}/seats"] {
            let there = format!("/vwr/{event}?to={}", page.replace("{}", &event.to_string()));
            if self.page(page).await? != (302, Some(there)) {
                return Ok(false);
            }
        }
        let (status, refused) = self.check().await?;
        assert_eq!((status, &refused["code"]), (403, &json!("vwr.pass_required")), "{refused}");
        assert_eq!(self.reserve(seat).await?.0, 403);
        Ok(true)
    }
}

async fn operate(stage: &Stage, event: EventId, what: &str) -> anyhow::Result<()> {
    let path = format!("/api/admin/vwr/{what}/{event}");
    let request = Request::post(&path, &json!({ "rate": 0 })).by(&stage.admin.token);
    let answer = stage.connect().send(&request).await?;
    ensure!(answer.status == 200, "{what}: {}", answer.show());
    Ok(())
}

async fn is_admitted(browser: &mut Browser) {
    let is_in = async || {
        let place = browser.clone().status().await;
        place.is_ok_and(|place| place["status"] == "active")
    };
    until(PATIENCE, is_in).await;
    // The response to this request sets the entry token.
    assert_eq!(browser.status().await.unwrap()["status"], "active");
}

async fn the_story(stage: Stage, front: SocketAddr) -> anyhow::Result<()> {
    let (event, seats) = stage.event(-60).await?;
    let browser = |fan: Fan| Browser { front, event, fan, jar: Jar::default() };
    let people: [Fan; 4] = crowd(4).try_into().ok().context("four")?;
    let [mut inside, mut first, mut second, mut newcomer] = people.map(browser);
    set_threshold(&mut stage.connect(), &stage.admin.token, event, 1).await?;
    assert_eq!(inside.check().await?.1["status"], "active");
    for (waiting, position) in [(&mut first, 1), (&mut second, 2)] {
        assert_eq!(waiting.reload().await?, position);
    }
    set_threshold(&mut stage.connect(), &stage.admin.token, event, 0).await?;

    operate(&stage, event, "activate").await?;
    // Guards learn of it within a second.
    until(PATIENCE, async || newcomer.clone().page("/queue/{}").await.is_ok_and(|(status, _)| status == 302))
        .await;
    assert!(newcomer.is_sent_to_wait(seats[9]).await?);
    let mut thief = Browser { jar: first.jar.clone(), ..newcomer.clone() };
    assert!(thief.is_sent_to_wait(seats[9]).await?, "a copied ticket is refused");
    thief.jar = inside.jar.clone();
    assert!(thief.is_sent_to_wait(seats[9]).await?, "a copied entry token is refused");
    inside.buy(seats[0]).await?;
    assert_eq!(
        (first.reload().await?, second.reload().await?),
        (json!(1), json!(2)),
        "in the order of arrival"
    );

    // A user whose slot ended bypasses no queue, whatever cookies they kept.
    let mut cheat = inside.clone();
    inside.leave().await?;
    assert!(inside.is_sent_to_wait(seats[9]).await?);
    let (status, over) = cheat.check().await?;
    assert_eq!((status, &over["code"]), (403, &json!("queue.place_over")), "{over}");
    assert_eq!(over["redirectTo"], format!("/vwr/{event}"));
    assert!(cheat.is_sent_to_wait(seats[9]).await?, "the browser's cookie was cleared");

    let mut cheat = first.clone();
    set_threshold(&mut stage.connect(), &stage.admin.token, event, 1).await?;
    is_admitted(&mut first).await;
    first.buy(seats[1]).await?;
    first.leave().await?;
    let (status, over) = cheat.check().await?;
    assert_eq!((status, &over["code"]), (403, &json!("queue.place_over")), "{over}");

    // Reopened: passes of the earlier epoch are void, queue tickets are not.
    operate(&stage, event, "deactivate").await?;
    operate(&stage, event, "activate").await?;
    is_admitted(&mut second).await;
    until(PATIENCE, async || newcomer.clone().is_sent_to_wait(seats[9]).await.is_ok_and(|sent| sent)).await;
    second.buy(seats[2]).await?;

    // An admission by Tier 1 is good for one slot, even if its pass is still valid.
    second.leave().await?;
    assert!(!newcomer.turn_has_come().await?);
    operate(&stage, event, "advance").await?;
    until(PATIENCE, async || newcomer.turn_has_come().await.is_ok_and(|come| come)).await;
    assert_eq!(newcomer.check().await?.1["status"], "active");
    newcomer.buy(seats[3]).await?;
    newcomer.leave().await?;
    let (status, over) = newcomer.check().await?;
    assert_eq!((status, &over["code"]), (403, &json!("queue.place_over")), "{over}");
    assert!(newcomer.is_sent_to_wait(seats[9]).await?);
    assert!(!newcomer.turn_has_come().await?, "they wait again, at the end of the queue");
    operate(&stage, event, "advance").await?;
    until(PATIENCE, async || newcomer.turn_has_come().await.is_ok_and(|come| come)).await;
    assert_eq!(newcomer.check().await?.1["status"], "active", "a new Tier 1 admission");
    ensure!(stage.running.terminate().await?.success(), "the server did not exit with 0");
    line::verify(&stage.launch, event).await?;
    Ok(())
}

fn launch(dir: &std::path::Path) -> anyhow::Result<Launch> {
    let launch = line::with_crowd(program::launch(dir)?);
    let launch = launch.set("queue.guard", "true").set("limits.enabled", "false");
    Ok(launch.set("internal.token", "between-processes-0f6b1c9d"))
}

#[tokio::test(flavor = "multi_thread")]
async fn tier2_users_keep_their_positions_when_tier1_opens() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let stage = Stage::up(launch(&dir.path().join("data"))?).await?;
    let front = stage.running.address;
    the_story(stage, front).await
}

#[tokio::test(flavor = "multi_thread")]
async fn tier2_users_keep_their_positions_behind_a_separate_gateway() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let internal = free_address();
    let all = launch(&dir.path().join("data"))?.set("internal.listen", internal.to_string());
    let stage = Stage::up(all).await?;
    let remote = ["auth", "vwr"].map(|role| (format!("remote.{role}"), internal));
    let there = ["auth", "catalog", "queue", "site", "tickets", "vwr"];
    let upstream = there.map(|role| (format!("upstream.{role}"), stage.running.address));
    let gateway = launch(&dir.path().join("gateway"))?.set("roles", "gateway");
    let settings = remote.into_iter().chain(upstream);
    let gateway = settings
        .fold(gateway, |gateway, (name, address)| gateway.set(&name, format!("http://{address}")))
        .up()
        .await?;
    the_story(stage, gateway.address).await
}
