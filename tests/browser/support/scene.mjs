// What each file of cases needs: a browser, a website, a company whose webchat it may show.

import { after, before } from "node:test";

import { visit, withBrowser } from "./browser.mjs";
import { Service } from "./service.mjs";
import { Shop } from "./shop.mjs";

/** Filled before the first case. `look` are options of `hotline channel create`. */
export function scene(...look) {
  const scene = { service: Service.shared() };
  withBrowser(scene);
  before(async () => {
    scene.shop = await Shop.start();
    scene.company = await scene.service.company([scene.shop.origin], ...look);
    scene.visit = (options = {}, page = {}) => visit(scene.browser, scene.shop.page(scene.company, page), options);
    scene.meet = (options) => meet(scene, options);
  });
  after(() => scene.shop?.stop());
  return scene;
}

let said = 0;

/** A visitor with the chat open, who has said something, and the ticket in which they did. */
async function meet(scene, options) {
  const visitor = await scene.visit(options);
  await visitor.open();
  const hello = `Hello, number ${(said += 1)}`;
  await visitor.tell(hello);
  return { visitor, ticket: await scene.company.ticketOf(hello), hello };
}
