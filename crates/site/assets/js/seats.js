// Seat selection. It shows one section at a time, so that large venues are as fast as small ones.
import { call, entry, memory } from "./api.js";
import { countDown } from "./clock.js";
import { confirmed } from "./dialogs.js";
import { leftKey } from "./entries.js";
import { explain } from "./forms.js";
import { count, say, won } from "./texts.js";

/** Poll interval of the seat map, in milliseconds. An unchanged version is not redrawn. */
const LOOK_AGAIN = 4_000;
/**
 * Interval of heartbeats, in milliseconds: a slot ends after ten minutes without a request, and so
 * does an entry token.
 */
const SIGN_OF_LIFE = 60_000;
/** Maximum age of the seat map in milliseconds. Seats released within it are shown as free. */
const PLAN_AGE = 3_000;

const root = document.querySelector("[data-seats]");
const event = root.dataset.seats;
const most = Number(root.dataset.each);
const part = (name) => root.querySelector(`[data-${name}]`);

const chosen = new Map();
let seats = [];
let version = null;
/** Whether the last update of the seat map failed. */
let stale = false;
/** Idempotency key of the current hold; `null` once it is answered or another one is started. */
let key = null;
let stopCountdown = () => {};
/** When the slot ends, as last reported by the waiting room. */
let slotEnds = 0;
let stopSlot = () => {};
/** Seats that this page released, each with the time until which it counts as free. */
const released = new Map();

const pass = entry(event);

/** Shows an error next to the button that caused it: with the selection, or with the held seats. */
function problem(text) {
  for (const notice of root.querySelectorAll("[data-problem]")) {
    const shown = text && !notice.closest("section, aside").hidden;
    // Screen readers would read the same text again.
    if (notice.textContent !== (shown ? text : "")) notice.textContent = shown ? text : "";
    notice.hidden = !shown;
  }
}

/** A section within a seat's name: `VIP석`, `VIP`. */
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

/** Reports that the seat map is outdated. The selection stays. */
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
  // While the result of a hold is unknown its seats may look taken; a retry with the key resolves
  // that.
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

/** The section whose plan is scrolled to its middle. */
let centred = null;

/** The best seats are in the middle of a row, so a wide plan starts there. */
function centre() {
  const grid = part("grid");
  centred = part("section").value;
  grid.scrollLeft = (grid.scrollWidth - grid.clientWidth) / 2;
  grid.scrollTop = 0;
}

/** Shows on which sides there are more seats. */
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
  // The number is a separate word, as on the seat: voice control matches the visible text.
  const said = { area: area(seat.section), row: seat.row_number, number: seat.seat_number, price: won(seat.price) };
  element.setAttribute("aria-label", say(free ? "seat_free" : "seat_taken", said));
  element.setAttribute("aria-pressed", String(chosen.has(seat.id)));
  if (!free) element.setAttribute("aria-disabled", "true");
  return element;
}

/** Roving tabindex: Tab reaches one seat, arrow keys the others. */
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

/** By section, row and number, independent of the order of selection. */
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
  // A retry after a lost response uses the same key and gets the same result.
  key ??= crypto.randomUUID();
  try {
    const body = { eventId: event, seatIds: [...chosen.keys()], idempotencyKey: key };
    const answer = await call("POST", "/api/seats/reserve", body, pass.headers());
    const { reservation } = answer.body;
    // The hold succeeded earlier and was cancelled since, on another page.
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
    // Only an error of `tickets` is a final result. After any other error the seats may still be
    // held.
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

/** Restores the hold after a reload. */
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
    console.warn("cannot load the user's held seats", error.code);
  }
}

/**
 * Heartbeat: extends the slot and renews the entry token, which also bypasses a site waiting room
 * opened later.
 */
async function showLife() {
  try {
    const { body } = await call("GET", `/api/queue/status/${event}`);
    pass.keep(body.entryToken);
    showSlot(body.slotEndsAt ? Date.parse(body.slotEndsAt) : 0);
  } catch (error) {
    console.warn("heartbeat to the waiting room failed", error.code);
  }
}

/** Shows the time left of the slot. Without a waiting room there is none. */
function showSlot(ends) {
  part("slot").hidden = !ends;
  if (ends === slotEnds) return;
  slotEnds = ends;
  stopSlot();
  if (ends) stopSlot = countDown(part("slot"), ends, () => problem(say("turn_over")));
}

/** Gives up the slot, so that another user is admitted. */
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
