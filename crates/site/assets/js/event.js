// One event: the countdown to its sale.
import { memory } from "./api.js";
import { countDown } from "./clock.js";

// The site waiting room knows an id alone. Its page shows the title that this browser has seen.
const shown = document.querySelector("[data-event]");
memory("localStorage").set(`urr-title-${shown.dataset.event}`, shown.dataset.title);

for (const element of document.querySelectorAll("[data-countdown]")) {
  // The page is made by the server's clock, which may be a moment behind: a little later it has certainly opened.
  countDown(element, Date.parse(element.dataset.countdown), () => setTimeout(() => location.reload(), 500));
}
