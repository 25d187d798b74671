// Debian's Firefox, driven over WebDriver BiDi, and a user of one page in it.

import assert from "node:assert/strict";
import puppeteer from "puppeteer-core";

import { STEP_TIME_MAX_MS } from "./browser.mjs";
import { START_TIME_MAX_MS } from "./extent.mjs";
import { keepNotices, takeNotice, wantedNotice } from "./notices.mjs";
import { eventually } from "./wait.mjs";

/** Pause between checks in the page. A check at each frame would keep a slow machine busy. */
const CHECK_INTERVAL_MS = 50;

/** Matches the errors of a click on an element that the page has replaced; nothing was clicked then. */
const REPLACED_ELEMENT = /Node is|no such node|detached/i;

export const launchFirefox = () =>
  puppeteer.launch({
    browser: "firefox",
    executablePath: process.env.FIREFOX || "/usr/bin/firefox-esr",
    headless: true,
    timeout: START_TIME_MAX_MS,
    // A wait in the page is a single call of the protocol, so calls may take longer than steps.
    protocolTimeout: 2 * STEP_TIME_MAX_MS,
  });

/** A page in a browser context of its own: it shares no cookies or storage with others. */
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
    /** Errors of the page: no test expects any. */
    this.errors = [];
    page.on("pageerror", (error) => this.errors.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" && !/Failed to load resource/.test(message.text())) this.errors.push(message.text());
    });
  }

  /** The visible element with exactly this text, once it exists. */
  said = (text, selector = "body *") =>
    this.until(
      (wanted, among) =>
        [...document.querySelectorAll(among)].find(
          (element) => element.textContent.trim() === wanted && element.checkVisibility(),
        ),
      text,
      selector,
    );

  /** Keeps what the panel says from now on in this document, for `notice`. */
  keepNotices = () => this.page.evaluate(keepNotices);

  /** Waits until the panel has said this. */
  notice = (text) => this.until(takeNotice, wantedNotice(text));

  click = (text, selector = "button, a") => this.press(() => this.said(text, selector));

  /** Clicks the element that `find` returns. If the page replaces it before the click, it is found again. */
  press = (find) =>
    eventually("the element is clicked", async () => {
      const found = await find();
      return found.asElement().click().then(
        () => true,
        (error) => {
          if (!REPLACED_ELEMENT.test(error.message)) throw error;
          return false;
        },
      );
    });

  /** The field that a label names. */
  field = async (label) => {
    const found = await this.until((wanted) => {
      const labels = [...document.querySelectorAll("label")];
      return labels.find((element) => element.textContent.trim().startsWith(wanted))?.control;
    }, label);
    return found.asElement();
  };

  fill = async (values) => {
    for (const [label, value] of Object.entries(values)) {
      const field = await this.field(label);
      // As one input event: typing would take a call of the protocol for each key.
      await field.evaluate((element, text) => {
        element.focus();
        element.select();
        document.execCommand("insertText", false, text);
      }, value);
    }
  };

  see = (selector) => this.page.waitForSelector(selector);

  /** The element of the widget that matches, once it exists. */
  within = async (selector) => {
    const found = await this.until(
      (wanted) => document.querySelector("hotline-webchat")?.shadowRoot?.querySelector(wanted),
      selector,
    );
    return found.asElement();
  };

  /** The result of a function that runs in the page, once it is truthy. */
  until = (find, ...parameters) => this.page.waitForFunction(find, { polling: CHECK_INTERVAL_MS }, ...parameters);

  async leave() {
    await this.context.close();
    assert.deepEqual(this.errors, [], "the page reported errors");
  }
}
