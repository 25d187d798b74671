"""What is sent, what is tried again, and which error comes of what."""

from __future__ import annotations

import email
import email.policy
import io
import json
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import hotline
from conftest import Fake, hang_up, refusal
from hotline.generated.errors import ERRORS_BY_CODE

TAG = {"data": {"id": 7, "name": "VIP"}}
ROOT = Path(__file__).resolve().parents[3]


def of(request: Any) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(request.path).query, keep_blank_values=True).items()}


def test_a_write_has_a_key_and_every_attempt_the_same_one(client: Any, fake: Fake) -> None:
    api = client([hang_up, refusal(503, "ERR_API_UNAVAILABLE", {"retry-after": "0"}), (201, {}, TAG)])
    assert api.run(api.tags.create(name="VIP"))["id"] == 7
    assert len(fake.requests) == 3
    keys = {request.headers["idempotency-key"] for request in fake.requests}
    assert len(keys) == 1 and len(keys.pop()) == 36
    assert json.loads(fake.requests[2].body) == {"name": "VIP"}
    assert fake.requests[0].headers["authorization"] == "Bearer sk_live_test"


def test_two_writes_have_different_keys_unless_the_caller_gives_one(client: Any, fake: Fake) -> None:
    api = client([(201, {}, TAG)])
    api.run(api.tags.create(name="a"))
    api.run(api.tags.create(name="b"))
    api.run(api.tags.update(7, name="c", idempotency_key="order-4711"))
    first, second, third = (request.headers["idempotency-key"] for request in fake.requests)
    assert first != second and third == "order-4711"


def test_retry_after_is_waited_for_and_a_longer_one_is_an_error(client: Any, fake: Fake) -> None:
    api = client([refusal(429, "ERR_API_RATE_LIMITED", {"retry-after": "1"}), (200, {}, TAG), refusal(429, "ERR_API_RATE_LIMITED", {"retry-after": "3600"})])
    start = time.monotonic()
    api.run(api.tags.get(7))
    assert time.monotonic() - start >= 1
    with pytest.raises(hotline.RateLimitedError) as raised:
        api.run(api.tags.get(7))
    assert raised.value.retry_after == 3600
    assert len(fake.requests) == 3


def test_what_another_attempt_cannot_change_is_not_tried_again(client: Any, fake: Fake) -> None:
    api = client([refusal(409, "ERR_API_CONFLICT", details={"field": "name", "id": 3})])
    with pytest.raises(hotline.ConflictError) as raised:
        api.run(api.tags.create(name="VIP"))
    error = raised.value
    assert (error.request_id, error.details, error.operation) == ("req_1", {"field": "name", "id": 3}, "createTag")
    assert len(fake.requests) == 1


def test_a_write_without_a_key_is_not_repeated_when_its_outcome_is_unknown(client: Any, fake: Fake) -> None:
    api = client([hang_up])
    with pytest.raises(hotline.ApiConnectionError):
        api.run(api.visitors.show_agent_typing("key", 7))
    assert len(fake.requests) == 1


def test_attempts_end_after_max_retries(client: Any, fake: Fake) -> None:
    api = client([refusal(503, "ERR_API_UNAVAILABLE")])
    with pytest.raises(hotline.UnavailableError):
        api.run(api.tags.get(7, max_retries=1))
    assert len(fake.requests) == 2


def test_a_deletion_whose_response_was_lost_is_done_if_the_record_is_missing(client: Any, fake: Fake) -> None:
    api = client([hang_up, refusal(404, "ERR_API_NOT_FOUND")])
    api.run(api.tags.delete(7))
    assert len(fake.requests) == 2
    with pytest.raises(hotline.NotFoundError):
        api.run(api.tags.delete(7))


def test_a_call_ends_in_time(client: Any) -> None:
    api = client([lambda request: time.sleep(2)])
    with pytest.raises(hotline.ApiTimeoutError):
        api.run(api.tags.get(7, timeout=0.1, max_retries=0))


def test_a_secret_that_was_lost_names_its_record(client: Any) -> None:
    record = {"id": 5, "url": "https://example.com", "secret": None}
    api = client([hang_up, (201, {"idempotent-replay": "true"}, {"data": record})])
    with pytest.raises(hotline.SecretLost) as raised:
        api.run(api.webhooks.create(url="https://example.com"))
    assert raised.value.id == 5 and raised.value.record == record


def test_every_code_of_the_document_is_its_class(client: Any, fake: Fake) -> None:
    document = json.loads((ROOT / "openapi.json").read_text())
    codes = document["components"]["schemas"]["ApiError"]["properties"]["error"]["properties"]["code"]["enum"]
    assert sorted(ERRORS_BY_CODE) == sorted(codes)
    api = client([], max_retries=0)
    for code, (status, kind) in ERRORS_BY_CODE.items():
        fake.answers = [refusal(status, code)]
        with pytest.raises(kind) as raised:
            api.run(api.tags.get(7))
        assert type(raised.value) is kind is getattr(hotline, kind.__name__)
        assert raised.value.code == code
    fake.answers = [refusal(408, "ERR_API_BAD_REQUEST")]
    with pytest.raises(hotline.RequestTimeoutError):
        api.run(api.tags.get(7))


def test_codes_and_statuses_that_are_not_known_yet_are_errors_too(client: Any) -> None:
    api = client([refusal(409, "ERR_API_NEW"), refusal(418, "ERR_API_TEAPOT"), (502, {}, "<html>")], max_retries=0)
    with pytest.raises(hotline.ConflictError, match="ERR_API_NEW"):
        api.run(api.tags.get(7))
    for status, code in ((418, "ERR_API_TEAPOT"), (502, "")):
        with pytest.raises(hotline.ApiError) as raised:
            api.run(api.tags.get(7))
        assert (raised.value.status, raised.value.code) == (status, code)


def test_invalid_fields_are_listed_with_their_codes(client: Any) -> None:
    fields = [{"field": "name", "reason": "is required", "code": "required", "params": {}}]
    api = client([refusal(422, "ERR_API_VALIDATION", details=fields)])
    with pytest.raises(hotline.ValidationError) as raised:
        api.run(api.contacts.create())
    assert raised.value.fields == fields and isinstance(raised.value, hotline.UnprocessableError)


def test_the_token_is_in_no_error_and_follows_no_redirect(client: Any, fake: Fake) -> None:
    api = client([(302, {"location": "/elsewhere"}, {}), refusal(401, "ERR_API_UNAUTHORIZED")])
    with pytest.raises(hotline.HotlineError, match="redirects"):
        api.run(api.tags.get(7))
    assert len(fake.requests) == 1
    with pytest.raises(hotline.UnauthorizedError) as raised:
        api.run(api.tags.get(7))
    shown = repr(api.hotline) + repr(api.hotline.tags) + repr(raised.value) + str(raised.value)
    assert "sk_live" not in shown


def test_a_client_says_what_it_lacks_without_showing_a_password(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOTLINE_URL", raising=False)
    monkeypatch.delenv("HOTLINE_API_KEY", raising=False)
    with pytest.raises(hotline.HotlineError, match="HOTLINE_URL"):
        make(api_key="sk_live_x")
    with pytest.raises(hotline.HotlineError, match="HOTLINE_API_KEY"):
        make(url="https://hotline.example")
    with pytest.raises(hotline.HotlineError) as raised:
        make(url="https://u:hunter2@hotline.example", api_key="k")
    assert "hunter2" not in str(raised.value)


def test_times_lists_and_flags_of_a_query_are_as_the_service_reads_them(client: Any, fake: Fake) -> None:
    api = client([(200, {}, {"data": [], "meta": {"hasMore": False, "lastId": 0}})])
    api.take(api.tickets.list(unassigned=True, updated_from=datetime.fromtimestamp(0, timezone.utc)), 1)
    api.run(api.events.list(types=["ticket.opened", "ticket.closed"], after=3))
    assert of(fake.requests[0]) == {"unassigned": "true", "updatedFrom": "1970-01-01T00:00:00.000Z", "cursor": ""}
    assert of(fake.requests[1]) == {"types": "ticket.opened,ticket.closed", "after": "3"}
    with pytest.raises(ValueError, match="time zone"):
        api.take(api.tickets.list(updated_from=datetime(2026, 1, 1)), 1)


def test_none_clears_a_field_and_what_is_not_given_is_not_sent(client: Any, fake: Fake) -> None:
    api = client([(200, {}, {"data": {}})])
    api.run(api.contacts.update(7, email=None, if_match="2026-01-31T12:00:00.000Z"))
    assert json.loads(fake.requests[0].body) == {"email": None}
    assert fake.requests[0].headers["if-match"] == '"2026-01-31T12:00:00.000Z"'


def test_ids_are_one_segment_of_a_path_and_none_is_missing(client: Any, fake: Fake) -> None:
    api = client([(200, {}, {"data": {}})])
    api.run(api.sessions.get("a/../b?c"))
    assert fake.requests[0].path == "/api/v1/webchat/sessions/a%2F..%2Fb%3Fc"
    with pytest.raises(ValueError, match="id is required"):
        api.run(api.contacts.delete(None))


def test_pages_follow_the_cursor_and_the_first_ones_time_is_kept(client: Any, fake: Fake) -> None:
    def page(ids: list[int], cursor: str | None) -> Any:
        meta = {"perPage": 2, "hasMore": cursor is not None, "nextCursor": cursor}
        return 200, {"date": "Sat, 31 Jan 2026 12:00:00 GMT"}, {"data": [{"id": one} for one in ids], "meta": meta}

    api = client([page([1, 2], "c1"), page([], "c2"), page([3], None)])
    pages = api.contacts.list(per_page=2, search="maria")
    assert [one["id"] for one in api.take(pages, 9)] == [1, 2, 3]
    assert pages.started_at == datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
    assert abs((api.now() - pages.started_at).total_seconds()) < 5
    assert [of(request)["cursor"] for request in fake.requests] == ["", "c1", "c2"]
    with pytest.raises(ValueError, match="more than 0"):
        api.run(api.contacts.list().to_list(0))
    assert api.run(api.contacts.list().first())["id"] == 3


def test_files_from_paths_contents_and_streams_are_one_form(client: Any, fake: Fake, tmp_path: Path) -> None:
    api = client([hang_up, (202, {}, {"data": {"jobId": "job_1", "status": "queued"}})])
    path = tmp_path / "a.txt"
    path.write_text("from a path")
    stream = hotline.File(iter([b"from a ", b"stream"]), 'b".txt', "text/plain")
    opened = io.BytesIO(b"opened")
    job = api.run(api.messages.send(ticket_id=7, type="media", body="See", template={"name": "x"}, medias=[path, stream, hotline.File(opened, "c")]))
    assert job["jobId"] == "job_1"
    assert fake.requests[0].body == fake.requests[1].body
    head = f"content-type: {fake.requests[1].headers['content-type']}\r\n\r\n".encode()
    parts = list(email.message_from_bytes(head + fake.requests[1].body, policy=email.policy.HTTP).iter_parts())
    found = [(part.get_param("name", header="content-disposition"), part.get_payload(decode=True)) for part in parts]
    assert ("ticketId", b"7") in found and ("template", b'{"name": "x"}') in found
    assert [content for name, content in found if name == "medias"] == [b"from a path", b"from a stream", b"opened"]


def test_every_attempt_is_reported(client: Any) -> None:
    seen: list[hotline.ResponseInfo] = []
    limits = {"ratelimit-limit": "9", "ratelimit-remaining": "8", "ratelimit-reset": "7"}
    api = client([refusal(503, "ERR_API_UNAVAILABLE"), (200, limits, TAG)], on_response=seen.append)
    api.run(api.tags.get(7))
    assert [(one.status, one.attempt, one.code) for one in seen] == [(503, 1, "ERR_API_UNAVAILABLE"), (200, 2, None)]
    assert seen[1].rate_limit == hotline.RateLimit(9, 8, 7)


def test_an_exception_of_on_response_ends_the_call(client: Any, fake: Fake) -> None:
    def fail(response: hotline.ResponseInfo) -> None:
        raise LookupError(response.operation)

    api = client([(200, {}, TAG)], on_response=fail)
    with pytest.raises(LookupError, match="getTag"):
        api.run(api.tags.get(7))
    with pytest.raises(LookupError, match="streamEvents"):
        api.take(api.events.stream(), 1)
    assert len(fake.requests) == 2
