// Somebody at the panel: an administrator of the installation, or a user of a company.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import http from "node:http";
import { json } from "node:stream/consumers";
import { after, before } from "node:test";

import { DESKTOP, launch, screenshots, STEP_TIME_MAX_MS } from "./browser.mjs";
import { Service } from "./service.mjs";

/** Filled before the first case: a browser, a company, and its administrator. */
export function panel() {
  const at = { service: Service.shared() };
  before(async () => {
    [at.browser, at.company] = await Promise.all([launch(), at.service.company(["https://shop.example"])]);
    at.administrator = await at.company.person("Administrator");
    /** A page of the panel, for somebody who has signed in. */
    at.open = (path, options = {}) => Desk.open(at, path, { person: at.administrator, ...options });
  });
  after(() => at.browser?.close());
  return at;
}

/** Of this machine, and of these cases alone: tries to sign in are counted by address, and pages have some of their own. */
const ownAddress = `127.${[254, 254, 253].map((most) => 1 + Math.floor(Math.random() * most)).join(".")}`;

/** Signs somebody in beside the pages, and answers the cookie of the session. */
export async function signIn(service, { email, password, ...where }) {
  const headers = { "Content-Type": "application/json", Origin: service.url };
  const request = http.request(`${service.url}/panel/api/v1/session`, { method: "POST", headers, localAddress: ownAddress });
  request.end(JSON.stringify({ email, password, ...where }));
  const [answer] = await once(request, "response");
  const { data, error } = await json(answer);
  assert.equal(answer.statusCode, 200, JSON.stringify(error));
  const [name, value] = answer.headers["set-cookie"][0].split(";")[0].split("=");
  return { cookie: { name, value, url: service.url }, data };
}

/** A page of the panel. */
export class Desk {
  /** `person: null` comes without a session. */
  static async open(at, path, { person, ...options } = {}) {
    const context = await at.browser.newContext({ ...DESKTOP, locale: "en-US", reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(STEP_TIME_MAX_MS);
    if (person) {
      person.session ??= await signIn(at.service, person);
      await context.addCookies([person.session.cookie]);
    }
    const desk = new Desk(await context.newPage(), at.service);
    await desk.go(path);
    return desk;
  }

  constructor(page, service) {
    Object.assign(this, { page, service, context: page.context() });
    /** What went wrong in the page: no case expects any. */
    this.errors = [];
    page.on("pageerror", (error) => this.errors.push(String(error)));
    page.on("console", (message) => {
      // A policy that was broken is an error of the pages; a refusal of the service is none, nor is what browsers ignore over plain HTTP.
      if (message.type() === "error" && !/Failed to load resource|header has been ignored, because the URL's origin was untrustworthy/.test(message.text())) {
        this.errors.push(message.text());
      }
    });
    /** Whom the pages ask besides the service. */
    page.on("request", (request) => {
      if (new URL(request.url()).origin !== service.url && !request.url().startsWith("data:")) this.errors.push(`asks ${request.url()}`);
    });
  }

  async go(path) {
    await this.page.goto(`${this.service.url}/panel${path}`);
    await this.heading().waitFor();
    await this.settled();
  }

  /**
   * Another page of the same application: nothing is loaded anew. It is there once it has put the focus where it wants it. With another query it
   * is the same page, which stays.
   */
  async turnTo(path) {
    await this.page.evaluate((to) => {
      window.turnedFrom = location.pathname === new URL(to, location.href).pathname ? null : document.querySelector("main .page");
      const link = Object.assign(document.createElement("a"), { href: to });
      document.body.append(link);
      link.click();
      link.remove();
    }, `/panel${path}`);
    await this.page.waitForFunction(() => !window.turnedFrom?.isConnected && document.querySelector("main :focus, dialog[open]"));
    await this.heading().waitFor();
    await this.settled();
  }

  /** Nothing is waited for any more. */
  settled = () => this.page.waitForFunction(() => !document.querySelector(".waiting, [aria-busy=true]"));

  heading = (name) => this.page.getByRole("heading", { level: 1, ...(name ? { name, exact: true } : {}) });
  field = (name) => this.page.getByLabel(name, { exact: false }).first();
  button = (name) => this.page.getByRole("button", { name, exact: true });
  link = (name) => this.page.getByRole("link", { name, exact: true });
  text = (text) => this.page.getByText(text);
  row = (text) => this.page.getByRole("row", { name: text });
  dialog = () => this.page.getByRole("dialog");

  async fill(values) {
    for (const [name, value] of Object.entries(values)) await this.field(name).fill(value);
  }

  screenshot = async (name) => {
    await mkdir(screenshots, { recursive: true });
    await this.page.screenshot({ path: `${screenshots}${name}.png`, animations: "disabled", fullPage: true });
  };

  async leave() {
    await this.context.close();
    assert.deepEqual(this.errors, [], "the page went wrong");
  }
}

/** An address nobody else has. */
export const address = (name) => `${name}-${randomUUID().slice(0, 8)}@example.com`;
