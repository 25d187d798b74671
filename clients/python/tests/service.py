"""The clients and a running service: `clients/service.sh pytest clients/python/tests/service.py`."""

from __future__ import annotations

import os
import threading
import time
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import urljoin

import pytest

import hotline
from hotline import webhooks

CHANNEL = int(os.environ["HOTLINE_CHANNEL"])


def unique() -> str:
    return uuid.uuid4().hex[:8]


@pytest.fixture
def api(make: Any) -> Any:
    return make()


def conversation(api: Any, name: str = "Maria") -> tuple[Any, int]:
    """A conversation of a visitor with the company."""
    session = api.run(api.sessions.open(channel_id=CHANNEL, visitor={"name": name, "externalId": unique()}))
    message = api.run(api.sessions.send_message(session["id"], body="Is anyone there?"))
    return session, message["ticketId"]


def test_a_conversation_from_a_visitors_question_to_a_closed_ticket(api: Any) -> None:
    session, ticket = conversation(api)
    assert session["token"].startswith("vt_")
    job = api.run(api.messages.send(ticket_id=ticket, type="text", body="Hello {{firstName}}!"))
    bodies = [one["body"] for one in api.take(api.tickets.list_messages(ticket), 9)]
    assert bodies == ["Is anyone there?", "Hello Maria!"]
    assert api.run(api.messages.get_job(job["jobId"]))["ticketId"] == ticket
    assert api.run(api.tickets.close(ticket))["status"] == "closed"
    with pytest.raises(hotline.TicketClosedError) as raised:
        api.run(api.tickets.close(ticket))
    assert isinstance(raised.value, hotline.ConflictError)


def test_a_file_is_sent_and_can_be_read_at_its_address(api: Any) -> None:
    _, ticket = conversation(api)
    file = hotline.File(b"a,b\n1,2\n", "invoice.csv", "text/csv")
    api.run(api.messages.send(ticket_id=ticket, type="media", body="The invoice", medias=[file]))
    media = next(one["media"] for one in api.take(api.tickets.list_messages(ticket), 9) if one["media"])
    assert media["fileName"] == "invoice.csv"
    with urllib.request.urlopen(urljoin(os.environ["HOTLINE_URL"], media["url"])) as response:
        assert response.read() == b"a,b\n1,2\n"


def test_the_same_key_takes_effect_once_and_another_body_is_a_conflict(make: Any) -> None:
    seen: list[bool] = []
    api = make(on_response=lambda response: seen.append(response.is_replay))
    name = unique()
    first = api.run(api.tags.create(name=name, idempotency_key=name))
    second = api.run(api.tags.create(name=name, idempotency_key=name))
    assert first["id"] == second["id"] and seen == [False, True]
    with pytest.raises(hotline.IdempotencyConflictError):
        api.run(api.tags.create(name=name + "!", idempotency_key=name))


def test_errors_are_of_their_class_with_fields_and_the_id_of_the_request(api: Any, make: Any) -> None:
    with pytest.raises(hotline.NotFoundError) as missing:
        api.run(api.contacts.get(999_999_999))
    assert missing.value.request_id and missing.value.request_id.startswith("req_")
    with pytest.raises(hotline.ValidationError) as invalid:
        api.run(api.contacts.create(email="no"))
    assert sorted((one["field"], one["code"]) for one in invalid.value.fields) == [("email", "not_an_email"), ("name", "required")]
    other = make(api_key="sk_live_wrong")
    with pytest.raises(hotline.UnauthorizedError):
        api.run(other.run(other.tags.get(1)))


def test_a_change_that_is_computed_from_an_old_read_is_refused(api: Any) -> None:
    contact = api.run(api.contacts.create(name=unique()))
    changed = api.run(api.contacts.update(contact["id"], email="a@example.com", if_match=contact["updatedAt"]))
    assert changed["email"] == "a@example.com"
    with pytest.raises(hotline.PreconditionFailedError):
        api.run(api.contacts.update(contact["id"], email=None, if_match=contact["updatedAt"]))
    api.run(api.contacts.delete(contact["id"], if_match=changed["updatedAt"]))


def test_a_list_is_read_to_its_end_over_several_pages(api: Any) -> None:
    word = unique()
    for at in range(7):
        api.run(api.tags.create(name=f"{word} {at}"))
    tags = api.tags.list(search=word, per_page=3)
    assert [len(page.data) for page in api.take(tags.pages(), 9)] == [3, 3, 1]
    assert abs((tags.started_at - api.now()).total_seconds()) < 10


def test_a_lost_secret_names_the_webhook_which_can_then_get_another(api: Any) -> None:
    body = {"url": "https://example.com/hotline", "types": ["ticket.opened"], "idempotency_key": unique()}
    made = api.run(api.webhooks.create(**body))
    assert made["secret"].startswith("whsec_")
    with pytest.raises(hotline.SecretLost) as lost:
        api.run(api.webhooks.create(**body))
    assert lost.value.id == made["id"]
    assert api.run(api.webhooks.rotate_secret(lost.value.id))["secret"].startswith("whsec_")
    api.run(api.webhooks.delete(made["id"]))


def test_a_webhooks_requests_are_verified(api: Any) -> None:
    received: list[tuple[bytes, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.rfile.read(int(self.headers["content-length"])), self.headers))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    webhook = api.run(api.webhooks.create(url=f"http://127.0.0.1:{server.server_address[1]}/", types=["ticket.opened"]))
    assert api.run(api.webhooks.test(webhook["id"]))["status"] == 204
    assert webhooks.verify(*received[0], webhook["secret"])["type"] == "webhook.test"
    other = api.run(api.webhooks.rotate_secret(webhook["id"]))
    api.run(api.webhooks.test(webhook["id"]))
    for secret in (webhook["secret"], other["secret"]):
        assert api.webhooks.verify(*received[1], secret)["type"] == "webhook.test"
    api.run(api.webhooks.delete(webhook["id"]))
    server.shutdown()
    server.server_close()


def test_events_arrive_as_they_happen_and_from_where_a_reader_stopped(api: Any) -> None:
    last = api.run(api.events.list(after="latest"))["meta"]["lastId"]
    name = unique()
    other = hotline.Hotline()
    later = threading.Timer(1.0, lambda: other.contacts.create(name=name))
    later.start()
    start = time.monotonic()
    event = api.take(api.events.listen(types=["contact.created"]), 1)[0]
    assert event["data"]["name"] == name and time.monotonic() - start < 20
    assert event["by"]["type"] == "integration"
    again = api.take(api.events.listen(after=last, types=["contact.created"]), 1)[0]
    assert again == event
    assert api.take(api.events.stream(after=last), 1)[0] == event


def test_a_report_is_rows_or_csv(api: Any) -> None:
    assert isinstance(api.run(api.reports.tickets(group_by="day")), list)
    assert "," in api.run(api.reports.tickets_csv(group_by="day")).splitlines()[0]
