"""Reads Server-Sent Events from bytes."""

from __future__ import annotations

from hotline.errors import HotlineError

_EVENT_BYTES_MAX = 8 * 1024 * 1024
"""Longest event that is read; the service's own limit is about 1 MiB."""


class SseParser:
    """Splits a stream into the data of its events. Comments and unknown fields are skipped."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, received: bytes) -> list[str]:
        """The data of the events that are complete with these bytes."""
        # Lines end with a line feed only: text may contain what `splitlines` takes for one.
        *lines, self._rest = (self._rest + received).split(b"\n")
        events = []
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(b"\n".join(self._data).decode())
                self._data = []
        if len(self._rest) + sum(map(len, self._data)) > _EVENT_BYTES_MAX:
            raise HotlineError("an event is too long")
        return events
