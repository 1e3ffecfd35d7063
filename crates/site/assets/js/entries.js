// The waiting rooms this user has entered, each with a button to leave it.
import { call } from "./api.js";
import { explain } from "./forms.js";
import { say } from "./texts.js";

const make = (tag, className, textContent) => Object.assign(document.createElement(tag), { className, textContent });

/**
 * Storage key that is set when the user leaves an event's queue, so that other tabs do not join it
 * again.
 */
export const leftKey = (event) => `urr-left-${event}`;

function row(entry, leave) {
  const title = entry.eventInfo?.title ?? say("entry_unknown");
  const link = make("a", "", title);
  link.href = `/queue/${entry.eventId}`;
  const what = make("div", "what", "");
  what.append(link, make("p", "small soft", say(entry.status === "active" ? "entry_active" : "entry_waiting")));
  const button = Object.assign(make("button", "button small", say("entry_leave")), { type: "button", ariaLabel: `${say("entry_leave")}: ${title}` });
  button.addEventListener("click", () => leave(entry, button));
  const item = document.createElement("li");
  item.append(what, button);
  return item;
}

/**
 * Lists the user's entries except that of `besides`. `problem(text)` shows errors; `changed()` is
 * called after leaving.
 */
export async function showEntries(root, { besides = null, problem, changed = () => {} }) {
  const list = root.querySelector("[data-entries]");
  const leave = async (entry, button) => {
    button.disabled = true;
    try {
      await call("POST", `/api/queue/leave/${entry.eventId}`);
      try {
        localStorage.setItem(leftKey(entry.eventId), String(Date.now()));
      } catch {
        // Without storage other tabs cannot be notified.
      }
      await showEntries(root, { besides, problem, changed });
      changed();
    } catch (error) {
      problem(explain(error));
      button.disabled = false;
    }
  };
  try {
    const { body } = await call("GET", "/api/queue/my");
    const others = body.entries.filter((entry) => entry.eventId !== besides);
    list.replaceChildren(...others.map((entry) => row(entry, leave)));
    for (const none of root.querySelectorAll("[data-no-entries]")) none.hidden = others.length > 0;
    root.hidden = false;
  } catch (error) {
    // An installation without waiting rooms has no entries.
    if (error.code !== "gateway.no_such_service") problem(explain(error));
  }
}
