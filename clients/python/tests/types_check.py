"""Only checked by mypy: what a user's editor knows."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from hotline import AsyncHotline, ConflictError, File, Hotline, SecretLost, types, webhooks


def uses(hotline: Hotline) -> None:
    contact: types.Contact = hotline.contacts.create(name="Maria", custom_fields=[{"key": "plan", "value": "gold"}])
    ticket: types.Ticket = hotline.tickets.close(7, wrapup_type_id=3)
    hotline.tickets.close(7, wrapup_type=3)  # type: ignore[call-arg]
    hotline.messages.send(ticket_id=ticket["id"], body="Hello")  # type: ignore[call-arg]
    hotline.messages.send(ticket_id=7, type="media", medias=[Path("a.pdf"), File(b"x", "x.txt")])
    for one in hotline.contacts.list(tag_id=3, created_from=datetime.now(timezone.utc)):
        one["customFields"]
    hotline.contacts.update(contact["id"], email=None, if_match=contact["updatedAt"], idempotency_key="k")
    total: float = hotline.cards.create(board_id=1, name="Roof")["productsTotal"]
    del total
    for event in hotline.events.listen(types=["message.received", "ticket.closed"]):
        if event["type"] == "ticket.closed":
            event["data"]["closedAt"]
    received = webhooks.verify(b"", {}, ["whsec_a", "whsec_b"])
    if received["type"] == "card.won":
        received["data"]["productsTotal"]
    try:
        hotline.webhooks.create(url="https://example.com")
    except SecretLost as lost:
        hotline.webhooks.rotate_secret(lost.id)
    except ConflictError as error:
        [one["code"] for one in error.fields]


async def uses_async(hotline: AsyncHotline) -> None:
    async for contact in hotline.contacts.list():
        await hotline.contacts.update(contact["id"], name="Maria")
    async for event in hotline.events.listen(after=7):
        event["id"]
