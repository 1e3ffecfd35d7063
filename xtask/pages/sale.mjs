// A sale: event pages, waiting room, admission, holding seats.
import { signUp } from "./accounts.mjs";
import { ADMIN, PASSWORD, until } from "./server.mjs";

const isSeated = (event) => event.seat_layout_id ?? event.seatLayoutId;

/** Events on sale with seats. */
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

/**
 * No admission while the room is paused; a reload and a lost connection change nothing; then the
 * page continues.
 */
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
  if ((await page.locator("[data-position]").textContent()) !== place) throw new Error("the position changed after a reload");

  await person.context.setOffline(true);
  await page.waitForSelector("[data-problem]:not([hidden])");
  await person.context.setOffline(false);
  await page.waitForFunction(() => document.querySelector('[data-step="waiting"]:not([hidden])'));
  if (!page.url().includes("/queue/")) throw new Error("the page navigated after a failed request");
  await operate("resume", event.id);
  await person.at(`/events/${event.id}/seats`);
}

/** Errors are shown next to the button and within the screen. */
async function isInView(page, selector) {
  const box = await page.locator(selector).boundingBox();
  const height = await page.evaluate(() => innerHeight);
  if (!box || box.y < 0 || box.y + box.height > height) throw new Error(`${selector} is not on the screen: ${JSON.stringify(box)}`);
}

const CHOICE_PROBLEM = "[data-choice] [data-problem]:not([hidden])";

/** A truncated response is not a success, and the page still works afterwards. */
async function cutOff(person) {
  const { page } = person;
  const path = "**/api/seats/reserve";
  await page.route(path, (route) => route.fulfill({ status: 200, contentType: "application/json", body: '{"reserv' }));
  await page.evaluate(() => scrollTo(0, 0));
  await person.press("[data-hold]");
  await page.waitForSelector(CHOICE_PROBLEM);
  await isInView(page, CHOICE_PROBLEM);
  await isInView(page, "[data-hold]");
  await person.look("seats-problem");
  await page.unroute(path);
}

/**
 * The plan is centred, its option fits the box, and a disabled button looks disabled under the
 * mouse.
 */
async function planIsReadable(person) {
  const { page } = person;
  await page.waitForSelector("[data-slot]:not([hidden])");
  const colour = () => page.locator("[data-hold]").evaluate((button) => getComputedStyle(button).backgroundColor);
  const before = await colour();
  await page.locator("[data-hold]").hover({ force: true });
  await page.waitForTimeout(200);
  if ((await colour()) !== before) throw new Error("a disabled button changes under the mouse");
  const { off, more } = await page.locator("[data-grid]").evaluate((grid) => ({
    off: Math.abs(grid.scrollLeft - (grid.scrollWidth - grid.clientWidth) / 2),
    more: grid.scrollWidth > grid.clientWidth + 2,
  }));
  if (off > 2) throw new Error(`the plan is ${off} px off centre`);
  if (more !== (await page.isVisible("[data-swipe]"))) throw new Error("the hint about more seats is wrong");
  const covers = await page.locator(".plan-row").first().evaluate((row) =>
    row.querySelector(".plan-row-name").offsetHeight >= row.querySelector(".seat").offsetHeight);
  if (!covers) throw new Error("seats are visible above and below the row number");
  const cut = await page.locator("[data-section]").evaluate((select) => {
    const style = getComputedStyle(select);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = style.font;
    const room = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return [...select.options].map((option) => option.text.replace(/[\d,]+(?=석| left)/, "1,000")).find((text) => pen.measureText(text).width > room);
  });
  if (cut) throw new Error(`"${cut}" does not fit its box`);
}

/** The seats are held but the response is an error: a retry finds the hold. */
async function answerIsLost(person) {
  const { page } = person;
  const path = "**/api/seats/reserve";
  await page.route(path, async (route) => {
    await route.fetch();
    await route.fulfill({ status: 503, json: { code: "http.unavailable", status: 503, retryAfter: 1 } });
  });
  person.expect(503);
  await person.press("[data-hold]");
  await page.waitForSelector("[data-problem]:not([hidden])");
  await page.unroute(path);
  // A seat map that shows them as taken does not remove them from the selection.
  await page.waitForSelector('.seat[aria-pressed="true"][aria-disabled="true"]');
}

async function holding(server, person, event) {
  const { page } = person;
  await page.waitForSelector('.seat:not([aria-disabled="true"])');
  await planIsReadable(person);
  await person.look("seats");
  // By keyboard: Tab, right arrow, right arrow.
  await page.locator('.seat[tabindex="0"]').focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Space");
  await page.waitForFunction(() => document.querySelectorAll("[data-chosen] li").length === 2);
  const numbers = (await page.locator("[data-chosen] .what").allTextContents()).map((text) => Number(text.match(/\d+(?=\D*$)/)[0]));
  if (numbers[0] > numbers[1]) throw new Error(`selected seats are not sorted: ${numbers}`);
  await person.look("seats-chosen");
  await cutOff(person);
  await answerIsLost(person);
  await person.press("[data-hold]");
  await page.waitForSelector("[data-held]:not([hidden])");
  await person.look("seats-held");
  await page.reload();
  await page.waitForSelector("[data-held]:not([hidden])");
  await person.press("[data-give-back]");
  await person.look("seats-release");
  await person.press('[data-dialog="release"] [value="no"]');
  if (!(await page.isVisible("[data-held]"))) throw new Error("the seats were released without confirmation");
  const held = await page.locator("[data-held-seats] div").allTextContents();
  await person.press("[data-give-back]");
  await person.press('[data-dialog="release"] [value="yes"]');
  await page.waitForSelector("[data-plan]:not([hidden])");
  const grey = await page.evaluate((names) =>
    [...document.querySelectorAll('.seat[aria-disabled="true"]')]
      .filter((seat) => names.some((name) => seat.ariaLabel.replaceAll(" ", "").startsWith(`${name},`.replaceAll(" ", "")))).length, held);
  if (grey) throw new Error(`${grey} of the released seats are shown as taken`);
}

/** Through both rooms, Tier 1 and Tier 2. */
async function bothRooms(server, person, event) {
  const { page } = person;
  const { token } = await server.ask("/api/auth/login", { email: ADMIN, password: PASSWORD });
  await server.ask(`/api/admin/vwr/activate/${event.id}`, { rate: 1 }, token);
  await server.ask(`/api/admin/vwr/pause/${event.id}`, {}, token);
  try {
    await until("the site waiting room", () =>
      fetch(`${server.url}/queue/${event.id}`, { redirect: "manual" }).then((answer) =>
        answer.headers.get("location")?.startsWith("/vwr/")));
    // Users inside when the room opens stay; after leaving they wait like everyone else.
    await page.goto(`/queue/${event.id}`);
    await person.at(`/events/${event.id}/seats`);
    const left = await page.evaluate(
      (id) => fetch(`/api/queue/leave/${id}`, { method: "POST" }).then((answer) => answer.status), event.id);
    if (left !== 200) throw new Error(`leaving returned ${left}`);
    await page.goto(`/queue/${event.id}`);
    await person.at(`/vwr/${event.id}`);
    await person.look("front");
    await server.ask(`/api/admin/vwr/resume/${event.id}`, {}, token);
    await person.at(`/events/${event.id}/seats`, 30_000);
  } finally {
    await server.ask(`/api/admin/vwr/deactivate/${event.id}`, {}, token);
  }
}

/** Leaving removes the entry at once and stops polling; joining again creates a new one. */
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
  await page.waitForFunction(() => /중지|paused/.test(document.querySelector("[data-wait]").textContent));
  if ((await waits()) !== 1) throw new Error("the waiting user has no entry");
  const title = await page.title();
  if (!title.includes(event.title) || !/\d/.test(title)) throw new Error(`the tab title lacks the position or the event: ${title}`);
  const other = await person.tab();
  await other.goto(`/queue/${event.id}`);
  await other.waitForSelector('[data-step="waiting"]:not([hidden])');
  await person.press("[data-leave]");
  await person.look("queue-leave");
  await person.press('[data-dialog="leave"] [value="no"]');
  if ((await waits()) !== 1) throw new Error("the queue was left without confirmation");
  await person.press("[data-leave]");
  await person.press('[data-dialog="leave"] [value="yes"]');
  await page.waitForSelector('[data-step="left"]:not([hidden])');
  if (await page.isVisible("[data-paused]")) throw new Error("after leaving, the page says that the position is kept");
  // The other tab does not join again by itself.
  await other.waitForSelector('[data-step="left"]:not([hidden])');
  await other.close();
  if ((await waits()) !== 0) throw new Error("the entry still exists after leaving");
  await person.look("queue-left");
  let asked = 0;
  page.on("request", (request) => (asked += request.url().includes("/api/queue/") ? 1 : 0));
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await person.press('[data-step="left"] [data-join]');
  await page.waitForSelector('[data-step="waiting"]:not([hidden])');
  if (asked !== 1) throw new Error(`joining again took ${asked} requests: the page polled after leaving`);
  if ((await waits()) !== 1) throw new Error("the user has no entry after joining again");
  await operate("resume", event.id);
  await person.at(`/events/${event.id}/seats`);
}

export async function sale(browser, server, view) {
  const person = await browser.person(server, view);
  // Requests while offline, and parts that this installation may lack.
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
