// Firefox as Debian has it, over WebDriver BiDi, and somebody in it.

import assert from "node:assert/strict";
import puppeteer from "puppeteer-core";

import { STEP_TIME_MAX_MS } from "./browser.mjs";

export const launchFirefox = () =>
  puppeteer.launch({ browser: "firefox", executablePath: process.env.FIREFOX || "/usr/bin/firefox-esr", headless: true });

/** A page with nothing kept from others. */
export class Fox {
  static async open(browser, url) {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    page.setDefaultTimeout(STEP_TIME_MAX_MS);
    await page.setViewport({ width: 1180, height: 820 });
    const fox = new Fox(page, context);
    await page.goto(url);
    return fox;
  }

  constructor(page, context) {
    Object.assign(this, { page, context });
    /** What went wrong in the page: no case expects any. */
    this.errors = [];
    page.on("pageerror", (error) => this.errors.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" && !/Failed to load resource/.test(message.text())) this.errors.push(message.text());
    });
  }

  /** An element that says this, once it is there. */
  said = (text, selector = "body *") =>
    this.page.waitForFunction(
      (wanted, among) => [...document.querySelectorAll(among)].find((it) => it.checkVisibility() && it.textContent.trim() === wanted),
      {},
      text,
      selector,
    );

  click = async (text, selector = "button, a") => {
    const found = await this.said(text, selector);
    await found.asElement().click();
  };

  /** The field that a label names. */
  field = async (label) => {
    const found = await this.page.waitForFunction(
      (wanted) => [...document.querySelectorAll("label")].find((it) => it.textContent.trim().startsWith(wanted))?.control,
      {},
      label,
    );
    return found.asElement();
  };

  fill = async (values) => {
    for (const [label, value] of Object.entries(values)) {
      const field = await this.field(label);
      await field.evaluate((element) => element.select());
      await field.type(value);
    }
  };

  see = (selector) => this.page.waitForSelector(selector);

  /** An element of the widget, looked for at each frame: what changes within a component, its page is not told. */
  within = async (selector) => {
    const found = await this.page.waitForFunction((wanted) => document.querySelector("hotline-webchat")?.shadowRoot?.querySelector(wanted), {}, selector);
    return found.asElement();
  };

  /** Waits until this says so of the page. */
  until = (what, ...given) => this.page.waitForFunction(what, {}, ...given);

  async leave() {
    await this.context.close();
    assert.deepEqual(this.errors, [], "the page went wrong");
  }
}
