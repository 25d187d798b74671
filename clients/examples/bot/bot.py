"""A bot that answers visitors by webhook, and hands over to a queue when they want a person.

HOTLINE_URL, HOTLINE_API_KEY, BOT_PORT, BOT_URL (where the service reaches it), BOT_QUEUE and BOT_FILE (where it keeps
what it has accepted) are in the environment.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hotline import ApiError, ConflictError, Hotline, HotlineError, WebhookVerificationError, types, webhooks

QUEUE_ID = int(os.environ["BOT_QUEUE"])
# Events that wait for an answer; more are refused, and the service sends them again later.
WAITING_MAX = 1000
# Ids of events by which a repeated delivery is recognized.
SEEN_MAX = 10_000
BODY_BYTES_MAX = 2 * 1024 * 1024
# Before an event is tried again that could not be answered.
RETRY_SECONDS = 5


class Inbox:
    """Accepted events until they are answered, in a file: the service does not send again what was accepted."""

    def __init__(self, path: str) -> None:
        self.database = sqlite3.connect(path, check_same_thread=False)
        self.database.execute("CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY, body TEXT, answered INTEGER DEFAULT 0)")
        self.changed = threading.Condition()

    def put(self, event: types.CompanyEvent) -> bool:
        with self.changed, self.database:
            waiting = self.database.execute("SELECT count(*) FROM event WHERE answered = 0").fetchone()[0]
            if waiting >= WAITING_MAX:
                return False
            self.database.execute("INSERT OR IGNORE INTO event (id, body) VALUES (?, ?)", (event["id"], json.dumps(event)))
            self.changed.notify()
        return True

    def next(self) -> types.CompanyEvent:
        query = "SELECT body FROM event WHERE answered = 0 ORDER BY id LIMIT 1"
        with self.changed:
            while (row := self.database.execute(query).fetchone()) is None:
                self.changed.wait()
        event: types.CompanyEvent = json.loads(row[0])
        return event

    def finish(self, event: types.CompanyEvent) -> None:
        with self.changed, self.database:
            self.database.execute("UPDATE event SET answered = 1 WHERE id = ?", (event["id"],))
            self.database.execute("DELETE FROM event WHERE answered = 1 AND id <= ?", (event["id"] - SEEN_MAX,))


def subscribe(hotline: Hotline, url: str) -> types.WebhookWithSecret:
    """The bot's webhook, with a secret that only this process knows."""
    for webhook in hotline.webhooks.list():
        if webhook["url"] == url:
            return hotline.webhooks.rotate_secret(webhook["id"])
    # Not active yet: its first event could arrive before its secret.
    return hotline.webhooks.create(url=url, types=["message.received"], active=False)


def answer(hotline: Hotline, event: types.CompanyEvent) -> None:
    if event["type"] != "message.received" or "deleted" in event["data"]:
        return
    message = event["data"]
    # The event has the ticket as it was; a person may have taken it since.
    ticket = hotline.tickets.get(message["ticketId"])
    if ticket["queue"] or ticket["assignedTo"] or ticket["status"] == "closed":
        return  # People have it.
    # A key of the event: a delivery that is repeated to another process answers once.
    key = f"bot-{event['id']}"
    try:
        if "person" in (message["body"] or "").lower():
            hotline.tickets.add_note(ticket["id"], body="The visitor asked for a person.", idempotency_key=f"{key}-note")
            hotline.messages.send(
                ticket_id=ticket["id"], type="text", body="A colleague will answer you.", queue_id=QUEUE_ID, idempotency_key=key
            )
        else:
            body = "Hello {{firstName}}, we are open from 9 to 18. Write “person” to talk to one."
            hotline.messages.send(ticket_id=ticket["id"], type="text", body=body, idempotency_key=key)
    except ConflictError as error:
        print(f"ticket {ticket['id']} has changed meanwhile: {error}", flush=True)


def work(hotline: Hotline, inbox: Inbox) -> None:
    while True:
        event = inbox.next()
        try:
            answer(hotline, event)
        except HotlineError as error:
            print(f"event {event['id']}: {error}", flush=True)
            if not isinstance(error, ApiError) or error.status in (401, 403, 429) or error.status >= 500:
                time.sleep(RETRY_SECONDS)
                continue  # It may pass: the same event again.
        inbox.finish(event)


class Receiver(BaseHTTPRequestHandler):
    """Verifies, stores, and answers at once."""

    secret = ""
    inbox: Inbox

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        status = 413 if length > BODY_BYTES_MAX else self.receive(self.rfile.read(length))
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def receive(self, raw: bytes) -> int:
        try:
            event = webhooks.verify(raw, self.headers, self.secret)
        except WebhookVerificationError:
            return 401
        return 204 if self.inbox.put(event) else 503

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    hotline = Hotline()
    Receiver.inbox = Inbox(os.environ["BOT_FILE"])
    webhook = subscribe(hotline, os.environ["BOT_URL"])
    Receiver.secret = webhook["secret"] or ""
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["BOT_PORT"])), Receiver)
    threading.Thread(target=work, args=(hotline, Receiver.inbox), daemon=True).start()
    threading.Thread(target=hotline.webhooks.update, args=(webhook["id"],), kwargs={"active": True}).start()
    print("the bot is ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
