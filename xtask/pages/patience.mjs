// Long waits in both rooms: screen reader updates, a sleeping device, an unreachable store.
import { readFileSync } from "node:fs";

import { signUp } from "./accounts.mjs";
import { VIEWS } from "./browser.mjs";
import { guarded, stranger } from "./front.mjs";
import { seatedEvents } from "./sale.mjs";
import { ADMIN, PASSWORD, Server, until } from "./server.mjs";

/** Minimum time between two screen reader updates, with a tolerance between two clocks. */
const QUIET = 15_000 - 100;
/** Longer than any poll interval, in the page's time, which the journey controls. */
const LONG = 120_000;
const HOUR = 3_600_000;
/**
 * Visitors ahead. One is admitted with every response, so there must be more of them than
 * responses.
 */
const AHEAD = 60;

/** An error response, from the example on its page in docs/errors. */
const problem = (code) => {
  const page = readFileSync(new URL(`../../docs/errors/${code}.md`, import.meta.url), "utf8");
  const body = JSON.parse(page.match(/```json\n(.*?)```/s)[1]);
  return { status: body.status, contentType: "application/problem+json", body: JSON.stringify(body) };
};

/**
 * Selectors and poll URL of each room. Every response differs, so that there is news to announce.
 */
const FRONT = {
  name: "front",
  path: "**/vwr-api/vwr/serving/*",
  told: "#told",
  place: "#count",
  trouble: "#warn",
  away: problem("http.unavailable"),
  next: (body, number) => ({ ...body, paused: false, rate: 2, servingCounter: number }),
  shows: (number) => String(AHEAD - number),
};
const SEATS = {
  name: "queue",
  path: "**/api/queue/status/*",
  told: "[data-announce]",
  place: "[data-position]",
  trouble: "[data-problem]",
  away: problem("http.unavailable"),
  next: (body, number) => ({ ...body, paused: false, threshold: 5, nextPoll: 1, position: 500 - number }),
  shows: (number) => String(500 - number),
};

/** Intercepts the requests of a page: counts them, changes responses, delays them. */
class Between {
  static async at(page, room) {
    const between = new Between();
    Object.assign(between, { page, room, asked: 0, answered: 0, isAway: false, held: null });
    await page.route(room.path, (route) => between.answer(route));
    return between;
  }

  async answer(route) {
    const number = ++this.asked;
    await this.held;
    if (this.isAway) {
      await route.fulfill(this.room.away);
    } else {
      const response = await route.fetch();
      await route.fulfill({ response, json: this.room.next(await response.json(), number) });
    }
    this.answered += 1;
  }

  /** Delays responses until the returned function is called. */
  hold() {
    let release;
    this.held = new Promise((done) => (release = done));
    return release;
  }

  /** Advances the page's clock, and waits until the requests that this causes are sent. */
  async forward(time) {
    await this.page.clock.fastForward(time);
    await this.page.evaluate(() => fetch("/health/live").then(() => null));
  }

  /**
   * Advances the clock until the page has polled and got its response. Waits for a request in
   * progress: a jump would time it out.
   */
  async nextAnswer() {
    const before = this.answered;
    await until("a response", async () => {
      if (this.answered === this.asked) await this.forward(LONG);
      return this.answered > before && this.answered === this.asked;
    });
  }

  /** Stops the page's clock; from here on the journey advances it. */
  async still() {
    await this.page.clock.pauseAt((await this.page.evaluate(() => Date.now())) + 1_000);
  }

  /** Waits until the page shows the response to its last request. */
  async settled() {
    const { page, room } = this;
    await until("all responses", () => this.answered === this.asked);
    await page.waitForFunction(([at, text]) => document.querySelector(at).textContent === text, [room.place, room.shows(this.asked)]);
  }

  async end() {
    await this.page.unroute(this.room.path);
  }
}

const shown = (page, { place }) => page.locator(place).textContent();

/**
 * A minute of responses with news: a screen reader gets some of them, never more often than the
 * minimum.
 */
async function announced(page, room, between) {
  await between.nextAnswer();
  await page.evaluate((told) => {
    window.heard = [];
    const write = (changes) => changes.forEach(() => window.heard.push(Date.now()));
    new MutationObserver(write).observe(document.querySelector(told), { childList: true, characterData: true, subtree: true });
  }, room.told);
  const before = between.answered;
  for (let second = 0; second < 60; second++) {
    await page.clock.runFor(1_000);
    await until("all responses", () => between.answered === between.asked);
  }
  const answers = between.answered - before;
  const heard = await page.evaluate(() => window.heard);
  const pauses = heard.slice(1).map((time, before) => time - heard[before]);
  const said = `${answers} answers were told of after ${pauses.join(", ")} ms`;
  if (answers < 12) throw new Error(`${room.name}: the page polled too rarely: ${said}`);
  if (heard.length < 3) throw new Error(`${room.name}: too few screen reader updates: ${said}`);
  if (pauses.some((pause) => pause < QUIET)) throw new Error(`${room.name}: too frequent screen reader updates: ${said}`);
}

/**
 * The device sleeps for an hour. Timer, visible tab and network cause one request together, and
 * polling continues.
 */
async function slept(page, room, between) {
  await between.nextAnswer();
  await between.settled();
  const release = between.hold();
  const before = between.asked;
  await between.forward(HOUR);
  await page.evaluate(() => {
    document.dispatchEvent(new Event("visibilitychange"));
    for (const name of ["online", "pageshow"]) window.dispatchEvent(new PageTransitionEvent(name));
  });
  await between.forward(0);
  const questions = between.asked - before;
  if (questions !== 1) throw new Error(`${room.name}: after sleep the page sent ${questions} requests instead of 1`);
  release();
  await between.settled();
  await between.nextAnswer();
  await between.settled();
}

/** The store is down: the page says so and that the position is kept, and recovers by itself. */
async function away(person, room, between) {
  const { page } = person;
  person.expect(503);
  await between.nextAnswer();
  await between.settled();
  const place = await shown(page, room);
  between.isAway = true;
  await between.nextAnswer();
  const keeps = (at) => /순[서번][는은] 그대로|keep your place/i.test(document.querySelector(`${at}:not([hidden])`)?.textContent);
  await page.waitForFunction(keeps, room.trouble);
  // Failed retries do not cost the position either.
  for (let tries = 0; tries < 2; tries++) await between.nextAnswer();
  await page.clock.resume();
  await person.look(`${room.name}-unavailable`, { network: false });
  await between.still();
  if ((await shown(page, room)) !== place) throw new Error(`${room.name}: the position was lost while the store was down`);
  if (!(await page.isVisible(room.place))) throw new Error(`${room.name}: the position is not shown while the store is down`);
  between.isAway = false;
  await between.nextAnswer();
  await between.settled();
  await page.waitForFunction((at) => !document.querySelector(`${at}:not([hidden])`)?.textContent, room.trouble);
}

async function lasting(person, room) {
  const { page, view } = person;
  const between = await Between.at(page, room);
  await between.still();
  // Independent of screen and language.
  if (view === VIEWS[0]) {
    await announced(page, room, between);
    await slept(page, room, between);
  }
  await away(person, room, between);
  await between.end();
  await page.clock.resume();
}

export async function patience(browser, { binary }, view) {
  const server = await Server.start(binary);
  const person = await browser.person(server, view);
  const { page } = person;
  try {
    const { token } = await server.ask("/api/auth/login", { email: ADMIN, password: PASSWORD });
    const operate = (path, body = {}) => server.ask(path, body, token);
    const [{ id: event }] = await seatedEvents(server);
    await operate(`/api/admin/vwr/activate/${event}`, { rate: 1 });
    await operate(`/api/admin/vwr/pause/${event}`);
    await operate(`/api/queue/admin/pause/${event}`);
    await until("the site waiting room", () => guarded(server, event));
    for (let number = 0; number < AHEAD; number++) await stranger(server, event);
    await signUp(person, `patient.${view.name}@example.com`, "/");
    await page.clock.install();
    await page.goto(`/queue/${event}`);
    await page.waitForFunction(() => Number(document.getElementById("count")?.textContent) > 0);
    await lasting(person, FRONT);
    await operate(`/api/admin/vwr/advance/${event}`, { batchSize: 1_000 });
    await page.clock.fastForward(LONG);
    await page.waitForSelector('[data-step="waiting"]:not([hidden])');
    await lasting(person, SEATS);
    await operate(`/api/queue/admin/resume/${event}`);
    await page.clock.fastForward(LONG);
    await person.at(`/events/${event}/seats`);
    await person.end();
  } finally {
    // Errors of requests in progress would hide the cause of the failure.
    if (!page.isClosed()) await page.unrouteAll({ behavior: "ignoreErrors" });
    await server.stop();
  }
}
