// Every page of the panel that shows records, and the look at each on a device.

import assert from "node:assert/strict";

import { checkLayout, checkPage } from "./accessible.mjs";
import { isAllPictured, isProofs } from "./extent.mjs";
import { signIn } from "./panel.mjs";

export const LANGUAGES = ["en", "pt", "es"];

/** A phone and a desktop. */
const DEVICES = 2;

/** The pages are shown in this language from now on. */
export async function speak(panel, language) {
  await panel.page.evaluate((name) => localStorage.setItem("hotline-panel-language", name), language);
  await panel.go("/");
  assert.equal(await panel.page.evaluate(() => document.documentElement.lang), language);
}

/** A company with one of each, and every page that shows them. */
export async function pages(env) {
  const { company } = env;
  const make = (path, body) => company.data("POST", path, body);
  const queue = await make("/queues", { name: "Support", color: "#0f766e", greeting: "Hello {{firstName}}" });
  const tag = await make("/tags", { name: "VIP", color: "#b91c1c" });
  const category = await make("/wrapup-categories", { name: "Sales" });
  const type = await make("/wrapup-types", { name: "Sold", categoryId: category.id, queueIds: [queue.id] });
  const quick = await make("/quick-messages", { shortcut: "hello", message: "Hello {{firstName}}, how can we help?" });
  const variable = await make("/global-variables", { key: "address", value: "Main street 1" });
  const board = await make("/crm/boards", { name: "Solar panels", crmBoardQueues: [{ queueId: queue.id }] });
  const group = await make("/product-categories", { name: "Energy" });
  const product = await make("/products", { name: "Solar panel 400 W", sku: "SP-400", price: 1999.9, categoryId: group.id });
  const field = await make("/custom-fields", { name: "Plan", application: "contact", type: "select", options: ["Blue", "Red"] });
  const webhook = await make("/webhooks", { url: "https://example.com/hotline", description: "Shop" });
  const contact = await make("/contacts", { name: "Maria Lima", number: "5511999990000" });
  const list = await make("/contact-lists", { name: "Newsletter" });
  await make(`/contact-lists/${list.id}/contacts`, { contactIds: [contact.id] });
  const agent = await company.person("Agent", { name: "Ana Souza" });
  await company.data("PUT", `/queues/${queue.id}/users/${agent.id}`);
  const [profile] = await company.data("GET", "/profiles");
  const token = await newest(env, "/tokens");
  return [
    ...["/", "/account", "/company", "/audit-log", "/contacts/import", "/custom-fields/order"],
    ...["/tags", "/tags/new", `/tags/${tag.id}`, "/queues", "/queues/new", `/queues/${queue.id}`, `/queues/${queue.id}/users`],
    ...["/wrapup-types", `/wrapup-types/${type.id}`, "/wrapup-categories", "/quick-messages", `/quick-messages/${quick.id}`],
    ...["/global-variables", `/global-variables/${variable.id}`, "/products", `/products/${product.id}`, "/product-categories"],
    ...["/crm/boards", "/crm/boards/new", `/crm/boards/${board.id}`],
    ...["/users", "/users/new", `/users/${agent.id}`, "/contact-lists", `/contact-lists/${list.id}/contacts`],
    ...["/custom-fields", `/custom-fields/${field.id}`, "/webhooks", "/webhooks/new", `/webhooks/${webhook.id}`, `/webhooks/${webhook.id}/deliveries`],
    ...["/tokens", "/tokens/new", `/tokens/${token.id}`, "/channels", "/channels/new", `/channels/${company.channel.id}`],
    ...["/profiles", "/profiles/new", `/profiles/${profile.id}`],
  ];
}

/** The first of a list that the panel alone has. */
async function newest(env, path) {
  env.administrator.session ??= await signIn(env.service, env.administrator);
  const { name, value } = env.administrator.session.cookie;
  const answer = await fetch(`${env.service.url}/panel/api/v1${path}`, { headers: { Cookie: `${name}=${value}` } });
  return (await answer.json()).data[0];
}

/**
 * Every page on this device: words that are not cut, axe-core, and pictures to look at. Proofs look at it in three languages, and axe-core at
 * each page on each device; otherwise the devices take turns with it.
 */
export async function arePagesWhole(env, device, { size, colorScheme, language, turn }) {
  env.pages ??= pages(env);
  const all = await env.pages;
  const panel = await env.open("/", { ...size, colorScheme });
  const languages = isProofs ? LANGUAGES : [language];
  // Colours and roles are the same in every language; each page is looked at in one of them.
  const isTurn = (place, number) => (isProofs ? place % languages.length === number : place % DEVICES === turn);
  const wrong = [];
  const tried = async (check) => check.catch((error) => wrong.push(`${error.message}\n${JSON.stringify(error.actual)}`));
  for (const [number, spoken] of languages.entries()) {
    await speak(panel, spoken);
    for (const [place, path] of all.entries()) {
      // Words take the same place in the dark.
      if (isProofs && colorScheme === "dark" && !isTurn(place, number) && !isAllPictured) continue;
      await panel.turnTo(path);
      const what = `${path}, ${device}, ${colorScheme}, ${spoken}`;
      await tried(checkLayout(panel.page, what));
      if (isTurn(place, number)) await tried(checkPage(panel.page, what));
      if (isTurn(place, number) || isAllPictured) {
        await panel.screenshot(`panel-${device}-${colorScheme}${path.replaceAll("/", "-").replace(/-$/, "-home")}-${spoken}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
  await panel.leave();
}
