"""Checks that a request to a webhook is the service's: Standard Webhooks, https://www.standardwebhooks.com."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from typing import Any, Iterable, Mapping, Union, cast

from hotline.errors import WebhookVerificationError
from hotline.generated.async_resources import AsyncWebhooks as GeneratedAsyncWebhooks
from hotline.generated.resources import Webhooks as GeneratedWebhooks
from hotline.generated.types import CompanyEvent

TOLERANCE_SECONDS = 300
"""Farthest that the clock of a request may be from ours."""


def verify(
    raw: Union[bytes, str],
    headers: Mapping[str, Any],
    secret: Union[str, Iterable[str]],
    *,
    tolerance: float = TOLERANCE_SECONDS,
    now: float | None = None,
) -> CompanyEvent:
    """The event of a request to a webhook, if the service sent it.

    `raw` is the body as it arrived: parsed and written again it has other bytes. While a secret is being rotated, give
    both.

    :raises WebhookVerificationError: the service did not send it, or it is too old
    """
    given = {name.lower(): value for name, value in headers.items()}
    identifier, timestamp = _header(given, "webhook-id"), _header(given, "webhook-timestamp")
    signatures = [one[3:] for one in _header(given, "webhook-signature").split(" ") if one.startswith("v1,")]
    current = time.time() if now is None else now
    if not (timestamp.isascii() and timestamp.isdigit()) or abs(current - int(timestamp)) > tolerance:
        raise WebhookVerificationError("the request is too old, or its time is in the future")
    body = raw.encode() if isinstance(raw, str) else raw
    signed = f"{identifier}.{timestamp}.".encode() + body
    for one in [secret] if isinstance(secret, str) else secret:
        expected = base64.b64encode(hmac.new(_key(one), signed, hashlib.sha256).digest())
        if any(hmac.compare_digest(expected, signature.encode()) for signature in signatures):
            return _parse(body)
    raise WebhookVerificationError("no signature of the request is valid")


def _header(headers: Mapping[str, Any], name: str) -> str:
    value = headers.get(name)
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    if not isinstance(value, str) or not value:
        raise WebhookVerificationError(f"the request has no {name}")
    return value


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError("a secret of a webhook is whsec_ and a key in base64")
    return key


def _parse(body: bytes) -> CompanyEvent:
    try:
        return cast(CompanyEvent, json.loads(body))
    except ValueError as error:
        raise WebhookVerificationError("the body is not JSON") from error


class Webhooks(GeneratedWebhooks):
    """The operations on webhooks, and `verify`."""

    verify = staticmethod(verify)


class AsyncWebhooks(GeneratedAsyncWebhooks):
    """The operations on webhooks, and `verify`."""

    verify = staticmethod(verify)
