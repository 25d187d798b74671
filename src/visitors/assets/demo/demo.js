// A small desk on the public API, beside the shop that embeds the widget. What people wrote becomes text nodes only.

/** How often the desk asks what is new. The API pushes nothing to a company. */
const REFRESH_EVERY_MS = 1_000;

/** An agent's typing is renewed this often; the visitor sees it fade after 6 seconds. */
const TYPING_EVERY_MS = 3_000;

const TROUBLE_SHOWN_MS = 5_000;

const TICKETS_MAX = 50;
const MESSAGES_MAX = 100;

const settings = await (await fetch("settings.json")).json();

const $ = (id) => document.getElementById(id);

const desk = { status: "open", tickets: [], ticket: null, messages: [], shown: "", picked: false };

// The API.

async function call(method, path, body) {
  const headers = { Authorization: `Bearer ${settings.token}` };
  if (body) headers["Content-Type"] = "application/json";
  // A send that is repeated because its answer was lost happens once.
  if (method === "POST") headers["Idempotency-Key"] = crypto.randomUUID();
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const read = answer.status === 204 ? {} : await answer.json();
  if (!answer.ok) throw new Error(read.error ? read.error.message : `status ${answer.status}`);
  return read.data;
}

const api = (method, path, body) => call(method, settings.api + path, body);

/** Until when what went wrong stays to be read. */
let troubleUntil = 0;

/** Does something, and says so when it does not work. */
async function attempt(work) {
  try {
    await work();
    if (Date.now() > troubleUntil) $("trouble").hidden = true;
  } catch (error) {
    $("trouble").textContent = error instanceof TypeError ? "Can't reach the server. Trying again…" : error.message;
    $("trouble").hidden = false;
    troubleUntil = Date.now() + TROUBLE_SHOWN_MS;
  }
}

// What is shown.

function element(name, attributes, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

const time = (text) => new Date(text).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

/** Lists are drawn anew only when they changed, so that a focus is not lost. */
function changed(place, value) {
  const text = JSON.stringify(value);
  if (place.dataset.shown === text) return false;
  place.dataset.shown = text;
  return true;
}

function showTickets() {
  $("none").hidden = desk.tickets.length > 0;
  const chosen = desk.ticket && desk.ticket.id;
  if (!changed($("tickets"), [desk.tickets, chosen])) return;
  const focused = document.activeElement.dataset.ticket;
  const rows = desk.tickets.map((ticket) => {
    const row = element(
      "button",
      { type: "button", className: "ticket", onclick: () => pick(ticket.id) },
      element("strong", { dir: "auto" }, ticket.contact.name),
      element("span", { dir: "auto" }, ticket.lastMessage ? ticket.lastMessage.body || "(no text)" : `#${ticket.id}`),
    );
    row.dataset.ticket = ticket.id;
    if (ticket.id === chosen) row.setAttribute("aria-current", "true");
    if (ticket.unreadCount) {
      row.append(element("b", { title: `${ticket.unreadCount} unread` }, String(ticket.unreadCount)));
    }
    return element("li", {}, row);
  });
  $("tickets").replaceChildren(...rows);
  if (focused) document.querySelector(`[data-ticket="${focused}"]`)?.focus();
}

/** A file, to be opened; a picture is shown. */
function file({ url, fileName, mimeType }) {
  const isPicture = mimeType.startsWith("image/") && !mimeType.includes("svg");
  const shown = isPicture ? element("img", { src: url, alt: fileName }) : element("bdi", {}, fileName);
  return element("a", { className: "file", href: url, target: "_blank", rel: "noopener" }, shown);
}

/** What a message is, in words. */
function summary(message) {
  const content = message.interactive;
  if (content) return `${content.body?.text || ""}\n[${content.type.replaceAll("_", " ")}]`.trim();
  return message.body || "";
}

function showMessages() {
  const log = $("log");
  if (!changed(log, [desk.ticket.id, desk.messages])) return;
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60 || !log.childElementCount;
  const rows = desk.messages.map((message) => {
    const who = message.direction === "inbound" ? desk.ticket.contact.name : message.user?.name || "Agent";
    const state = message.direction === "outbound" ? `, ${message.status}` : "";
    return element(
      "div",
      { className: `said ${message.direction}` },
      ...(message.media ? [file(message.media)] : []),
      element("span", { dir: "auto", className: "words" }, summary(message)),
      element("small", {}, element("bdi", {}, who), `, ${time(message.createdAt)}${state}`),
    );
  });
  log.replaceChildren(...rows);
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

function showTicket() {
  const { ticket } = desk;
  $("talk").hidden = !ticket;
  $("pick").hidden = Boolean(ticket);
  if (!ticket) return;
  const isOpen = ticket.status === "open";
  $("contact").textContent = ticket.contact.name;
  const facts = [`#${ticket.id}`, ticket.verified ? "verified" : "not verified", ticket.queue?.name, isOpen ? ticket.assignedTo?.name : ticket.wrapupType?.name];
  $("facts").textContent = facts.filter(Boolean).join(" · ");
  $("assignee").hidden = $("close").hidden = $("reply").hidden = !isOpen;
  $("reopen").hidden = isOpen;
  if (document.activeElement !== $("assignee")) $("assignee").value = ticket.assignedTo?.id ?? "";
  showMessages();
}

// What the desk does.

async function refresh() {
  const order = desk.status === "open" ? "asc" : "desc";
  desk.tickets = await api("GET", `/tickets?status=${desk.status}&order=${order}&perPage=${TICKETS_MAX}`);
  if (!desk.picked && desk.status === "open") follow();
  const id = desk.ticket && desk.ticket.id;
  if (id) {
    const [ticket, messages, doing] = await Promise.all([
      api("GET", `/tickets/${id}`),
      api("GET", `/tickets/${id}/messages?order=desc&perPage=${MESSAGES_MAX}`),
      call("GET", `/webchat/${settings.publicKey}/tickets/${id}/typing`).catch(() => null),
    ]);
    if (desk.ticket && desk.ticket.id === id) {
      Object.assign(desk, { ticket, messages: messages.reverse() });
      const isHere = doing && doing.online;
      $("doing").textContent = doing && doing.typing ? `${ticket.contact.name} is typing…` : isHere ? "On the page now" : "";
      if (ticket.unreadCount && !document.hidden) await api("POST", `/tickets/${id}/read`);
    }
  }
  showTickets();
  showTicket();
}

/** Until somebody chooses, the desk shows what was said last: the visitor on the left, mostly. */
function follow() {
  const newest = Math.max(...desk.tickets.map((ticket) => ticket.lastMessage?.id || 0));
  desk.ticket = desk.tickets.find((ticket) => ticket.lastMessage?.id === newest) || desk.tickets[0] || null;
}

function pick(id) {
  desk.picked = true;
  desk.ticket = desk.tickets.find((ticket) => ticket.id === id);
  desk.messages = [];
  showTickets();
  showTicket();
  attempt(refresh);
}

/** An action on a ticket selects it, so that the desk stays with it when a newer one arrives. */
const act = (path, body) =>
  attempt(async () => {
    desk.picked = true;
    await api("POST", `/tickets/${desk.ticket.id}/${path}`, body);
    await refresh();
  });

const send = (message) =>
  attempt(async () => {
    desk.picked = true;
    // In the name of whose conversation it is: the visitor reads who wrote.
    const userId = desk.ticket.assignedTo?.id;
    await api("POST", "/messages", { ticketId: desk.ticket.id, ...(userId && { userId }), ...message });
    await refresh();
  });

let typedAt = 0;

function typing(isTyping) {
  if (!desk.ticket || (isTyping && Date.now() - typedAt < TYPING_EVERY_MS)) return;
  typedAt = isTyping ? Date.now() : 0;
  const body = { typing: isTyping, userId: desk.ticket.assignedTo?.id };
  // Nobody waits for it, and nothing is lost without it.
  call("POST", `/webchat/${settings.publicKey}/tickets/${desk.ticket.id}/typing`, body).catch(() => {});
}

function reply(event) {
  event.preventDefault();
  const text = $("text").value.trim();
  if (!text) return;
  $("text").value = "";
  typing(false);
  send({ type: "text", body: text });
}

// Each interactive kind once.

const mug = (name) => ({ type: "image", image: { link: new URL(`mug-${name}.svg`, location).href } });
const button = (type, id, title) => ({ type, [type]: { id, title } });

const samples = {
  button: {
    header: { type: "text", text: "Delivery" },
    body: { text: "When should we deliver your mug?" },
    footer: { text: "Free delivery" },
    action: { buttons: [button("reply", "tomorrow", "Tomorrow"), button("reply", "saturday", "Saturday")] },
  },
  list: {
    body: { text: "Which mug is your question about?" },
    action: {
      button: "Choose a mug",
      sections: [
        {
          title: "Large",
          rows: [
            { id: "ocean", title: "Ocean", description: "400 ml, dishwasher safe" },
            { id: "desert", title: "Desert", description: "350 ml, sand glaze" },
          ],
        },
        { title: "Small", rows: [{ id: "night", title: "Night", description: "80 ml, for espresso" }] },
      ],
    },
  },
  cta_url: {
    body: { text: "Your parcel is on its way." },
    action: { name: "cta_url", parameters: { display_text: "Track parcel", url: new URL("/docs", location).href } },
  },
  location_request_message: {
    body: { text: "Where should we deliver it?" },
    action: { name: "send_location" },
  },
  carousel: {
    body: { text: "New this week:" },
    action: {
      cards: ["ocean", "desert", "night"].map((name) => ({
        header: mug(name),
        body: { text: `${name[0].toUpperCase()}${name.slice(1)}, handmade this week` },
        action: { buttons: [button("quick_reply", `take-${name}`, `I'd like ${name}`)] },
      })),
    },
  },
};

// Beginning.

function embed() {
  const src = new URL(`/webchat/${settings.publicKey}/widget.js`, location).href;
  $("snippet").textContent = `<script src="${src}" async></script>`;
  const script = element("script", { src, async: true });
  script.dataset.in = "#shop";
  script.dataset.open = "";
  document.head.append(script);
}

/** The shop's own account: its server has signed who the visitor is, and its page hands that to the widget. */
function account() {
  let isSignedIn = false;
  const show = () => {
    $("account").textContent = isSignedIn
      ? `You are signed in as ${settings.visitor}. The shop's server has proved it to Hotline.`
      : "You are an anonymous visitor.";
    $("sign").textContent = isSignedIn ? "Sign out" : `Sign in as ${settings.visitor}`;
  };
  $("sign").onclick = async () => {
    if (isSignedIn) await HotlineWebchat.logout();
    isSignedIn = !isSignedIn && (await HotlineWebchat.identify(settings.identity));
    // Whom the desk shows is another conversation now.
    desk.picked = false;
    show();
  };
  show();
}

function listen() {
  const nobody = element("option", { value: "" }, "Unassigned");
  const people = settings.users.map(({ id, name }) => element("option", { value: id }, name));
  $("assignee").replaceChildren(nobody, ...people);
  $("assignee").onchange = ({ target }) => act("transfer", { userId: target.value ? Number(target.value) : null });
  $("close").onclick = () => act("close", { wrapupTypeId: settings.wrapupTypeId });
  $("reopen").onclick = () => act("reopen");
  $("reply").onsubmit = reply;
  $("text").oninput = ({ target }) => typing(Boolean(target.value.trim()));
  $("text").onkeydown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) reply(event);
  };
  for (const choice of document.querySelectorAll("[data-sample]")) {
    const type = choice.dataset.sample;
    choice.onclick = () => send({ type: "interactive", interactive: { type, ...samples[type] } });
  }
  for (const tab of document.querySelectorAll("[data-status]")) {
    tab.onclick = () => {
      for (const other of document.querySelectorAll("[data-status]")) {
        other.setAttribute("aria-pressed", String(other === tab));
      }
      Object.assign(desk, { status: tab.dataset.status, ticket: null, picked: false });
      attempt(refresh);
    };
  }
}

embed();
account();
listen();
for (;;) {
  if (!document.hidden) await attempt(refresh);
  await new Promise((wait) => setTimeout(wait, REFRESH_EVERY_MS));
}
