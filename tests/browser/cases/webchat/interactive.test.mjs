// What is more than text: each interactive kind with its answer, pictures and files.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";

import { INVOICE, MUG, PICTURE } from "../../support/shop.mjs";
import { webchatEnv } from "../../support/webchat.mjs";
import { eventually } from "../../support/wait.mjs";

const reply = (id, title) => ({ type: "reply", reply: { id, title } });
const quick = (id, title) => ({ type: "quick_reply", quick_reply: { id, title } });

describe("an interactive message", () => {
  const env = webchatEnv();

  /** The visitor's answer, as the desk has it. */
  async function answer(ticket, body) {
    const messages = await eventually(`${JSON.stringify(body)} is said`, async () => {
      const messages = await env.company.messages(ticket);
      return messages.at(-1).body === body && messages;
    });
    return { quoted: messages.find(({ id }) => id === messages.at(-1).quotedMessageId), messages };
  }

  it("with buttons is answered once, by the button's title", async () => {
    const { visitor, ticket } = await env.meet();
    const buttons = {
      type: "button",
      header: { type: "text", text: "Delivery" },
      body: { text: "When shall we deliver?" },
      footer: { text: "Free of charge" },
      action: { buttons: [reply("tomorrow", "Tomorrow"), reply("saturday", "On Saturday")] },
    };
    await env.company.interactive(ticket, buttons);
    for (const text of ["Delivery", "When shall we deliver?", "Free of charge"]) {
      await visitor.widget.getByText(text, { exact: true }).waitFor();
    }
    await visitor.option("On Saturday").click();
    await visitor.own("On Saturday").and(visitor.widget.locator("[data-state=sent]")).waitFor();
    const { quoted, messages } = await answer(ticket, "On Saturday");
    assert.deepEqual(quoted.interactive, buttons);

    assert.equal(await visitor.option("On Saturday").getAttribute("class"), "option chosen");
    assert.equal(await visitor.option("Tomorrow").getAttribute("aria-disabled"), "true");
    await visitor.option("Tomorrow").click({ force: true });
    await visitor.tell("Thanks");
    const after = await env.company.messages(ticket);
    assert.deepEqual(after.slice(messages.length).map(({ body }) => body), ["Thanks"]);
    await visitor.leave();
  });

  it("with a list opens a sheet of rows", async () => {
    const { visitor, ticket } = await env.meet();
    const list = {
      type: "list",
      body: { text: "Which mug is it about?" },
      action: {
        button: "Choose a mug",
        sections: [
          { title: "Large", rows: [{ id: "ocean", title: "Ocean", description: "400 ml" }, { id: "desert", title: "Desert" }] },
          { title: "Small", rows: [{ id: "night", title: "Night", description: "80 ml" }] },
        ],
      },
    };
    await env.company.interactive(ticket, list);
    const opener = visitor.widget.getByRole("button", { name: "Choose a mug" });
    await opener.click();
    const sheet = visitor.widget.getByRole("dialog", { name: "Choose a mug" });
    await sheet.getByRole("group", { name: "Small" }).waitFor();
    assert.equal(await sheet.getByRole("button").count(), 4);
    await visitor.page.keyboard.press("Escape");
    await sheet.waitFor({ state: "hidden" });
    assert.equal(await opener.evaluate((button) => button.getRootNode().activeElement === button), true);

    await opener.press("Enter");
    await visitor.page.keyboard.press("Tab");
    await visitor.page.keyboard.press("Enter");
    await sheet.waitFor({ state: "hidden" });
    await visitor.own("Desert").and(visitor.widget.locator("[data-state=sent]")).waitFor();
    assert.deepEqual((await answer(ticket, "Desert")).quoted.interactive, list);
    await visitor.leave();
  });

  it("with a link leads there, and nowhere unsafe", async () => {
    const { visitor, ticket } = await env.meet();
    const link = (text, url) => ({
      type: "cta_url",
      body: { text: "Follow your parcel." },
      action: { name: "cta_url", parameters: { display_text: text, url } },
    });
    await env.company.interactive(ticket, link("Track it", "https://acme.example/track?a=b"));
    const trap = { ticketId: ticket.id, type: "interactive", interactive: link("Trap", "javascript:window.hit=1") };
    const refused = await env.company.call("POST", "/messages", trap);
    assert.equal(refused.error.code, "ERR_API_INTERACTIVE_INVALID");
    const way = visitor.widget.getByRole("link", { name: "Track it" });
    assert.equal(await way.getAttribute("href"), "https://acme.example/track?a=b");
    assert.equal(await way.getAttribute("rel"), "noopener noreferrer nofollow");
    await visitor.tell("Thanks");
    assert.equal(await visitor.widget.getByText("Trap").count(), 0);
    await visitor.leave();
  });

  it("with a file whose address is in other letters than UTF-8 is shown, and so is what follows", async () => {
    const { visitor, ticket } = await env.meet();
    const link = "https://acme.example/caf%E9.pdf";
    await env.company.interactive(ticket, {
      type: "button",
      header: { type: "document", document: { link } },
      body: { text: "The menu" },
      action: { buttons: [reply("yes", "I have read it")] },
    });
    await env.company.say(ticket, "Enjoy it");
    await visitor.theirs("Enjoy it").waitFor();
    const offered = visitor.widget.getByRole("link", { name: "caf%E9.pdf" });
    assert.equal(await offered.getAttribute("href"), link);
    await visitor.leave();
  });

  it("that asks for the location sends it as a map's address", async () => {
    const { visitor, ticket } = await env.meet({
      permissions: ["geolocation"],
      geolocation: { latitude: -23.55052, longitude: -46.633308 },
    });
    const request = { type: "location_request_message", body: { text: "Where are you?" }, action: { name: "send_location" } };
    await env.company.interactive(ticket, request);
    await visitor.option("Share my location").click();
    const place = visitor.widget.getByRole("link", { name: "Location" });
    const url = "https://www.openstreetmap.org/?mlat=-23.55052&mlon=-46.63331#map=17/-23.55052/-46.63331";
    assert.equal(await place.getAttribute("href"), url);
    await answer(ticket, url);
    assert.equal(await visitor.option("Share my location").getAttribute("aria-disabled"), "true");
    await visitor.leave();
  });

  it("that asks for the location sends it once, however often it is pressed", async () => {
    const { visitor, ticket } = await env.meet();
    await visitor.page.evaluate(() => {
      const coords = { latitude: -23.55052, longitude: -46.633308 };
      navigator.geolocation.getCurrentPosition = (found) => (window.find = () => found({ coords }));
    });
    const request = { type: "location_request_message", body: { text: "Where are you?" }, action: { name: "send_location" } };
    await env.company.interactive(ticket, request);
    await visitor.option("Share my location").click();
    await visitor.widget.getByText("Finding your location…").waitFor();
    await env.company.say(ticket, "Still there?");
    await visitor.theirs("Still there?").waitFor();
    assert.equal(await visitor.option("Share my location").getAttribute("aria-disabled"), "true");
    await visitor.page.evaluate(() => window.find());
    await visitor.widget.getByRole("link", { name: "Location" }).waitFor();
    await visitor.leave();
  });

  it("that asks for the location takes no for an answer", async () => {
    const { visitor, ticket } = await env.meet({ permissions: [] });
    const request = { type: "location_request_message", body: { text: "Where are you?" }, action: { name: "send_location" } };
    await env.company.interactive(ticket, request);
    await visitor.option("Share my location").click();
    await visitor.widget.getByText("We couldn't get your location.").waitFor();
    assert.equal(await visitor.option("Share my location").getAttribute("aria-disabled"), "false");
    await visitor.leave();
  });

  it("with cards is pushed along and answered on a card", async () => {
    const { visitor, ticket } = await env.meet();
    const card = (name, action) => ({
      header: { type: "image", image: { link: `${env.shop.origin}/${name}.png` } },
      body: { text: `The ${name} mug` },
      action,
    });
    const carousel = {
      type: "carousel",
      body: { text: "New this week:" },
      action: {
        cards: [
          card("ocean", { buttons: [quick("take-ocean", "Take ocean")] }),
          card("desert", { buttons: [quick("take-desert", "Take desert")] }),
          card("night", { name: "cta_url", parameters: { display_text: "See night", url: "https://acme.example/night" } }),
        ],
      },
    };
    await env.company.interactive(ticket, carousel);
    const track = visitor.widget.getByRole("group", { name: "3 cards" });
    await track.waitFor();
    assert.equal(await visitor.widget.getByRole("link", { name: "See night" }).getAttribute("href"), "https://acme.example/night");
    await eventually("the pictures are there", () =>
      track.locator("img").evaluateAll((all) => all.length === 3 && all[0].naturalWidth === 8),
    );
    const next = visitor.widget.getByRole("button", { name: "Next" });
    await next.click();
    await visitor.widget.getByRole("button", { name: "Previous" }).waitFor();
    await eventually("the last card is shown", async () => {
      // At the end the button is hidden: a click that waits for it would never return.
      await next.evaluateAll((buttons) => buttons.forEach((button) => button.click()));
      return track.evaluate((it) => it.scrollLeft + it.clientWidth > it.scrollWidth - 8);
    });

    await visitor.option("Take desert").click();
    assert.deepEqual((await answer(ticket, "Take desert")).quoted.interactive, carousel);
    await visitor.leave();
  });
});

describe("a file", () => {
  const env = webchatEnv();

  it("that is a picture is shown, any other is offered", async () => {
    const { visitor, ticket } = await env.meet();
    await env.company.media(ticket, MUG, "The new one");
    await env.company.media(ticket, INVOICE);
    const shown = visitor.widget.getByRole("img", { name: "mug.png" });
    await eventually("the picture is there", () => shown.evaluate((it) => it.naturalWidth === 8));
    await visitor.theirs("The new one").waitFor();
    const offered = visitor.widget.getByRole("link", { name: "invoice.pdf" });
    assert.match(await offered.textContent(), /338 kB/);
    const address = await offered.getAttribute("href");
    assert.equal(new URL(address).origin, env.service.url);
    assert.equal((await (await fetch(address)).arrayBuffer()).byteLength, INVOICE.content.length);
    await visitor.leave();
  });

  it("is attached, shown to both sides, and still there after a reload", async () => {
    const { visitor, ticket } = await env.meet();
    const chooser = visitor.page.waitForEvent("filechooser");
    await visitor.widget.getByRole("button", { name: "Attach a file" }).click();
    await (await chooser).setFiles({ name: MUG.name, mimeType: MUG.mimeType, buffer: PICTURE });
    const sent = visitor.widget.locator(".own[data-state=sent]").getByRole("img", { name: "mug.png" });
    await eventually("the picture is there", () => sent.evaluate((it) => it.naturalWidth === 8));
    const message = (await env.company.messages(ticket)).at(-1);
    assert.deepEqual([message.type, message.direction, message.media.fileName], ["media", "inbound", "mug.png"]);
    const stored = await fetch(new URL(message.media.url, env.service.url));
    assert.deepEqual(Buffer.from(await stored.arrayBuffer()), PICTURE);

    await visitor.page.reload();
    await eventually("the picture is there again", () => sent.evaluate((it) => it.naturalWidth === 8));
    await visitor.leave();
  });

  it("whose answer is lost on the way is sent again, and there once", async () => {
    const { visitor, ticket } = await env.meet();
    let lost = 0;
    await visitor.page.route(`${env.company.door}/messages`, async (route) => {
      if (lost || route.request().method() !== "POST") return route.fallback();
      lost += 1;
      await route.fetch();
      await route.abort();
    });
    const file = { name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("a note") };
    await visitor.widget.locator("input[type=file]").setInputFiles(file);
    await visitor.widget.locator(".own[data-state=sent]").getByRole("link", { name: "note.txt" }).waitFor();
    await visitor.tell("Got it?");
    assert.equal(lost, 1);
    const said = (await env.company.messages(ticket)).slice(1).map(({ type, body }) => [type, body]);
    assert.deepEqual(said, [["media", null], ["text", "Got it?"]]);
    await visitor.leave();
  });

  it("that never gets through holds up nothing that is said after it", async () => {
    const { visitor, ticket, hello } = await env.meet();
    // Without its socket the widget would take each loss for one of the line, and try more often.
    await eventually("the socket is open", async () => !/connecting/i.test(await visitor.widget.locator(".status").textContent()));
    let tries = 0;
    await visitor.page.route(`${env.company.door}/messages`, (route) => {
      if (!route.request().headers()["content-type"]?.startsWith("multipart/")) return route.fallback();
      tries += 1;
      return route.abort();
    });
    await visitor.widget.locator("input[type=file]").setInputFiles({ name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("a note") });
    await visitor.tell("After the file");
    assert.equal(tries, 3);
    await visitor.widget.getByText("Not sent.").waitFor();
    await visitor.widget.getByRole("button", { name: "Try again" }).waitFor();
    assert.deepEqual((await env.company.messages(ticket)).map(({ body }) => body), [hello, "After the file"]);
    await visitor.leave();
  });

  it("that takes long can be deleted, and what is said after it is sent", async () => {
    const { visitor, ticket, hello } = await env.meet();
    await visitor.page.route(`${env.company.door}/messages`, (route) => {
      if (!route.request().headers()["content-type"]?.startsWith("multipart/")) return route.fallback();
      // It is never answered.
    });
    await visitor.widget.locator("input[type=file]").setInputFiles({ name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("a note") });
    await visitor.say("After the file");
    await visitor.widget.getByRole("button", { name: "Delete" }).click();
    await visitor.own("After the file").and(visitor.widget.locator("[data-state=sent]")).waitFor();
    assert.deepEqual(await visitor.texts(), [hello, "After the file"]);
    assert.equal((await env.company.messages(ticket)).length, 2);
    await visitor.leave();
  });

  it("that is gone from the disk before it is sent holds up nothing", async () => {
    const { visitor, ticket, hello } = await env.meet();
    const folder = await mkdtemp(join(tmpdir(), "hotline-files-"));
    const note = join(folder, "note.txt");
    await writeFile(note, "a note");
    await visitor.context.setOffline(true);
    await visitor.widget.locator("input[type=file]").setInputFiles(note);
    await visitor.own("note.txt").or(visitor.widget.locator(".own .file")).first().waitFor();
    await rm(folder, { recursive: true });
    await visitor.context.setOffline(false);
    await visitor.widget.getByText("Not sent: The file has changed or no longer exists.").waitFor();
    await visitor.tell("After the file");
    assert.deepEqual((await env.company.messages(ticket)).map(({ body }) => body), [hello, "After the file"]);
    await visitor.leave();
  });

  it("that is too large or no such file is not sent, and the visitor is told why", async () => {
    const { visitor, ticket } = await env.meet();
    const folder = await mkdtemp(join(tmpdir(), "hotline-files-"));
    // From the disk: as content it would pass through the debugger.
    const big = join(folder, "big.png");
    await writeFile(big, Buffer.alloc(16 * 1024 * 1024 + 1));
    const picker = visitor.widget.locator("input[type=file]");
    const refuse = async (file, reason) => {
      await picker.setInputFiles(file);
      await visitor.widget.getByText(reason).waitFor();
      await visitor.widget.getByRole("button", { name: "Delete" }).click();
      await visitor.widget.getByText(reason).waitFor({ state: "hidden" });
    };
    await refuse(big, /^Not sent: The file is larger than/);
    await rm(folder, { recursive: true });
    await refuse({ name: "song.mp3", mimeType: "audio/mpeg", buffer: PICTURE }, /^Not sent: /);
    await refuse({ name: "empty.txt", mimeType: "text/plain", buffer: Buffer.alloc(0) }, /^Not sent: /);
    assert.equal(await visitor.widget.locator(".own").count(), 1);
    assert.equal((await env.company.messages(ticket)).length, 1);
    await visitor.leave();
  });
});
