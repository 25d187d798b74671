"""Makes requests with `httpx`, blocking and asynchronous. Logs nothing, and never shows the token."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from datetime import datetime
from typing import Any, AsyncIterator, Iterator

import httpx

from hotline.call import STREAM_SILENCE_MAX_SECONDS, Answer, Call, Settings, data_of, date_of, error_of, explain, parse
from hotline.errors import HotlineError
from hotline.pages import AsyncPages, Pages
from hotline.request import Options, Prepared, Request
from hotline.sse import SseParser

_STREAM = "text/event-stream"


def _stream_timeout(settings: Settings, options: Options) -> httpx.Timeout:
    return httpx.Timeout(options.timeout or settings.timeout, read=STREAM_SILENCE_MAX_SECONDS)


def _with_cursor(request: Request, cursor: str) -> Request:
    return replace(request, query={**request.query, "cursor": cursor})


def _check_stream(settings: Settings, prepared: Prepared, response: httpx.Response, text: str) -> None:
    settings.received(prepared, response)
    answer = Answer(response.status_code, response.headers, text)
    error = error_of(prepared, answer, settings.now()) if answer.status >= 400 else None
    settings.report(prepared, answer, 1, error)
    if error is not None:
        raise error


def _event(operation: str, data: str) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise HotlineError(f"{operation}: an event is not JSON") from error


class Transport:
    """The connection of a blocking client to the service."""

    def __init__(self, settings: Settings, http: httpx.Client) -> None:
        self.settings = settings
        self.http = http

    def data(self, request: Request, options: Options) -> Any:
        return data_of(request, self._send(request, options))

    def whole(self, request: Request, options: Options) -> Any:
        return parse(request, self._send(request, options))

    def nothing(self, request: Request, options: Options) -> None:
        self._send(request, options)

    def text(self, request: Request, accept: str, options: Options) -> str:
        return self._send(request, options, accept).text

    def pages(self, request: Request, options: Options) -> Pages[Any]:
        def read(cursor: str) -> tuple[Any, datetime]:
            answer = self._send(_with_cursor(request, cursor), options)
            return parse(request, answer), date_of(answer.headers) or self.settings.now()

        return Pages(read, request.query.get("cursor") or "")

    def stream(self, request: Request, options: Options) -> Iterator[Any]:
        """The events of one connection, until it ends."""
        prepared = self.settings.prepare(request, options, _STREAM)
        parser = SseParser()
        try:
            timeout = _stream_timeout(self.settings, options)
            with self.http.stream("GET", prepared.url, headers=prepared.headers, timeout=timeout) as response:
                _check_stream(self.settings, prepared, response, "" if response.is_success else response.read().decode("utf-8", "replace"))
                for received in response.iter_bytes():
                    for data in parser.feed(received):
                        yield _event(request.id, data)
        except httpx.HTTPError as error:
            raise explain(error, request.id) from error

    def _send(self, request: Request, options: Options, accept: str = "application/json") -> Answer:
        call = Call(self.settings, request, options, accept)
        sent = call.prepared
        while True:
            try:
                response = self.http.request(
                    request.method, sent.url, headers=sent.headers, content=sent.content, timeout=call.timeout
                )
            except httpx.TransportError as error:
                call.failed(error)
            else:
                if (answer := call.answered(response)) is not None:
                    return answer
            time.sleep(call.wait)


class AsyncTransport:
    """The connection of an asynchronous client to the service."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient) -> None:
        self.settings = settings
        self.http = http

    async def data(self, request: Request, options: Options) -> Any:
        return data_of(request, await self._send(request, options))

    async def whole(self, request: Request, options: Options) -> Any:
        return parse(request, await self._send(request, options))

    async def nothing(self, request: Request, options: Options) -> None:
        await self._send(request, options)

    async def text(self, request: Request, accept: str, options: Options) -> str:
        return (await self._send(request, options, accept)).text

    def pages(self, request: Request, options: Options) -> AsyncPages[Any]:
        async def read(cursor: str) -> tuple[Any, datetime]:
            answer = await self._send(_with_cursor(request, cursor), options)
            return parse(request, answer), date_of(answer.headers) or self.settings.now()

        return AsyncPages(read, request.query.get("cursor") or "")

    async def stream(self, request: Request, options: Options) -> AsyncIterator[Any]:
        """The events of one connection, until it ends."""
        prepared = self.settings.prepare(request, options, _STREAM)
        parser = SseParser()
        try:
            timeout = _stream_timeout(self.settings, options)
            async with self.http.stream("GET", prepared.url, headers=prepared.headers, timeout=timeout) as response:
                text = "" if response.is_success else (await response.aread()).decode("utf-8", "replace")
                _check_stream(self.settings, prepared, response, text)
                async for received in response.aiter_bytes():
                    for data in parser.feed(received):
                        yield _event(request.id, data)
        except httpx.HTTPError as error:
            raise explain(error, request.id) from error

    async def _send(self, request: Request, options: Options, accept: str = "application/json") -> Answer:
        call = Call(self.settings, request, options, accept)
        sent = call.prepared
        while True:
            try:
                response = await self.http.request(
                    request.method, sent.url, headers=sent.headers, content=sent.content, timeout=call.timeout
                )
            except httpx.TransportError as error:
                call.failed(error)
            else:
                if (answer := call.answered(response)) is not None:
                    return answer
            await asyncio.sleep(call.wait)


class Resource:
    """A group of operations."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport


class AsyncResource:
    """A group of operations."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
