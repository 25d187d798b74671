// Somebody at the panel: an administrator of the installation, or a user of a company.

import assert from "node:assert/strict";
import { randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { connect, createServer } from "node:net";
import { json } from "node:stream/consumers";
import { before } from "node:test";

import { DESKTOP, picture, STEP_TIME_MAX_MS, withBrowser } from "./browser.mjs";
import { keepNotices, takeNotice, wantedNotice } from "./notices.mjs";
import { Service } from "./service.mjs";

/** Filled before the first case: a browser, a company, and its administrator. */
export function panelEnv() {
  const env = { service: Service.shared() };
  withBrowser(env);
  before(async () => {
    [env.gate, env.company] = await Promise.all([fromElsewhere(env.service), env.service.company(["https://shop.example"])]);
    env.administrator = await env.company.person("Administrator");
    /** A page of the panel, for somebody who has signed in. */
    env.open = (path, options = {}) => Panel.open(env, path, { person: env.administrator, ...options });
  });
  return env;
}

/** Of this machine. Tries to sign in are counted by address, and cases side by side would use up each other's. */
const anyAddress = () => `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 254)}`;

/** The service as another machine would reach it. */
export async function fromElsewhere(service) {
  const { hostname: host, port } = new URL(service.url);
  const localAddress = anyAddress();
  const server = createServer((socket) => {
    const onward = connect({ host, port, localAddress });
    for (const [one, other] of [[socket, onward], [onward, socket]]) one.on("error", () => other.destroy()).pipe(other).unref();
  });
  server.listen(0, "127.0.0.1").unref();
  await once(server, "listening");
  return new Service(service.dataDir, `http://${host}:${server.address().port}`);
}

/** Where those are whom `signIn` signs in. */
const ownAddress = anyAddress();

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

/** What stands in front of a page in its address. */
export const SCOPE = /^\/panel(\/c\/\d+|\/server)?/;

/** A page of the panel. */
export class Panel {
  /** `person: null` comes without a session, and through the gate where there is one. */
  static async open(env, path, { person, ...options } = {}) {
    const context = await env.browser.newContext({ ...DESKTOP, locale: "en-US", reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(STEP_TIME_MAX_MS);
    await context.addInitScript(keepNotices);
    if (person) {
      person.session ??= await signIn(env.service, person);
      await context.addCookies([person.session.cookie]);
    }
    const panel = new Panel(await context.newPage(), person ? env.service : (env.gate ?? env.service));
    await panel.go(path);
    return panel;
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

  /** Loads a page; without `/c/` or `/server` in front, the one of the company or installation that somebody gets into by themselves. */
  async go(path) {
    await this.page.goto(`${this.service.url}/panel${path}`);
    await this.settled();
  }

  /** The address of now, below the company or the installation that it names. */
  where = () => new URL(this.page.url()).pathname.replace(SCOPE, "");

  /**
   * Another page of the same application: nothing is loaded anew. It is there once it has put the focus where it wants it. With another query it
   * is the same page, which stays.
   */
  async turnTo(path) {
    await this.page.evaluate((path) => {
      const [scope = "/panel"] = /^\/panel\/(c\/\d+|server)/.exec(location.pathname) ?? [];
      const to = scope + path;
      window.turnedFrom = location.pathname === new URL(to, location.href).pathname ? null : document.querySelector("main .page");
      const link = Object.assign(document.createElement("a"), { href: to });
      document.body.append(link);
      link.click();
      link.remove();
    }, path);
    await this.settled(true);
  }

  /** Waits until such an element has the focus; pages place it a frame after they are seen. */
  focus = (selector, text) =>
    this.page.waitForFunction(
      ([place, said]) => document.activeElement?.matches(place) && [undefined, document.activeElement.textContent].includes(said),
      [selector, text],
    );

  /** A page is there, another one if it was turned, and nothing in it is waited for any more. */
  settled = (isTurned = false) =>
    this.page.waitForFunction((turned) => {
      if (turned && (window.turnedFrom?.isConnected || !document.querySelector("main :focus, dialog[open]"))) return false;
      return document.querySelector("h1")?.checkVisibility() && !document.querySelector(".waiting, [aria-busy=true]");
    }, isTurned);

  heading = (name) => this.page.getByRole("heading", { level: 1, ...(name ? { name, exact: true } : {}) });
  field = (name) => this.page.getByLabel(name, { exact: false }).first();
  button = (name) => this.page.getByRole("button", { name, exact: true });
  link = (name) => this.page.getByRole("link", { name, exact: true });
  text = (text) => this.page.getByText(text);
  /** What the pages say of what was just done, wholly or by a pattern: a sentence elsewhere may contain it. */
  notice = (text) => ({
    waitFor: ({ state = "visible" } = {}) => this.page.waitForFunction(takeNotice, wantedNotice(text, state === "visible")),
  });
  row = (text) => this.page.getByRole("row", { name: text });
  dialog = () => this.page.getByRole("dialog");

  async fill(values) {
    for (const [name, value] of Object.entries(values)) await this.field(name).fill(value);
  }

  screenshot = (name) => picture(this.page, name, { fullPage: true });

  async leave() {
    await this.context.close();
    assert.deepEqual(this.errors, [], "the page went wrong");
  }
}

/** An address nobody else has. */
export const address = (name) => `${name}-${randomUUID().slice(0, 8)}@example.com`;
