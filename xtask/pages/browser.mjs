// A real Chromium that notices what a person would: a script that failed, a resource that is missing, a page that is wider than the
// screen, and everything axe finds.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

/** Screens and languages that every journey is made with. */
export const VIEWS = [
  { name: "phone-ko", width: 375, height: 812, locale: "ko-KR", scheme: "light" },
  { name: "desk-en", width: 1280, height: 900, locale: "en-US", scheme: "light" },
  { name: "phone-en-dark", width: 375, height: 812, locale: "en-US", scheme: "dark" },
  { name: "desk-ko-dark", width: 1280, height: 900, locale: "ko-KR", scheme: "dark" },
];

/** Nothing on a page takes longer than this. */
const PATIENCE = 10_000;

export class Browser {
  static async start(tools, executable, shots) {
    const require = createRequire(join(tools, "index.js"));
    const { chromium } = require("playwright-core");
    // Containers have no user namespaces for its sandbox and little shared memory; it loads our own pages alone.
    const args = ["--no-sandbox", "--disable-dev-shm-usage"];
    const chrome = await chromium.launch({ executablePath: executable, args });
    const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
    mkdirSync(shots, { recursive: true });
    return new Browser(chrome, axe, shots, require("jsqr"));
  }

  constructor(chrome, axe, shots, readQr) {
    Object.assign(this, { chrome, axe, shots, readQr });
  }

  /** A person with a screen and a language, and no past. */
  async person(server, view, options = {}) {
    const context = await this.chrome.newContext({
      baseURL: server.url,
      viewport: { width: view.width, height: view.height },
      locale: view.locale,
      colorScheme: view.scheme,
      hasTouch: view.width < 600,
      reducedMotion: "reduce",
      ...options,
    });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    return new Person(this, view, context, page);
  }

  stop() {
    return this.chrome.close();
  }
}

class Person {
  constructor(browser, view, context, page) {
    Object.assign(this, { browser, view, context, page, troubles: [], expected: [] });
    this.watch(page);
  }

  /** Another tab of the same browser. */
  async tab() {
    const page = await this.context.newPage();
    this.watch(page);
    return page;
  }

  watch(page) {
    page.on("pageerror", (error) => this.troubles.push(`a script failed: ${error.message}`));
    page.on("console", (message) => {
      // Chromium reports every 4xx as an error; those that a journey is about are named by it.
      const text = message.text();
      if (message.type() === "error" && !this.expected.some((part) => text.includes(part))) this.troubles.push(`console: ${text}`);
    });
  }

  /** The API will say no with this status, and that is what the journey is about. */
  expect(status) {
    this.expected.push(`status of ${status}`);
  }

  /** Looks at the page as it is now: a picture, axe, and whether it fits the screen. A page that listens to a stream never finishes
   * loading: then `network` is false. */
  async look(name, { network = true } = {}) {
    const { page, view } = this;
    if (network) await page.waitForLoadState("networkidle");
    await page.screenshot({ path: join(this.browser.shots, `${name}.${view.name}.png`), fullPage: true });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) this.troubles.push(`${name} is ${wide} px wider than the screen`);
    await page.evaluate(this.browser.axe);
    const found = await page.evaluate(() => window.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    for (const { id, help, nodes } of found.violations) {
      this.troubles.push(`${name}: axe ${id}: ${help}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
    }
  }

  /** Presses what has this text or selector, as a finger or a mouse does. */
  press(selector) {
    return this.page.locator(selector).click();
  }

  fill(fields) {
    return Object.entries(fields).reduce(
      (before, [selector, value]) => before.then(() => this.page.locator(selector).fill(value)),
      Promise.resolve(),
    );
  }

  async at(path, timeout = PATIENCE) {
    await this.page.waitForURL((url) => url.pathname === path, { timeout });
  }

  /** Leaves. Whatever was noticed on the way is told now, all of it. */
  async end() {
    await this.context.close();
    if (this.troubles.length) throw new Error(`this was noticed:\n  ${this.troubles.join("\n  ")}`);
  }
}
