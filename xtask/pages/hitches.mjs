// Waiting when it does not go smoothly: one browser waits for two events, the line is full, the event is called off.
import { signUp } from "./accounts.mjs";
import { VIEWS } from "./browser.mjs";
import { guarded } from "./front.mjs";
import { seatedEvents } from "./sale.mjs";
import { ADMIN, PASSWORD, Server, until } from "./server.mjs";

/** Longer than a page waits between two questions, in its own time, which the journey moves. */
const LONG = 40_000;

/** Two tabs of one browser wait in front of two events. Both get in, and being let in at one costs nothing at the other. */
async function twoTabs(browser, server, view, events, operate) {
  const person = await browser.person(server, view);
  await signUp(person, `two.${view.name}@example.com`, "/");
  const tabs = [person.page, await person.tab()];
  const each = (what) => Promise.all(events.map((event, place) => what(event.id, tabs[place])));
  const at = (tab, path) => tab.waitForURL((url) => url.pathname === path, { timeout: 30_000 });
  await each((event) => operate(`/api/admin/vwr/activate/${event}`, { rate: 1 }));
  await each((event) => operate(`/api/admin/vwr/pause/${event}`));
  await each((event) => until("the room in front", () => guarded(server, event)));
  await each((event, tab) => tab.goto(`/queue/${event}`));
  await each((event, tab) => at(tab, `/vwr/${event}`));
  await each((event) => until("a number", async () => (await server.ask(`/vwr/status/${event}`)).totalInQueue));
  await each((event) => operate(`/api/admin/vwr/advance/${event}`, { batchSize: 10 }));
  await each((event, tab) => at(tab, `/events/${event}/seats`));
  await each((_, tab) => tab.reload());
  await each((event, tab) => at(tab, `/events/${event}/seats`));
  await each((_, tab) => tab.waitForSelector('.seat:not([aria-disabled="true"])'));
  await person.end();
  await each((event) => operate(`/api/admin/vwr/deactivate/${event}`));
  await each((event) => until("the end of the room in front", async () => !(await guarded(server, event))));
}

/** The line is as long as it may be: the page says so, and joins by itself once there is room. */
async function fullLine(server, person, event) {
  const { page } = person;
  const [fan] = await server.fans(1);
  await server.ask(`/api/queue/check/${event.id}`, {}, fan);
  person.expect(503);
  await page.clock.install();
  await page.goto(`/queue/${event.id}`);
  await page.waitForFunction(() => /가득|full/.test(document.querySelector("[data-problem]:not([hidden])")?.textContent));
  if (!(await page.isVisible('[data-step="joining"]'))) throw new Error("whoever found the line full is not told to stay");
  await person.look("queue-full");
  await server.ask(`/api/queue/leave/${event.id}`, {}, fan);
  await page.clock.fastForward(LONG);
  await page.waitForSelector('[data-step="waiting"]:not([hidden])');
  await page.waitForSelector("[data-problem]", { state: "hidden" });
}

/** The event is called off while somebody waits: the page says so, and asks for nothing any more. */
async function calledOff(person, event, operate) {
  const { page } = person;
  person.expect(409);
  await operate(`/api/admin/events/${event.id}/cancel`);
  await page.waitForSelector('[data-step="refused"]:not([hidden])');
  await page.waitForFunction(() => /취소|called off/.test(document.querySelector("[data-problem]:not([hidden])")?.textContent));
  await person.look("queue-cancelled");
  let asked = 0;
  page.on("request", (request) => (asked += request.url().includes("/api/queue/") ? 1 : 0));
  await page.clock.fastForward(LONG);
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.waitForLoadState("networkidle");
  if (asked) throw new Error(`nobody can be let in any more, and the page asked ${asked} times`);
}

export async function hitches(browser, { binary }, view) {
  const server = await Server.start(binary, { "queue.max_waiting": 1 });
  try {
    const { token } = await server.ask("/api/auth/login", { email: ADMIN, password: PASSWORD });
    const operate = (path, body = {}) => server.ask(path, body, token);
    const [event, other] = await seatedEvents(server);
    // Nothing about it depends on the screen or the language.
    if (view === VIEWS[0]) await twoTabs(browser, server, view, [event, other], operate);
    await operate(`/api/queue/admin/pause/${event.id}`);
    const person = await browser.person(server, view);
    await signUp(person, `late.${view.name}@example.com`, "/");
    await fullLine(server, person, event);
    await calledOff(person, event, operate);
    await person.end();
  } finally {
    await server.stop();
  }
}
