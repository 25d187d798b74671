"""What must hold while the service is killed, for the Python client: `clients/proofs.sh python`.

Writes are made by threads of the blocking client, events are read by the asynchronous one.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hotline import AsyncHotline, EventGap, Hotline, ResponseInfo

WRITES = int(os.environ.get("CLIENTS_WRITES", "10000"))
KILLS = int(os.environ["HOTLINE_KILLS"])
WORKERS = 16
# Longest a part may take before it has failed.
SECONDS_MAX = 20 * 60

seen: Counter[str] = Counter()


def on_response(response: ResponseInfo) -> None:
    seen["retries"] += response.attempt > 1
    seen["replays"] += response.is_replay


def kills() -> int:
    return len(Path(os.environ["HOTLINE_KILLS_FILE"]).read_text().splitlines())


def write(hotline: Hotline, number: int) -> None:
    """Writes, so that every kill interrupts some."""
    while kills() < KILLS and number >= (kills() + 1) * WRITES / (KILLS + 1):
        time.sleep(0.02)
    hotline.contacts.create(name=f"Contact {number}", code=f"w-{number}")


async def listen(codes: list[str | None], done: threading.Event) -> None:
    """Every created contact's code, in the order of the events."""
    async with AsyncHotline(max_retries=40) as hotline:
        last = 0
        events = hotline.events.listen(
            after="oldest", types=["contact.created"], on_disconnect=lambda _: seen.update(["disconnects"])
        )
        async for event in events:
            assert event["id"] > last, f"event {event['id']} after {last}"
            last = event["id"]
            assert event["type"] == "contact.created"
            codes.append(event["data"]["code"])
            if len(codes) == WRITES:
                done.set()


async def read_until(codes: list[str | None], done: threading.Event, written: threading.Event) -> None:
    reading = asyncio.create_task(listen(codes, done))
    deadline = time.monotonic() + SECONDS_MAX
    while not (done.is_set() and written.is_set()):
        assert time.monotonic() < deadline, f"{len(codes)} events within {SECONDS_MAX} s"
        if reading.done():
            await reading
        await asyncio.sleep(0.1)
    # An event that came twice would come now.
    await asyncio.sleep(1)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


def writes_and_events(hotline: Hotline) -> None:
    codes: list[str | None] = []
    done, written = threading.Event(), threading.Event()
    with ThreadPoolExecutor(WORKERS + 1) as pool:
        reading = pool.submit(lambda: asyncio.run(read_until(codes, done, written)))
        for one in [pool.submit(write, hotline, number) for number in range(WRITES)]:
            one.result()
        written.set()
        reading.result()
    found = Counter(contact["code"] for contact in hotline.contacts.list())
    assert kills() == KILLS
    assert found == Counter({f"w-{number}": 1 for number in range(WRITES)}), found.most_common(3)
    assert len(codes) == len(set(codes)) == WRITES
    assert seen["retries"] and seen["disconnects"], "no kill was noticed"
    print(
        f"{WRITES} writes through {KILLS} kills: {WRITES} effects "
        f"({seen['retries']} answers after a retry, {seen['replays']} of them replays)"
    )
    print(f"{len(codes)} events over {seen['disconnects']} lost connections: each once, in order")


def pages_that_shift(hotline: Hotline) -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        made = list(pool.map(lambda number: hotline.contacts.create(name=f"shifting {number}")["id"], range(2000)))
        stay, go = made[::2], made[1::2]
        read: Counter[int] = Counter()
        for page in hotline.contacts.list(search="shifting", per_page=50).pages():
            read.update(contact["id"] for contact in page.data)
            list(pool.map(hotline.contacts.delete, go[:25]))
            del go[:25]
            list(pool.map(lambda _: hotline.contacts.create(name="shifting more"), range(5)))
    assert all(read[one] == 1 for one in stay) and set(read.values()) == {1}
    print(f"{len(stay)} contacts paged while others were added and deleted: each once")


def gap_reported(hotline: Hotline) -> None:
    subprocess.run(["clients/proofs/expire.sh", "50"], check=True)
    try:
        next(iter(hotline.events.listen(after=10)))
    except EventGap as gap:
        assert gap.after == 10
    else:
        raise AssertionError("no gap was reported")
    gaps: list[EventGap] = []
    event = next(iter(hotline.events.listen(after=10, on_gap=gaps.append)))
    assert event["id"] == gaps[0].oldest_id
    print(f"a gap after event 10 reported, the oldest is {gaps[0].oldest_id}")


with Hotline(max_retries=40, on_response=on_response) as client:
    writes_and_events(client)
    pages_that_shift(client)
    gap_reported(client)
