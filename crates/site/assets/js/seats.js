// The seats of an event: one section at a time, so that a stadium is as quick as a theatre.
import { call, entry } from "./api.js";
import { countDown } from "./clock.js";
import { explain } from "./forms.js";
import { say, won } from "./texts.js";

/** How often the plan is asked for anew. It is compared with what is known, so an unchanged one costs nothing. */
const LOOK_AGAIN = 4_000;
/** How often the waiting room is told that somebody is here; it gives a silent place away after ten minutes, and an entry token is no longer than that. */
const SIGN_OF_LIFE = 60_000;

const root = document.querySelector("[data-seats]");
const event = root.dataset.seats;
const most = Number(root.dataset.each);
const part = (name) => root.querySelector(`[data-${name}]`);

const chosen = new Map();
let seats = [];
let version = null;
/** Whether the plan could not be renewed the last time. */
let stale = false;
/** Names a wish until it is answered: `null` once it is, or when another one was made. */
let key = null;
let stopCountdown = () => {};

const pass = entry(event);

function problem(text) {
  part("problem").textContent = text;
  part("problem").hidden = !text;
}

function refused(error) {
  if (error.status === 403 && (error.body.redirectTo || error.code === "vwr.pass_required")) {
    location.assign(`/queue/${event}`);
    return;
  }
  problem(explain(error));
}

/** The plan is not what it was. Nobody is led away from what they have chosen; they are told. */
function grewOld(error) {
  stale = true;
  const text = say(error.code === "vwr.pass_required" ? "turn_over" : "map_old");
  if (part("problem").textContent !== text) problem(text);
}

async function look() {
  try {
    const { body } = await call("GET", `/api/seats/events/${event}`, undefined, pass.headers());
    if (stale) problem("");
    stale = false;
    if (body.version !== version) {
      version = body.version;
      seats = body.seats;
      redraw();
    }
  } catch (error) {
    if (!version) refused(error);
    else grewOld(error);
  } finally {
    if (!document.hidden) setTimeout(look, LOOK_AGAIN);
    else document.addEventListener("visibilitychange", look, { once: true });
  }
}

function redraw() {
  // While nobody knows what became of a wish, the seats may be taken by it; a repeat of it tells.
  for (const seat of key ? [] : seats) {
    if (seat.status !== "available" && chosen.delete(seat.id)) problem(say("seat_gone", { seat: seat.seat_label }));
  }
  drawSections();
  drawGrid();
  drawChoice();
}

function drawSections() {
  const select = part("section");
  const names = [...new Set(seats.map((seat) => seat.section))];
  const kept = select.value || names.find((name) => seats.some((seat) => seat.section === name && seat.status === "available"));
  const options = names.map((name) => {
    const inside = seats.filter((seat) => seat.section === name);
    const free = inside.filter((seat) => seat.status === "available").length;
    const text = say("section_option", { name, price: won(inside[0].price), free });
    return new Option(text, name, false, name === kept);
  });
  select.replaceChildren(...options);
  select.disabled = false;
}

function drawGrid() {
  const grid = part("grid");
  const focused = document.activeElement?.dataset?.seat;
  const rows = new Map();
  for (const seat of seats.filter((seat) => seat.section === part("section").value)) {
    if (!rows.has(seat.row_number)) rows.set(seat.row_number, []);
    rows.get(seat.row_number).push(seat);
  }
  const lines = [...rows].map(([row, inRow]) => {
    const line = Object.assign(document.createElement("div"), { className: "plan-row" });
    line.setAttribute("role", "group");
    line.setAttribute("aria-label", say("row", { row }));
    const name = Object.assign(document.createElement("span"), { className: "plan-row-name", textContent: row, ariaHidden: "true" });
    line.append(name, ...inRow.map(button));
    return line;
  });
  grid.replaceChildren(...lines);
  const again = focused && grid.querySelector(`[data-seat="${focused}"]`);
  rove(again || grid.querySelector('.seat:not([aria-disabled="true"])') || grid.querySelector(".seat"));
  again?.focus();
}

function button(seat) {
  const free = seat.status === "available";
  const element = Object.assign(document.createElement("button"), { type: "button", className: "seat", textContent: seat.seat_number });
  element.dataset.seat = seat.id;
  element.tabIndex = -1;
  element.setAttribute("aria-label", say(free ? "seat_free" : "seat_taken", { seat: seat.seat_label, price: won(seat.price) }));
  element.setAttribute("aria-pressed", String(chosen.has(seat.id)));
  if (!free) element.setAttribute("aria-disabled", "true");
  return element;
}

/** One seat is reached with Tab, the others from it with arrows. */
function rove(element) {
  for (const other of part("grid").querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  if (element) element.tabIndex = 0;
}

function move(from, key) {
  const line = from.parentElement;
  const at = [...line.querySelectorAll(".seat")].indexOf(from);
  const near = { ArrowLeft: [line, at - 1], ArrowRight: [line, at + 1], Home: [line, 0], End: [line, Infinity] };
  near.ArrowUp = [line.previousElementSibling, at];
  near.ArrowDown = [line.nextElementSibling, at];
  if (!near[key]) return false;
  const [target, place] = near[key];
  const row = [...(target?.querySelectorAll(".seat") ?? [])];
  const next = row[Math.min(Math.max(place, 0), row.length - 1)];
  if (next) {
    rove(next);
    next.focus();
  }
  return true;
}

function toggle(element) {
  const seat = seats.find((seat) => seat.id === element.dataset.seat);
  problem("");
  key = null;
  if (chosen.has(seat.id)) chosen.delete(seat.id);
  else if (seat.status !== "available") return problem(say("seat_gone", { seat: seat.seat_label }));
  else if (chosen.size >= most) return problem(say("seats_enough", { most }));
  else chosen.set(seat.id, seat);
  element.setAttribute("aria-pressed", String(chosen.has(seat.id)));
  drawChoice();
}

function drawChoice() {
  const items = [...chosen.values()].map((seat) => {
    const item = document.createElement("li");
    const what = Object.assign(document.createElement("span"), { className: "what", textContent: `${seat.grade} · ${seat.seat_label}` });
    item.append(what, Object.assign(document.createElement("span"), { textContent: won(seat.price) }));
    return item;
  });
  part("chosen").replaceChildren(...items);
  part("none").hidden = chosen.size > 0;
  part("total-line").hidden = chosen.size === 0;
  part("total").textContent = won([...chosen.values()].reduce((sum, seat) => sum + seat.price, 0));
  part("hold").disabled = chosen.size === 0;
}

async function hold() {
  part("hold").disabled = true;
  problem("");
  // A repeat after a lost answer is the same wish, and gets the same answer.
  key ??= crypto.randomUUID();
  try {
    const body = { eventId: event, seatIds: [...chosen.keys()], idempotencyKey: key };
    const answer = await call("POST", "/api/seats/reserve", body, pass.headers());
    const { reservation } = answer.body;
    // The wish may have been granted before, and given back since on another page.
    if (["cancelled", "expired"].includes(reservation.status)) {
      key = null;
      return await hold();
    }
    showHeld({
      id: reservation.id,
      number: reservation.reservationNumber,
      seats: reservation.seats.map((seat) => seat.seatLabel),
      total: reservation.totalAmount,
      until: reservation.expiresAt,
    });
  } catch (error) {
    refused(error);
    // Only a no of those who hold seats is an answer. After anything else the seats may be held all the same.
    if (error.status >= 400 && error.status < 500 && error.code.startsWith("tickets.")) key = null;
    version = null;
  } finally {
    part("hold").disabled = chosen.size === 0;
  }
}

function showHeld(held) {
  chosen.clear();
  part("held-number").textContent = held.number;
  part("held-seats").textContent = held.seats.join(", ");
  part("held-total").textContent = won(held.total);
  for (const name of ["plan", "choice"]) part(name).hidden = true;
  part("held").hidden = false;
  part("held").dataset.reservation = held.id;
  document.getElementById("held-title").focus();
  stopCountdown();
  stopCountdown = countDown(part("held-countdown"), Date.parse(held.until), () => backToPlan(say("hold_over")));
}

function backToPlan(text) {
  stopCountdown();
  part("held").hidden = true;
  for (const name of ["plan", "choice"]) part(name).hidden = false;
  problem(text);
  version = null;
  drawChoice();
}

async function giveBack() {
  part("give-back").disabled = true;
  try {
    await call("POST", `/api/reservations/${part("held").dataset.reservation}/cancel`);
    backToPlan("");
  } catch (error) {
    refused(error);
  } finally {
    part("give-back").disabled = false;
  }
}

/** Seats that were held before the page was loaded again. */
async function resume() {
  try {
    const { body } = await call("GET", "/api/reservations/my?limit=10");
    const mine = body.reservations.find((one) => one.event_id === event && one.status === "pending");
    if (!mine) return;
    showHeld({
      id: mine.id,
      number: mine.reservation_number,
      seats: mine.items.map((item) => item.seatLabel),
      total: mine.total_amount,
      until: mine.expires_at,
    });
  } catch (error) {
    console.warn("what is held could not be asked", error.code);
  }
}

/** Keeps the place, and the token that tells of it: it leads past a line in front of everything that was opened meanwhile. */
async function showLife() {
  try {
    const { body } = await call("GET", `/api/queue/status/${event}`);
    pass.keep(body.entryToken);
  } catch (error) {
    console.warn("the waiting room was not told", error.code);
  }
}

part("section").addEventListener("change", drawGrid);
part("grid").addEventListener("click", ({ target }) => {
  const seat = target.closest(".seat");
  if (!seat) return;
  rove(seat);
  toggle(seat);
});
part("grid").addEventListener("keydown", (pressed) => {
  const seat = pressed.target.closest(".seat");
  if (seat && move(seat, pressed.key)) pressed.preventDefault();
});
part("hold").addEventListener("click", hold);
part("give-back").addEventListener("click", giveBack);
setInterval(showLife, SIGN_OF_LIFE);
await resume();
look();
