"""What happens to a call between its attempts, without making requests: the same for both kinds of client."""

from __future__ import annotations

import json
import os
import random
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Callable
from urllib.parse import urlsplit

import httpx

from hotline.errors import ApiConnectionError, ApiError, ApiTimeoutError, HotlineError, SecretLost
from hotline.generated.errors import ERRORS_BY_CODE, ERRORS_BY_STATUS
from hotline.request import Options, Prepared, Request, prepare

TIMEOUT_SECONDS = 30.0
RETRIES_MAX = 4
RETRY_AFTER_MAX_SECONDS = 60.0
STREAM_SILENCE_MAX_SECONDS = 45.0
"""The service sends a comment every 15 seconds: a stream that is silent for longer is dead."""
_RETRIED = frozenset((408, 429, 500, 502, 503, 504))
_WAIT_FIRST_SECONDS = 0.5
_WAIT_MAX_SECONDS = 8.0


@dataclass(frozen=True)
class RateLimit:
    """The limits of the company, from a response."""

    limit: int
    """Requests allowed per minute."""
    remaining: int
    """Requests remaining now."""
    reset: int
    """Seconds until the full limit is available again."""


@dataclass(frozen=True)
class ResponseInfo:
    """One attempt of a call, as `on_response` gets it."""

    operation: str
    """The operation, as the API document names it."""
    status: int
    code: str | None
    """The code of an error, if the response is one."""
    request_id: str | None
    """The id of the request in the logs of the service."""
    attempt: int
    """The number of the attempt, from 1."""
    is_replay: bool
    """Whether the response repeats that of an earlier request with the same key."""
    etag: str | None
    """The `ETag` of the record, if the response has one."""
    date: datetime | None
    """The clock of the service."""
    rate_limit: RateLimit | None


@dataclass
class Answer:
    """A response that is no error."""

    status: int
    headers: httpx.Headers
    text: str


class Settings:
    """How a client reaches the service, and the service's clock."""

    def __init__(
        self,
        url: str | None,
        api_key: str | None,
        timeout: float,
        max_retries: int,
        max_retry_after: float,
        on_response: Callable[[ResponseInfo], None] | None,
    ) -> None:
        self.base = _base(url or os.environ.get("HOTLINE_URL"))
        self._api_key = api_key or os.environ.get("HOTLINE_API_KEY") or ""
        if not self._api_key:
            raise HotlineError("no API token: give api_key, or set HOTLINE_API_KEY")
        if not re.fullmatch(r"[!-~]+", self._api_key):
            raise HotlineError("the API token contains characters that no token has")
        self.timeout = timeout
        self.max_retries = max_retries
        self.max_retry_after = max_retry_after
        self.on_response = on_response
        self._clock_offset = timedelta()

    def prepare(self, request: Request, options: Options, accept: str = "application/json") -> Prepared:
        return prepare(self.base, self._api_key, request, options, accept)

    def now(self) -> datetime:
        return datetime.now(timezone.utc) + self._clock_offset

    def received(self, prepared: Prepared, response: httpx.Response) -> None:
        """Notes the clock, and refuses to follow a redirect: another host must not get the token."""
        if 300 <= response.status_code < 400:
            raise HotlineError(f"{prepared.request.id}: the service redirects; set the URL to where it is")
        if (date := date_of(response.headers)) is not None:
            self._clock_offset = date - datetime.now(timezone.utc)

    def report(self, prepared: Prepared, answer: Answer, attempt: int, error: ApiError | None) -> None:
        """Calls the caller's `on_response`."""
        if self.on_response:
            self.on_response(_info(prepared.request.id, answer, attempt, error.code if error else None))


class Call:
    """A call, attempt by attempt."""

    def __init__(self, settings: Settings, request: Request, options: Options, accept: str = "application/json") -> None:
        self.prepared = settings.prepare(request, options, accept)
        self.timeout = settings.timeout if options.timeout is None else options.timeout
        self.wait = 0.0
        """How long to wait before the next attempt, in seconds."""
        self._settings = settings
        self._retries = settings.max_retries if options.max_retries is None else options.max_retries
        self._attempt = 1
        self._is_outcome_unknown = False

    def answered(self, response: httpx.Response) -> Answer | None:
        """The answer; `None` if there is another attempt. What no attempt can change is raised."""
        self._settings.received(self.prepared, response)
        answer = Answer(response.status_code, response.headers, response.text)
        error = error_of(self.prepared, answer, self._settings.now()) if answer.status >= 400 else None
        self._settings.report(self.prepared, answer, self._attempt, error)
        if error is None:
            return answer
        # An earlier attempt may have deleted the record before its response was lost.
        if self._is_outcome_unknown and self.prepared.request.method == "DELETE" and error.status == 404:
            return Answer(204, httpx.Headers(), "")
        wait = error.retry_after or 0.0
        may_repeat = self.prepared.request.is_safe or error.status == 429
        if error.status not in _RETRIED or not may_repeat or wait > self._settings.max_retry_after:
            raise error
        self._next(error, wait, is_outcome_unknown=error.status >= 500)
        return None

    def failed(self, error: httpx.HTTPError) -> None:
        """An attempt without a response."""
        explained = explain(error, self.prepared.request.id)
        if not self.prepared.request.is_safe:
            raise explained from error
        self._next(explained, 0.0, is_outcome_unknown=True)

    def _next(self, error: HotlineError, retry_after: float, *, is_outcome_unknown: bool) -> None:
        if self._attempt > self._retries:
            raise error
        self._is_outcome_unknown |= is_outcome_unknown
        self.wait = retry_after + wait_after(self._attempt)
        self._attempt += 1


def wait_after(attempt: int) -> float:
    """How long to wait after this attempt (from 1): random, so that clients do not come back together."""
    longest: float = min(_WAIT_MAX_SECONDS, _WAIT_FIRST_SECONDS * 2 ** (attempt - 1))
    return longest / 2 + random.random() * longest / 2


def is_passing(error: HotlineError) -> bool:
    """Whether a later attempt can succeed."""
    return isinstance(error, ApiConnectionError) or (isinstance(error, ApiError) and error.status in _RETRIED)


def explain(error: httpx.HTTPError, operation: str) -> ApiConnectionError:
    if isinstance(error, httpx.TimeoutException):
        return ApiTimeoutError(f"{operation}: no response in time")
    return ApiConnectionError(f"{operation}: no response from the service: {error or type(error).__name__}")


def error_of(prepared: Prepared, answer: Answer, now: datetime) -> ApiError:
    """The error of a response, as the class of its code, else of its status."""
    try:
        error = json.loads(answer.text)["error"]
        code, message, details = str(error["code"]), str(error["message"]), error.get("details")
    except (ValueError, TypeError, KeyError):
        # A proxy's page: the status says what there is to say.
        code, message, details = "", "the response is not one of Hotline", None
    status, known = ERRORS_BY_CODE.get(code, (0, ApiError))
    # 408 has the code of 400: then the status says more.
    kind = known if status == answer.status else ERRORS_BY_STATUS.get(answer.status, ApiError)
    return kind(
        operation=prepared.request.id,
        status=answer.status,
        code=code,
        message=message,
        details=details,
        request_id=answer.headers.get("x-request-id"),
        retry_after=_retry_after(answer.headers, now),
    )


def parse(request: Request, answer: Answer) -> Any:
    try:
        return json.loads(answer.text)
    except ValueError as error:
        raise HotlineError(f"{request.id}: the response is not JSON; is the URL that of Hotline?") from error


def data_of(request: Request, answer: Answer) -> Any:
    """The record of a response, with its secret if it has one."""
    data = parse(request, answer)["data"]
    is_replay = answer.headers.get("idempotent-replay") == "true"
    if request.secret and is_replay and data.get(request.secret) is None:
        raise SecretLost(request.id, request.secret, data)
    return data


def date_of(headers: httpx.Headers) -> datetime | None:
    return _http_date(headers.get("date", ""))


def _http_date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=timezone.utc)


def _retry_after(headers: httpx.Headers, now: datetime) -> float | None:
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    at = _http_date(value)
    return max(0.0, (at - now).total_seconds()) if at else None


def _info(operation: str, answer: Answer, attempt: int, code: str | None) -> ResponseInfo:
    headers = answer.headers
    limits = [headers.get(f"ratelimit-{name}") for name in ("limit", "remaining", "reset")]
    return ResponseInfo(
        operation=operation,
        status=answer.status,
        code=code,
        request_id=headers.get("x-request-id"),
        attempt=attempt,
        is_replay=headers.get("idempotent-replay") == "true",
        etag=headers.get("etag"),
        date=date_of(headers),
        rate_limit=RateLimit(*(int(one) for one in limits if one)) if all(one and one.isdigit() for one in limits) else None,
    )


def _base(url: str | None) -> str:
    if not url:
        raise HotlineError("no URL of the service: give url, or set HOTLINE_URL")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise HotlineError("the URL of the service must be like https://hotline.example, without a user or password")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/api/v1')}"
