// Countdowns by the server's clock, because the device's clock may be wrong.
import { call } from "./api.js";
import { say } from "./texts.js";

let ahead = null;

/** How far this device's clock is ahead of the server's, in milliseconds. */
async function skew() {
  const asked = Date.now();
  const { body } = await call("GET", "/api/time");
  const now = Date.now();
  return (asked + now) / 2 - Date.parse(body.time);
}

/** The server's time. Without a response, the time of this device. */
export async function serverNow() {
  ahead ??= skew().catch(() => 0);
  return Date.now() - (await ahead);
}

/** A remaining time: `1일 2시간 3분`, `4:05`. */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1_000));
  const [days, hours] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3_600) % 24];
  const [minutes, rest] = [Math.floor(seconds / 60) % 60, String(seconds % 60).padStart(2, "0")];
  if (days > 0) return say("span_days", { days, hours });
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Rounds a duration, coarser the longer it is: `7 min`, `35 min`, `1 h 30 min`, `3 days`. */
function roughly(seconds, round) {
  if (seconds < 10 * MINUTE) return say("time_minutes", { minutes: Math.max(1, round(seconds / MINUTE)) });
  if (seconds <= 55 * MINUTE) return say("time_minutes", { minutes: 5 * round(seconds / MINUTE / 5) });
  if (seconds >= 2 * DAY) return say("time_days", { days: round(seconds / DAY) });
  const halves = Math.max(2, round(seconds / HOUR * 2));
  return say(halves % 2 && halves < 12 ? "time_hours_half" : "time_hours", { hours: Math.floor(halves / 2) });
}

/** A wait of `low` to `high` seconds. */
export function waitText(low, high) {
  if (high <= MINUTE) return say("wait_soon");
  const [least, most] = [roughly(Math.max(MINUTE, low), Math.floor), roughly(high, Math.ceil)];
  return least === most ? say("wait_about", { time: most }) : say("wait_range", { least, most });
}

/**
 * Counts down in an element's `[data-left]` and calls `then` at the end. Returns a function that
 * stops it.
 */
export function countDown(element, until, then) {
  const left = element.querySelector("[data-left]");
  let timer = 0;
  const tick = async () => {
    const rest = until - (await serverNow());
    left.textContent = span(rest);
    if (rest > 0) timer = setTimeout(tick, rest % 1_000 || 1_000);
    else then();
  };
  tick();
  return () => clearTimeout(timer);
}
