// Requests to the API. Cookies carry who asks; nothing here ever sees a token of theirs.

/** No answer within this time is no answer. */
const PATIENCE = 15_000;

/** The API said no, or nothing. `code` is that of the error body, or `network`. */
export class Refused extends Error {
  constructor(code, status = 0, body = {}) {
    super(code);
    this.code = code;
    this.status = status;
    this.body = body;
  }

  /** When asking again makes sense, in seconds. */
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
  // A response that was cut off on the way is not a success: what it would have said is missing.
  if (read === null) throw new Refused("network");
  return { status: answer.status, body: read };
}

/** The JSON of a body; an empty one is an empty object, and `null` stands for one that cannot be read. */
function parse(text) {
  try {
    return text ? JSON.parse(text) : {};
  } catch {
    return null;
  }
}

/** An access token lives for an hour. Whoever is still here then gets a new one, once for all tabs at a time. */
export function refresh() {
  const ask = () => send("POST", "/api/auth/refresh");
  return navigator.locks ? navigator.locks.request("urr-refresh", ask) : ask();
}

/** Asks the API; a session whose token ran out is refreshed first. */
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

/** A place to remember small things in. Browsers that forbid it forget. */
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

/** What opens the sale of an event, as this tab was last told. Whoever is inside at two events has the cookie of the later one alone. */
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

/** Whether somebody was signed in on this browser, so that it is worth asking for a new token. */
export const SIGNED_IN = "urr-signed-in";
