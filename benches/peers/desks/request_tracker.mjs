// Request Tracker of Debian, with its REST API under Starman, as its documents name it for production behind a proxy. Its mail
// is made and handed to a program that drops it.

import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Server, command, freePort, temporaryFolder, treeOf, until, usageOf } from "../support/processes.mjs";
import { debian, debianVersion } from "./install.mjs";
import { ask, each } from "./load.mjs";
import { Postgres, systemUser } from "../support/postgres.mjs";

// RT's log asks for `w3m`, which makes text of HTML faster than RT's own module.
const PACKAGES = ["rt5-fcgi", "request-tracker5", "rt5-db-postgresql", "starman", "w3m"];
// RT's package requires an agent of mail, which is not used here: one without a service, where there is none.
const MAIL = existsSync("/usr/sbin/sendmail") ? [] : ["dma"];
const ANSWERS = [
  "request-tracker5 request-tracker5/dbconfig-install boolean false",
  "request-tracker5 request-tracker5/install-cronjobs boolean false",
];
const SERVER = "/usr/share/request-tracker5/libexec/rt-server";
/** Starman's default. */
const WORKERS = 5;
/** Requestors, each with a part of the conversations; and sessions of the agent, so that callers do not wait for each other's. */
const CUSTOMERS = 16;
const AGENT_SESSIONS = 16;
const SIGN_IN_TIME_MAX_MS = 10_000;

export class RequestTracker {
  name = "Request Tracker";

  async install() {
    await debian([...MAIL, ...PACKAGES], { answers: ANSWERS, services: ["request-tracker5"] });
    const version = await debianVersion("request-tracker5");
    this.version = `Request Tracker ${version} under Starman ${await debianVersion("starman")} (${WORKERS} workers)`;
  }

  async start() {
    this.postgres = await Postgres.start("rt");
    const folder = await temporaryFolder("rt-site");
    const [site, discard] = [join(folder, "site.pm"), join(folder, "discard")];
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    mkdirSync(join(folder, "none"));
    // A program that does not read what it is given would be an error of the delivery.
    writeFileSync(discard, "#!/bin/sh\nexec cat >/dev/null\n", { mode: 0o755 });
    writeFileSync(site, configuration({ socket: this.postgres.socket, port, discard }), { mode: 0o644 });
    const env = { RT_SITE_CONFIG: site, RT_SITE_CONFIG_DIR: join(folder, "none") };
    const options = { ...systemUser("www-data"), cwd: "/", env: { ...process.env, ...env } };
    await command("/usr/sbin/rt-setup-database-5", ["--action", "init", "--skip-create", "--dba", "rt", "--dba-password", "unused"], options);
    // The user that RT runs as may not be able to read the folder of the sources.
    const seed = join(folder, "seed.pl");
    writeFileSync(seed, readFileSync(new URL("request_tracker.pl", import.meta.url)), { mode: 0o644 });
    const password = randomBytes(16).toString("hex");
    const users = JSON.parse(await command("perl", [seed, String(CUSTOMERS), password], options));
    // A worker that kept connections would serve its first callers only: there are more callers than workers.
    const words = ["--server", "Starman", "--host", "127.0.0.1", "--port", String(port), "--workers", String(WORKERS), "--disable-keepalive"];
    this.server = Server.start("Request Tracker", SERVER, words, { ...systemUser("www-data"), cwd: "/", env, log: join(folder, "rt.log") });
    await this.server.ready(async () => (await fetch(`${this.url}/`)).ok);
    const signIn = async ({ name, email }) => ({ email, headers: await this.signIn(name, password) });
    this.customers = await each(CUSTOMERS, (number) => signIn(users.customers[number]), 2);
    this.agents = await each(AGENT_SESSIONS, () => signIn(users.agent), 2);
  }

  /** A session: the hash of a token, as that of a password, takes as long as a step. */
  async signIn(user, pass) {
    const answer = await fetch(`${this.url}/NoAuth/Login.html`, { method: "POST", redirect: "manual", body: new URLSearchParams({ user, pass }) });
    await answer.text();
    const headers = { Cookie: answer.headers.getSetCookie().at(-1)?.split(";")[0] ?? "" };
    // The session is stored after the answer, and another worker may be asked meanwhile.
    const isSignedIn = async () => (await fetch(`${this.url}/REST/2.0/rt`, { headers, redirect: "manual" })).ok;
    await until(`Request Tracker has signed in ${user} (it answered ${answer.status})`, isSignedIn, SIGN_IN_TIME_MAX_MS);
    return headers;
  }

  async prepare(count) {
    this.count = count;
    const customer = (number) => this.customers[number % CUSTOMERS];
    const agent = (number) => this.agents[number % AGENT_SESSIONS];
    const tickets = await each(count, async (number) => {
      const body = { Queue: "General", Subject: `Question ${number}`, Requestor: customer(number).email, Content: "Is anybody there?", ContentType: "text/plain" };
      return (await ask(this.url, { method: "POST", path: "/REST/2.0/ticket", headers: agent(number).headers, body })).id;
    });
    const correspond = (user, number) => ({
      method: "POST",
      path: `/REST/2.0/ticket/${tickets[number]}/correspond`,
      headers: user.headers,
      body: { Content: this.text, ContentType: "text/plain" },
    });
    const query = new URLSearchParams({ query: "Status = '__Active__'", orderby: "LastUpdated", order: "DESC", per_page: 100, fields: "Subject,Status,Queue,Owner,Requestor,LastUpdated" });
    this.steps = {
      inbound: { name: "inbound", request: (number) => correspond(customer(number), number) },
      answer: { name: "answer", request: (number) => correspond(agent(number), number) },
      list: {
        name: "list",
        request: (number) => ({ method: "GET", path: `/REST/2.0/tickets?${query}`, headers: agent(number).headers }),
        entries: ({ items }) => items.length,
      },
    };
  }

  stored = async () => +(await this.postgres.sql("select count(*) from transactions where type = 'Correspond'"));

  usage = () => ({ server: usageOf(treeOf([this.server.pid])), database: this.postgres.usage() });

  log = () => this.server.tail(10);
}

const configuration = ({ socket, port, discard }) => `
Set($rtname, 'peers.example');
Set($Organization, 'peers.example');
Set($CorrespondAddress, 'rt@peers.example');
Set($CommentAddress, 'rt-comment@peers.example');
Set($DatabaseType, 'Pg');
Set($DatabaseHost, '${socket}');
Set($DatabasePort, '');
Set($DatabaseName, 'rt');
Set($DatabaseUser, 'rt');
Set($DatabasePassword, 'unused');
Set($DatabaseAdmin, 'rt');
Set($WebDomain, '127.0.0.1');
Set($WebPort, ${port});
Set($WebPath, '');
Set($MailCommand, 'sendmailpipe');
Set($SendmailPath, '${discard}');
Set($LogToSyslog, undef);
Set($LogToFile, undef);
Set($LogToSTDERR, 'warning');
1;
`;
