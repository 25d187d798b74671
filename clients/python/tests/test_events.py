"""Events across disconnects, and the signatures of webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest

import hotline
from conftest import Fake, refusal
from hotline import webhooks
from hotline.sse import SseParser
from test_calls import of


def event(number: int) -> dict[str, Any]:
    return {"id": number, "type": "ticket.opened", "createdAt": "2026-01-31T12:00:00.000Z", "data": {"id": 1}, "previous": None}


def page(numbers: list[int], **meta: Any) -> Any:
    page_meta = {"hasMore": False, "gap": False, "oldestId": 1, "lastId": numbers[-1] if numbers else 0, **meta}
    return 200, {}, {"data": [event(one) for one in numbers], "meta": page_meta}


def stream(*numbers: int) -> Any:
    def answer(request: Any) -> None:
        request.send_response_only(200)
        request.send_header("content-type", "text/event-stream")
        request.end_headers()
        request.wfile.write(b":\n\n")
        for one in numbers:
            request.wfile.write(f"id: {one}\nevent: ticket.opened\ndata: {json.dumps(event(one))}\n\n".encode())
        request.close_connection = True

    return answer


def test_events_continue_after_the_last_one_whatever_ends_the_connection(client: Any, fake: Fake) -> None:
    unavailable = refusal(503, "ERR_API_UNAVAILABLE", {"retry-after": "0"})
    at_four = page([], lastId=4)
    api = client([at_four, at_four, stream(5, 6), unavailable, page([7]), stream(8), page([], lastId=8), stream(9)])
    disconnects: list[Any] = []
    found = api.take(api.events.listen(on_disconnect=disconnects.append), 5)
    assert [one["id"] for one in found] == [5, 6, 7, 8, 9]
    assert len(disconnects) == 2
    # The start asks for the latest event. Each connection reads a page, then a stream; a refused page is retried.
    assert [of(request)["after"] for request in fake.requests] == ["latest", "4", "4", "6", "6", "7", "8", "8"]


def test_the_response_of_a_stream_is_reported(client: Any) -> None:
    responses: list[hotline.ResponseInfo] = []
    api = client([stream(5), refusal(401, "ERR_API_UNAUTHORIZED")], on_response=responses.append)
    assert api.take(api.events.stream(after=4), 1)[0]["id"] == 5
    with pytest.raises(hotline.UnauthorizedError):
        api.take(api.events.stream(after=5), 1)
    reported = [(one.operation, one.status, one.attempt, one.code) for one in responses]
    assert reported == [("streamEvents", 200, 1, None), ("streamEvents", 401, 1, "ERR_API_UNAUTHORIZED")]


def test_a_gap_is_an_error_unless_it_is_handled(client: Any) -> None:
    api = client([page([9], gap=True, oldestId=9)])
    with pytest.raises(hotline.EventGap) as raised:
        api.take(api.events.listen(after=2), 1)
    assert (raised.value.after, raised.value.oldest_id) == (2, 9)
    handled: list[hotline.EventGap] = []
    assert api.take(api.events.listen(after=2, on_gap=handled.append), 1)[0]["id"] == 9
    assert handled[0].after == 2


def test_after_a_gap_events_continue_where_the_log_ends_also_before_the_position(client: Any, fake: Fake) -> None:
    api = client([page([], gap=True, lastId=4), stream(5)])
    assert api.take(api.events.listen(after=9, on_gap=lambda gap: None), 1)[0]["id"] == 5
    assert [of(request)["after"] for request in fake.requests] == ["9", "4"]


@pytest.mark.parametrize("after", [None, "", "36", 1.5, True])
def test_an_invalid_position_is_refused(client: Any, fake: Fake, after: Any) -> None:
    api = client([])
    with pytest.raises(TypeError, match="after must be the id of an event"):
        api.take(api.events.listen(after=after), 1)
    assert fake.requests == []


def test_a_refused_token_ends_the_iteration(client: Any) -> None:
    api = client([page([], lastId=1), refusal(401, "ERR_API_UNAUTHORIZED")])
    with pytest.raises(hotline.UnauthorizedError):
        api.take(api.events.listen(), 1)


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_stream_is_read_in_pieces_of_any_size(size: int) -> None:
    text = ': hello\n\nid: 1\ndata: {"a":\r\ndata: "ü\u2028"}\r\n\r\ndata:x\n\n'.encode()
    parser = SseParser()
    found = [one for at in range(0, len(text), size) for one in parser.feed(text[at : at + size])]
    assert found == ['{"a":\n"ü\u2028"}', "x"]


OLD = "whsec_" + base64.b64encode(b"the old secret").decode()
NEW = "whsec_" + base64.b64encode(b"the new secret").decode()


def signed(body: bytes, secrets: list[str], at: float | None = None) -> dict[str, str]:
    timestamp = str(int(at or time.time()))
    content = f"evt_1_5.{timestamp}.".encode() + body

    def sign(secret: str) -> str:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()

    return {"webhook-id": "evt_1_5", "webhook-timestamp": timestamp, "webhook-signature": " ".join(map(sign, secrets))}


def test_a_webhooks_request_is_verified_with_either_secret_in_any_kind_of_headers() -> None:
    body = json.dumps(event(5)).encode()
    for headers in (signed(body, [OLD]), signed(body, [NEW, OLD]), {**signed(body, [NEW]), "Content-Type": "x"}):
        assert webhooks.verify(body, headers, [OLD, NEW])["id"] == 5
    upper = {name.upper(): [value] for name, value in signed(body, [OLD]).items()}
    assert webhooks.verify(body.decode(), upper, OLD)["type"] == "ticket.opened"


def test_an_altered_or_expired_webhook_request_is_refused() -> None:
    body = json.dumps(event(5)).encode()
    good = signed(body, [OLD])
    cases: list[tuple[bytes, dict[str, str], str]] = [
        (body + b" ", good, OLD),
        (body, good, NEW),
        (body, signed(body, [OLD], time.time() - 301), OLD),
        (body, {**good, "webhook-timestamp": "x"}, OLD),
        (body, {**good, "webhook-id": "evt_1_6"}, OLD),
        (body, {**good, "webhook-signature": good["webhook-signature"].replace("v1,", "v2,")}, OLD),
        (body, {**good, "webhook-signature": "v1,ü"}, OLD),
        (body, {}, OLD),
    ]
    for raw, headers, secret in cases:
        with pytest.raises(hotline.WebhookVerificationError):
            webhooks.verify(raw, headers, secret)
    with pytest.raises(ValueError, match="whsec_"):
        webhooks.verify(body, good, "whsec_")
