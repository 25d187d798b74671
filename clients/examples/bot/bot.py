"""A bot that answers visitors by webhook, and hands over to a queue when they want a person.

HOTLINE_URL, HOTLINE_API_KEY, BOT_PORT, BOT_URL (where the service reaches it) and BOT_QUEUE are in the environment.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hotline import ConflictError, Hotline, WebhookVerificationError, types, webhooks

QUEUE_ID = int(os.environ["BOT_QUEUE"])
# Events that wait for an answer; more are refused, and the service sends them again later.
WAITING_MAX = 1000
# Ids of events by which a repeated delivery is recognized.
SEEN_MAX = 10_000
BODY_BYTES_MAX = 2 * 1024 * 1024

waiting: queue.Queue[types.CompanyEvent] = queue.Queue(WAITING_MAX)
seen: OrderedDict[int, None] = OrderedDict()
lock = threading.Lock()


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


def work(hotline: Hotline) -> None:
    while True:
        event = waiting.get()
        try:
            answer(hotline, event)
        except Exception as error:  # One event must not end the bot.
            print(f"event {event['id']}: {error}", flush=True)


class Receiver(BaseHTTPRequestHandler):
    """Verifies, stores, and answers at once."""

    secret = ""

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
        with lock:
            if event["id"] in seen:
                return 204
            try:
                waiting.put_nowait(event)
            except queue.Full:
                return 503
            seen[event["id"]] = None
            while len(seen) > SEEN_MAX:
                seen.popitem(last=False)
        return 204

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    hotline = Hotline()
    webhook = subscribe(hotline, os.environ["BOT_URL"])
    Receiver.secret = webhook["secret"] or ""
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["BOT_PORT"])), Receiver)
    threading.Thread(target=work, args=(hotline,), daemon=True).start()
    threading.Thread(target=hotline.webhooks.update, args=(webhook["id"],), kwargs={"active": True}).start()
    print("the bot is ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
