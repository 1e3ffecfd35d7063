// The site waiting room (Tier 1), with scripts and entirely without.
import { signUp } from "./accounts.mjs";
import { ADMIN, PASSWORD, until } from "./server.mjs";

/** Joins as a visitor without a browser. Returns a function that requests the pass. */
export async function stranger(server, event) {
  const answer = await fetch(`${server.url}/vwr-api/vwr/assign/${event}`, { method: "POST" });
  if (!answer.ok) throw new Error(`joining Tier 1 failed with status ${answer.status}`);
  const cookie = answer.headers.getSetCookie().map((line) => line.split(";")[0]).join("; ");
  const { requestId } = await answer.json();
  return async () => {
    const turn = await fetch(`${server.url}/vwr-api/vwr/check/${event}/${requestId}`, { headers: { cookie } });
    return (await turn.json()).token;
  };
}

/** Whether visitors of an event have to wait, according to the guard of the pages. */
export async function guarded(server, event) {
  const answer = await fetch(`${server.url}/queue/${event}`, { redirect: "manual" });
  return answer.headers.get("location")?.startsWith("/vwr/") ?? false;
}

/** The page with visitors ahead: it updates by itself, and moves on when admitted. */
async function withScripts(browser, server, view, event, operate) {
  const person = await browser.person(server, view);
  const { page } = person;
  person.expect(404);
  await page.goto(`/queue/${event}`);
  await person.at(`/vwr/${event}`);
  await page.waitForFunction(() => Number(document.getElementById("count").textContent) > 0);
  const lang = view.locale.slice(0, 2);
  if ((await page.getAttribute("html", "lang")) !== lang) throw new Error(`the page is not in ${lang}`);
  await person.look("front-waiting");
  await page.waitForFunction(() => /\d/.test(document.title));
  if (!(await page.isVisible("#ask"))) throw new Error("the page does not ask the visitor to sign in");
  if (!(await page.locator("#turn").textContent()).includes("10")) throw new Error("the page does not say how long a turn lasts");
  await otherLanguage(person, event);
  const before = await page.locator("#count").textContent();
  await operate("resume");
  await page.waitForFunction((before) => document.getElementById("count").textContent !== before, before);
  await operate("pause");
  await operate("advance", { batchSize: 1_000 });
  // The visitor is not signed in, so Tier 2 redirects to sign-in.
  await person.at("/login", 30_000);
  await person.end();
}

/** The site and its waiting room share the chosen language, in both directions. */
async function otherLanguage(person, event) {
  const { page } = person;
  const [own, other] = person.view.locale.startsWith("ko") ? ["ko", "en"] : ["en", "ko"];
  const tab = await person.tab();
  const { title } = await tab.request.get(`/api/events/${event}`).then((answer) => answer.json()).then((body) => body.event ?? body);
  await tab.goto(`/events/${event}?lang=${other}`);
  await tab.goto(`/vwr/${event}`);
  if ((await tab.getAttribute("html", "lang")) !== other) throw new Error(`the site is in ${other}, and its waiting room is not`);
  await tab.waitForFunction((title) => document.title.includes(title), title);
  await tab.locator("#language").click();
  await tab.goto(`/events/${event}`);
  if ((await tab.getAttribute("html", "lang")) !== own) throw new Error(`the waiting room is in ${own}, and the site is not`);
  await tab.close();
}

/** The page without its automatic reload, which would interrupt the checks. */
async function stillPicture(browser, server, view, html) {
  const refresh = /<meta http-equiv="refresh" content="\d+">/;
  if (!refresh.test(html)) throw new Error("the page does not reload itself");
  const viewer = await browser.person(server, view);
  await viewer.page.setContent(html.replace(refresh, ""));
  await viewer.look("front-plain");
  await viewer.end();
}

/**
 * From the first page to the seats without scripts: the waiting page reloads itself until admitted.
 */
async function withoutScripts(browser, server, view, event, operate) {
  const before = await browser.person(server, view);
  await signUp(before, `plain.${view.name}@example.com`, "/");
  const storageState = await before.context.storageState();
  await before.end();
  const person = await browser.person(server, view, { javaScriptEnabled: false, storageState });
  const { page } = person;
  await page.goto(`/queue/${event}`);
  await page.waitForURL((url) => url.pathname === `/vwr/${event}` && url.searchParams.has("plain"));
  const place = () => page.locator("dd").first().textContent();
  const mine = await place();
  if (!(Number(mine) > 0)) throw new Error(`no position was given: ${mine}`);
  await stillPicture(browser, server, view, await page.content());
  await page.reload();
  if ((await place()) !== mine) throw new Error("the position changed after a reload");
  await operate("advance", { batchSize: 1_000 });
  await person.at(`/queue/${event}`, 30_000);
  if (!(await page.locator("noscript .notice").isVisible())) throw new Error("Tier 2 does not say that it needs scripts");
  const seats = await page.goto(`/events/${event}/seats`);
  if (seats.status() !== 200 || !page.url().endsWith("/seats")) throw new Error(`the seats are not reached: ${page.url()}`);
  await person.end();
}

export async function front(browser, server, view) {
  const { events } = await server.ask("/api/events?status=on_sale&limit=10");
  const event = events.find((event) => event.seat_layout_id ?? event.seatLayoutId).id;
  const { token } = await server.ask("/api/auth/login", { email: ADMIN, password: PASSWORD });
  const operate = (what, body = {}) => server.ask(`/api/admin/vwr/${what}/${event}`, body, token);
  await operate("activate", { rate: 2 });
  await operate("pause");
  try {
    await until("the site waiting room", () => guarded(server, event));
    for (let number = 0; number < 40; number++) await stranger(server, event);
    await withScripts(browser, server, view, event, operate);
    await withoutScripts(browser, server, view, event, operate);
  } finally {
    await operate("deactivate");
    await until("the end of the site waiting room", async () => !(await guarded(server, event)));
  }
}
