// A conversation from its greeting to its end.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { webchatEnv } from "../../support/webchat.mjs";
import { eventually } from "../../support/wait.mjs";

describe("a conversation", () => {
  const env = webchatEnv("--title", "Talk to Acme", "--greeting", "Welcome! See https://acme.example/help", "--color", "#0f766e");

  it("begins with a greeting, and delivers messages both ways", async () => {
    const visitor = await env.visit();
    await visitor.open();
    await visitor.widget.getByRole("heading", { name: "Talk to Acme" }).waitFor();
    await visitor.widget.getByText("Welcome!").waitFor();
    assert.equal(await visitor.widget.locator(".greeting a").getAttribute("href"), "https://acme.example/help");

    await visitor.tell("Is anybody there?");
    const ticket = await env.company.ticketOf("Is anybody there?");
    await env.company.say(ticket, "Yes! How can I help?");
    await visitor.theirs("Yes! How can I help?").waitFor();
    assert.deepEqual(await visitor.texts(), ["Is anybody there?", "Yes! How can I help?"]);

    const [, answer] = await eventually("the answer is read", async () => {
      const messages = await env.company.messages(ticket);
      return messages[1].status === "read" && messages;
    });
    assert.equal(answer.body, "Yes! How can I help?");
    await visitor.leave();
  });

  it("keeps the order of messages sent in quick succession", async () => {
    const { visitor, ticket, hello } = await env.meet();
    const lines = Array.from({ length: 12 }, (_, n) => `line ${n}`);
    for (const text of lines) await visitor.say(text);
    await visitor.own("line 11").and(visitor.widget.locator("[data-state=sent]")).waitFor();
    assert.deepEqual(await visitor.texts(), [hello, ...lines]);
    const stored = await env.company.messages(ticket);
    assert.deepEqual(stored.map(({ body }) => body), [hello, ...lines]);
    await visitor.leave();
  });

  it("shows when the desk has read a message", async () => {
    const { visitor, ticket, hello } = await env.meet();
    const message = visitor.own(hello);
    assert.equal(await message.locator(".tick").getAttribute("aria-label"), "Sent");
    await env.company.data("POST", `/tickets/${ticket.id}/read`);
    await message.and(visitor.widget.locator("[data-state=read]")).waitFor();
    assert.equal(await message.locator(".tick").getAttribute("aria-label"), "Read");
    await visitor.leave();
  });

  it("says which agent wrote, and the team's name when none did", async () => {
    const { visitor, ticket } = await env.meet();
    const agent = await env.company.data("POST", "/users", { name: "Rita", email: "rita@acme.example" });
    await env.company.say(ticket, "We will look.");
    await env.company.data("POST", "/messages", { ticketId: ticket.id, type: "text", body: "I have looked.", userId: agent.id });
    const nameOver = (text) => visitor.theirs(text).locator(".name");
    await visitor.theirs("I have looked.").waitFor();
    assert.equal(await nameOver("We will look.").textContent(), "Support");
    assert.equal(await nameOver("I have looked.").textContent(), "Rita");
    await visitor.leave();
  });

  it("shows typing to both sides", async () => {
    const { visitor, ticket } = await env.meet();
    // The typing indicator expires: each side types again until the other shows it.
    await eventually("the desk sees the visitor type", async () => {
      await visitor.field.press("a");
      const doing = await env.company.doing(ticket);
      return doing.online && doing.typing;
    });
    await eventually("the visitor sees the desk type", async () => {
      await env.company.typing(ticket, true);
      return visitor.widget.locator(".typing", { hasText: "Support is typing" }).isVisible();
    });
    await env.company.typing(ticket, false);
    await visitor.widget.locator(".typing").waitFor({ state: "hidden" });
    await visitor.leave();
  });

  it("counts the messages received while the panel is closed", async () => {
    const { visitor, ticket } = await env.meet();
    await visitor.field.press("Escape");
    await visitor.panel.waitFor({ state: "hidden" });
    await env.company.say(ticket, "First answer");
    await env.company.say(ticket, "Second answer");
    await visitor.widget.locator(".badge", { hasText: "2" }).waitFor();
    assert.equal(await visitor.launcher.getAttribute("aria-label"), "Open the chat, 2 unread");
    await visitor.widget.locator(".teaser", { hasText: "Second answer" }).waitFor();
    const announcement = visitor.widget.locator(".root > [role=status]", { hasText: "New message from Support: Second answer" });
    await announcement.waitFor({ state: "attached" });

    await visitor.open();
    await visitor.widget.locator(".badge").waitFor({ state: "hidden" });
    await visitor.theirs("Second answer").waitFor();
    await visitor.leave();
  });

  it("never reads text as HTML", async () => {
    const { visitor, ticket } = await env.meet();
    const attack = '<img src=x onerror="window.hit=1"><b>bold</b>&amp;';
    await visitor.tell(attack);
    await env.company.say(ticket, `${attack} too`);
    await visitor.theirs(`${attack} too`).waitFor();
    assert.equal(await visitor.widget.locator(".log img, .log b").count(), 0);
    assert.equal(await visitor.page.evaluate(() => window.hit), undefined);
    await visitor.leave();
  });

  it("links addresses that are safe, and no others", async () => {
    const { visitor, ticket } = await env.meet();
    const text =
      "See https://acme.example/a_(b)?c=d, www.acme.example. Write to help@acme.example! Not javascript:alert(1) nor data:text/html,x nor http://";
    await env.company.say(ticket, text);
    await visitor.theirs(text).waitFor();
    const links = await visitor.widget.locator(".theirs:not(.greeting) a").evaluateAll((all) =>
      all.map((link) => [link.textContent, link.getAttribute("href"), link.rel, link.target]),
    );
    const rest = ["noopener noreferrer nofollow", "_blank"];
    assert.deepEqual(links, [
      ["https://acme.example/a_(b)?c=d", "https://acme.example/a_(b)?c=d", ...rest],
      ["www.acme.example", "https://www.acme.example/", ...rest],
      ["help@acme.example", "mailto:help@acme.example", ...rest],
    ]);
    await visitor.leave();
  });

  it("shows the text after the address of a map", async () => {
    const { visitor, ticket } = await env.meet();
    const text = "https://www.openstreetmap.org/?mlat=-23.55052&mlon=-46.63331#map=17/-23.55052/-46.63331 third floor, please";
    await env.company.say(ticket, text);
    await visitor.theirs(text).waitFor();
    await visitor.leave();
  });

  it("can be ended by the visitor, who can start another", async () => {
    const { visitor, ticket, hello } = await env.meet();
    await visitor.widget.getByRole("button", { name: "End the conversation" }).click();
    await visitor.widget.getByRole("button", { name: "End conversation" }).click();
    await visitor.widget.getByText("This conversation has ended.").waitFor();
    await visitor.field.waitFor({ state: "hidden" });

    await visitor.widget.getByRole("button", { name: "Start a new conversation" }).click();
    await visitor.tell("One more thing");
    const other = await env.company.ticketOf("One more thing");
    assert.equal(other.contact.id, ticket.contact.id, "the same browser is the same unknown visitor");
    assert.deepEqual(await visitor.texts(), [hello, "One more thing"]);
    await visitor.page.reload();
    await visitor.own("One more thing").waitFor();
    assert.deepEqual(await visitor.texts(), ["One more thing"]);
    await visitor.leave();
  });

  it("shows an error when it could not be ended, and ends at the next attempt", async () => {
    const { visitor } = await env.meet();
    const endpoint = `${env.company.door}/end`;
    await visitor.page.route(endpoint, (route) => route.abort());
    const endConversation = async () => {
      await visitor.widget.getByRole("button", { name: "End the conversation" }).click();
      await visitor.widget.getByRole("button", { name: "End conversation" }).click();
    };
    await endConversation();
    const failed = visitor.widget.getByText("Couldn't end the conversation. Try again.");
    await failed.waitFor();
    await visitor.page.unroute(endpoint);
    await endConversation();
    await visitor.widget.getByText("This conversation has ended.").waitFor();
    await failed.waitFor({ state: "hidden" });
    await visitor.leave();
  });

  it("continues in a new session when the old one ended while the visitor was offline", async () => {
    const { visitor, hello } = await env.meet();
    const session = await visitor.page.evaluate(
      (name) => JSON.parse(localStorage.getItem(name)),
      `hotline:${env.company.channel.publicKey}:session`,
    );
    await visitor.context.setOffline(true);
    await visitor.say("Sent while it ended");
    await env.company.data("POST", `/webchat/sessions/${session.id}/end`);
    await visitor.context.setOffline(false);
    await visitor.own("Sent while it ended").and(visitor.widget.locator("[data-state=sent]")).waitFor();
    await env.company.ticketOf("Sent while it ended");
    assert.deepEqual(await visitor.texts(), [hello, "Sent while it ended"]);
    await visitor.leave();
  });
});

describe("the form before a conversation", () => {
  const env = webchatEnv("--pre-chat-field", "name", "--pre-chat-field", "email", "--pre-chat-field", "number");

  it("validates its fields, and shows the desk what the visitor entered", async () => {
    const visitor = await env.visit();
    await visitor.open();
    const { widget } = visitor;
    const begin = widget.getByRole("button", { name: "Start the chat" });
    await begin.click();
    assert.equal(await widget.getByText("Please fill in this field.").count(), 3);
    assert.equal(await widget.getByLabel("Name").getAttribute("aria-invalid"), "true");

    await widget.getByLabel("Name").fill("Maria Lima");
    await widget.getByLabel("E-mail").fill("maria@");
    await widget.getByLabel("Phone number").fill("+55 (11) 98888-7777");
    await begin.click();
    await widget.getByText("Enter a valid e-mail address.").waitFor();
    await widget.getByLabel("E-mail").fill("maria@example.com");
    const opening = visitor.page.waitForResponse(
      (response) => response.url().endsWith("/sessions") && response.request().method() === "POST",
    );
    await begin.click();

    await visitor.tell("Hello, it is me");
    const { data: opened } = await (await opening).json();
    const ticket = await env.company.ticketOf("Hello, it is me");
    const contact = await env.company.data("GET", `/contacts/${ticket.contact.id}`);
    // Data from a browser is a claim: the desk sees it, but the contact gets no e-mail or number from it.
    assert.equal(contact.name, "Maria Lima");
    assert.deepEqual([contact.email, contact.number, contact.verified], [null, null, false]);
    const { claimed } = await env.company.data("GET", `/webchat/sessions/${opened.id}`);
    assert.deepEqual([claimed.name, claimed.email, claimed.number], ["Maria Lima", "maria@example.com", "5511988887777"]);
    assert.equal(contact.utmSource, "tests");
    await visitor.leave();
  });

  it("shows an error when the chat could not be started", async () => {
    const visitor = await env.visit();
    await visitor.open();
    const { widget } = visitor;
    await widget.getByLabel("Name").fill("Maria");
    await widget.getByLabel("E-mail").fill("maria@example.com");
    await widget.getByLabel("Phone number").fill("5511988887777");
    await visitor.page.route(`${env.company.door}/sessions`, (route) => route.abort());
    await widget.getByRole("button", { name: "Start the chat" }).click();
    await widget.getByText("Couldn't start the chat. Try again.").waitFor();
    await visitor.leave();
  });

  it("shows errors that only the service finds", async () => {
    const visitor = await env.visit();
    await visitor.open();
    const { widget } = visitor;
    await widget.getByLabel("Name").fill("Maria");
    // The browser accepts this address; the service refuses it.
    await widget.getByLabel("E-mail").fill("maria..@-example-.c");
    await widget.getByLabel("Phone number").fill("5511988887777");
    const endpoint = `${env.company.door}/sessions`;
    const refusal = { error: { code: "ERR_API_VALIDATION", message: "no", details: [{ field: "visitor.email", reason: "no" }] } };
    await visitor.page.route(endpoint, (route) =>
      route.fulfill({ status: 422, headers: { "Access-Control-Allow-Origin": env.shop.origin }, json: refusal }),
    );
    await widget.getByRole("button", { name: "Start the chat" }).click();
    await widget.getByText("Enter a valid e-mail address.").waitFor();
    assert.equal(await widget.getByLabel("E-mail").getAttribute("aria-invalid"), "true");
    await visitor.leave();
  });
});

describe("the widget's language", () => {
  const env = webchatEnv();

  for (const [locale, greeting, write] of [
    ["en-GB", "Hi, how can we help?", "Write a message"],
    ["pt-BR", "Olá, como podemos ajudar?", "Escreva uma mensagem"],
    ["es-AR", "Hola, ¿en qué podemos ayudarte?", "Escribe un mensaje"],
    ["de-DE", "Hi, how can we help?", "Write a message"],
  ]) {
    it(`follows the browser: ${locale}`, async () => {
      const visitor = await env.visit({ locale });
      await visitor.open();
      await visitor.widget.getByText(greeting).waitFor();
      await visitor.widget.getByRole("textbox", { name: write }).waitFor();
      await visitor.leave();
    });
  }

  for (const [language, greeting] of [["pt-BR", "Olá, como podemos ajudar?"], ["de", "Hi, how can we help?"], ["no_language", "Hi, how can we help?"]]) {
    it(`may be set by the page: ${language}`, async () => {
      const visitor = await env.visit({ locale: "en-US" }, { language });
      await visitor.open();
      await visitor.widget.getByText(greeting).waitFor();
      await visitor.leave();
    });
  }
});

describe("the widget's theme", () => {
  const env = webchatEnv();

  for (const [colorScheme, theme, color] of [
    ["dark", "light", "rgb(255, 255, 255)"],
    ["light", "dark", "rgb(23, 25, 30)"],
    ["dark", "", "rgb(23, 25, 30)"],
  ]) {
    it(`is ${theme || "the system's"} on a ${colorScheme} system`, async () => {
      const visitor = await env.visit({ colorScheme }, { theme });
      await visitor.open();
      await visitor.stillness();
      assert.equal(await visitor.panel.evaluate((panel) => getComputedStyle(panel).backgroundColor), color);
      await visitor.leave();
    });
  }
});
