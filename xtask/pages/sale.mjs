// A sale as people meet it: looking, waiting, being let in, holding seats.
import { signUp } from "./accounts.mjs";
import { ADMIN, PASSWORD, until } from "./server.mjs";

const isSeated = (event) => event.seat_layout_id ?? event.seatLayoutId;

/** What is on sale and has seats. */
export async function seatedEvents(server) {
  const { events } = await server.ask("/api/events?status=on_sale&limit=10");
  return events.filter(isSeated);
}

async function operator(server) {
  const { token } = await server.ask("/api/auth/login", { email: ADMIN, password: PASSWORD });
  return (what, event, body = {}) => server.ask(`/api/queue/admin/${what}/${event}`, body, token);
}

async function looking(server, person) {
  const { page } = person;
  await page.goto("/");
  await person.look("home");
  for (const [name, status] of [["event-soon", "upcoming"], ["event-ended", "ended"]]) {
    const { events } = await server.ask(`/api/events?status=${status}&limit=10`);
    await page.goto(`/events/${events[0].id}`);
    await person.look(name);
  }
  const { events } = await server.ask("/api/events?status=on_sale&limit=10");
  await page.goto(`/events/${events.find((event) => !isSeated(event)).id}`);
  await person.look("event-standing");
}

/** Nobody is let in while the room is paused; a reload and a lost connection change nothing; then it moves on by itself. */
async function waiting(server, person, event, operate) {
  const { page } = person;
  await operate("pause", event.id);
  await page.goto(`/events/${event.id}`);
  await person.look("event");
  await person.press("a.main-action");
  await page.waitForSelector('[data-step="waiting"]:not([hidden])');
  await page.waitForSelector("[data-paused]:not([hidden])");
  await person.look("queue");
  const place = await page.locator("[data-position]").textContent();
  await page.reload();
  await page.waitForSelector('[data-step="waiting"]:not([hidden])');
  if ((await page.locator("[data-position]").textContent()) !== place) throw new Error("a reload cost the place");

  await person.context.setOffline(true);
  await page.waitForSelector("[data-problem]:not([hidden])");
  await person.context.setOffline(false);
  await page.waitForFunction(() => document.querySelector('[data-step="waiting"]:not([hidden])'));
  if (!page.url().includes("/queue/")) throw new Error("a failed question led somewhere else");
  await operate("resume", event.id);
  await person.at(`/events/${event.id}/seats`);
}

/** The seats are held, but the answer says that nobody knows: pressing again finds them. */
async function answerIsLost(person) {
  const { page } = person;
  const path = "**/api/seats/reserve";
  await page.route(path, async (route) => {
    await route.fetch();
    await route.fulfill({ status: 503, json: { code: "tickets.unavailable", status: 503, retryAfter: 1 } });
  });
  person.expect(503);
  await person.press("[data-hold]");
  await page.waitForSelector("[data-problem]:not([hidden])");
  await page.unroute(path);
  // The plan that shows them as taken does not take them out of the choice.
  await page.waitForSelector('.seat[aria-pressed="true"][aria-disabled="true"]');
}

async function holding(server, person, event) {
  const { page } = person;
  await page.waitForSelector('.seat:not([aria-disabled="true"])');
  await person.look("seats");
  // With the keyboard: in, to the right, and again.
  await page.locator('.seat[tabindex="0"]').focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Space");
  await page.waitForFunction(() => document.querySelectorAll("[data-chosen] li").length === 2);
  await person.look("seats-chosen");
  await answerIsLost(person);
  await person.press("[data-hold]");
  await page.waitForSelector("[data-held]:not([hidden])");
  await person.look("seats-held");
  await page.reload();
  await page.waitForSelector("[data-held]:not([hidden])");
  await person.press("[data-give-back]");
  await page.waitForSelector("[data-plan]:not([hidden])");
}

/** Through both rooms: the one in front of everything, and the one in front of the seats. */
async function bothRooms(server, person, event) {
  const { page } = person;
  const { token } = await server.ask("/api/auth/login", { email: ADMIN, password: PASSWORD });
  await server.ask(`/api/admin/vwr/activate/${event.id}`, { rate: 1 }, token);
  await server.ask(`/api/admin/vwr/pause/${event.id}`, {}, token);
  try {
    await until("the room in front", () =>
      fetch(`${server.url}/queue/${event.id}`, { redirect: "manual" }).then((answer) =>
        answer.headers.get("location")?.startsWith("/vwr/")));
    // Whoever is inside when it opens stays there; once they have gone, they wait as everybody does.
    await page.goto(`/queue/${event.id}`);
    await person.at(`/events/${event.id}/seats`);
    const left = await page.evaluate(
      (id) => fetch(`/api/queue/leave/${id}`, { method: "POST" }).then((answer) => answer.status), event.id);
    if (left !== 200) throw new Error(`leaving was answered with ${left}`);
    await page.goto(`/queue/${event.id}`);
    await person.at(`/vwr/${event.id}`);
    await person.look("front");
    await server.ask(`/api/admin/vwr/resume/${event.id}`, {}, token);
    await person.at(`/events/${event.id}/seats`, 30_000);
  } finally {
    await server.ask(`/api/admin/vwr/deactivate/${event.id}`, {}, token);
  }
}

/** Whoever leaves is out of the line at once, and asks for nothing any more; whoever joins again is in it. */
async function leaving(server, person, event, operate) {
  const { page } = person;
  const waits = async () => {
    const { token } = await server.ask("/api/auth/login", { email: ADMIN, password: PASSWORD });
    return (await server.ask(`/api/queue/admin/${event.id}`, undefined, token)).queueSize;
  };
  await operate("clear", event.id, { confirm: event.id });
  await operate("pause", event.id);
  await page.goto(`/queue/${event.id}`);
  await page.waitForSelector('[data-step="waiting"]:not([hidden])');
  await page.waitForFunction(() => /멈춰|paused/.test(document.querySelector("[data-wait]").textContent));
  if ((await waits()) !== 1) throw new Error("whoever waits is not in line");
  await person.press("[data-leave]");
  await page.waitForSelector('[data-step="left"]:not([hidden])');
  if ((await waits()) !== 0) throw new Error("whoever left is still in line");
  await person.look("queue-left");
  let asked = 0;
  page.on("request", (request) => (asked += request.url().includes("/api/queue/") ? 1 : 0));
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await person.press('[data-step="left"] [data-join]');
  await page.waitForSelector('[data-step="waiting"]:not([hidden])');
  if (asked !== 1) throw new Error(`joining again took ${asked} questions: somebody who left went on asking`);
  if ((await waits()) !== 1) throw new Error("whoever joined again is not in line");
  await operate("resume", event.id);
  await person.at(`/events/${event.id}/seats`);
}

export async function sale(browser, server, view) {
  const person = await browser.person(server, view);
  // What is asked while offline, and what this installation may lack.
  person.expected.push("net::ERR_INTERNET_DISCONNECTED", "status of 404");
  const [event] = await seatedEvents(server);
  const operate = await operator(server);
  await looking(server, person);
  await signUp(person, `fan.${view.name}@example.com`, "/");
  await waiting(server, person, event, operate);
  await holding(server, person, event);
  await leaving(server, person, event, operate);
  await bothRooms(server, person, event);
  await person.end();
}
