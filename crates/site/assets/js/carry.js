// The first script of a page whose URL may contain a secret after `#`. It moves the secret to the
// state of this history entry, where a reload finds it, before anything else is loaded.
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
  // Another link was opened in the same tab: only the fragment changed, so nothing was loaded.
  addEventListener("hashchange", () => {
    if (take()) location.reload();
  });
})();
