// Waiting that lasts, in both rooms: a screen reader is told now and then, the device sleeps, and the store is away for a while.
import { readFileSync } from "node:fs";

import { signUp } from "./accounts.mjs";
import { VIEWS } from "./browser.mjs";
import { guarded, stranger } from "./front.mjs";
import { seatedEvents } from "./sale.mjs";
import { ADMIN, PASSWORD, Server, until } from "./server.mjs";

/** A screen reader hears the latest this often at most, but for what the clocks of two moments differ by. */
const QUIET = 15_000 - 100;
/** Longer than any page waits between two questions, in its own time, which the journey moves. */
const LONG = 120_000;
const HOUR = 3_600_000;
/** People in front, one of whom goes on with every answer: more than there are answers. */
const AHEAD = 60;

/** What the server answers meanwhile, as its page about the error shows it. */
const problem = (code) => {
  const page = readFileSync(new URL(`../../docs/errors/${code}.md`, import.meta.url), "utf8");
  const body = JSON.parse(page.match(/```json\n(.*?)```/s)[1]);
  return { status: body.status, contentType: "application/problem+json", body: JSON.stringify(body) };
};

/** Where each room shows what, and what it asks again and again. Every answer is another one, or there would be nothing new to tell. */
const FRONT = {
  name: "front",
  path: "**/vwr-api/vwr/serving/*",
  told: "#told",
  place: "#count",
  trouble: "#warn",
  away: problem("vwr.unavailable"),
  next: (body, number) => ({ ...body, paused: false, rate: 2, servingCounter: number }),
  shows: (number) => String(AHEAD - number),
};
const SEATS = {
  name: "queue",
  path: "**/api/queue/status/*",
  told: "[data-announce]",
  place: "[data-position]",
  trouble: "[data-problem]",
  away: problem("queue.unavailable"),
  next: (body, number) => ({ ...body, paused: false, threshold: 5, nextPoll: 1, position: 500 - number }),
  shows: (number) => String(500 - number),
};

/** Stands between a page and what it asks: counts the questions, changes the answers, keeps them back. */
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

  /** Keeps answers back until the function is called that this gives back. */
  hold() {
    let release;
    this.held = new Promise((done) => (release = done));
    return release;
  }

  /** Moves the page's time, and waits until whatever it asks then is on its way: a later request is answered later. */
  async forward(time) {
    await this.page.clock.fastForward(time);
    await this.page.evaluate(() => fetch("/health/live").then(() => null));
  }

  /** Lets time pass until the page has asked and has its answer. A question on its way is waited for: a jump would end its patience. */
  async nextAnswer() {
    const before = this.answered;
    await until("an answer", async () => {
      if (this.answered === this.asked) await this.forward(LONG);
      return this.answered > before && this.answered === this.asked;
    });
  }

  /** From here on the page's time stands still unless the journey moves it. */
  async still() {
    await this.page.clock.pauseAt((await this.page.evaluate(() => Date.now())) + 1_000);
  }

  /** Waits until the page shows the answer to whatever it asked. */
  async settled() {
    const { page, room } = this;
    await until("an answer to everything", () => this.answered === this.asked);
    await page.waitForFunction(([at, text]) => document.querySelector(at).textContent === text, [room.place, room.shows(this.asked)]);
  }

  async end() {
    await this.page.unroute(this.room.path);
  }
}

const shown = (page, { place }) => page.locator(place).textContent();

/** A minute of answers, each of them other news: a screen reader hears some of it, and never more often than it can listen. */
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
    await until("an answer to everything", () => between.answered === between.asked);
  }
  const answers = between.answered - before;
  const heard = await page.evaluate(() => window.heard);
  const pauses = heard.slice(1).map((time, before) => time - heard[before]);
  const said = `${answers} answers were told of after ${pauses.join(", ")} ms`;
  if (answers < 12) throw new Error(`${room.name}: the page hardly asked: ${said}`);
  if (heard.length < 3) throw new Error(`${room.name}: a screen reader is not kept informed: ${said}`);
  if (pauses.some((pause) => pause < QUIET)) throw new Error(`${room.name}: a screen reader is never left alone: ${said}`);
}

/** The device sleeps for an hour. The old timer, the tab that is seen again and the network that is back are one question, and it goes on. */
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
  if (questions !== 1) throw new Error(`${room.name}: back from sleep the page asked ${questions} questions`);
  release();
  await between.settled();
  await between.nextAnswer();
  await between.settled();
}

/** The store does not answer: whoever waits sees that, and that the place is kept; it heals without them. */
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
  // Trying again in vain costs nothing either.
  for (let tries = 0; tries < 2; tries++) await between.nextAnswer();
  await page.clock.resume();
  await person.look(`${room.name}-unavailable`, { network: false });
  await between.still();
  if ((await shown(page, room)) !== place) throw new Error(`${room.name}: the place was lost while the store was away`);
  if (!(await page.isVisible(room.place))) throw new Error(`${room.name}: the place is not shown while the store is away`);
  between.isAway = false;
  await between.nextAnswer();
  await between.settled();
  await page.waitForFunction((at) => !document.querySelector(`${at}:not([hidden])`)?.textContent, room.trouble);
}

async function lasting(person, room) {
  const { page, view } = person;
  const between = await Between.at(page, room);
  await between.still();
  // Nothing about these depends on the screen or the language.
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
    await until("the room in front", () => guarded(server, event));
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
    // What is still asked when a journey fails is not what failed.
    if (!page.isClosed()) await page.unrouteAll({ behavior: "ignoreErrors" });
    await server.stop();
  }
}
