"""Nothing of the document is missing in the client."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

import httpx

from hotline import OPERATIONS, AsyncHotline, Hotline
from test_calls import ROOT

DOCUMENT = json.loads((ROOT / "openapi.json").read_text())
ANSWER = {"data": [], "meta": {"hasMore": False, "gap": False, "lastId": 0, "oldestId": None}}


def documented() -> list[dict[str, Any]]:
    """Every operation that a company's token may call."""
    return [
        {"path": path, "method": method.upper(), **operation}
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
        if {"token": []} in operation.get("security", DOCUMENT["security"])
    ]


def given(operation: dict[str, Any]) -> tuple[list[int], dict[str, Any]]:
    """Its ids, and a value for each field that is required."""
    ids = [at for at, _ in enumerate((one for one in operation.get("parameters", []) if one["in"] == "path"), 1)]
    content = operation.get("requestBody", {}).get("content", {})
    schemas = [DOCUMENT["components"]["schemas"][one["schema"]["$ref"].rsplit("/", 1)[1]] for one in content.values()]
    required = schemas[-1].get("required", []) if schemas else []
    return ids, {re.sub("([A-Z])", lambda match: "_" + match[1].lower(), name): 1 for name in required}


def check(operation: dict[str, Any], sent: httpx.Request) -> None:
    numbers = iter(range(1, 9))
    path = re.sub(r"\{\w+\}", lambda _: str(next(numbers)), operation["path"])
    assert (sent.method, urlsplit(str(sent.url)).path) == (operation["method"], path), operation["operationId"]
    is_keyed = any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", []))
    assert ("idempotency-key" in sent.headers) == is_keyed, operation["operationId"]


def test_no_operation_is_missing() -> None:
    operations = documented()
    under_api = [method for path, methods in DOCUMENT["paths"].items() if path.startswith("/api/v1/") for method in methods]
    assert len(under_api) >= 161
    assert len([one for one in operations if one["path"].startswith("/api/v1/")]) == len(under_api)
    assert sorted(OPERATIONS) == sorted(one["operationId"] for one in operations)


def test_every_operation_is_a_method_that_makes_its_request() -> None:
    sent: list[httpx.Request] = []
    http = httpx.Client(transport=httpx.MockTransport(lambda request: sent.append(request) or httpx.Response(200, json=ANSWER)))
    hotline = Hotline(url="http://hotline.test", api_key="sk_live_test", http=http)
    for operation in documented():
        resource, name, _, _ = OPERATIONS[operation["operationId"]]
        ids, fields = given(operation)
        result = getattr(getattr(hotline, resource), name)(*ids, **fields)
        if hasattr(result, "__iter__") and not isinstance(result, (list, dict)):
            assert list(result) == []
        check(operation, sent[-1])


async def test_every_operation_of_the_asynchronous_client_does_the_same() -> None:
    sent: list[httpx.Request] = []
    http = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: sent.append(request) or httpx.Response(200, json=ANSWER)))
    hotline = AsyncHotline(url="http://hotline.test", api_key="sk_live_test", http=http)
    for operation in documented():
        resource, name, _, _ = OPERATIONS[operation["operationId"]]
        ids, fields = given(operation)
        result = getattr(getattr(hotline, resource), name)(*ids, **fields)
        if hasattr(result, "__aiter__"):
            assert [one async for one in result] == []
        else:
            await result
        check(operation, sent[-1])


def test_every_post_and_put_of_the_api_has_a_key() -> None:
    writes = [one for one in documented() if one["path"].startswith("/api/v1/") and one["method"] in ("POST", "PUT")]
    keyless = [one["operationId"] for one in writes if not any(it["name"] == "Idempotency-Key" for it in one["parameters"])]
    assert keyless == []
