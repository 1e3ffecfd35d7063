// The control room: current figures and operator actions. Incoming data does not change a field
// while it is being edited.
import { call } from "./api.js";
import { Chart, KINDS, toSeconds } from "./charts.js";
import { span } from "./clock.js";
import { confirmed } from "./dialogs.js";
import { explain, onSubmit, tell } from "./forms.js";
import { follow } from "./live.js";
import { count, lang, say } from "./texts.js";

/** Data older than this, in milliseconds, is not live. */
const LATE = 4_000;
/** Poll interval of the audit log. */
const DEEDS_EVERY = 20_000;
const MAX_DEEDS = 30;

const root = document.querySelector("[data-control]");
const event = root.dataset.control;
const part = (name, within = root) => within.querySelector(`[data-${name}]`);
const write = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

const whole = (value) => count(Math.round(value));
const fine = (value) => count(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
const FIGURES = {
  waiting: { kind: KINDS.people, write: whole },
  active: { kind: KINDS.people, write: whole, limit: true },
  wait: { kind: KINDS.seconds, write: (seconds) => span(seconds * 1_000) },
  arrived: { kind: KINDS.rate, write: fine },
  admitted: { kind: KINDS.rate, write: fine },
  errors: { kind: KINDS.rate, write: fine },
};

/** One room on the page: its charts, its state, and the time of the last sample. */
class Room {
  constructor(name, figures, state) {
    this.name = name;
    this.element = root.querySelector(`[data-room="${name}"]`);
    const charts = [...this.element.querySelectorAll("[data-chart]")];
    this.charts = charts.map((element) => [element.dataset.chart, new Chart(element, FIGURES[element.dataset.chart])]);
    Object.assign(this, { figures, state, last: null, heard: 0, drawn: true, decided: "" });
  }

  take(sample) {
    this.last = sample;
    this.heard = performance.now();
    const figures = this.figures(sample);
    const rest = { limit: figures.limit ?? null, paused: figures.stopped };
    for (const [name, chart] of this.charts) chart.add(sample.at, figures[name] ?? null, rest);
    // History arrives in one burst; draw once per frame.
    if (this.drawn) requestAnimationFrame(() => this.show());
    this.drawn = false;
  }

  show() {
    this.drawn = true;
    for (const [name, chart] of this.charts) {
      chart.show();
      if (name === "errors") chart.element.classList.toggle("bad", chart.points.at(-1).value > 0);
    }
    const state = this.state(this.last);
    this.element.dataset.state = state;
    write(part("badge", this.element), say(`state_${state}`));
    write(part("said", this.element), say(`state_${state}_text`));
    SHOW[this.name](this.last, state);
    showPulse();
    const decided = JSON.stringify(DECIDED.map((key) => this.last.room?.[key]));
    if (this.decided && this.decided !== decided) lookAtDeeds();
    this.decided = decided;
  }

  gone() {
    this.last = null;
    this.element.dataset.state = "none";
    write(part("badge", this.element), say("state_none"));
    write(part("said", this.element), say("state_none_text"));
  }
}

/** A change of one of these is an operator action. */
const DECIDED = ["threshold", "paused", "isActive", "rate", "epoch"];

/** A Tier 1 room of another site has no Tier 2 room. */
const queue = root.querySelector('[data-room="queue"]') && new Room(
  "queue",
  ({ room, ...sample }) => ({
    ...sample,
    waiting: room?.queueSize ?? null,
    active: room?.currentUsers ?? null,
    admitted: sample.asked ? (room?.admittedPerSecond ?? null) : sample.admitted,
    limit: room?.threshold ?? null,
    // While admissions are stopped the wait is unknown.
    wait: !room || room.paused || room.threshold === 0 ? null : (sample.wait ?? null),
    stopped: !room || room.paused,
  }),
  ({ room }) => {
    if (!room) return "away";
    if (room.paused) return "paused";
    if (room.threshold === 0) return "shut";
    if (room.currentUsers >= room.threshold) return "full";
    return room.queueSize > 0 ? "open" : "free";
  },
);

const vwr = new Room(
  "vwr",
  ({ room, ...sample }) => ({
    ...sample,
    waiting: room?.isActive ? room.waiting : null,
    wait: room?.isActive ? (sample.wait ?? null) : null,
    stopped: Boolean(room?.isActive && room.paused),
  }),
  ({ room, reachable }) => {
    if (reachable === false) return "away";
    if (!room?.isActive) return "off";
    if (room.paused) return "paused";
    if (room.rate === 0) return "shut";
    return room.waiting > 0 ? "open" : "free";
  },
);

const SHOW = {
  queue({ room }, state) {
    const known = state !== "away";
    for (const button of queue.element.querySelectorAll("[data-do], [data-ask]")) button.disabled = !known;
    if (!known) return;
    offer("threshold", room.threshold);
    for (const button of queue.element.querySelectorAll("[data-do]")) button.hidden = (button.dataset.do === "pause") === room.paused;
    write(part('count="queue"'), count(room.queueSize));
    const unit = queue.element.querySelector('[data-chart="active"] [data-unit]');
    write(unit, `/ ${count(room.threshold)}`);
  },
  vwr({ room }) {
    const on = Boolean(room?.isActive);
    part("off", vwr.element).hidden = on;
    for (const element of vwr.element.querySelectorAll("[data-on]")) element.hidden = !on;
    if (!on) return;
    offer("rate", room.rate);
    for (const button of vwr.element.querySelectorAll("[data-vwr], [data-ask]")) button.disabled = false;
    for (const button of vwr.element.querySelectorAll('[data-vwr="pause"], [data-vwr="resume"]')) {
      button.hidden = (button.dataset.vwr === "pause") === room.paused;
    }
    write(part("serving", vwr.element), count(room.servingCounter));
    write(part("tail", vwr.element), count(room.nextPosition));
    part("progress", vwr.element).style.width = `${room.nextPosition ? (100 * room.servingCounter) / room.nextPosition : 100}%`;
    write(part('count="vwr"'), count(room.waiting));
  },
};

/** Shows whether the figures are live, and if not, since when. */
function showPulse() {
  const { last, heard } = queue ?? vwr;
  if (!last) return;
  const late = performance.now() - heard > LATE;
  const pulse = late ? "late" : last.asked ? "asked" : "live";
  part("pulse").dataset.pulse = pulse;
  write(part("pulse-text"), say({ late: "not_live", asked: "polling", live: "live" }[pulse]));
  write(part("clock"), toSeconds.format(last.at));
}

function problem(text) {
  const notice = root.querySelector(":scope > [data-problem]");
  write(notice, text);
  notice.hidden = !text;
}

/** The value of the room is in the slider until the operator moves it. */
const offered = {};
function offer(name, now) {
  const [range, number] = [part(`range="${name}"`), part(`number="${name}"`)];
  const was = offered[name];
  const touched = was !== undefined && Number(number.value) !== was;
  offered[name] = now;
  if (was === undefined || now > Number(range.max)) {
    range.max = String(Math.max(100, 10 ** Math.ceil(Math.log10(4 * now + 1))));
    range.step = String(Math.max(1, Number(range.max) / 1_000));
  }
  if (!touched) range.value = number.value = String(now);
  const next = Number(number.value);
  number.form.querySelector("button").disabled = next === now;
  write(part(`now="${name}"`), next === now ? say("now_set", { now: count(now) }) : say("will_set", { now: count(now), next: count(next) }));
}

for (const name of ["threshold", "rate"]) {
  const [range, number] = [part(`range="${name}"`), part(`number="${name}"`)];
  if (!range) continue;
  const touch = (from, to) => from.addEventListener("input", () => {
    to.value = from.value;
    if (offered[name] !== undefined) offer(name, offered[name]);
  });
  touch(range, number);
  touch(number, range);
}

/** The audit log of both rooms, newest first. */
async function lookAtDeeds() {
  const found = await Promise.all([
    queue && call("GET", `/api/queue/admin/audit/${event}`).then(
      ({ body }) => body.actions.map((deed) => ({ ...deed, room: "queue", number: deed.threshold, by: deed.userId })),
      () => [],
    ),
    call("GET", `/api/admin/vwr/status/${event}`).then(
      ({ body }) => body.actions.map((deed) => ({ ...deed, room: "vwr", action: deed.what, by: deed.actor, done: true })),
      () => [],
    ),
  ]);
  const deeds = found.filter(Boolean).flat().sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
  part("deeds").replaceChildren(...deeds.slice(0, MAX_DEEDS).map(row));
  part("no-deeds").hidden = deeds.length > 0;
}

const day = new Intl.DateTimeFormat(lang, { timeZone: "Asia/Seoul", month: "numeric", day: "numeric" });

function row(deed) {
  const text = (tag, className, textContent) => Object.assign(document.createElement(tag), { className, textContent });
  const said = say(`deed_${deed.action}`, { number: deed.number === null ? "" : count(deed.number ?? 0) });
  const by = deed.by === null ? "by_system" : deed.by === root.dataset.me ? "by_you" : "by_other";
  const line = document.createElement("li");
  const when = new Date(deed.at);
  line.append(
    text("time", "figures small soft", `${day.format(when)} ${toSeconds.format(when)}`),
    text("span", "badge", say(`deed_${deed.room}`)),
    text("span", "what", deed.done ? said : say("deed_asked", { deed: said })),
    text("span", "small soft", say(by)),
  );
  line.classList.toggle("undone", !deed.done);
  return line;
}

async function act(method, path, body) {
  const answer = await call(method, path, body);
  problem("");
  await lookAtDeeds();
  return answer.body;
}

for (const button of root.querySelectorAll("[data-do], [data-vwr]")) {
  const path = button.dataset.do
    ? `/api/queue/admin/${button.dataset.do}/${event}`
    : `/api/admin/vwr/${button.dataset.vwr}/${event}`;
  button.addEventListener("click", async () => {
    if (button.dataset.confirm && !(await confirmed(button.dataset.confirm))) return;
    await act("POST", path).then(() => tell(say("done")), (error) => problem(explain(error)));
  });
}

for (const button of root.querySelectorAll("[data-ask]")) {
  const dialog = part(`dialog="${button.dataset.ask}"`);
  button.addEventListener("click", () => dialog.showModal());
  part("close", dialog).addEventListener("click", () => dialog.close());
}

onSubmit("threshold", async ({ threshold }) => {
  await act("PUT", `/api/queue/admin/threshold/${event}`, { threshold: Number(threshold) });
  tell(say("done"));
});
onSubmit("rate", async ({ rate }) => {
  await act("PUT", `/api/admin/vwr/rate/${event}`, { rate: Number(rate) });
  tell(say("done"));
});
onSubmit("advance", async ({ batchSize }) => {
  const { advanced } = await act("POST", `/api/admin/vwr/advance/${event}`, { batchSize: Number(batchSize) });
  tell(say("let_in", { number: count(advanced) }));
});
onSubmit("deactivate", async (_, __, form) => {
  await act("POST", `/api/admin/vwr/deactivate/${event}`);
  form.closest("dialog").close();
  tell(say("done"));
});
onSubmit("clear", async ({ title }, _, form) => {
  if (title.trim() !== root.dataset.title.trim()) {
    const notice = part("problem", form);
    notice.textContent = say("title_differs");
    notice.hidden = false;
    return;
  }
  await act("POST", `/api/queue/admin/clear/${event}`, { confirm: event });
  form.reset();
  form.closest("dialog").close();
  tell(say("done"));
});

if (queue) {
  follow({
    stream: `/api/queue/admin/live/${event}`,
    path: `/api/queue/admin/${event}`,
    take: (sample) => queue.take(sample),
    gone: () => queue.gone(),
  });
}
follow({
  stream: `/api/admin/vwr/live/${event}`,
  path: `/api/admin/vwr/status/${event}`,
  take: (sample) => vwr.take(sample),
  gone: () => vwr.gone(),
});
setInterval(showPulse, 1_000);
setInterval(() => document.hidden || lookAtDeeds(), DEEDS_EVERY);
lookAtDeeds();
