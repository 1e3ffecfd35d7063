// The waiting room. On errors the page keeps waiting and shows them; only the server admits a user.
import { call, entry, memory } from "./api.js";
import { countDown, serverNow, span, waitText } from "./clock.js";
import { confirmed } from "./dialogs.js";
import { leftKey, showEntries } from "./entries.js";
import { explain, step } from "./forms.js";
import { count, has, say } from "./texts.js";

/** Minimum time between two updates for screen readers. */
const ANNOUNCE_EVERY = 15_000;
/**
 * Minimum poll interval in seconds. The server sets the interval, from the remaining wait and the
 * idle timeout.
 */
const SHORTEST = 1;
/** Poll interval if the server does not set one. */
const USUAL = 3;
/** Errors that a retry does not change. */
const FINAL = ["queue.sale_ended", "queue.event_cancelled", "queue.too_many_lines"];
/** A site waiting room is in front: this queue cannot be used before it. */
const LEADS_TO_THE_FRONT = ["vwr.pass_required", "queue.place_over"];
/** Maximum pause after errors; it doubles each time. */
const LONGEST_PAUSE = 30;
/** Seconds before the browser is redirected to wait again, so that the user can read why. */
const TIME_TO_READ = 10;

const root = document.querySelector("[data-queue]");
const event = root.dataset.queue;
const part = (name) => root.querySelector(`[data-${name}]`);
const first = memory("sessionStorage");
const shared = memory("localStorage");
const pass = entry(event);
const FIRST_PLACE = `urr-place-${event}`;

let timer = 0;
let asking = false;
let over = false;
let inLine = false;
let failures = 0;
let announced = 0;
/** The last position shown, and whether this tab has joined again since. */
let lastPlace = 0;
let rejoined = false;
/** When the sale opens, if it has not; `stopOpening` ends the countdown to it. */
let opensAt = 0;
let stopOpening = () => {};

function problem(text) {
  const notice = part("problem");
  // Screen readers would read the same text again.
  if (notice.textContent !== text) notice.textContent = text;
  notice.hidden = !text;
}

function later(seconds) {
  clearTimeout(timer);
  // Jitter, so that clients do not poll at the same time.
  if (!over) timer = setTimeout(ask, seconds * 1_000 * (0.9 + Math.random() * 0.2));
}

async function ask() {
  if (asking || over) return;
  asking = true;
  clearTimeout(timer);
  try {
    const { body } = inLine
      ? await call("GET", `/api/queue/status/${event}`)
      : await call("POST", `/api/queue/check/${event}`, undefined, pass.headers());
    failures = 0;
    if (!over) {
      problem("");
      part("paused").hidden = !(isStopped(body) && body.queued);
      heard(body);
    }
  } catch (error) {
    failed(error);
  } finally {
    asking = false;
  }
}

function heard(body) {
  if (body.status === "active") return admitted(body);
  if (body.status === "queued") {
    inLine = true;
    waiting(body);
    return later(Math.max(Number(body.nextPoll) || USUAL, SHORTEST));
  }
  if (shared.get(leftKey(event))) return showLeft();
  // The entry is gone, perhaps because the device slept: join again with the queue ticket.
  inLine = false;
  rejoined = true;
  later(SHORTEST);
}

function failed(error) {
  if (error.code === "gateway.no_such_service") return admitted({});
  if (LEADS_TO_THE_FRONT.includes(error.code)) {
    over = true;
    location.assign(`/vwr/${event}?to=${location.pathname}`);
    return;
  }
  if (error.status === 401) {
    over = true;
    location.assign(`/login?next=${encodeURIComponent(location.pathname)}`);
    return;
  }
  if (error.code === "queue.pass_taken") {
    // The response deleted the used pass; the next poll leads to the site waiting room.
    problem(explain(error));
    return later(TIME_TO_READ);
  }
  if (FINAL.includes(error.code) || error.status === 404) return refused(error);
  failures += 1;
  const rest = say(inLine ? "queue_keeps" : "queue_tries");
  problem(error.code === "network" && inLine ? say("queue_offline") : `${explain(error)} ${rest}`);
  later(Math.max(error.retryAfter ?? 0, Math.min(2 ** failures, LONGEST_PAUSE)));
}

/** Stops waiting: a retry cannot succeed. */
function refused(error) {
  over = true;
  inLine = false;
  clearTimeout(timer);
  first.forget(FIRST_PLACE);
  problem(error.status === 404 && !has(error.code) ? say("queue_no_event") : explain(error));
  part("paused").hidden = true;
  step("refused");
  if (error.code === "queue.too_many_lines") showEntries(part("others"), { besides: event, problem, changed: () => problem("") });
}

/** Admissions are stopped, so the wait is unknown. */
const isStopped = (body) => Boolean(body.paused) || body.threshold === 0;

function waiting(body) {
  step("waiting");
  const position = Number(body.position);
  const people = (number) => say("people", { count: count(number) });
  part("position").textContent = count(position);
  part("ahead").textContent = people(body.peopleAhead);
  part("behind").textContent = people(body.peopleBehind);
  part("wait").textContent = wait(body);
  part("inside").textContent = body.threshold ? `${count(body.currentUsers)} / ${count(body.threshold)}` : count(body.currentUsers);
  if (rejoined && lastPlace && position > lastPlace) problem(say("queue_rejoined"));
  rejoined = false;
  lastPlace = position;
  untilOpening(body.opensAt ? Date.parse(body.opensAt) : 0);
  const from = Math.max(Number(first.get(FIRST_PLACE)) || position, position);
  first.set(FIRST_PLACE, String(from));
  part("progress").max = Math.max(from, 1);
  part("progress").value = from - position;
  document.title = say("queue_tab", { position: count(position), event: root.dataset.title });
  announceWait(position, body);
}

/** Before the sale opens, shows the time until then instead of the estimated wait. */
function untilOpening(at) {
  for (const element of root.querySelectorAll("[data-early]")) element.hidden = !at;
  for (const element of root.querySelectorAll("[data-usual]")) element.hidden = Boolean(at);
  if (at === opensAt) return;
  opensAt = at;
  stopOpening();
  stopOpening = at ? countDown(part("opening"), at, () => later(SHORTEST)) : () => {};
}

/** The estimated wait as a range: it depends on how long active users take. */
function wait(body) {
  if (isStopped(body)) return say("wait_paused");
  const about = Number(body.estimatedWait) || 0;
  const { from, to } = body.estimatedWaitRange ?? { from: about, to: about };
  return waitText(from, to);
}

async function announceWait(position, body) {
  const early = opensAt && span(opensAt - (await serverNow()));
  const values = { position: count(position), wait: early || wait(body) };
  announce(say(early ? "queue_announce_early" : "queue_announce", values));
}

function announce(text) {
  if (Date.now() - announced < ANNOUNCE_EVERY) return;
  announced = Date.now();
  part("announce").textContent = text;
}

function admitted({ entryToken }) {
  over = true;
  pass.keep(entryToken);
  first.forget(FIRST_PLACE);
  part("go").href = root.dataset.then;
  step("admitted");
  location.replace(root.dataset.then);
}

function showLeft() {
  over = true;
  inLine = false;
  lastPlace = 0;
  clearTimeout(timer);
  stopOpening();
  opensAt = 0;
  first.forget(FIRST_PLACE);
  problem("");
  part("paused").hidden = true;
  step("left");
}

async function leave() {
  if (!(await confirmed("leave"))) return;
  part("leave").disabled = true;
  try {
    await call("POST", `/api/queue/leave/${event}`);
    // Notifies other tabs of this browser, which would otherwise join again.
    shared.set(leftKey(event), String(Date.now()));
    showLeft();
  } catch (error) {
    problem(explain(error));
  } finally {
    part("leave").disabled = false;
  }
}

part("leave").addEventListener("click", leave);
for (const button of root.querySelectorAll("[data-join]")) {
  button.addEventListener("click", () => {
    shared.forget(leftKey(event));
    over = false;
    problem("");
    step("joining");
    ask();
  });
}
// After sleep, a tab change or a lost connection, poll at once instead of at the old timer.
for (const [target, name] of [[document, "visibilitychange"], [window, "online"], [window, "pageshow"]]) {
  target.addEventListener(name, () => {
    if (!document.hidden) ask();
  });
}
addEventListener("storage", ({ key, newValue }) => {
  if (key === leftKey(event) && newValue && !over) showLeft();
});
addEventListener("offline", () => over || problem(say(inLine ? "queue_offline" : "network")));
shared.forget(leftKey(event));
ask();
