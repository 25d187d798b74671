"""A nightly export of everything while it changes: `python export.py FOLDER`.

The first run writes each list as lines of JSON, and with it what changed while it was being written; later runs write
only what has changed since. `after` in `position.json` is where the next one continues.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Iterable

from hotline import EventGap, Hotline

RESOURCES = ("contacts", "tickets", "messages", "cards", "boards", "tags", "users", "queues", "campaigns", "schedules")


def write_lines(path: Path, records: Iterable[Any]) -> int:
    """Writes all or nothing."""
    count = 0
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            count += 1
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    return count


class Changes:
    """The events after a position, up to now."""

    def __init__(self, hotline: Hotline, after: int) -> None:
        self.hotline = hotline
        self.after = after

    def __iter__(self) -> Any:
        has_more = True
        while has_more:
            page = self.hotline.events.list(after=self.after, limit=1000)
            if page["meta"]["gap"]:
                raise EventGap(self.after, page["meta"]["oldestId"])
            yield from page["data"]
            self.after, has_more = page["meta"]["lastId"], page["meta"]["hasMore"]


def end_of_log(hotline: Hotline) -> int:
    return hotline.events.list(after="latest")["meta"]["lastId"]


def export(hotline: Hotline, folder: Path) -> dict[str, int]:
    position = folder / "position.json"
    after = json.loads(position.read_text())["after"] if position.exists() else None
    counts = {}
    if after is None:
        # Before the lists: what changes from here on is among the events.
        after = end_of_log(hotline)
        for name in RESOURCES:
            counts[name] = write_lines(folder / f"{name}.ndjson", getattr(hotline, name).list())
    changes = Changes(hotline, after)
    counts["changes"] = write_lines(folder / f"changes-{after}.ndjson", changes)
    partial = position.with_suffix(".partial")
    partial.write_text(json.dumps({"after": changes.after}))
    partial.replace(position)
    return counts


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    with Hotline() as client:
        try:
            print(json.dumps(export(client, target)))
        except EventGap as gap:
            sys.exit(f"{gap}; export to an empty folder again")
