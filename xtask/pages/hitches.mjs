// Waiting under difficult conditions: two events at once, too many events, a full queue, a
// cancelled event.
import { signUp } from "./accounts.mjs";
import { VIEWS } from "./browser.mjs";
import { guarded } from "./front.mjs";
import { seatedEvents } from "./sale.mjs";
import { ADMIN, PASSWORD, Server, until } from "./server.mjs";

/** Longer than any poll interval, in the page's time, which the journey controls. */
const LONG = 40_000;

/**
 * Two tabs wait for two events. Both are admitted, and admission to one does not affect the other.
 */
async function twoTabs(browser, server, view, events, operate) {
  const person = await browser.person(server, view);
  await signUp(person, `two.${view.name}@example.com`, "/");
  const tabs = [person.page, await person.tab()];
  const each = (what) => Promise.all(events.map((event, place) => what(event.id, tabs[place])));
  const at = (tab, path) => tab.waitForURL((url) => url.pathname === path, { timeout: 30_000 });
  await each((event) => operate(`/api/admin/vwr/activate/${event}`, { rate: 1 }));
  await each((event) => operate(`/api/admin/vwr/pause/${event}`));
  await each((event) => until("the site waiting room", () => guarded(server, event)));
  await each((event, tab) => tab.goto(`/queue/${event}`));
  await each((event, tab) => at(tab, `/vwr/${event}`));
  await each((event) => until("a position", async () => (await server.ask(`/vwr/status/${event}`)).totalInQueue));
  await each((event) => operate(`/api/admin/vwr/advance/${event}`, { batchSize: 10 }));
  await each((event, tab) => at(tab, `/events/${event}/seats`));
  await each((_, tab) => tab.reload());
  await each((event, tab) => at(tab, `/events/${event}/seats`));
  await each((_, tab) => tab.waitForSelector('.seat:not([aria-disabled="true"])'));
  await person.end();
  await each((event) => operate(`/api/admin/vwr/deactivate/${event}`));
  await each((event) => until("the end of the site waiting room", async () => !(await guarded(server, event))));
}

/** Days before the sale opens, the page counts down to it and shows no estimated wait. */
async function early(browser, server, view) {
  const { events } = await server.ask("/api/events?status=upcoming&limit=10");
  const event = events.find((event) => event.seat_layout_id ?? event.seatLayoutId);
  if (!event) throw new Error("there is no upcoming event with seats");
  const person = await browser.person(server, view);
  const { page } = person;
  await signUp(person, `early.${view.name}@example.com`, "/");
  await page.goto(`/queue/${event.id}`);
  await page.waitForSelector("[data-opening]:not([hidden])");
  await page.waitForFunction(() => /일|day|:/.test(document.querySelector("[data-opening] [data-left]").textContent));
  const shown = await page.locator('[data-step="waiting"]').innerText();
  if (/\d{3,} ?(분|min)/.test(shown)) throw new Error(`the wait is shown in minutes: ${shown}`);
  await person.look("queue-early");
  await person.end();
}

/**
 * At the maximum number of waiting rooms the page says so, lists them, and lets the user leave one.
 */
async function tooMany(browser, server, view, events) {
  const person = await browser.person(server, view);
  const { page } = person;
  person.expect(409);
  await signUp(person, `many.${view.name}@example.com`, "/");
  const join = async (event) => page.goto(`/queue/${event.id}`);
  await join(events[0]);
  await person.at(`/events/${events[0].id}/seats`);
  await page.goto("/account");
  await page.waitForSelector("[data-my-entries] [data-entries] li");
  await person.look("account-entries");
  await join(events[1]);
  await page.waitForSelector('[data-step="refused"]:not([hidden])');
  await page.waitForSelector("[data-others]:not([hidden]) [data-entries] li");
  await person.look("queue-too-many");
  await person.press("[data-others] [data-entries] button");
  await page.waitForFunction(() => !document.querySelector("[data-others] [data-entries] li"));
  await person.press('[data-step="refused"] [data-join]');
  await person.at(`/events/${events[1].id}/seats`);
  await leavingSeats(person, events[1]);
  await person.end();
}

/** The seats page shows the time left of the slot, and gives it up after confirmation. */
async function leavingSeats(person, event) {
  const { page } = person;
  await page.waitForSelector("[data-slot]:not([hidden])");
  await page.waitForFunction(() => /^1[0-9]:\d\d$/.test(document.querySelector("[data-slot] [data-left]").textContent));
  await person.press("[data-slot-leave]");
  await person.look("seats-leave");
  await person.press('[data-dialog="slot"] [value="no"]');
  if (!page.url().endsWith("/seats")) throw new Error("the slot was given up without confirmation");
  await person.press("[data-slot-leave]");
  await person.press('[data-dialog="slot"] [value="yes"]');
  await person.at(`/events/${event.id}`);
}

/** The queue is full: the page says so, and joins by itself once there is room. */
async function fullLine(server, person, event) {
  const { page } = person;
  const [fan] = await server.fans(1);
  await server.ask(`/api/queue/check/${event.id}`, {}, fan);
  person.expect(503);
  await page.clock.install();
  await page.goto(`/queue/${event.id}`);
  await page.waitForFunction(() => /가득|full/.test(document.querySelector("[data-problem]:not([hidden])")?.textContent));
  if (!(await page.isVisible('[data-step="joining"]'))) throw new Error("the page of a full queue does not show that it will join");
  await person.look("queue-full");
  await server.ask(`/api/queue/leave/${event.id}`, {}, fan);
  await page.clock.fastForward(LONG);
  await page.waitForSelector('[data-step="waiting"]:not([hidden])');
  await page.waitForSelector("[data-problem]", { state: "hidden" });
}

/** The event is cancelled while a user waits: the page says so and stops polling. */
async function calledOff(person, event, operate) {
  const { page } = person;
  person.expect(409);
  await operate(`/api/admin/events/${event.id}/cancel`);
  await page.waitForSelector('[data-step="refused"]:not([hidden])');
  await page.waitForFunction(() => /취소|cancelled/.test(document.querySelector("[data-problem]:not([hidden])")?.textContent));
  await person.look("queue-cancelled");
  let asked = 0;
  page.on("request", (request) => (asked += request.url().includes("/api/queue/") ? 1 : 0));
  await page.clock.fastForward(LONG);
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.waitForLoadState("networkidle");
  if (asked) throw new Error(`the page polled ${asked} times after the event was cancelled`);
}

export async function hitches(browser, { binary }, view) {
  const server = await Server.start(binary, { "queue.max_waiting": 1 });
  try {
    const { token } = await server.ask("/api/auth/login", { email: ADMIN, password: PASSWORD });
    const operate = (path, body = {}) => server.ask(path, body, token);
    const [event, other] = await seatedEvents(server);
    // Independent of screen and language.
    if (view === VIEWS[0]) await twoTabs(browser, server, view, [event, other], operate);
    await early(browser, server, view);
    const narrow = await Server.start(binary, { "queue.max_events_per_user": 1 });
    try {
      await tooMany(browser, narrow, view, await seatedEvents(narrow));
    } finally {
      await narrow.stop();
    }
    await server.ask(`/api/queue/admin/pause/${event.id}`, {}, token);
    const person = await browser.person(server, view);
    await signUp(person, `late.${view.name}@example.com`, "/");
    await fullLine(server, person, event);
    await calledOff(person, event, operate);
    await person.end();
  } finally {
    await server.stop();
  }
}
