// The event page: the countdown to its sale.
import { memory } from "./api.js";
import { countDown } from "./clock.js";

// The site waiting room only knows the event's id. Its page shows the title that is stored here.
const shown = document.querySelector("[data-event]");
memory("localStorage").set(`urr-title-${shown.dataset.event}`, shown.dataset.title);

for (const element of document.querySelectorAll("[data-countdown]")) {
  // The server renders by its own clock; wait a little so that the sale is certainly open.
  countDown(element, Date.parse(element.dataset.countdown), () => setTimeout(() => location.reload(), 500));
}
