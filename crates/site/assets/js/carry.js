// The first thing a page loads whose address may carry a secret behind its `#`. It puts the secret where only this entry of the
// browser's history has it, so that a reload keeps it, and takes it out of the address before anything else is asked for.
"use strict";

(() => {
  const NAMES = ["token", "challenge"];

  function take() {
    const behind = new URLSearchParams(location.hash.slice(1));
    const carried = Object.fromEntries(NAMES.filter((name) => behind.has(name)).map((name) => [name, behind.get(name)]));
    if (Object.keys(carried).length === 0) return false;
    history.replaceState({ carried }, "", location.pathname + location.search);
    return true;
  }

  take();
  // Another link was opened in the same tab: only the part behind the `#` changed, so nothing was loaded.
  addEventListener("hashchange", () => {
    if (take()) location.reload();
  });
})();
