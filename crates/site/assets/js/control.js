// The control room: what is, and what an operator does about it. A slider that somebody holds is not moved by what comes in.
import { call } from "./api.js";
import { Chart } from "./charts.js";
import { explain, onSubmit, tell } from "./forms.js";
import { count, lang, say } from "./texts.js";

const LOOK_AGAIN = 2_000;
/** The list of deeds changes when somebody does something, and seldom otherwise. */
const DEEDS_EVERY = 10;

const root = document.querySelector("[data-control]");
const event = root.dataset.control;
const part = (name) => root.querySelector(`[data-${name}]`);
const slider = (name) => document.getElementById(name);

const whole = (value) => count(Math.round(value));
const fine = (value) => count(Math.round(value * 10) / 10);
const charts = Object.fromEntries(
  [["waiting", whole], ["active", whole], ["admitted", fine], ["wait", whole]].map(([name, write]) => [
    name,
    new Chart(root.querySelector(`[data-chart="${name}"]`), write),
  ]),
);

let looks = 0;
const touched = new Set();

function problem(text) {
  const notice = root.querySelector(".control-head [data-problem]");
  if (notice.textContent !== text) notice.textContent = text;
  notice.hidden = !text;
}

/** Shows what a slider would set. What the room has is taken over until somebody touches it. */
function follow(name, value) {
  const input = slider(name);
  if (value > Number(input.max)) input.max = String(value * 2);
  if (!touched.has(name)) input.value = String(value);
  root.querySelector(`[data-of="${name}"]`).textContent = count(Number(input.value));
}

function showRoom(room) {
  charts.waiting.add(room.queueSize);
  charts.active.add(room.currentUsers, room.threshold);
  charts.admitted.add(room.admittedPerSecond ?? null);
  const pace = room.admittedPerSecond || 0;
  charts.wait.add(room.queueSize === 0 ? 0 : pace > 0 ? room.queueSize / pace : null);
  follow("threshold", room.threshold);
  part("open").hidden = room.paused;
  part("paused").hidden = !room.paused;
  for (const button of root.querySelectorAll("[data-do]")) {
    button.disabled = false;
    button.hidden = (button.dataset.do === "pause") === room.paused;
  }
}

function showFront(front) {
  const off = !front || !front.isActive;
  part("vwr-none").hidden = Boolean(front);
  part("vwr-off").hidden = !front || !off;
  part("vwr-on").hidden = off;
  part("vwr-paused").hidden = off || !front.paused;
  if (off) return;
  part("vwr-waiting").textContent = count(front.waiting ?? 0);
  part("vwr-serving").textContent = count(front.servingCounter ?? 0);
  part("vwr-tail").textContent = count(front.nextPosition ?? 0);
  if (front.rate !== undefined) follow("rate", front.rate);
  for (const button of root.querySelectorAll('[data-vwr="pause"], [data-vwr="resume"]')) {
    button.hidden = (button.dataset.vwr === "pause") === Boolean(front.paused);
  }
}

function showDeeds(actions) {
  const time = new Intl.DateTimeFormat(lang, { timeZone: "Asia/Seoul", dateStyle: "short", timeStyle: "medium" });
  const rows = actions.slice(0, 20).map((deed) => {
    const row = document.createElement("li");
    const text = say(`deed_${deed.action}`, { number: deed.threshold ?? "" });
    const what = Object.assign(document.createElement("span"), { className: "what", textContent: text });
    const when = Object.assign(document.createElement("span"), { className: "small soft", textContent: time.format(new Date(deed.at)) });
    row.append(what, when);
    return row;
  });
  part("deeds").replaceChildren(...rows);
  part("no-deeds").hidden = rows.length > 0;
}

/** Nothing where this installation has no such part, and nothing in it where there was never such a room. */
async function ifThere(path) {
  try {
    return (await call("GET", path)).body;
  } catch (error) {
    if (error.code === "gateway.no_such_service") return null;
    if (error.status === 404) return {};
    throw error;
  }
}

async function look() {
  try {
    const [room, front] = await Promise.all([
      ifThere(`/api/queue/admin/${event}`),
      ifThere(`/api/admin/vwr/status/${event}`),
    ]);
    if (room?.eventId) showRoom(room);
    showFront(front);
    if (room?.eventId && looks++ % DEEDS_EVERY === 0) showDeeds((await call("GET", `/api/queue/admin/audit/${event}`)).body.actions);
    problem("");
  } catch (error) {
    problem(explain(error));
  } finally {
    setTimeout(look, LOOK_AGAIN);
  }
}

async function act(method, path, body, name) {
  await call(method, path, body);
  touched.delete(name);
  looks = 0;
  tell(say("done"));
}

for (const button of root.querySelectorAll("[data-do], [data-vwr]")) {
  const path = button.dataset.do
    ? `/api/queue/admin/${button.dataset.do}/${event}`
    : `/api/admin/vwr/${button.dataset.vwr}/${event}`;
  button.addEventListener("click", () => act("POST", path).catch((error) => problem(explain(error))));
}
for (const name of ["threshold", "rate"]) {
  slider(name).addEventListener("input", () => {
    touched.add(name);
    follow(name, Number(slider(name).value));
  });
}

onSubmit("threshold", ({ threshold }) =>
  act("PUT", `/api/queue/admin/threshold/${event}`, { threshold: Number(threshold) }, "threshold"));
onSubmit("rate", ({ rate }) => act("PUT", `/api/admin/vwr/rate/${event}`, { rate: Number(rate) }, "rate"));
onSubmit("advance", ({ batchSize }) => act("POST", `/api/admin/vwr/advance/${event}`, { batchSize: Number(batchSize) }));
onSubmit("clear", async ({ title }, _, form) => {
  if (title.trim() !== root.dataset.title.trim()) {
    const notice = form.querySelector("[data-problem]");
    notice.textContent = say("title_differs");
    notice.hidden = false;
    return;
  }
  await act("POST", `/api/queue/admin/clear/${event}`, { confirm: event });
  form.reset();
});

look();
