"""A list that is read page by page, with a cursor: records that others add or delete meanwhile shift no page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, AsyncIterator, Awaitable, Callable, Generic, Iterator, List, Tuple, TypeVar

T = TypeVar("T")

LIST_MAX = 10_000
"""Longest list that `to_list` collects without being given another limit."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list."""

    data: List[T]
    has_more: bool
    """Whether there are more pages. A page may be shorter than asked for even if there are."""
    next_cursor: str | None
    """Where the next page begins, for a later run; `None` on the last."""


class _Pages(Generic[T]):
    def __init__(self, cursor: str) -> None:
        self._first = cursor
        self.started_at: datetime | None = None
        """The service's clock when it answered the first page, rounded down: the next `updated_from` of a
        synchronization."""

    def _read(self, body: Any, date: datetime) -> Page[T]:
        self.started_at = self.started_at or date
        meta = body["meta"]
        return Page(body["data"], meta["hasMore"], meta.get("nextCursor") if meta["hasMore"] else None)


class Pages(_Pages[T]):
    """Records to iterate over; pages are requested as they are needed."""

    def __init__(self, read: Callable[[str], Tuple[Any, datetime]], cursor: str) -> None:
        super().__init__(cursor)
        self._request = read

    def pages(self) -> Iterator[Page[T]]:
        """The pages, one request each."""
        cursor: str | None = self._first
        while cursor is not None:
            page = self._read(*self._request(cursor))
            yield page
            cursor = page.next_cursor

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.data

    def first(self) -> T | None:
        """The first record, if there is one."""
        return next(iter(self), None)

    def to_list(self, max: int = LIST_MAX) -> List[T]:
        """All records; a `ValueError` if there are more than `max`."""
        records: List[T] = []
        for page in self.pages():
            records += page.data
            _check(records, max)
        return records


class AsyncPages(_Pages[T]):
    """Records to iterate over; pages are requested as they are needed."""

    def __init__(self, read: Callable[[str], Awaitable[Tuple[Any, datetime]]], cursor: str) -> None:
        super().__init__(cursor)
        self._request = read

    async def pages(self) -> AsyncIterator[Page[T]]:
        """The pages, one request each."""
        cursor: str | None = self._first
        while cursor is not None:
            page = self._read(*await self._request(cursor))
            yield page
            cursor = page.next_cursor

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for record in page.data:
                yield record

    async def first(self) -> T | None:
        """The first record, if there is one."""
        async for record in self:
            return record
        return None

    async def to_list(self, max: int = LIST_MAX) -> List[T]:
        """All records; a `ValueError` if there are more than `max`."""
        records: List[T] = []
        async for page in self.pages():
            records += page.data
            _check(records, max)
        return records


def _check(records: List[Any], max: int) -> None:
    if len(records) > max:
        raise ValueError(f"the list has more than {max} records; iterate over it")
