// Live figures: a stream of server-sent events, and polling every two seconds without one.
import { call } from "./api.js";
import { serverNow } from "./clock.js";

const ASK_EVERY = 2_000;
/** A stream sends every second. After this silence, in milliseconds, poll instead. */
const SILENCE = 4_000;
/** Pause before the next attempt after a stream was refused. */
const STREAM_AGAIN = 10_000;

/**
 * Follows `stream`, and polls `path` while that fails. `take(sample)` gets every sample once and in
 * order; `sample.asked` is true for polled ones. `gone()` is called once if this installation has
 * no such room.
 */
export function follow({ stream, path, take, gone }) {
  let source = null;
  let heard = 0;
  let last = 0;
  let streamAfter = 0;
  let isThere = true;

  const listen = () => {
    heard = performance.now();
    source = new EventSource(stream);
    source.onmessage = ({ data }) => {
      heard = performance.now();
      const sample = JSON.parse(data);
      const at = Date.parse(sample.at);
      if (at > last) take({ ...sample, at });
      last = Math.max(last, at);
    };
    // The browser retries a broken connection, but not a refused one.
    source.onerror = () => {
      if (source?.readyState !== EventSource.CLOSED) return;
      hangUp(STREAM_AGAIN);
      ask();
    };
  };

  const hangUp = (pause = 0) => {
    source?.close();
    source = null;
    heard = 0;
    streamAfter = performance.now() + pause;
  };

  /** Polls one sample. Changes since the previous one are unknown. */
  const ask = async () => {
    const answered = async (room) => take({ at: await serverNow(), room, reachable: true, asked: true });
    try {
      await answered((await call("GET", path)).body);
    } catch (error) {
      if (error.code === "gateway.no_such_service") {
        isThere = false;
        hangUp();
        gone();
      } else if (error.status === 404) await answered(null);
      else if (error.status === 401 || error.status === 403) location.reload();
    }
  };

  const look = async () => {
    if (!isThere) return;
    if (!document.hidden) {
      if (!source && performance.now() >= streamAfter) listen();
      if (performance.now() - heard > SILENCE) await ask();
    }
    setTimeout(look, ASK_EVERY);
  };

  // Browsers limit connections per site, so a hidden page closes its stream. The stream repeats the
  // last minutes when it is opened again.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hangUp();
    else if (isThere && !source) listen();
  });
  look();
}
