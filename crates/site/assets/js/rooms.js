// The list of Tier 1 rooms: of events, and of other sites, which the catalog does not know.
import { call } from "./api.js";
import { explain, onSubmit } from "./forms.js";
import { count, say } from "./texts.js";

/** Poll interval of the list, in milliseconds. */
const LOOK_AGAIN = 5_000;

const root = document.querySelector("[data-rooms]");
const part = (name) => root.querySelector(`[data-${name}]`);

function problem(text) {
  const notice = root.querySelector(":scope > [data-problem]");
  if (notice.textContent !== text) notice.textContent = text;
  notice.hidden = !text;
}

function state(room) {
  if (!room.isActive) return "off";
  if (room.paused) return "paused";
  if (room.rate === 0) return "shut";
  return room.waiting > 0 ? "open" : "free";
}

const make = (tag, className, textContent) => Object.assign(document.createElement(tag), { className, textContent });

function row(room) {
  const event = root.querySelector(`[data-event="${room.eventId}"]`);
  const link = make("a", "", event?.textContent ?? room.eventId);
  link.href = `/admin/queue/${room.eventId}`;
  const what = make("div", "what", "");
  what.append(link, make("p", "small soft figures", say("room_line", { waiting: count(room.waiting), rate: count(room.rate) })));
  const line = document.createElement("li");
  line.append(what, make("span", "badge", say(`state_${state(room)}`)));
  return line;
}

let shown = "";

async function look() {
  try {
    const { body } = await call("GET", "/api/admin/vwr/rooms");
    problem("");
    const rooms = JSON.stringify(body.rooms);
    // An unchanged list is not replaced, so that the focus stays in it.
    if (rooms !== shown) part("list").replaceChildren(...body.rooms.map(row));
    shown = rooms;
    part("none").textContent = part("list").dataset.empty;
    part("none").hidden = body.rooms.length > 0;
  } catch (error) {
    problem(explain(error));
  } finally {
    if (!document.hidden) setTimeout(look, LOOK_AGAIN);
    else document.addEventListener("visibilitychange", look, { once: true });
  }
}

onSubmit("other", async ({ id }) => location.assign(`/admin/queue/${id.trim().toLowerCase()}`));
look();
