// The control room during a sale: users come and go, charts update, and every operator action is
// logged.
import { setTimeout as sleep } from "node:timers/promises";

import { signIn } from "./accounts.mjs";
import { stranger } from "./front.mjs";
import { ADMIN, PASSWORD, until } from "./server.mjs";

/** Until stopped: visitors who join Tier 1, and users who join Tier 2 and leave it. */
class Crowd {
  constructor(server, event, fans) {
    Object.assign(this, { server, event, fans, stopped: false, failed: null });
    this.ended = this.run().catch((error) => (this.failed = error));
  }

  async run() {
    for (let turn = 0; !this.stopped; turn++) {
      await stranger(this.server, this.event);
      const { url } = this.server;
      const ask = (what, { token, pass }) =>
        fetch(`${url}/api/queue/${what}/${this.event}`, {
          method: "POST",
          headers: { authorization: `Bearer ${token}`, cookie: `urr-vwr-token=${pass}`, origin: url },
        });
      // Users arrive one after the other, and some leave while others still wait.
      await ask("check", this.fans[turn % this.fans.length]);
      if (turn % 3 === 0) await ask("leave", this.fans[(turn + 4) % this.fans.length]);
      await sleep(120);
    }
  }

  async stop() {
    this.stopped = true;
    await this.ended;
    if (this.failed) throw this.failed;
  }
}

/** Users who have passed Tier 1 and may join Tier 2. */
async function fans(server, event, operator) {
  const tokens = await server.fans(24);
  const turns = await Promise.all(tokens.map(() => stranger(server, event)));
  await server.ask(`/api/admin/vwr/advance/${event}`, { batchSize: tokens.length }, operator);
  const pass = (turn) => until("a pass", turn);
  return Promise.all(tokens.map(async (token, place) => ({ token, pass: await pass(turns[place]) })));
}

/** Records the page's stream and poll requests. */
function asked(page, event) {
  const seen = { streams: [], polls: [] };
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (request.resourceType() === "eventsource") seen.streams.push(pathname);
    else if (pathname === `/api/queue/admin/${event}`) seen.polls.push(pathname);
  });
  return seen;
}

const chart = (room, name) => `[data-room="${room}"] [data-chart="${name}"]`;
const points = (page, room, name) =>
  page.locator(`${chart(room, name)} svg`).evaluate((svg) => Number(svg.dataset.points ?? 0));
const state = (page, room, ...states) =>
  page.waitForFunction(([room, states]) => states.includes(document.querySelector(`[data-room="${room}"]`).dataset.state), [room, states]);

/** Charts get a sample per second from the stream, and the page does not poll meanwhile. */
async function moving(page, event, seen) {
  await page.waitForSelector('[data-pulse="live"]');
  const before = await points(page, "queue", "waiting");
  await until("five samples from the stream", async () => (await points(page, "queue", "waiting")) >= before + 5);
  for (const path of [`/api/queue/admin/live/${event}`, `/api/admin/vwr/live/${event}`]) {
    if (!seen.streams.includes(path)) throw new Error(`the page did not open the stream ${path}`);
  }
  if (seen.polls.length) throw new Error(`the page polled ${seen.polls.length} times although the stream is open`);
  const lines = await page.locator(`${chart("queue", "waiting")} .chart-line path`).count();
  if (!lines) throw new Error("the chart is empty");
  for (const [room, name] of [["queue", "arrived"], ["queue", "admitted"], ["vwr", "arrived"], ["vwr", "admitted"]]) {
    await page.waitForFunction((chart) => parseFloat(document.querySelector(`${chart} [data-value]`).textContent) > 0, chart(room, name));
  }
}

/** After a reload the charts show the past at once. */
async function reloaded(page) {
  const before = await points(page, "queue", "waiting");
  await page.reload();
  await page.waitForSelector('[data-pulse="live"]');
  await until("the last minutes", async () => (await points(page, "queue", "waiting")) >= Math.min(before, 590), 5);
}

/** If the server is silent the page shows that and since when, and recovers by itself. */
async function silence(person, server) {
  const { page } = person;
  // A process that was paused has stale revocations and refuses tokens until it has updated them.
  person.expect(503);
  server.child.kill("SIGSTOP");
  try {
    await page.waitForSelector('[data-pulse="late"]');
    await person.look("control-late", { network: false });
  } finally {
    server.child.kill("SIGCONT");
  }
  await page.waitForSelector('[data-pulse="live"]', { timeout: 20_000 });
}

async function queueControls(person) {
  const { page } = person;
  await person.fill({ '[data-number="threshold"]': "8" });
  await page.waitForFunction(() => document.querySelector('[data-now="threshold"]').textContent.includes("→"));
  await person.press('[data-form="threshold"] button');
  await page.waitForFunction((chart) => document.querySelector(`${chart} [data-unit]`).textContent === "/ 8", chart("queue", "active"));
  await person.press('[data-do="pause"]');
  await state(page, "queue", "paused");
  await person.look("control-paused", { network: false });
  await person.press('[data-do="resume"]');
  await state(page, "queue", "open", "full", "free");
}

async function frontControls(person) {
  const { page } = person;
  await page.locator('[data-range="rate"]').focus();
  await page.keyboard.press("ArrowRight");
  await person.press('[data-form="rate"] button');
  await page.waitForFunction(() => !document.querySelector('[data-now="rate"]').textContent.includes("→"));
  await person.fill({ "#batch": "3" });
  await person.press('[data-form="advance"] button');
  await person.press('[data-vwr="pause"]');
  await state(page, "vwr", "paused");
}

/** Activating a room makes every visitor wait, so it needs confirmation. */
async function turnOn(person, states) {
  const { page } = person;
  await person.press('[data-vwr="activate"]');
  await person.look("control-turn-on", { network: false });
  await person.press('[data-dialog="activate"] [value="no"]');
  await state(page, "vwr", "off");
  await person.press('[data-vwr="activate"]');
  await person.press('[data-dialog="activate"] [value="yes"]');
  await state(page, "vwr", ...states);
}

/** Admins can reach the control room from any page. */
async function findsTheWay(person) {
  const { page } = person;
  await page.goto("/");
  await person.press('.top a[href="/admin"]');
  await person.at("/admin");
  await person.look("admin");
  await person.press('main a[href="/admin/queue"]');
  await person.at("/admin/queue");
}

/** Deactivating a room admits all waiting visitors, so it needs confirmation. */
async function turningOff(person) {
  const { page } = person;
  await person.press('[data-ask="deactivate"]');
  await person.look("control-confirm", { network: false });
  await person.press('[data-dialog="deactivate"] [data-close]');
  await state(page, "vwr", "paused");
  await person.press('[data-ask="deactivate"]');
  await person.press('[data-dialog="deactivate"] .danger');
  await state(page, "vwr", "off");
}

/** Clearing a room requires typing the title. */
async function clearing(person, title) {
  const { page } = person;
  await person.press('[data-ask="clear"]');
  await person.fill({ "#title": "another title" });
  await person.press('[data-form="clear"] .danger');
  await page.waitForSelector('[data-form="clear"] [data-problem]:not([hidden])');
  await person.look("control-clear", { network: false });
  await person.fill({ "#title": title });
  await person.press('[data-form="clear"] .danger');
  await page.waitForFunction((chart) => document.querySelector(`${chart} [data-value]`).textContent === "0", chart("queue", "waiting"));
}

/** Every operator action is on the page, once each. */
async function recorded(page) {
  const words = { ko: ["8명", "일시 중지", "재개", "비움", "켬", "끔", "초당", "3명까지"], en: ["to 8", "Paused", "Resumed", "Cleared", "room on", "room off", "rate to", "up to 3"] };
  const lang = await page.getAttribute("html", "lang");
  const rows = await page.locator("[data-deeds] li").allTextContents();
  for (const word of words[lang]) {
    if (!rows.some((row) => row.includes(word))) throw new Error(`"${word}" is not in the audit log:\n${rows.join("\n")}`);
  }
}

/** A Tier 1 room of another site: no catalog event and no seats, but a control room. */
async function anotherSite(person) {
  const { page } = person;
  const site = "0197b3c2-0000-7000-8000-0000000000aa";
  await page.goto("/admin/queue");
  await person.fill({ "#id": site.toUpperCase() });
  await person.press('form[data-form="other"] button');
  await person.at(`/admin/queue/${site}`);
  if (await page.locator('[data-room="queue"]').count()) throw new Error("a room without an event shows a Tier 2 room");
  await state(page, "vwr", "off");
  await turnOn(person, ["free"]);
  await page.waitForSelector('[data-pulse="live"]');
  await person.look("control-site", { network: false });
  await page.goto("/admin/queue");
  await page.waitForSelector(`[data-list] a[href="/admin/queue/${site}"]`);
  await person.look("rooms");
  await page.goto(`/admin/queue/${site}`);
  await person.press('[data-ask="deactivate"]');
  await person.press('form[data-form="deactivate"] .danger');
  await state(page, "vwr", "off");
}

export async function control(browser, server, view) {
  const { events } = await server.ask("/api/events?status=on_sale&limit=10");
  const event = events.find((event) => event.seat_layout_id ?? event.seatLayoutId);
  const { token } = await server.ask("/api/auth/login", { email: ADMIN, password: PASSWORD });
  await server.ask(`/api/queue/admin/threshold/${event.id}?threshold=5`, {}, token);

  const person = await browser.person(server, view);
  person.expect(404);
  const { page } = person;
  await signIn(person, ADMIN, PASSWORD, `/events/${event.id}`);
  await person.at(`/events/${event.id}`);
  await findsTheWay(person);
  await page.goto(`/events/${event.id}`);
  const seen = asked(page, event.id);
  await person.press(`a[href="/admin/queue/${event.id}"]`);
  await state(page, "vwr", "off");
  await turnOn(person, ["open", "free"]);
  const crowd = new Crowd(server, event.id, await fans(server, event.id, token));
  try {
    await moving(page, event.id, seen);
    await reloaded(page);
    await person.look("control", { network: false });
    await queueControls(person);
    await silence(person, server);
    await frontControls(person);
  } finally {
    await crowd.stop().catch((error) => person.troubles.push(`the crowd: ${error.message}`));
  }
  await turningOff(person);
  await clearing(person, event.title);
  await recorded(page);
  await anotherSite(person);
  await person.end();
}
