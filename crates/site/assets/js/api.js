// Requests to the API. The browser sends tokens as cookies; scripts never see them.

/** Request timeout in milliseconds. */
const PATIENCE = 15_000;

/** An error response, or none. `code` is that of the error body, or `network`. */
export class Refused extends Error {
  constructor(code, status = 0, body = {}) {
    super(code);
    this.code = code;
    this.status = status;
    this.body = body;
  }

  /** Seconds after which a retry makes sense. */
  get retryAfter() {
    return Number(this.body.retryAfter) || 0;
  }
}

async function send(method, path, body, headers) {
  const init = { method, headers: { accept: "application/json", ...headers }, signal: AbortSignal.timeout(PATIENCE) };
  if (body !== undefined) {
    init.headers["content-type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, init);
  } catch {
    throw new Refused("network");
  }
  const read = await answer.text().then(parse, () => null);
  if (!answer.ok) throw new Refused(read?.code ?? "other", answer.status, read ?? {});
  // A truncated response is not a success: its content is missing.
  if (read === null) throw new Refused("network");
  return { status: answer.status, body: read };
}

/** The JSON of a body: an empty object for an empty body, `null` for a malformed one. */
function parse(text) {
  try {
    return text ? JSON.parse(text) : {};
  } catch {
    return null;
  }
}

/** Gets a new access token, which is valid for an hour. Only one tab at a time refreshes. */
export function refresh() {
  const ask = () => send("POST", "/api/auth/refresh");
  return navigator.locks ? navigator.locks.request("urr-refresh", ask) : ask();
}

/** Calls the API; refreshes the session and retries if the access token has expired. */
export async function call(method, path, body, headers = {}) {
  try {
    return await send(method, path, body, headers);
  } catch (refused) {
    if (refused.status !== 401 || path.startsWith("/api/auth/login")) throw refused;
    try {
      await refresh();
    } catch (reason) {
      throw reason.code === "network" ? reason : refused;
    }
    return send(method, path, body, headers);
  }
}

/** Browser storage for small values. If the browser forbids it, nothing is stored. */
export function memory(kind) {
  const attempt = (act) => {
    try {
      return act(window[kind]);
    } catch {
      return null;
    }
  };
  return {
    get: (key) => attempt((store) => store.getItem(key)),
    set: (key, value) => attempt((store) => store.setItem(key, value)),
    forget: (key) => attempt((store) => store.removeItem(key)),
  };
}

/**
 * The entry token of an event, as last received in this tab. The cookie only has that of the last
 * event entered.
 */
export function entry(event) {
  const [store, key] = [memory("sessionStorage"), `urr-entry-${event}`];
  return {
    keep: (token) => token && store.set(key, token),
    headers: () => {
      const token = store.get(key);
      return token ? { "x-queue-entry-token": token } : {};
    },
  };
}

/** Set while a user is signed in on this browser: only then is a refresh worth a request. */
export const SIGNED_IN = "urr-signed-in";
