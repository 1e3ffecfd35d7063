// Accounts: registration, mailed links, second factor, ending sessions.
import { VIEWS } from "./browser.mjs";
import { PASSWORD, totp } from "./server.mjs";

const form = (name) => `form[data-form="${name}"]`;
const submit = (name) => `${form(name)} button.main-action, ${form(name)} button.danger`;

export async function signUp(person, email, next = "/account") {
  const { page } = person;
  await page.goto(`/register?next=${encodeURIComponent(next)}`);
  await person.fill({ "#email": email, "#password": PASSWORD, "#name": "김민지" });
  await page.locator('[name="SERVICE"]').check();
  await page.locator('[name="PRIVACY"]').check();
  await person.press(submit("register"));
  await person.at(next);
}

export async function signIn(person, email, password = PASSWORD, next = "/account") {
  await person.page.goto(`/login?next=${encodeURIComponent(next)}`);
  await person.fill({ "#email": email, "#password": password });
  await person.press(submit("login"));
}

/** Pages without sign-in, and their messages for missing or wrong input. */
async function strangers(server, person) {
  const { page } = person;
  person.expect(400);
  await page.goto("/login");
  await person.look("login");
  await person.press(submit("login"));
  await page.waitForSelector(".field-error");
  await person.look("login-empty");
  await person.fill({ "#email": "nobody@example.com", "#password": "not the password" });
  await person.press(submit("login"));
  await page.waitForSelector(`${form("login")} [data-problem]:not([hidden])`);
  await person.look("login-wrong");
  await page.goto("/login?error=auth.trip_refused&provider=google");
  await page.waitForSelector('[role="alert"]:not([hidden])');
  await page.goto("/register");
  await person.look("register");
  await easierForms(page);
  await page.goto("/forgot-password");
  await person.look("forgot");
  for (const path of ["/reset-password", "/verify-email"]) {
    await page.goto(path);
    await page.waitForSelector('[data-step="missing"]:not([hidden])');
    await person.look(`${path.slice(1)}-incomplete`);
  }
  person.expect(404);
  await page.goto("/no-such-page");
  await person.look("not-found");
  await page.goto("/account");
  await person.at("/login");
}

/** One checkbox accepts all terms, and a typed password can be shown. */
async function easierForms(page) {
  const all = page.locator("[data-agree-all]");
  const agreed = () => page.locator("[data-agreement]:checked").count();
  await all.check();
  if ((await agreed()) !== 3) throw new Error("the checkbox for all terms does not check them all");
  await page.locator('[name="MARKETING"]').uncheck();
  if (await all.isChecked()) throw new Error("the checkbox for all terms is checked although one term is not");
  await all.check();
  await all.uncheck();
  if ((await agreed()) !== 0) throw new Error("the checkbox for all terms does not uncheck them");
  await page.locator("#password").fill("a password");
  for (const type of ["text", "password"]) {
    await page.locator(".reveal").click();
    if ((await page.getAttribute("#password", "type")) !== type) throw new Error(`the password is not shown as ${type}`);
  }
}

/** After wrong passwords the form shows the lockout time and stays disabled until then. */
async function lockedOut(server, person) {
  const { page } = person;
  const guess = { email: "guessed@example.com", password: "not the password" };
  const headers = { "content-type": "application/json" };
  for (let tries = 0; tries < 5; tries++) {
    await fetch(`${server.url}/api/auth/login`, { method: "POST", headers, body: JSON.stringify(guess) });
  }
  person.expect(429);
  await page.goto("/login");
  await person.fill({ "#email": guess.email, "#password": guess.password });
  for (let tries = 0; tries < 4; tries++) {
    const answered = page.waitForResponse((answer) => answer.url().endsWith("/api/auth/login"));
    await person.press(submit("login"));
    if ((await answered).status() === 429) break;
    await page.waitForSelector(`${form("login")} [data-problem]:not([hidden])`);
  }
  await page.waitForFunction(() => document.querySelector('form[data-form="login"] button.main-action').disabled);
  await page.waitForFunction(() => !document.querySelector('form[data-form="login"] button.main-action').disabled);
}

/** On a device that is not signed in, the link requires the password. */
async function elsewhere(person, verify) {
  const { page } = person;
  person.expect(403);
  await page.goto(verify);
  await person.press(submit("verify"));
  await page.waitForSelector(`${form("verify")} [data-problem]:not([hidden])`);
  await page.waitForSelector("[data-proof]:not([hidden])");
  await person.look("verify-email-elsewhere");
  await person.fill({ "#password": "not the password" });
  await person.press(submit("verify"));
  await page.waitForSelector(`${form("verify")} [data-problem]:not([hidden])`);
}

async function mailedLinks(server, person, other, email) {
  const { page } = person;
  const verify = await server.link(email, "/verify-email");
  // A mail scanner that opens the link does not use it up.
  for (let scan = 0; scan < 2; scan++) await fetch(verify);
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(verify);
  await person.look("verify-email");
  if (page.url().includes("token")) throw new Error(`the secret is still in the URL: ${page.url()}`);
  const token = verify.split("#token=")[1];
  if (asked.some((url) => url !== verify && url.includes(token))) throw new Error("the secret was sent to the server");
  await elsewhere(other, verify);
  await page.reload();
  await person.press(submit("verify"));
  await page.waitForSelector('[data-step="done"]:not([hidden])');
  await person.look("verify-email-done");

  await page.goto("/forgot-password");
  await person.fill({ "#email": email });
  await person.press(submit("forgot"));
  await page.waitForSelector('[data-step="done"]:not([hidden])');
  await person.look("forgot-sent");
  await page.goto(await server.link(email, "/reset-password"));
  await person.fill({ "#password": `${PASSWORD}, renewed` });
  await person.look("reset-password");
  await person.press(submit("reset"));
  await page.waitForSelector('[data-step="done"]:not([hidden])');
}

async function secondFactor(server, person, email, password) {
  const { page, browser } = person;
  await page.goto("/account");
  await person.fill({ "#enrol-password": password });
  await person.press(submit("enrol"));
  await page.waitForSelector("[data-qr] path");
  await person.look("second-factor-enrol");
  const secret = await page.locator("[data-secret]").textContent();
  const shown = await page.locator("[data-otpauth]").getAttribute("href");
  const read = await readCode(page, browser.readQr);
  if (read !== shown) throw new Error(`the QR code contains ${read} instead of ${shown}`);
  await person.fill({ "#enrol-code": totp(secret) });
  await person.press(submit("enrol-confirm"));
  await page.waitForSelector("[data-recovery]:not([hidden])");
  await person.look("recovery-codes");
  const [recovery] = await page.locator("[data-codes] li").allTextContents();
  await person.press("[data-kept]");
  await page.waitForSelector(form("second-off"));
  await person.press("[data-sign-out]");
  await person.at("/");

  await signIn(person, email, password);
  await page.waitForSelector('[data-step="second"]:not([hidden])');
  await person.look("login-second-step");
  await person.fill({ "#code": "000000" });
  await person.press(submit("second"));
  await page.waitForSelector(`${form("second")} [data-problem]:not([hidden])`);
  await person.fill({ "#code": recovery });
  await person.press(submit("second"));
  await person.at("/account");
  await person.fill({ "#off-password": password, "#off-code": totp(secret, 1) });
  await person.press(submit("second-off"));
  await page.waitForSelector(form("enrol"));
}

/** Decodes the QR code from a screenshot. */
async function readCode(page, readQr) {
  const { side, pixels } = await page.evaluate(async () => {
    const svg = document.querySelector("[data-qr] svg");
    const side = 4 * svg.viewBox.baseVal.width;
    const canvas = Object.assign(document.createElement("canvas"), { width: side, height: side });
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, side, side);
    pen.scale(4, 4);
    pen.fillStyle = "#000";
    pen.fill(new Path2D(svg.querySelector("path").getAttribute("d")));
    return { side, pixels: [...pen.getImageData(0, 0, side, side).data] };
  });
  return readQr(Uint8ClampedArray.from(pixels), side, side)?.data;
}

async function ownAccount(server, person, other, email, password) {
  const { page } = person;
  await signIn(other, email, password);
  await other.at("/account");
  await page.goto("/account");
  await person.look("account");
  await person.fill({ "#name": "Minji Kim" });
  await person.press(submit("profile"));
  await page.waitForSelector('#name[value="Minji Kim"]');
  await person.press('button[name="end"] >> nth=0');
  await page.waitForFunction(() => !document.querySelector('button[name="end"]'));
  await other.page.goto("/account");
  await other.at("/login");
  await page.locator('[name="sure"]').check();
  await person.fill({ "#close-password": password });
  await person.press(submit("close"));
  await person.at("/");
}

/** A page with an expired access token refreshes it without user action. */
async function resumed(person) {
  const cookies = await person.context.cookies();
  await person.context.clearCookies({ name: "access_token" });
  if (!cookies.some((cookie) => cookie.name === "refresh_token")) throw new Error("the browser has no refresh token");
  await person.page.goto("/account");
  await person.at("/account");
}

async function withoutScripts(browser, server, view) {
  const person = await browser.person(server, view, { javaScriptEnabled: false });
  await person.page.goto("/login");
  const told = await person.page.locator("noscript").first().textContent();
  if (!told) throw new Error("without scripts the page shows no notice");
  if (await person.page.locator(submit("login")).isEnabled()) throw new Error("without scripts the button is enabled");
  await person.context.close();
}

export async function accounts(browser, server, view) {
  const email = `minji.${view.name}@example.com`;
  const person = await browser.person(server, view);
  const other = await browser.person(server, view);
  // These journeys end sessions, and the API then refuses their tokens.
  for (const one of [person, other]) [400, 401].forEach((status) => one.expect(status));
  await strangers(server, person);
  // Run once: wrong passwords also count per network, and all journeys share one.
  if (view === VIEWS[0]) await lockedOut(server, person);
  await signUp(person, email);
  await resumed(person);
  await mailedLinks(server, person, other, email);
  const password = `${PASSWORD}, renewed`;
  await signIn(person, email, password);
  await person.at("/account");
  await secondFactor(server, person, email, password);
  await ownAccount(server, person, other, email, password);
  await person.end();
  await other.end();
  await withoutScripts(browser, server, view);
}
