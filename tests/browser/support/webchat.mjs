// What each file of cases needs: a browser, a website, a company whose webchat it may show.

import { after, before } from "node:test";

import { visit, withBrowser } from "./browser.mjs";
import { Service } from "./service.mjs";
import { Shop } from "./shop.mjs";

/** Filled before the first case. `look` are options of `hotline channel create`. */
export function webchatEnv(...look) {
  const env = { service: Service.shared() };
  withBrowser(env);
  before(async () => {
    env.shop = await Shop.start();
    env.company = await env.service.company([env.shop.origin], ...look);
    env.visit = (options = {}, page = {}) => visit(env.browser, env.shop.page(env.company, page), options);
    env.meet = (options) => meet(env, options);
  });
  after(() => env.shop?.stop());
  return env;
}

let said = 0;

/** A visitor with the chat open, who has said something, and the ticket in which they did. */
async function meet(env, options) {
  const visitor = await env.visit(options);
  await visitor.open();
  const hello = `Hello, number ${(said += 1)}`;
  await visitor.tell(hello);
  return { visitor, ticket: await env.company.ticketOf(hello), hello };
}
