// Chromium, and a visitor in it.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

import { isPictured, isProofs, patiently, START_TIME_MAX_MS } from "./extent.mjs";

const screenshots = fileURLToPath(new URL("../../../target/screenshots/", import.meta.url));

/** A name of this machine that browsers do not trust as they trust loopback. */
export const NAMED_HOST = "panel.example";

const FLAGS = [
  `--host-resolver-rules=MAP ${NAMED_HOST} 127.0.0.1`,
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

/** What a step of a case may take. */
export const STEP_TIME_MAX_MS = patiently(60_000);

/** The pixels of a phone are for pictures. */
export const PHONE = { viewport: { width: 390, height: 780 }, deviceScaleFactor: isPictured ? 2 : 1, hasTouch: true, isMobile: true };
export const DESKTOP = { viewport: { width: 1180, height: 820 } };

/** Debian's Chromium. Its shell is the same engine without windows, and opens a page in a third of the time; proofs use the whole of it. */
const [WHOLE, SHELL] = ["/usr/bin/chromium", "/usr/bin/chromium-headless-shell"];

const executablePath = process.env.CHROMIUM || (!isProofs && existsSync(SHELL) ? SHELL : WHOLE);

/** The browser of this process, and how many groups of cases are still to use it. */
let browser;
let groups = 0;

/** Gives a group of cases the browser, as `env.browser`; it ends with the last group. */
export function withBrowser(env) {
  groups += 1;
  before(async () => {
    browser ??= chromium.launch({ executablePath, args: FLAGS, timeout: START_TIME_MAX_MS });
    env.browser = await browser;
  });
  after(async () => {
    groups -= 1;
    if (!groups) await env.browser?.close();
  });
}

/** Takes a picture for people to look at, where pictures are asked for. */
export async function picture(page, name, options = {}) {
  if (!isPictured) return;
  await mkdir(screenshots, { recursive: true });
  await page.screenshot({ path: `${screenshots}${name}.png`, animations: "disabled", ...options });
}

/** A browser of its own, with nothing kept from others. */
export async function visit(browser, url, options = {}) {
  const context = await browser.newContext({ ...DESKTOP, locale: "en-US", ...options });
  context.setDefaultTimeout(STEP_TIME_MAX_MS);
  return Visitor.on(await context.newPage(), url);
}

export class Visitor {
  static async on(page, url) {
    const visitor = new Visitor(page);
    await page.goto(url);
    return visitor;
  }

  constructor(page) {
    this.page = page;
    this.context = page.context();
    /** What went wrong in the page: no test expects any. */
    this.errors = [];
    page.on("pageerror", (error) => this.errors.push(error));
    this.widget = page.locator("hotline-webchat");
    this.launcher = this.widget.locator(".launcher");
    this.panel = this.widget.getByRole("dialog").first();
    this.field = this.widget.locator("textarea");
    this.log = this.widget.getByRole("log");
  }

  /** The same visitor in another tab. */
  async anotherTab(url = this.page.url()) {
    return Visitor.on(await this.context.newPage(), url);
  }

  async open() {
    await this.launcher.click();
    await this.panel.waitFor();
  }

  async say(text) {
    await this.field.fill(text);
    await this.field.press("Enter");
  }

  /** Says something, and waits until the service has it. */
  async tell(text) {
    await this.say(text);
    await this.own(text).and(this.widget.locator("[data-state=sent], [data-state=read]")).waitFor();
  }

  own = (text) => this.widget.locator(".own", { has: this.page.getByText(text, { exact: true }) });

  theirs = (text) => this.widget.locator(".theirs", { has: this.page.getByText(text, { exact: true }) });

  /** Every message, as it stands in the transcript. */
  texts = () => this.widget.locator(".message:not(.greeting):not(.typing) .bubble").allTextContents();

  option = (title) => this.widget.locator(".option", { hasText: title });

  /** Waits until nothing of the widget moves. */
  stillness = () =>
    this.widget.evaluate((host) => {
      const passing = host.shadowRoot.getAnimations().filter((it) => it.effect.getComputedTiming().iterations !== Infinity);
      return Promise.all(passing.map((it) => it.finished.then(() => {}, () => {})));
    });

  screenshot = (name) => picture(this.page, name);

  async leave() {
    await this.context.close();
    assert.deepEqual(this.errors, [], "the page threw");
  }
}
