// A Chromium that reports script errors, missing resources, pages wider than the screen, and all
// findings of axe.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

/** Screens and languages with which every journey runs. */
export const VIEWS = [
  { name: "phone-ko", width: 375, height: 812, locale: "ko-KR", scheme: "light" },
  { name: "desk-en", width: 1280, height: 900, locale: "en-US", scheme: "light" },
  { name: "phone-en-dark", width: 375, height: 812, locale: "en-US", scheme: "dark" },
  { name: "desk-ko-dark", width: 1280, height: 900, locale: "ko-KR", scheme: "dark" },
];

/** Time limit of one step, in milliseconds. */
const PATIENCE = 20_000;

export class Browser {
  static async start(tools, executable, shots) {
    const require = createRequire(join(tools, "index.js"));
    const { chromium } = require("playwright-core");
    // Containers have no user namespaces for the sandbox and little shared memory. Only our pages
    // are loaded.
    const args = ["--no-sandbox", "--disable-dev-shm-usage"];
    const chrome = await chromium.launch({ executablePath: executable, args });
    const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
    mkdirSync(shots, { recursive: true });
    return new Browser(chrome, axe, shots, require("jsqr"));
  }

  constructor(chrome, axe, shots, readQr) {
    Object.assign(this, { chrome, axe, shots, readQr });
  }

  /** A new browser context with a screen and a language. */
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
      // Chromium reports every 4xx response as an error; journeys declare those they expect.
      const text = message.text();
      if (message.type() === "error" && !this.expected.some((part) => text.includes(part))) this.troubles.push(`console: ${text}`);
    });
  }

  /** Declares that the API will return this status. */
  expect(status) {
    this.expected.push(`status of ${status}`);
  }

  /**
   * Checks the page in its current state: screenshot, axe, width. Pass `network: false` for a page
   * that listens to a stream, because it never finishes loading.
   */
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

  /** Clicks or taps the element with this text or selector. */
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

  /** Closes the page and throws all errors noticed on the way. */
  async end() {
    await this.context.close();
    if (this.troubles.length) throw new Error(`errors on the way:\n  ${this.troubles.join("\n  ")}`);
  }
}
