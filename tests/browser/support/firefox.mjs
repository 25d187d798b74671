// Firefox as Debian has it, over WebDriver BiDi, and somebody in it.

import assert from "node:assert/strict";
import puppeteer from "puppeteer-core";

import { STEP_TIME_MAX_MS } from "./browser.mjs";
import { START_TIME_MAX_MS } from "./extent.mjs";
import { eventually } from "./wait.mjs";

/** Looking at each frame would take most of a slow machine. */
const LOOK_EVERY_MS = 50;

/** What is said of an element that is not on the page any more, before anything is pressed. */
const IS_REPLACED = /Node is|no such node|detached/i;

export const launchFirefox = () =>
  puppeteer.launch({
    browser: "firefox",
    executablePath: process.env.FIREFOX || "/usr/bin/firefox-esr",
    headless: true,
    timeout: START_TIME_MAX_MS,
    // An answer of the browser is waited for at least as long as what a step waits for in the page.
    protocolTimeout: 2 * STEP_TIME_MAX_MS,
  });

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
    this.until(
      (wanted, among) => [...document.querySelectorAll(among)].find((it) => it.textContent.trim() === wanted && it.checkVisibility()),
      text,
      selector,
    );

  click = (text, selector = "button, a") => this.press(() => this.said(text, selector));

  /** Presses what is found; what the page has replaced meanwhile is looked for again. */
  press = (find) =>
    eventually("it is pressed", async () => {
      const found = await find();
      return found.asElement().click().then(
        () => true,
        (error) => {
          if (!IS_REPLACED.test(error.message)) throw error;
          return false;
        },
      );
    });

  /** The field that a label names. */
  field = async (label) => {
    const found = await this.until((wanted) => [...document.querySelectorAll("label")].find((it) => it.textContent.trim().startsWith(wanted))?.control, label);
    return found.asElement();
  };

  fill = async (values) => {
    for (const [label, value] of Object.entries(values)) {
      const field = await this.field(label);
      // As one input: each key would be a call of its own.
      await field.evaluate((element, text) => {
        element.focus();
        element.select();
        document.execCommand("insertText", false, text);
      }, value);
    }
  };

  see = (selector) => this.page.waitForSelector(selector);

  /** An element of the widget. */
  within = async (selector) => {
    const found = await this.until((wanted) => document.querySelector("hotline-webchat")?.shadowRoot?.querySelector(wanted), selector);
    return found.asElement();
  };

  /** What this answers of the page, once it is something. */
  until = (what, ...given) => this.page.waitForFunction(what, { polling: LOOK_EVERY_MS }, ...given);

  async leave() {
    await this.context.close();
    assert.deepEqual(this.errors, [], "the page went wrong");
  }
}
