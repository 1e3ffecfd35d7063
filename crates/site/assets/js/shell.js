// Runs on every page: remembers the sign-in, refreshes an expired token, and signs out.
import { SIGNED_IN, call, memory, refresh } from "./api.js";
import { explain, tell, tellNext, tellWhatWasLeft } from "./forms.js";

const known = memory("localStorage");
const tried = memory("sessionStorage");

/** Minimum time between two automatic reloads, in milliseconds. */
const AGAIN_AFTER = 60_000;

async function resume() {
  const last = Number(tried.get("urr-resumed")) || 0;
  if (!known.get(SIGNED_IN) || Date.now() - last < AGAIN_AFTER) return;
  tried.set("urr-resumed", String(Date.now()));
  try {
    await refresh();
    location.reload();
  } catch (refused) {
    if (refused.status >= 400 && refused.status < 500 && refused.status !== 429) known.forget(SIGNED_IN);
  }
}

async function signOut(button) {
  button.disabled = true;
  try {
    await call("POST", "/api/auth/logout");
    known.forget(SIGNED_IN);
    tellNext("signed_out");
    location.assign("/");
  } catch (error) {
    tell(explain(error));
    button.disabled = false;
  }
}

tellWhatWasLeft();
if (document.body.dataset.signedIn !== undefined) {
  known.set(SIGNED_IN, "1");
} else {
  resume();
}
for (const button of document.querySelectorAll("[data-sign-out]")) {
  button.hidden = false;
  button.addEventListener("click", () => signOut(button));
}
