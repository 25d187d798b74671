"""A server that answers what a test says, and keeps what it was asked; and both kinds of client, driven alike."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, Callable, Iterator

import pytest

from hotline import AsyncHotline, Hotline

SECONDS_MAX = 30


class Fake:
    """Answers each request by the next of `answers`; the last one repeats. An answer is a function or a tuple of status,
    headers and body."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.requests: list[Any] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                fake.requests.append(SimpleNamespace(path=self.path, headers=self.headers, body=body))
                answer = fake.answers[min(len(fake.requests), len(fake.answers)) - 1]
                if callable(answer):
                    answer(self)
                    return
                status, headers, body = answer
                content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response_only(status)
                sent = {"content-type": "application/json", "x-request-id": f"req_{len(fake.requests)}"}
                for name, value in {**sent, **headers, "content-length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


class Blocking:
    """Drives the blocking client."""

    def __init__(self, hotline: Hotline) -> None:
        self.hotline = hotline

    def __getattr__(self, name: str) -> Any:
        return getattr(self.hotline, name)

    def run(self, result: Any) -> Any:
        return result

    def take(self, iterable: Any, count: int) -> list[Any]:
        found = []
        if count:
            for one in iterable:
                found.append(one)
                if len(found) == count:
                    break
        return found


class Asynchronous(Blocking):
    """Drives the asynchronous one in a loop of its own."""

    def __init__(self, hotline: Any) -> None:
        super().__init__(hotline)
        self.loop = asyncio.new_event_loop()

    def run(self, result: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(result, SECONDS_MAX)) if asyncio.iscoroutine(result) else result

    def take(self, iterable: Any, count: int) -> list[Any]:
        async def take() -> list[Any]:
            found: list[Any] = []
            iterator = iterable.__aiter__()
            try:
                while len(found) < count:
                    found.append(await anext(iterator))
            except StopAsyncIteration:
                pass
            finally:
                await iterator.aclose()
            return found

        return self.run(take())


@pytest.fixture
def fake() -> Iterator[Fake]:
    server = Fake()
    yield server
    server.server.shutdown()
    server.server.server_close()


@pytest.fixture(params=["blocking", "asynchronous"])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Makes clients of one kind."""
    made: list[Any] = []

    def of(**options: Any) -> Any:
        is_async = request.param == "asynchronous"
        client = Asynchronous(AsyncHotline(**options)) if is_async else Blocking(Hotline(**options))
        made.append(client)
        return client

    yield of
    for client in made:
        client.run(client.hotline.close())
        if isinstance(client, Asynchronous):
            client.loop.close()


@pytest.fixture
def client(fake: Fake, make: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a client of the fake server, which gives these answers."""

    def of(answers: list[Any], **options: Any) -> Any:
        fake.answers = answers
        return make(url=fake.url, api_key="sk_live_test", **options)

    return of


def refusal(status: int, code: str, headers: dict[str, str] | None = None, **more: Any) -> Any:
    return status, headers or {}, {"error": {"code": code, "message": "no", **more}}


def hang_up(request: Any) -> None:
    """Ends the connection without an answer."""
    request.close_connection = True
    request.connection.shutdown(2)
