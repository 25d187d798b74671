"""A request, as generated code describes it and as it is sent."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Final, Mapping, TypeVar, Union
from urllib.parse import quote, urlencode

from hotline.files import form
from hotline.version import VERSION

T = TypeVar("T")


class NotGiven:
    """A field that is not sent; `None` is sent as `null`, which clears it."""

    def __repr__(self) -> str:
        return "NOT_GIVEN"

    def __bool__(self) -> bool:
        return False


NOT_GIVEN: Final = NotGiven()
Given = Union[T, NotGiven]


@dataclass(frozen=True)
class Options:
    """What a caller may choose for one call."""

    timeout: float | None = None
    max_retries: int | None = None
    idempotency_key: str | None = None
    if_match: str | None = None


@dataclass(frozen=True)
class Request:
    """A request, as generated code describes it."""

    id: str
    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    keyed: bool = False
    """Whether the operation takes an `Idempotency-Key`."""
    secret: str | None = None
    """The field of the record that a replay lacks."""

    @property
    def is_safe(self) -> bool:
        """Whether it may be repeated when nobody knows if it took effect."""
        return self.method in ("GET", "DELETE") or self.keyed


@dataclass(frozen=True)
class Prepared:
    """A request, as it is sent."""

    request: Request
    url: str
    headers: dict[str, str] = field(repr=False)
    content: bytes | None = field(repr=False)


def segment(value: int | str) -> str:
    """An id as a segment of a path. An empty one would address another resource."""
    text = "" if value is None else str(value)
    if text in ("", ".", ".."):
        raise ValueError(f'an id is required, not "{text}"')
    return quote(text, safe="")


def prepare(base: str, api_key: str, request: Request, options: Options, accept: str) -> Prepared:
    """Builds the request once, so that every attempt is the same."""
    headers = {"authorization": f"Bearer {api_key}", "accept": accept, "user-agent": f"hotline-python/{VERSION}"}
    key = options.idempotency_key or str(uuid.uuid4())
    if request.keyed:
        headers["idempotency-key"] = key
    if options.if_match is not None:
        headers["if-match"] = _etag(options.if_match)
    content = None
    if request.body is not None:
        fields = {name: plain(value) for name, value in request.body.items() if value is not NOT_GIVEN and name != "medias"}
        if files := request.body.get("medias"):
            # The boundary follows from the key, so that equal calls have equal bytes.
            boundary = hashlib.sha256(key.encode()).hexdigest()[:48]
            content = form(fields, files, boundary)
            headers["content-type"] = f"multipart/form-data; boundary={boundary}"
        else:
            content = json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()
            headers["content-type"] = "application/json"
    return Prepared(request, base + request.path + query(request.query), headers, content)


def query(parameters: Mapping[str, Any]) -> str:
    given = {name: _text(value) for name, value in parameters.items() if value is not None}
    return "?" + urlencode(given) if given else ""


def _text(value: Any) -> str:
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def plain(value: Any) -> Any:
    """A value as JSON has it: times are in UTC."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time needs a time zone, such as datetime.now(timezone.utc)")
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def _etag(value: str) -> str:
    return value if value == "*" or value.startswith(('"', 'W/"')) else f'"{value}"'
