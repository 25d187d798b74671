"""Events as they happen, across disconnects: by the stream, and by pages where a stream would begin too late."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any, AsyncIterator, Awaitable, Callable, Iterator, Literal, Sequence, Union

from hotline.call import is_passing, wait_after
from hotline.errors import ApiError, EventGap, HotlineError
from hotline.generated.async_resources import AsyncEvents as GeneratedAsyncEvents
from hotline.generated.resources import Events as GeneratedEvents
from hotline.generated.types import CompanyEvent, CompanyEventList, EventKind

_PAGE = 1000
"""Events of a page while catching up."""
_ATTEMPTS_MAX = 6
"""Attempts after which the wait between two no longer grows."""

After = Union[int, Literal["latest", "oldest"]]


class _Reader:
    """Where a reader is, and how often in a row it has failed."""

    def __init__(self, after: int | None) -> None:
        self.last_id = after
        self._failures = 0

    def gap(self, page: CompanyEventList) -> EventGap | None:
        meta = page["meta"]
        return EventGap(self.last_id or 0, meta["oldestId"]) if meta["gap"] else None

    def read(self, event: CompanyEvent) -> CompanyEvent:
        self.last_id = event["id"]
        self._failures = 0
        return event

    def finished(self, page: CompanyEventList) -> bool:
        meta = page["meta"]
        # A log that was restored from a backup ends before a later position.
        self.last_id = meta["lastId"] if meta["gap"] else max(meta["lastId"], self.last_id or 0)
        return not meta["hasMore"]

    def lost(self, error: HotlineError | None) -> float:
        """How long to wait before the next connection; an error that will not pass is raised."""
        if error is not None and not is_passing(error):
            raise error
        self._failures = min(self._failures + 1, _ATTEMPTS_MAX)
        retry_after = error.retry_after if isinstance(error, ApiError) else None
        return (retry_after or 0.0) + wait_after(self._failures)


class Events(GeneratedEvents):
    """The operations on events, and `listen`."""

    def listen(
        self,
        *,
        after: After = "latest",
        types: Sequence[EventKind] | None = None,
        on_gap: Callable[[EventGap], None] | None = None,
        on_disconnect: Callable[[HotlineError | None], None] | None = None,
    ) -> Iterator[CompanyEvent]:
        """Events as they happen, in order, each once: lost connections are made again, and continue after the last event.

        Store the `id` of each event you have processed, and pass it as `after` next time.

        :param after: The last event that was processed; `latest` for what happens from now, `oldest` for all that is kept.
        :param types: Only these types.
        :param on_gap: Called if events after `after` have expired. Read the records again in it; the events that are kept
            follow. Without it, the gap is raised.
        :param on_disconnect: Called when the connection was lost, before the next attempt.
        """
        reader = _Reader(self._start(after))
        while True:
            error: HotlineError | None = None
            try:
                yield from self._connection(reader, types, on_gap)
            except HotlineError as raised:
                error = raised
            wait = reader.lost(error)
            if on_disconnect:
                on_disconnect(error)
            time.sleep(wait)

    def _start(self, after: After) -> int | None:
        if after == "latest":
            return self.list(after="latest", limit=1)["meta"]["lastId"]
        return _position(after)

    def _connection(
        self, reader: _Reader, types: Sequence[EventKind] | None, on_gap: Callable[[EventGap], None] | None
    ) -> Iterator[CompanyEvent]:
        while True:
            page = self.list(after=reader.last_id, types=types, limit=_PAGE)
            if (gap := reader.gap(page)) is not None:
                if on_gap is None:
                    raise gap
                on_gap(gap)
            for event in page["data"]:
                yield reader.read(event)
            if reader.finished(page):
                break
        for event in self.stream(after=reader.last_id, types=types):
            yield reader.read(event)


class AsyncEvents(GeneratedAsyncEvents):
    """The operations on events, and `listen`."""

    async def listen(
        self,
        *,
        after: After = "latest",
        types: Sequence[EventKind] | None = None,
        on_gap: Callable[[EventGap], Awaitable[None] | None] | None = None,
        on_disconnect: Callable[[HotlineError | None], None] | None = None,
    ) -> AsyncIterator[CompanyEvent]:
        """Events as they happen, in order, each once: lost connections are made again, and continue after the last event.

        Store the `id` of each event you have processed, and pass it as `after` next time.

        :param after: The last event that was processed; `latest` for what happens from now, `oldest` for all that is kept.
        :param types: Only these types.
        :param on_gap: Called if events after `after` have expired. Read the records again in it; the events that are kept
            follow. Without it, the gap is raised.
        :param on_disconnect: Called when the connection was lost, before the next attempt.
        """
        reader = _Reader(await self._start(after))
        while True:
            error: HotlineError | None = None
            try:
                async for event in self._connection(reader, types, on_gap):
                    yield event
            except HotlineError as raised:
                error = raised
            wait = reader.lost(error)
            if on_disconnect:
                on_disconnect(error)
            await asyncio.sleep(wait)

    async def _start(self, after: After) -> int | None:
        if after == "latest":
            return (await self.list(after="latest", limit=1))["meta"]["lastId"]
        return _position(after)

    async def _connection(
        self, reader: _Reader, types: Sequence[EventKind] | None, on_gap: Callable[[EventGap], Any] | None
    ) -> AsyncIterator[CompanyEvent]:
        while True:
            page = await self.list(after=reader.last_id, types=types, limit=_PAGE)
            if (gap := reader.gap(page)) is not None:
                if on_gap is None:
                    raise gap
                if inspect.isawaitable(handled := on_gap(gap)):
                    await handled
            for event in page["data"]:
                yield reader.read(event)
            if reader.finished(page):
                break
        async for event in self.stream(after=reader.last_id, types=types):
            yield reader.read(event)


def _position(after: int | str) -> int | None:
    """Where to begin. A position that was lost must not begin with all events, as `None` would."""
    if after == "oldest":
        return None
    if isinstance(after, int) and not isinstance(after, bool):
        return after
    raise TypeError(f"after must be the id of an event, 'latest' or 'oldest', not {after!r}")
