// The seats of an event: one section at a time, so that a stadium is as quick as a theatre.
import { call, entry, memory } from "./api.js";
import { countDown } from "./clock.js";
import { confirmed } from "./dialogs.js";
import { leftKey } from "./entries.js";
import { explain } from "./forms.js";
import { count, say, won } from "./texts.js";

/** How often the plan is asked for anew. It is compared with what is known, so an unchanged one costs nothing. */
const LOOK_AGAIN = 4_000;
/** How often the waiting room is told that somebody is here; it gives a silent place away after ten minutes, and an entry token is no longer than that. */
const SIGN_OF_LIFE = 60_000;
/** The plan may be this old. Seats that were just released are shown as free meanwhile. */
const PLAN_AGE = 3_000;

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
/** When the slot ends, as the waiting room last said. */
let slotEnds = 0;
let stopSlot = () => {};
/** Seats that this page released, with the time until which they count as free whatever the plan says. */
const released = new Map();

const pass = entry(event);

/** Errors are shown where the button is that caused them: in the bar with the choice, or with the held seats. */
function problem(text) {
  for (const notice of root.querySelectorAll("[data-problem]")) {
    const shown = text && !notice.closest("section, aside").hidden;
    // The same words again would be read out again.
    if (notice.textContent !== (shown ? text : "")) notice.textContent = shown ? text : "";
    notice.hidden = !shown;
  }
}

/** `VIP석`, `VIP`: a section as part of a seat's name. */
const area = (section) => (/[A-Za-z]$/.test(section) ? say("seat_area", { section }) : section);

/** `VIP석 1열 4번`, `VIP, row 1, seat 4`. */
function nameOf({ section, row, number }) {
  return say("seat_name", { area: area(section), row, number });
}

const named = (seat) => nameOf({ section: seat.section, row: seat.row_number, number: seat.seat_number });

const isFree = (seat) => seat.status === "available" || released.get(seat.id) > Date.now();

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
  problem(text);
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
    if (!isFree(seat) && chosen.delete(seat.id)) problem(say("seat_gone", { seat: named(seat) }));
  }
  drawSections();
  drawGrid();
  drawChoice();
}

function drawSections() {
  const select = part("section");
  const names = [...new Set(seats.map((seat) => seat.section))];
  const kept = select.value || names.find((name) => seats.some((seat) => seat.section === name && isFree(seat)));
  const options = names.map((name) => {
    const inside = seats.filter((seat) => seat.section === name);
    const free = inside.filter(isFree).length;
    const text = say("section_option", { name, price: won(inside[0].price), free: count(free) });
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
  if (centred !== part("section").value) centre();
  showMore();
  const again = focused && grid.querySelector(`[data-seat="${focused}"]`);
  rove(again || grid.querySelector('.seat:not([aria-disabled="true"])') || grid.querySelector(".seat"));
  again?.focus();
}

/** The section whose plan was scrolled to its middle. */
let centred = null;

/** Seats in front of the stage are in the middle of a row, so a wide plan starts there. */
function centre() {
  const grid = part("grid");
  centred = part("section").value;
  grid.scrollLeft = (grid.scrollWidth - grid.clientWidth) / 2;
  grid.scrollTop = 0;
}

/** Shows on which sides of the plan there are more seats. */
function showMore() {
  const grid = part("grid");
  const right = grid.scrollWidth - grid.clientWidth - grid.scrollLeft;
  part("more").classList.toggle("more-left", grid.scrollLeft > 2);
  part("more").classList.toggle("more-right", right > 2);
  part("swipe").hidden = grid.scrollWidth <= grid.clientWidth + 2;
}

function button(seat) {
  const free = isFree(seat);
  const element = Object.assign(document.createElement("button"), { type: "button", className: "seat", textContent: seat.seat_number });
  element.dataset.seat = seat.id;
  element.tabIndex = -1;
  // The number stands alone in it, as it is shown on the seat: voice control matches the visible text.
  const said = { area: area(seat.section), row: seat.row_number, number: seat.seat_number, price: won(seat.price) };
  element.setAttribute("aria-label", say(free ? "seat_free" : "seat_taken", said));
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
  else if (!isFree(seat)) return problem(say("seat_gone", { seat: named(seat) }));
  else if (chosen.size >= most) return problem(say("seats_enough", { most }));
  else chosen.set(seat.id, seat);
  element.setAttribute("aria-pressed", String(chosen.has(seat.id)));
  drawChoice();
}

/** By section, row and number, however they were picked. */
function inOrder(one, other) {
  return one.section.localeCompare(other.section) || one.row_number - other.row_number || one.seat_number - other.seat_number;
}

function drawChoice() {
  const items = [...chosen.values()].sort(inOrder).map((seat) => {
    const item = document.createElement("li");
    const what = Object.assign(document.createElement("span"), { className: "what", textContent: named(seat) });
    item.append(what, Object.assign(document.createElement("span"), { textContent: won(seat.price) }));
    return item;
  });
  part("chosen").replaceChildren(...items);
  part("none").hidden = chosen.size > 0;
  part("total-line").hidden = chosen.size === 0;
  part("count").textContent = say("seats_count", { count: chosen.size });
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
      seats: reservation.seats,
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

let heldIds = [];

function showHeld(held) {
  chosen.clear();
  part("held-number").textContent = held.number;
  const seat = ({ section, rowNumber, seatNumber }) => nameOf({ section, row: rowNumber, number: seatNumber });
  part("held-seats").replaceChildren(
    ...held.seats.map((one) => Object.assign(document.createElement("div"), { textContent: seat(one) })));
  heldIds = held.seats.map((one) => one.id ?? one.seatId);
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
  redraw();
}

async function giveBack() {
  if (!(await confirmed("release"))) return;
  part("give-back").disabled = true;
  try {
    await call("POST", `/api/reservations/${part("held").dataset.reservation}/cancel`);
    for (const id of heldIds) released.set(id, Date.now() + PLAN_AGE);
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
      seats: mine.items,
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
    showSlot(body.slotEndsAt ? Date.parse(body.slotEndsAt) : 0);
  } catch (error) {
    console.warn("the waiting room was not told", error.code);
  }
}

/** The time that is left of the slot. A browser that is not in a waiting room has none to show. */
function showSlot(ends) {
  part("slot").hidden = !ends;
  if (ends === slotEnds) return;
  slotEnds = ends;
  stopSlot();
  if (ends) stopSlot = countDown(part("slot"), ends, () => problem(say("turn_over")));
}

/** Gives the slot up, so that the next person gets in. */
async function leaveSlot() {
  if (!(await confirmed("slot"))) return;
  part("slot-leave").disabled = true;
  try {
    await call("POST", `/api/queue/leave/${event}`);
    memory("localStorage").set(leftKey(event), String(Date.now()));
    location.assign(`/events/${event}`);
  } catch (error) {
    refused(error);
    part("slot-leave").disabled = false;
  }
}

part("section").addEventListener("change", drawGrid);
part("grid").addEventListener("scroll", showMore, { passive: true });
addEventListener("resize", showMore);
part("slot-leave").addEventListener("click", leaveSlot);
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
showLife();
await resume();
look();
