// Figures as they come: a stream of events, and a question every two seconds for as long as there is none.
import { call } from "./api.js";
import { serverNow } from "./clock.js";

const ASK_EVERY = 2_000;
/** A stream begins at once and says something every second. Whoever hears nothing for this long asks. */
const SILENCE = 4_000;
/** How long the stream is left alone after it was refused. */
const STREAM_AGAIN = 10_000;

/**
 * Follows `stream`, and asks `path` while that does not work. `take(sample)` gets every sample of the stream in order and none twice;
 * where a question was answered instead, `sample.asked` is true. `gone()` is called once if this installation has no such part.
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
    // A broken connection is tried again by the browser; one that was refused is not.
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

  /** One answer, as a sample: what happened in between is not known. */
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

  // A browser has few connections for one site: a page that nobody sees keeps none. The stream tells the last minutes again.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hangUp();
    else if (isThere && !source) listen();
  });
  look();
}
