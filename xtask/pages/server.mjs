// The binary on temporary files, and a user's mailbox and authenticator app.
import { execFile, spawn } from "node:child_process";
import { createHmac, randomUUID } from "node:crypto";
import { mkdtempSync, openSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

export const PASSWORD = "correct horse battery staple";
export const ADMIN = "boss@example.com";

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** Polls until `find` returns something. */
export async function until(what, find, seconds = 20) {
  for (let tries = 0; tries < seconds * 10; tries++) {
    const found = await find();
    if (found) return found;
    await sleep(100);
  }
  throw new Error(`${what} did not happen within ${seconds} s`);
}

export class Server {
  static async start(binary, settings = {}) {
    const folder = mkdtempSync(join(tmpdir(), "urr-pages-"));
    const port = await freePort();
    // All journeys share one address, so rate limits are off.
    const all = { "limits.enabled": "false", "admin.email": ADMIN, "admin.password": PASSWORD, ...settings };
    const flags = Object.entries(all).flatMap(([name, value]) => ["--set", `${name}=${value}`]);
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("URR_")));
    const log = openSync(join(folder, "log"), "w");
    const address = `127.0.0.1:${port}`;
    const args = ["serve", "--listen", address, "--data-dir", join(folder, "data"), ...flags];
    const child = spawn(binary, args, { env, stdio: ["ignore", log, log] });
    const server = new Server(folder, `http://${address}`, child, env);
    const isReady = () => fetch(`${server.url}/health/ready`).then((answer) => answer.ok, () => false);
    await until("the server start", () => {
      if (child.exitCode !== null) throw new Error(`the binary ended:\n${server.log()}`);
      return isReady();
    });
    return server;
  }

  constructor(folder, url, child, env) {
    Object.assign(this, { folder, url, child, env });
  }

  log() {
    return readFileSync(join(this.folder, "log"), "utf8");
  }

  get binary() {
    return this.child.spawnfile;
  }

  /** The newest mail to an address that has a link to this page. */
  async link(to, page) {
    const mailbox = join(this.folder, "data", "mail");
    return until(`a mail to ${to}`, () => {
      let names = [];
      try {
        names = readdirSync(mailbox).sort().reverse();
      } catch {
        return null;
      }
      const texts = names.map((name) => readFileSync(join(mailbox, name), "utf8"));
      const mail = texts.find((text) => text.startsWith(`To: ${to}\r\n`) && text.includes(`${page}#token=`));
      return mail?.match(/https?:\S+#token=\S+/)?.[0];
    });
  }

  async ask(path, body, token) {
    const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
    const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    const answer = await fetch(this.url + path, init);
    const read = await answer.json();
    if (!answer.ok) throw new Error(`${path}: ${JSON.stringify(read)}`);
    return read;
  }

  /** Tokens of signed-in users, without the cost of password hashing. */
  async fans(count) {
    const one = async () => {
      const args = ["token", "--user", randomUUID(), "--role", "user", "--data-dir", join(this.folder, "data")];
      const { stdout } = await run(this.binary, args, { env: this.env });
      return stdout.trim();
    };
    return Promise.all(Array.from({ length: count }, one));
  }

  async stop() {
    const ended = new Promise((done) => this.child.once("exit", done));
    this.child.kill("SIGTERM");
    const code = await ended;
    if (code !== 0) throw new Error(`the binary ended with ${code}:\n${this.log()}`);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function base32(text) {
  const bits = [...text.replaceAll(" ", "")].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0"));
  return Buffer.from(bits.join("").match(/.{8}/g).map((byte) => parseInt(byte, 2)));
}

/** The code of an authenticator app, `ahead` time steps from now (RFC 6238). */
export function totp(secret, ahead = 0) {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + ahead));
  const digest = createHmac("sha1", base32(secret)).update(counter).digest();
  const at = digest.at(-1) & 15;
  return String((digest.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}
