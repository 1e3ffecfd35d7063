// One event: the countdown to its sale.
import { countDown } from "./clock.js";

for (const element of document.querySelectorAll("[data-countdown]")) {
  // The page is made by the server's clock, which may be a moment behind: a little later it has certainly opened.
  countDown(element, Date.parse(element.dataset.countdown), () => setTimeout(() => location.reload(), 500));
}
