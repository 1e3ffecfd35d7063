#!/usr/bin/env node
// Tests the pages of the running binary in Chromium: phone and desktop, Korean and English, light
// and dark.
//
//   check_pages.mjs prepare TOOLS       installs npm packages into TOOLS, and Chromium with apt as root
//   check_pages.mjs run TOOLS BINARY    starts BINARY on temporary files and runs every journey;
//                                       screenshots go to TOOLS/pictures
//
// It fails on a script error, on a page wider than its screen, and on any finding of axe.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { accounts } from "./pages/accounts.mjs";
import { Browser, VIEWS } from "./pages/browser.mjs";
import { control } from "./pages/control.mjs";
import { front } from "./pages/front.mjs";
import { hitches } from "./pages/hitches.mjs";
import { patience } from "./pages/patience.mjs";
import { sale } from "./pages/sale.mjs";
import { Server } from "./pages/server.mjs";

// The newest versions that were tested.
const PACKAGES = ["playwright-core@1.65.0", "axe-core@4.14.0", "jsqr@1.4.0"];

// Debian's Chromium, and fonts for Korean.
const DEBIAN = ["chromium", "fonts-nanum"];

const JOURNEYS = { accounts, sale, front, hitches, patience, control };

function chromium() {
  const places = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  return places.find((place) => place && existsSync(place));
}

function must(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { stdio: ["ignore", "inherit", "inherit"], ...options });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? `ended with ${status}`}`);
}

function prepare(tools) {
  if (!chromium()) {
    if (process.getuid() !== 0) throw new Error(`Chromium is missing: run \`sudo apt-get install ${DEBIAN.join(" ")}\``);
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    must("apt-get", ["update"], { env });
    must("apt-get", ["install", "-y", "--no-install-recommends", ...DEBIAN], { env });
  }
  const done = join(tools, `installed-${PACKAGES.join("-")}`);
  if (existsSync(done)) return;
  rmSync(tools, { recursive: true, force: true });
  mkdirSync(tools, { recursive: true });
  writeFileSync(join(tools, "package.json"), '{ "private": true }\n');
  must("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", ...PACKAGES], { cwd: tools });
  writeFileSync(done, "");
}

// Journeys wait for timers of the pages more than they compute, so two run at once, each in its own
// browser against its own server.
const WORKERS = 2;

async function run(tools, binary, only) {
  const shots = join(tools, "pictures");
  const jobs = Object.entries(JOURNEYS).flatMap(([name, journey]) => VIEWS.map((view) => ({ name, journey, view })));
  const queue = jobs.filter(({ name, view }) => !only || `${name}.${view.name}`.includes(only));
  let failed = 0;
  async function work() {
    const browser = await Browser.start(tools, chromium(), shots);
    const server = await Server.start(binary);
    for (let job = queue.shift(); job; job = queue.shift()) {
      const { name, journey, view } = job;
      const began = Date.now();
      try {
        await journey(browser, server, view);
        console.log(`${name}, ${view.name}: passed in ${((Date.now() - began) / 1000).toFixed(1)} s`);
      } catch (error) {
        failed += 1;
        console.log(`${name}, ${view.name}: FAILED\n${error.stack}`);
      }
    }
    await browser.stop();
    await server.stop();
  }
  await Promise.all(Array.from({ length: Math.min(WORKERS, queue.length) }, work));
  console.log(`pictures are in ${shots}`);
  return failed;
}

const [what, tools, binary, only] = process.argv.slice(2);
if (what === "prepare" && tools) prepare(resolve(tools));
else if (what === "run" && binary) process.exit((await run(resolve(tools), resolve(binary), only)) ? 1 : 0);
else {
  console.log("check_pages.mjs prepare TOOLS | run TOOLS BINARY [JOURNEY.VIEW]");
  process.exit(2);
}
