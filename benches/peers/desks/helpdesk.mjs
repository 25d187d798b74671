// django-helpdesk under gunicorn, with as many workers as its own image has. Its REST API is for the staff only, so customers'
// messages are brought in by a program with an account of the staff, as they would be from another channel.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Server, command, freePort, temporaryFolder, treeOf, usageOf } from "../support/processes.mjs";
import { python } from "./install.mjs";
import { ask, each } from "./load.mjs";
import { Postgres } from "../support/postgres.mjs";

const [HELPDESK, GUNICORN] = ["2.6.1", "27.0.1"];
const REQUIREMENTS = [`django-helpdesk==${HELPDESK}`, "Django==5.2.19", `gunicorn==${GUNICORN}`, "psycopg[binary]==3.3.9"];
/** As its image has. */
const WORKERS = 6;
const SOURCES = fileURLToPath(new URL("helpdesk/", import.meta.url));

export class Helpdesk {
  name = "django-helpdesk";

  async install() {
    this.programs = await python("helpdesk", REQUIREMENTS);
    this.version = `django-helpdesk ${HELPDESK} under gunicorn ${GUNICORN} (${WORKERS} workers)`;
  }

  async start() {
    this.postgres = await Postgres.start("helpdesk");
    const folder = await temporaryFolder("helpdesk-site");
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    const env = {
      ...{ PYTHONPATH: SOURCES, PYTHONDONTWRITEBYTECODE: "1", DJANGO_SETTINGS_MODULE: "desk.settings" },
      ...{ DESK_SECRET_KEY: randomBytes(32).toString("hex"), DESK_DATABASE_HOST: this.postgres.socket, DESK_MEDIA: join(folder, "media") },
    };
    const options = { cwd: folder, env: { ...process.env, ...env } };
    await command(join(this.programs, "django-admin"), ["migrate", "--verbosity=0"], options);
    await command(join(this.programs, "django-admin"), ["loaddata", "--verbosity=0", "emailtemplate.json"], options);
    this.made = JSON.parse(await command(join(this.programs, "python"), [join(SOURCES, "seed.py")], options));
    const words = ["desk.wsgi:application", "--bind", `127.0.0.1:${port}`, "--workers", String(WORKERS), "--timeout", "60", "--preload"];
    this.server = Server.start("django-helpdesk", join(this.programs, "gunicorn"), words, { cwd: folder, env, log: join(folder, "gunicorn.log") });
    await this.server.ready(async () => (await fetch(`${this.url}/api/tickets/`, { headers: signedIn(this.made.agent) })).ok);
  }

  async prepare(count) {
    this.count = count;
    const [agent, relay] = [signedIn(this.made.agent), signedIn(this.made.relay)];
    const tickets = await each(count, async (number) => {
      const body = { queue: this.made.queue, title: `Question ${number}`, description: "Is anybody there?", submitter_email: `customer${number}@peers.example`, priority: 3 };
      return (await ask(this.url, { method: "POST", path: "/api/tickets/", headers: relay, body })).id;
    });
    const followup = (headers, number) => ({ method: "POST", path: "/api/followups/", headers, body: { ticket: tickets[number], comment: this.text, public: true } });
    // What its page of tickets fetches; the API's own list has every message of each ticket.
    const query = Buffer.from(JSON.stringify({ filtering: { status__in: [1, 2] }, sorting: "created" })).toString("base64");
    this.steps = {
      inbound: { name: "inbound", request: (number) => followup(relay, number) },
      answer: { name: "answer", request: (number) => followup(agent, number) },
      list: {
        name: "list",
        request: () => ({ method: "GET", path: `/datatables_ticket_list/${query}?length=100&start=0&draw=1`, headers: agent }),
        entries: ({ data }) => data.length,
      },
      apiList: {
        name: "list of the API",
        request: () => ({ method: "GET", path: "/api/tickets/?status=1,2&page_size=100", headers: agent }),
        entries: ({ results }) => results.length,
      },
    };
  }

  stored = async () => +(await this.postgres.sql("select count(*) from helpdesk_followup"));

  usage = () => ({ server: usageOf(treeOf([this.server.pid])), database: this.postgres.usage() });

  log = () => this.server.tail(10);
}

/** A session, and the pair that Django compares against forged requests. */
const CSRF = "c".repeat(32);
const signedIn = (session) => ({ Cookie: `sessionid=${session}; csrftoken=${CSRF}`, "X-CSRFToken": CSRF });
