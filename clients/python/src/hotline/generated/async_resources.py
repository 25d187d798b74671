# Generated from openapi.json by `make clients-generate`. Do not edit.
from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, AsyncIterator, List, Literal, Sequence, Union

from hotline.files import Upload
from hotline.pages import AsyncPages
from hotline.request import NOT_GIVEN, Given, Options, Request, segment
from hotline.transport import AsyncResource, AsyncTransport

from . import types as t


class AsyncBoards(AsyncResource):
    """The operations on boards."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, archived: bool | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Board]:
        """List boards. Lists boards that are not archived, ordered by id; with `archived=true`, the archived
        ones. Requires the permission `crm` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param archived: Whether to list archived records instead of active ones.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listBoards", "GET", "/api/v1/crm/boards", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "archived": archived, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, name: str, crm_board_lists: Given[Union[Sequence[t.BoardCreateCrmBoardLists], None]] = NOT_GIVEN, crm_board_queues: Given[Union[Sequence[t.BoardCreateCrmBoardQueues], None]] = NOT_GIVEN, description: Given[Union[str, None]] = NOT_GIVEN, monthly_goal: Given[Union[float, None]] = NOT_GIVEN, yearly_goal: Given[Union[float, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Board:
        """Create a board. Creates a board with its stages and queues, atomically. By default it has three
        stages: to do, in progress and done. Requires the permission `crm` `POST`.

        :param crm_board_lists: The initial stages, from left to right. Default: three stages.
        :param crm_board_queues: The queues whose users see the board; replaces the current ones.
        :param description: Description.
        :param monthly_goal: Monthly sales goal in the company's currency; `null` for none.
        :param name: The board's name.
        :param yearly_goal: Yearly sales goal in the company's currency; `null` for none.
        """
        request = Request("createBoard", "POST", "/api/v1/crm/boards", body={"crmBoardLists": crm_board_lists, "crmBoardQueues": crm_board_queues, "description": description, "monthlyGoal": monthly_goal, "name": name, "yearlyGoal": yearly_goal}, keyed=True)
        result: t.Board = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, board_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete an empty board. Deletes a board with its stages. Fails while it has cards. Requires the
        permission `crm` `DELETE`.
        """
        request = Request("deleteBoard", "DELETE", f"/api/v1/crm/boards/{segment(board_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, board_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.BoardWithStages:
        """Get a board with its stages and first cards. Returns a board, archived or not, with its stages from
        left to right. Each stage has its number of cards and its first cards: together at most 1,000 cards
        and 10,000 contacts, shared between the stages, with at least one card each; fewer if these contacts
        have more than 32 MiB. Requires the permission `crm` `GET`.
        """
        request = Request("getBoard", "GET", f"/api/v1/crm/boards/{segment(board_id)}")
        result: t.BoardWithStages = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, board_id: int, *, archived: Given[bool] = NOT_GIVEN, crm_board_queues: Given[Sequence[t.BoardUpdateCrmBoardQueues]] = NOT_GIVEN, description: Given[Union[str, None]] = NOT_GIVEN, monthly_goal: Given[Union[float, None]] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, yearly_goal: Given[Union[float, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Board:
        """Update, archive or unarchive a board. Updates the given fields; `crmBoardQueues` replaces the queues.
        An archived board is hidden from the list but can still be used. Requires the permission `crm` `PUT`.

        :param archived: Whether the board is hidden from the list.
        :param crm_board_queues: The queues whose users see the board; replaces the current ones.
        :param description: Description.
        :param monthly_goal: Monthly sales goal in the company's currency; `null` for none.
        :param name: The board's name.
        :param yearly_goal: Yearly sales goal in the company's currency; `null` for none.
        """
        request = Request("updateBoard", "PUT", f"/api/v1/crm/boards/{segment(board_id)}", body={"archived": archived, "crmBoardQueues": crm_board_queues, "description": description, "monthlyGoal": monthly_goal, "name": name, "yearlyGoal": yearly_goal}, keyed=True)
        result: t.Board = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    def list_cards(self, board_id: int, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, crm_board_list_id: int | None = None, assigned_to_user_id: int | None = None, contact_id: int | None = None, status_id: int | None = None, business_id: int | None = None, origin_id: int | None = None, ticket_id: int | None = None, won: bool | None = None, lost: bool | None = None, search: str | None = None, due_from: Union[str, datetime] | None = None, due_to: Union[str, datetime] | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Card]:
        """List the cards of a board. Lists the cards of a board, ordered by id; with `crmBoardListId`, the cards
        of one stage, ordered by position. A page by number whose contacts have more than 32 MiB is refused
        with `perPage`. Requires the permission `crm` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param crm_board_list_id: The stage of a board.
        :param assigned_to_user_id: The responsible user.
        :param contact_id: The contact.
        :param status_id: The card's status.
        :param business_id: The card's business.
        :param origin_id: The card's origin.
        :param ticket_id: The ticket.
        :param won: Whether the card was won.
        :param lost: Whether the card was lost.
        :param search: Matches cards whose name or description contains every word; ignores case and accents.
        :param due_from: due at or after this time
        :param due_to: due at or before this time
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listBoardCards", "GET", f"/api/v1/crm/boards/{segment(board_id)}/cards", query={"perPage": per_page, "order": order, "cursor": cursor, "crmBoardListId": crm_board_list_id, "assignedToUserId": assigned_to_user_id, "contactId": contact_id, "statusId": status_id, "businessId": business_id, "originId": origin_id, "ticketId": ticket_id, "won": won, "lost": lost, "search": search, "dueFrom": due_from, "dueTo": due_to, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def get_indicators(self, board_id: int, *, from_: Union[str, datetime] | None = None, to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.BoardIndicators:
        """Get the sales indicators of a board. Returns the sales indicators of a board. `open` and `lists` are
        current; `from` and `to` limit won and lost cards; months and years use the company's time zone. Sums
        are exact. Requires the permission `crm` `GET`.

        :param from_: Start of the period for won and lost cards. Default: no limit.
        :param to: End of the period for won and lost cards. Default: now.
        """
        request = Request("getBoardIndicators", "GET", f"/api/v1/crm/boards/{segment(board_id)}/indicators", query={"from": from_, "to": to})
        result: t.BoardIndicators = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def add_stage(self, board_id: int, *, label: str, done_list: Given[Union[bool, None]] = NOT_GIVEN, position: Given[Union[int, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Stage:
        """Add a stage. Adds a stage to a board, at the end by default. At most one stage of a board is for won
        cards. Requires the permission `crm` `POST`.

        :param done_list: Whether the stage is for won cards; at most one stage of a board.
        :param label: The stage's name.
        :param position: Position from left to right, in ascending order; ties are ordered by id. The first
            stage is 1 by default.
        """
        request = Request("addStage", "POST", f"/api/v1/crm/boards/{segment(board_id)}/lists", body={"doneList": done_list, "label": label, "position": position}, keyed=True)
        result: t.Stage = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def reorder_stages(self, board_id: int, *, ordered_ids: Sequence[int], idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> List[t.Stage]:
        """Reorder the stages. Sets the order of all stages of a board. Requires the permission `crm` `PUT`.

        :param ordered_ids: All ids, each once
        """
        request = Request("reorderStages", "PUT", f"/api/v1/crm/boards/{segment(board_id)}/lists/order", body={"orderedIds": ordered_ids}, keyed=True)
        result: List[t.Stage] = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete_stage(self, board_id: int, list_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete an empty stage. Deletes a stage. Fails while it has cards. Requires the permission `crm`
        `DELETE`.
        """
        request = Request("deleteStage", "DELETE", f"/api/v1/crm/boards/{segment(board_id)}/lists/{segment(list_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def update_stage(self, board_id: int, list_id: int, *, done_list: Given[bool] = NOT_GIVEN, label: Given[str] = NOT_GIVEN, position: Given[int] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Stage:
        """Update a stage. Updates the given fields. Requires the permission `crm` `PUT`.

        :param done_list: Whether the stage is for won cards; at most one stage of a board.
        :param label: The stage's name.
        :param position: Position from left to right, in ascending order; ties are ordered by id. The first
            stage is 1 by default.
        """
        request = Request("updateStage", "PUT", f"/api/v1/crm/boards/{segment(board_id)}/lists/{segment(list_id)}", body={"doneList": done_list, "label": label, "position": position}, keyed=True)
        result: t.Stage = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncBusinesses(AsyncResource):
    """The operations on businesses."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Business]:
        """List businesses. Lists the company's businesses, ordered by id. Requires the permission `crm` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listBusinesses", "GET", "/api/v1/crm/businesses", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, name: str, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Business:
        """Create a business. Creates a business; its name is unique in the company. Requires the permission
        `crm` `POST`.

        :param name: Name, unique in the company.
        """
        request = Request("createBusiness", "POST", "/api/v1/crm/businesses", body={"name": name}, keyed=True)
        result: t.Business = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, business_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a business. Deletes a business. Its cards have no business afterwards. Requires the permission
        `crm` `DELETE`.
        """
        request = Request("deleteBusiness", "DELETE", f"/api/v1/crm/businesses/{segment(business_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def update(self, business_id: int, *, name: Given[str] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Business:
        """Update a business. Updates the given fields. Requires the permission `crm` `PUT`.

        :param name: Name, unique in the company.
        """
        request = Request("updateBusiness", "PUT", f"/api/v1/crm/businesses/{segment(business_id)}", body={"name": name}, keyed=True)
        result: t.Business = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncCampaigns(AsyncResource):
    """The operations on campaigns."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, channel_id: int | None = None, search: str | None = None, status: Literal["scheduled", "processing", "paused", "completed", "canceled"] | None = None, contact_list_id: int | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Campaign]:
        """List campaigns. Lists campaigns, ordered by id. Includes every change acknowledged before the request.
        Requires the permission `campaigns` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param channel_id: The channel.
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param status: The status.
        :param contact_list_id: The contact list.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listCampaigns", "GET", "/api/v1/campaigns", query={"perPage": per_page, "order": order, "cursor": cursor, "channelId": channel_id, "search": search, "status": status, "contactListId": contact_list_id, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, channel_id: int, contact_list_id: int, name: str, scheduled_at: Union[str, datetime], keep_closed: Given[Union[bool, None]] = NOT_GIVEN, message: Given[Union[str, None]] = NOT_GIVEN, rate_per_minute: Given[Union[int, None]] = NOT_GIVEN, template: Given[Union[t.CampaignCreateTemplate, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Campaign:
        """Create a campaign. Creates a campaign: a text, or a template of its channel, for every contact of a
        list. It starts at `scheduledAt`, or when `startCampaign` is called. Variables are filled in for each
        contact. Requires the permission `campaigns` `POST`.

        :param channel_id: The channel, as `GET /channels` lists it.
        :param contact_list_id: The contact list, as it is when the campaign starts.
        :param keep_closed: Whether tickets opened by the campaign are closed immediately, so that they do not
            wait for an agent. A reply opens a new ticket.
        :param message: At most 65,536 bytes
        :param name: Name.
        :param rate_per_minute: Maximum messages per minute, evenly spread.
        :param scheduled_at: A time in the future
        :param template: An approved template: its name with `parameters`, or complete `components`; instead
            of `message`.
        """
        request = Request("createCampaign", "POST", "/api/v1/campaigns", body={"channelId": channel_id, "contactListId": contact_list_id, "keepClosed": keep_closed, "message": message, "name": name, "ratePerMinute": rate_per_minute, "scheduledAt": scheduled_at, "template": template}, keyed=True)
        result: t.Campaign = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, campaign_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a campaign. Deletes a campaign and its recipients; its messages are kept. Fails while it is
        processing or paused, and after a cancellation while recipients are pending. Requires the permission
        `campaigns` `DELETE`.
        """
        request = Request("deleteCampaign", "DELETE", f"/api/v1/campaigns/{segment(campaign_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, campaign_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Campaign:
        """Get a campaign. Returns a campaign with the number of recipients by status. Requires the permission
        `campaigns` `GET`.
        """
        request = Request("getCampaign", "GET", f"/api/v1/campaigns/{segment(campaign_id)}")
        result: t.Campaign = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, campaign_id: int, *, channel_id: Given[int] = NOT_GIVEN, contact_list_id: Given[int] = NOT_GIVEN, keep_closed: Given[bool] = NOT_GIVEN, message: Given[Union[str, None]] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, rate_per_minute: Given[int] = NOT_GIVEN, scheduled_at: Given[Union[str, datetime]] = NOT_GIVEN, template: Given[Union[t.CampaignUpdateTemplate, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Campaign:
        """Update a campaign. Updates the given fields while the campaign is scheduled. A text replaces a
        template, and vice versa. Requires the permission `campaigns` `PUT`.

        :param channel_id: The channel, as `GET /channels` lists it.
        :param contact_list_id: The contact list, as it is when the campaign starts.
        :param keep_closed: Whether tickets opened by the campaign are closed immediately, so that they do not
            wait for an agent. A reply opens a new ticket.
        :param message: At most 65,536 bytes
        :param name: Name.
        :param rate_per_minute: Maximum messages per minute, evenly spread.
        :param scheduled_at: A time in the future
        :param template: An approved template: its name with `parameters`, or complete `components`; instead
            of `message`.
        """
        request = Request("updateCampaign", "PUT", f"/api/v1/campaigns/{segment(campaign_id)}", body={"channelId": channel_id, "contactListId": contact_list_id, "keepClosed": keep_closed, "message": message, "name": name, "ratePerMinute": rate_per_minute, "scheduledAt": scheduled_at, "template": template}, keyed=True)
        result: t.Campaign = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def cancel(self, campaign_id: int, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Campaign:
        """Cancel a campaign. Cancels a campaign. After the response, only messages already in flight are
        delivered; the remaining recipients are skipped. Requires the permission `campaigns` `POST`.
        """
        request = Request("cancelCampaign", "POST", f"/api/v1/campaigns/{segment(campaign_id)}/cancel", keyed=True)
        result: t.Campaign = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def pause(self, campaign_id: int, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Campaign:
        """Pause a campaign. Pauses a running campaign. No messages are created after the response. Messages
        created before are still sent: at most one second of the campaign's rate, and between 1 and 64.
        Requires the permission `campaigns` `POST`.
        """
        request = Request("pauseCampaign", "POST", f"/api/v1/campaigns/{segment(campaign_id)}/pause", keyed=True)
        result: t.Campaign = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    def list_recipients(self, campaign_id: int, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, status: Literal["pending", "sent", "delivered", "read", "failed", "skipped", "unknown"] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.CampaignRecipient]:
        """List the recipients of a campaign. Lists the recipients of a campaign with their status, ordered by
        contact id. Empty before the campaign starts. Requires the permission `campaigns` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param status: The status.
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listCampaignRecipients", "GET", f"/api/v1/campaigns/{segment(campaign_id)}/recipients", query={"perPage": per_page, "order": order, "cursor": cursor, "status": status, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def resume(self, campaign_id: int, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Campaign:
        """Resume a campaign. Resumes a paused campaign where it stopped. Requires the permission `campaigns`
        `POST`.
        """
        request = Request("resumeCampaign", "POST", f"/api/v1/campaigns/{segment(campaign_id)}/resume", keyed=True)
        result: t.Campaign = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def start(self, campaign_id: int, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Campaign:
        """Start a campaign now. Starts a campaign immediately. Its recipients are the contacts in its list at
        this moment; each receives the message at most once, ordered by id and evenly spread at the campaign's
        rate. Requires the permission `campaigns` `POST`.
        """
        request = Request("startCampaign", "POST", f"/api/v1/campaigns/{segment(campaign_id)}/start", keyed=True)
        result: t.Campaign = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncCardOrigins(AsyncResource):
    """The operations on cardOrigins."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.CardOrigin]:
        """List card origins. Lists the company's card origins, ordered by id. Requires the permission `crm`
        `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listCardOrigins", "GET", "/api/v1/crm/origins", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, name: str, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.CardOrigin:
        """Create a card origin. Creates a card origin; its name is unique in the company. Requires the
        permission `crm` `POST`.

        :param name: Name, unique in the company.
        """
        request = Request("createCardOrigin", "POST", "/api/v1/crm/origins", body={"name": name}, keyed=True)
        result: t.CardOrigin = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, origin_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a card origin. Deletes a card origin. Its cards have no origin afterwards. Requires the
        permission `crm` `DELETE`.
        """
        request = Request("deleteCardOrigin", "DELETE", f"/api/v1/crm/origins/{segment(origin_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def update(self, origin_id: int, *, name: Given[str] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.CardOrigin:
        """Update a card origin. Updates the given fields. Requires the permission `crm` `PUT`.

        :param name: Name, unique in the company.
        """
        request = Request("updateCardOrigin", "PUT", f"/api/v1/crm/origins/{segment(origin_id)}", body={"name": name}, keyed=True)
        result: t.CardOrigin = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncCardStatuses(AsyncResource):
    """The operations on cardStatuses."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.CardStatus]:
        """List card statuses. Lists the company's card statuses, ordered by id. Requires the permission `crm`
        `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listCardStatuses", "GET", "/api/v1/crm/statuses", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, name: str, color: Given[Union[str, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.CardStatus:
        """Create a card status. Creates a card status; its name is unique in the company. Requires the
        permission `crm` `POST`.

        :param color: A colour as `#rrggbb`; `null` for none.
        :param name: Name, unique in the company.
        """
        request = Request("createCardStatus", "POST", "/api/v1/crm/statuses", body={"color": color, "name": name}, keyed=True)
        result: t.CardStatus = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, status_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a card status. Deletes a card status. Its cards have no status afterwards. Requires the
        permission `crm` `DELETE`.
        """
        request = Request("deleteCardStatus", "DELETE", f"/api/v1/crm/statuses/{segment(status_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def update(self, status_id: int, *, color: Given[Union[str, None]] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.CardStatus:
        """Update a card status. Updates the given fields. Requires the permission `crm` `PUT`.

        :param color: A colour as `#rrggbb`; `null` for none.
        :param name: Name, unique in the company.
        """
        request = Request("updateCardStatus", "PUT", f"/api/v1/crm/statuses/{segment(status_id)}", body={"color": color, "name": name}, keyed=True)
        result: t.CardStatus = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncCards(AsyncResource):
    """The operations on cards."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, board_id: int | None = None, crm_board_list_id: int | None = None, assigned_to_user_id: int | None = None, contact_id: int | None = None, status_id: int | None = None, business_id: int | None = None, origin_id: int | None = None, ticket_id: int | None = None, won: bool | None = None, lost: bool | None = None, search: str | None = None, due_from: Union[str, datetime] | None = None, due_to: Union[str, datetime] | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Card]:
        """List cards. Lists cards of all boards, ordered by id; with `crmBoardListId`, the cards of one stage,
        ordered by position. `search` matches name and description. A page by number whose contacts have more
        than 32 MiB is refused with `perPage`. Requires the permission `crm` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param board_id: The board.
        :param crm_board_list_id: The stage of a board.
        :param assigned_to_user_id: The responsible user.
        :param contact_id: The contact.
        :param status_id: The card's status.
        :param business_id: The card's business.
        :param origin_id: The card's origin.
        :param ticket_id: The ticket.
        :param won: Whether the card was won.
        :param lost: Whether the card was lost.
        :param search: Matches cards whose name or description contains every word; ignores case and accents.
        :param due_from: due at or after this time
        :param due_to: due at or before this time
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listCards", "GET", "/api/v1/crm/cards", query={"perPage": per_page, "order": order, "cursor": cursor, "boardId": board_id, "crmBoardListId": crm_board_list_id, "assignedToUserId": assigned_to_user_id, "contactId": contact_id, "statusId": status_id, "businessId": business_id, "originId": origin_id, "ticketId": ticket_id, "won": won, "lost": lost, "search": search, "dueFrom": due_from, "dueTo": due_to, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, board_id: int, name: str, assigned_to_user_id: Given[Union[int, None]] = NOT_GIVEN, business_id: Given[Union[int, None]] = NOT_GIVEN, contact_ids: Given[Union[Sequence[int], None]] = NOT_GIVEN, crm_board_list_id: Given[Union[int, None]] = NOT_GIVEN, custom_fields: Given[Union[Sequence[t.CardCreateCustomFields], None]] = NOT_GIVEN, description: Given[Union[str, None]] = NOT_GIVEN, due: Given[Union[Union[str, datetime], None]] = NOT_GIVEN, origin_id: Given[Union[int, None]] = NOT_GIVEN, products: Given[Union[Sequence[t.CardCreateProducts], None]] = NOT_GIVEN, status_id: Given[Union[int, None]] = NOT_GIVEN, ticket_id: Given[Union[int, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Card:
        """Create a card. Creates a card at the bottom of its stage. Each line's `totalPrice` is `quantity` x
        `unitPrice`, rounded half away from zero to four decimals; `productsTotal` is their exact sum. Each
        amount must be below 100000000000000. Requires the permission `crm` `POST`.

        :param assigned_to_user_id: The responsible user, as `GET /users` lists them.
        :param board_id: The board; it never changes.
        :param business_id: The line of business.
        :param contact_ids: The contacts; replaces the current ones.
        :param crm_board_list_id: The stage. Default: the board's first.
        :param custom_fields: Values of custom fields.
        :param description: Description.
        :param due: Due date.
        :param name: The card's name.
        :param origin_id: The origin.
        :param products: The products; replaces the current ones.
        :param status_id: The status, as defined by the company.
        :param ticket_id: The ticket the card was created from.
        """
        request = Request("createCard", "POST", "/api/v1/crm/cards", body={"assignedToUserId": assigned_to_user_id, "boardId": board_id, "businessId": business_id, "contactIds": contact_ids, "crmBoardListId": crm_board_list_id, "customFields": custom_fields, "description": description, "due": due, "name": name, "originId": origin_id, "products": products, "statusId": status_id, "ticketId": ticket_id}, keyed=True)
        result: t.Card = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, card_id: int, *, if_match: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a card. Deletes a card. Requires the permission `crm` `DELETE`.
        """
        request = Request("deleteCard", "DELETE", f"/api/v1/crm/cards/{segment(card_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries, if_match=if_match))

    async def get(self, card_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Card:
        """Get a card. Returns a card with its contacts, products and custom field values. Requires the
        permission `crm` `GET`.
        """
        request = Request("getCard", "GET", f"/api/v1/crm/cards/{segment(card_id)}")
        result: t.Card = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, card_id: int, *, assigned_to_user_id: Given[Union[int, None]] = NOT_GIVEN, board_id: Given[int] = NOT_GIVEN, business_id: Given[Union[int, None]] = NOT_GIVEN, contact_ids: Given[Sequence[int]] = NOT_GIVEN, crm_board_list_id: Given[int] = NOT_GIVEN, custom_fields: Given[Sequence[t.CardUpdateCustomFields]] = NOT_GIVEN, description: Given[Union[str, None]] = NOT_GIVEN, due: Given[Union[Union[str, datetime], None]] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, origin_id: Given[Union[int, None]] = NOT_GIVEN, products: Given[Sequence[t.CardUpdateProducts]] = NOT_GIVEN, status_id: Given[Union[int, None]] = NOT_GIVEN, ticket_id: Given[Union[int, None]] = NOT_GIVEN, idempotency_key: str | None = None, if_match: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Card:
        """Update a card. Updates the given fields; `null` clears one. `contactIds` and `products` replace the
        current ones; custom field values are merged by key. A new stage places the card at its bottom; a won
        card cannot leave the stage for won cards. Requires the permission `crm` `PUT`.

        :param assigned_to_user_id: The responsible user, as `GET /users` lists them.
        :param board_id: The board; it never changes.
        :param business_id: The line of business.
        :param contact_ids: The contacts; replaces the current ones.
        :param crm_board_list_id: The stage. Default: the board's first.
        :param custom_fields: Values of custom fields.
        :param description: Description.
        :param due: Due date.
        :param name: The card's name.
        :param origin_id: The origin.
        :param products: The products; replaces the current ones.
        :param status_id: The status, as defined by the company.
        :param ticket_id: The ticket the card was created from.
        """
        request = Request("updateCard", "PUT", f"/api/v1/crm/cards/{segment(card_id)}", body={"assignedToUserId": assigned_to_user_id, "boardId": board_id, "businessId": business_id, "contactIds": contact_ids, "crmBoardListId": crm_board_list_id, "customFields": custom_fields, "description": description, "due": due, "name": name, "originId": origin_id, "products": products, "statusId": status_id, "ticketId": ticket_id}, keyed=True)
        result: t.Card = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key, if_match=if_match))
        return result

    async def lose(self, card_id: int, *, status_reason: str, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Card:
        """Mark a card as lost. Marks an open card as lost; it stays in its stage. Reopen a won card first.
        Requires the permission `crm` `POST`.

        :param status_reason: Why the card is lost.
        """
        request = Request("loseCard", "POST", f"/api/v1/crm/cards/{segment(card_id)}/lose", body={"statusReason": status_reason}, keyed=True)
        result: t.Card = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def move(self, card_id: int, *, crm_board_list_id: int, position: Given[Union[int, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Card:
        """Move a card to a stage and position. Moves a card to a stage of its board. Moving it to the stage for
        won cards does not mark it as won. A won card cannot leave that stage; reopen it first. Requires the
        permission `crm` `POST`.

        :param crm_board_list_id: The new stage, on the same board.
        :param position: Number of cards above it in the stage, up to 1,000,000. Default, or beyond the end:
            the bottom.
        """
        request = Request("moveCard", "POST", f"/api/v1/crm/cards/{segment(card_id)}/move", body={"crmBoardListId": crm_board_list_id, "position": position}, keyed=True)
        result: t.Card = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def add_product(self, card_id: int, *, name: Given[Union[str, None]] = NOT_GIVEN, product_id: Given[Union[int, None]] = NOT_GIVEN, quantity: Given[Union[float, None]] = NOT_GIVEN, sku: Given[Union[str, None]] = NOT_GIVEN, unit_price: Given[Union[float, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.CardProduct:
        """Add a product to a card. Adds a product to a card. With `productId`, omitted fields are copied from
        the product. `totalPrice` is `quantity` x `unitPrice`, rounded half away from zero to four decimals.
        Requires the permission `crm` `POST`.

        :param name: Name. Default: the product's name.
        :param product_id: A product of the catalogue.
        :param quantity: Quantity.
        :param sku: Stock keeping unit.
        :param unit_price: Price per unit.
        """
        request = Request("addCardProduct", "POST", f"/api/v1/crm/cards/{segment(card_id)}/products", body={"name": name, "productId": product_id, "quantity": quantity, "sku": sku, "unitPrice": unit_price}, keyed=True)
        result: t.CardProduct = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def remove_product(self, card_id: int, card_product_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Remove a product from a card. Removes a product from a card. Requires the permission `crm` `DELETE`.
        """
        request = Request("removeCardProduct", "DELETE", f"/api/v1/crm/cards/{segment(card_id)}/products/{segment(card_product_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def update_product(self, card_id: int, card_product_id: int, *, name: Given[str] = NOT_GIVEN, product_id: Given[Union[int, None]] = NOT_GIVEN, quantity: Given[float] = NOT_GIVEN, sku: Given[Union[str, None]] = NOT_GIVEN, unit_price: Given[float] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.CardProduct:
        """Update a product of a card. Updates the given fields. A new `productId` copies the product's name, SKU
        and price, except for fields that are given. Requires the permission `crm` `PUT`.

        :param name: Name. Default: the product's name.
        :param product_id: A product of the catalogue.
        :param quantity: Quantity.
        :param sku: Stock keeping unit.
        :param unit_price: Price per unit.
        """
        request = Request("updateCardProduct", "PUT", f"/api/v1/crm/cards/{segment(card_id)}/products/{segment(card_product_id)}", body={"name": name, "productId": product_id, "quantity": quantity, "sku": sku, "unitPrice": unit_price}, keyed=True)
        result: t.CardProduct = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def reopen(self, card_id: int, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Card:
        """Reopen a won or lost card. Reopens a won or lost card and clears its date and reason. It stays in its
        stage. Requires the permission `crm` `POST`.
        """
        request = Request("reopenCard", "POST", f"/api/v1/crm/cards/{segment(card_id)}/reopen", keyed=True)
        result: t.Card = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def win(self, card_id: int, *, status_reason: Given[Union[str, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Card:
        """Mark a card as won. Marks an open card as won and moves it to the bottom of the board's stage for won
        cards, which must exist. Reopen a lost card first. Requires the permission `crm` `POST`.

        :param status_reason: Why the card is won.
        """
        request = Request("winCard", "POST", f"/api/v1/crm/cards/{segment(card_id)}/win", body={"statusReason": status_reason}, keyed=True)
        result: t.Card = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncChannels(AsyncResource):
    """The operations on channels."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, type: Literal["whatsapp", "messenger", "instagram", "webchat"] | None = None, status: Literal["connected", "disconnected", "error"] | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Channel]:
        """List channels. Lists the company's channels. Channels are set up in the panel or on the command line.
        `search` matches name and number. Requires the permission `channels` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches channels whose name or number contains every word; ignores case and accents.
        :param type: The type.
        :param status: The status.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listChannels", "GET", "/api/v1/channels", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "type": type, "status": status, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, channel_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Channel:
        """Get a channel. Returns a channel, including its last error. Requires the permission `channels` `GET`.
        """
        request = Request("getChannel", "GET", f"/api/v1/channels/{segment(channel_id)}")
        result: t.Channel = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    def list_templates(self, channel_id: int, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, all: bool | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Template]:
        """List the approved templates of a channel. Lists the templates that the provider has approved for a
        phone channel, or all of them; empty for other channels. Requires the permission `channels` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param all: Whether to list also templates that may not be sent: paused, rejected, or in review.
        """
        request = Request("listChannelTemplates", "GET", f"/api/v1/channels/{segment(channel_id)}/templates", query={"perPage": per_page, "order": order, "cursor": cursor, "all": all})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))


class AsyncContactLists(AsyncResource):
    """The operations on contactLists."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.RecipientList]:
        """List contact lists. Lists the company's contact lists, ordered by id. Requires the permission
        `campaigns` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listContactLists", "GET", "/api/v1/contact-lists", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, name: str, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.RecipientList:
        """Create a contact list. Creates an empty contact list. Requires the permission `campaigns` `POST`.

        :param name: Name.
        """
        request = Request("createContactList", "POST", "/api/v1/contact-lists", body={"name": name}, keyed=True)
        result: t.RecipientList = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, contact_list_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a contact list. Deletes a contact list; its contacts are kept. Fails while an unfinished
        campaign uses it. Requires the permission `campaigns` `DELETE`.
        """
        request = Request("deleteContactList", "DELETE", f"/api/v1/contact-lists/{segment(contact_list_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    def list_contacts(self, contact_list_id: int, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Contact]:
        """List the contacts of a list. Lists the contacts of a list. `search` matches name, number, e-mail and
        code. Requires the permission `campaigns` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches contacts whose name, number, e-mail or code contains every word; numbers in any
            format.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listContactListContacts", "GET", f"/api/v1/contact-lists/{segment(contact_list_id)}/contacts", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def add_contacts(self, contact_list_id: int, *, contact_ids: Given[Union[Sequence[int], None]] = NOT_GIVEN, tag_id: Given[Union[int, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Added:
        """Add contacts to a list. Adds contacts to a list: by id, by tag, or both. Contacts already in the list
        are counted separately. Requires the permission `campaigns` `POST`.

        :param contact_ids: Ids of contacts to add.
        :param tag_id: A tag: all its contacts are added.
        """
        request = Request("addContactListContacts", "POST", f"/api/v1/contact-lists/{segment(contact_list_id)}/contacts", body={"contactIds": contact_ids, "tagId": tag_id}, keyed=True)
        result: t.Added = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def remove_contact(self, contact_list_id: int, contact_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Remove a contact from a list. Removes a contact from a list. Repeating it changes nothing. Requires
        the permission `campaigns` `DELETE`.
        """
        request = Request("removeContactListContact", "DELETE", f"/api/v1/contact-lists/{segment(contact_list_id)}/contacts/{segment(contact_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))


class AsyncContacts(AsyncResource):
    """The operations on contacts."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, number: str | None = None, email: str | None = None, code: str | None = None, tag_id: int | None = None, channel_id: int | None = None, origin: str | None = None, is_group: bool | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Contact]:
        """List contacts. Lists the company's contacts, ordered by id. `search` matches name, number, e-mail and
        code. Requires the permission `contacts` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches contacts whose name, number, e-mail or code contains every word; numbers in any
            format.
        :param number: 8 to 15 digits; `+ ( ) - .` and spaces are removed
        :param email: The exact e-mail address; case-insensitive.
        :param code: The contact's exact code; case-sensitive.
        :param tag_id: The tag.
        :param channel_id: The channel.
        :param origin: The contact's exact origin.
        :param is_group: Whether the contact is a group.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listContacts", "GET", "/api/v1/contacts", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "number": number, "email": email, "code": code, "tagId": tag_id, "channelId": channel_id, "origin": origin, "isGroup": is_group, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, code: Given[Union[str, None]] = NOT_GIVEN, cpf_cnpj: Given[Union[str, None]] = NOT_GIVEN, ctwa_clid: Given[Union[str, None]] = NOT_GIVEN, custom_fields: Given[Union[Sequence[t.ContactCreateCustomFields], None]] = NOT_GIVEN, email: Given[Union[str, None]] = NOT_GIVEN, fbclid: Given[Union[str, None]] = NOT_GIVEN, gclid: Given[Union[str, None]] = NOT_GIVEN, headline: Given[Union[str, None]] = NOT_GIVEN, is_group: Given[Union[bool, None]] = NOT_GIVEN, lid: Given[Union[str, None]] = NOT_GIVEN, marketing_opt_out: Given[Union[bool, None]] = NOT_GIVEN, media_type: Given[Union[str, None]] = NOT_GIVEN, media_url: Given[Union[str, None]] = NOT_GIVEN, name: Given[Union[str, None]] = NOT_GIVEN, number: Given[Union[str, None]] = NOT_GIVEN, origin: Given[Union[str, None]] = NOT_GIVEN, profile_pic_url: Given[Union[str, None]] = NOT_GIVEN, social_username: Given[Union[str, None]] = NOT_GIVEN, source_id: Given[Union[str, None]] = NOT_GIVEN, source_url: Given[Union[str, None]] = NOT_GIVEN, tag_ids: Given[Union[Sequence[int], None]] = NOT_GIVEN, utm_campaign: Given[Union[str, None]] = NOT_GIVEN, utm_id: Given[Union[str, None]] = NOT_GIVEN, utm_medium: Given[Union[str, None]] = NOT_GIVEN, utm_source: Given[Union[str, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Contact:
        """Create a contact. Creates a contact. A number is unique in the company. Requires the permission
        `contacts` `POST`.

        :param code: The company's own code for the contact.
        :param cpf_cnpj: 11 digits for a person or 14 for a company, with valid check digits; `. - /` are
            removed
        :param ctwa_clid: Click id of a click-to-chat advertisement.
        :param custom_fields: Values of custom fields.
        :param email: E-mail address.
        :param fbclid: Click id of an advertisement.
        :param gclid: Click id of an advertisement.
        :param headline: The advertisement's headline.
        :param is_group: Whether the contact is a group rather than a person.
        :param lid: The provider's id for a contact whose number it hides.
        :param marketing_opt_out: Whether the contact is excluded from campaigns. Set when the contact sends
            one of the company's stop words (`STOP`, `SAIR`, …), ignoring punctuation and emoji. Write `false`
            to opt the contact in again.
        :param media_type: Type of the advertisement's media.
        :param media_url: URL of the advertisement's picture or video.
        :param name: Name.
        :param number: 8 to 15 digits; `+ ( ) - .` and spaces are removed
        :param origin: How the contact was acquired.
        :param profile_pic_url: `https` or `http`
        :param social_username: User name on a social channel.
        :param source_id: The advertisement's id.
        :param source_url: URL of the page or advertisement.
        :param tag_ids: The tags; replaces the current ones.
        :param utm_campaign: UTM campaign.
        :param utm_id: UTM id.
        :param utm_medium: UTM medium.
        :param utm_source: UTM source.
        """
        request = Request("createContact", "POST", "/api/v1/contacts", body={"code": code, "cpfCnpj": cpf_cnpj, "ctwaClid": ctwa_clid, "customFields": custom_fields, "email": email, "fbclid": fbclid, "gclid": gclid, "headline": headline, "isGroup": is_group, "lid": lid, "marketingOptOut": marketing_opt_out, "mediaType": media_type, "mediaUrl": media_url, "name": name, "number": number, "origin": origin, "profilePicUrl": profile_pic_url, "socialUsername": social_username, "sourceId": source_id, "sourceUrl": source_url, "tagIds": tag_ids, "utmCampaign": utm_campaign, "utmId": utm_id, "utmMedium": utm_medium, "utmSource": utm_source}, keyed=True)
        result: t.Contact = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def import_(self, *, contacts: Sequence[t.ContactImportContacts], on_conflict: Given[Union[Literal["update", "skip"], None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.ImportReport:
        """Create or update up to 1000 contacts at once. Creates or updates contacts, matched by number, then
        e-mail, then code. Valid rows are stored even if others fail. Requires the permission `contacts`
        `POST`. The body can be up to 16777216 bytes.

        :param contacts: The rows: each has the fields of a contact.
        :param on_conflict: How to handle a row whose contact exists, matched by number, then e-mail, then
            code
        """
        request = Request("importContacts", "POST", "/api/v1/contacts/import", body={"contacts": contacts, "onConflict": on_conflict}, keyed=True)
        result: t.ImportReport = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, contact_id: int, *, if_match: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a contact. Deletes a contact with its closed tickets, messages and files. Fails while it has an
        open ticket or an active session. Requires the permission `contacts` `DELETE`.
        """
        request = Request("deleteContact", "DELETE", f"/api/v1/contacts/{segment(contact_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries, if_match=if_match))

    async def get(self, contact_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Contact:
        """Get a contact. Returns a contact with its tags and custom field values. Requires the permission
        `contacts` `GET`.
        """
        request = Request("getContact", "GET", f"/api/v1/contacts/{segment(contact_id)}")
        result: t.Contact = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, contact_id: int, *, code: Given[Union[str, None]] = NOT_GIVEN, cpf_cnpj: Given[Union[str, None]] = NOT_GIVEN, ctwa_clid: Given[Union[str, None]] = NOT_GIVEN, custom_fields: Given[Sequence[t.ContactUpdateCustomFields]] = NOT_GIVEN, email: Given[Union[str, None]] = NOT_GIVEN, fbclid: Given[Union[str, None]] = NOT_GIVEN, gclid: Given[Union[str, None]] = NOT_GIVEN, headline: Given[Union[str, None]] = NOT_GIVEN, is_group: Given[bool] = NOT_GIVEN, lid: Given[Union[str, None]] = NOT_GIVEN, marketing_opt_out: Given[bool] = NOT_GIVEN, media_type: Given[Union[str, None]] = NOT_GIVEN, media_url: Given[Union[str, None]] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, number: Given[Union[str, None]] = NOT_GIVEN, origin: Given[Union[str, None]] = NOT_GIVEN, profile_pic_url: Given[Union[str, None]] = NOT_GIVEN, social_username: Given[Union[str, None]] = NOT_GIVEN, source_id: Given[Union[str, None]] = NOT_GIVEN, source_url: Given[Union[str, None]] = NOT_GIVEN, tag_ids: Given[Sequence[int]] = NOT_GIVEN, utm_campaign: Given[Union[str, None]] = NOT_GIVEN, utm_id: Given[Union[str, None]] = NOT_GIVEN, utm_medium: Given[Union[str, None]] = NOT_GIVEN, utm_source: Given[Union[str, None]] = NOT_GIVEN, idempotency_key: str | None = None, if_match: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Contact:
        """Update a contact. Updates the given fields; `null` clears one. Custom field values are merged by key.
        Requires the permission `contacts` `PUT`.

        :param code: The company's own code for the contact.
        :param cpf_cnpj: 11 digits for a person or 14 for a company, with valid check digits; `. - /` are
            removed
        :param ctwa_clid: Click id of a click-to-chat advertisement.
        :param custom_fields: Values of custom fields.
        :param email: E-mail address.
        :param fbclid: Click id of an advertisement.
        :param gclid: Click id of an advertisement.
        :param headline: The advertisement's headline.
        :param is_group: Whether the contact is a group rather than a person.
        :param lid: The provider's id for a contact whose number it hides.
        :param marketing_opt_out: Whether the contact is excluded from campaigns. Set when the contact sends
            one of the company's stop words (`STOP`, `SAIR`, …), ignoring punctuation and emoji. Write `false`
            to opt the contact in again.
        :param media_type: Type of the advertisement's media.
        :param media_url: URL of the advertisement's picture or video.
        :param name: Name.
        :param number: 8 to 15 digits; `+ ( ) - .` and spaces are removed
        :param origin: How the contact was acquired.
        :param profile_pic_url: `https` or `http`
        :param social_username: User name on a social channel.
        :param source_id: The advertisement's id.
        :param source_url: URL of the page or advertisement.
        :param tag_ids: The tags; replaces the current ones.
        :param utm_campaign: UTM campaign.
        :param utm_id: UTM id.
        :param utm_medium: UTM medium.
        :param utm_source: UTM source.
        """
        request = Request("updateContact", "PUT", f"/api/v1/contacts/{segment(contact_id)}", body={"code": code, "cpfCnpj": cpf_cnpj, "ctwaClid": ctwa_clid, "customFields": custom_fields, "email": email, "fbclid": fbclid, "gclid": gclid, "headline": headline, "isGroup": is_group, "lid": lid, "marketingOptOut": marketing_opt_out, "mediaType": media_type, "mediaUrl": media_url, "name": name, "number": number, "origin": origin, "profilePicUrl": profile_pic_url, "socialUsername": social_username, "sourceId": source_id, "sourceUrl": source_url, "tagIds": tag_ids, "utmCampaign": utm_campaign, "utmId": utm_id, "utmMedium": utm_medium, "utmSource": utm_source}, keyed=True)
        result: t.Contact = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key, if_match=if_match))
        return result

    async def merge(self, contact_id: int, *, from_contact_id: int, idempotency_key: str | None = None, if_match: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Contact:
        """Merge a contact into another. Merges the contact `fromContactId` into the contact of the path, which
        stays. What it has set stays, empty fields and missing custom fields are filled, and tags are united.
        Conversations, identities, cards, sessions, scheduled messages, campaigns and list memberships go
        over; of two open tickets of a channel, the older stays. A contact with several numbers or ids is
        answered where they have written last. Afterwards the other id is answered with `404` and
        `details.mergedInto`. Requires the permission `contacts` `POST`.

        :param from_contact_id: The contact that goes.
        """
        request = Request("mergeContacts", "POST", f"/api/v1/contacts/{segment(contact_id)}/merge", body={"fromContactId": from_contact_id}, keyed=True)
        result: t.Contact = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key, if_match=if_match))
        return result

    async def remove_tag(self, contact_id: int, tag_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Remove a tag from a contact. Removes a tag from a contact. Repeating it changes nothing. Requires the
        permission `contacts` `DELETE`.
        """
        request = Request("removeContactTag", "DELETE", f"/api/v1/contacts/{segment(contact_id)}/tags/{segment(tag_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def add_tag(self, contact_id: int, tag_id: int, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Add a tag to a contact. Adds a tag to a contact. Repeating it changes nothing. Requires the permission
        `contacts` `PUT`.
        """
        request = Request("addContactTag", "PUT", f"/api/v1/contacts/{segment(contact_id)}/tags/{segment(tag_id)}", keyed=True)
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))


class AsyncCustomFields(AsyncResource):
    """The operations on customFields."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, application: Literal["contact", "card"] | None = None, type: Literal["text", "textarea", "number", "boolean", "date", "datetime", "email", "url", "phone", "select", "multiselect"] | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.CustomField]:
        """List custom fields. Lists the custom fields of contacts and cards, ordered by position. Requires the
        permission `customFields` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches fields whose name or key contains every word; ignores case and accents.
        :param application: The kind of record the field belongs to.
        :param type: The type.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listCustomFields", "GET", "/api/v1/custom-fields", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "application": application, "type": type, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, application: Literal["contact", "card"], name: str, type: Literal["text", "textarea", "number", "boolean", "date", "datetime", "email", "url", "phone", "select", "multiselect"], options: Given[Union[Sequence[str], None]] = NOT_GIVEN, position: Given[Union[int, None]] = NOT_GIVEN, required: Given[Union[bool, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.CustomField:
        """Create a custom field. Creates a custom field. Its key is derived from the name and never changes.
        Requires the permission `customFields` `POST`.

        :param application: The kind of record the field belongs to.
        :param name: The displayed name.
        :param options: Required for `select` and `multiselect`; at least one, without duplicates
        :param position: Position among the fields of its application, in ascending order; ties are ordered by
            id. The first field is 1 by default.
        :param required: Whether forms require it. The API does not.
        :param type: The type of its values.
        """
        request = Request("createCustomField", "POST", "/api/v1/custom-fields", body={"application": application, "name": name, "options": options, "position": position, "required": required, "type": type}, keyed=True)
        result: t.CustomField = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def reorder(self, *, application: Literal["contact", "card"], ordered_ids: Sequence[int], idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> List[t.CustomField]:
        """Reorder the custom fields of an application. Sets the order of all fields of one application. Requires
        the permission `customFields` `PUT`.

        :param application: The application whose fields are ordered.
        :param ordered_ids: All ids, each once
        """
        request = Request("reorderCustomFields", "PUT", "/api/v1/custom-fields/order", body={"application": application, "orderedIds": ordered_ids}, keyed=True)
        result: List[t.CustomField] = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, custom_field_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a custom field. Deletes a custom field with all its values. Requires the permission
        `customFields` `DELETE`.
        """
        request = Request("deleteCustomField", "DELETE", f"/api/v1/custom-fields/{segment(custom_field_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, custom_field_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.CustomField:
        """Get a custom field. Returns a custom field. Requires the permission `customFields` `GET`.
        """
        request = Request("getCustomField", "GET", f"/api/v1/custom-fields/{segment(custom_field_id)}")
        result: t.CustomField = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, custom_field_id: int, *, application: Given[Literal["contact", "card"]] = NOT_GIVEN, key: Given[str] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, options: Given[Sequence[str]] = NOT_GIVEN, position: Given[int] = NOT_GIVEN, required: Given[bool] = NOT_GIVEN, type: Given[Literal["text", "textarea", "number", "boolean", "date", "datetime", "email", "url", "phone", "select", "multiselect"]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.CustomField:
        """Update a custom field. Updates the given fields. The type cannot change while the field has values.
        Requires the permission `customFields` `PUT`.

        :param application: The kind of record the field belongs to.
        :param key: The field's key in values. Derived from the first name; never changes.
        :param name: The displayed name.
        :param options: Required for `select` and `multiselect`; at least one, without duplicates
        :param position: Position among the fields of its application, in ascending order; ties are ordered by
            id. The first field is 1 by default.
        :param required: Whether forms require it. The API does not.
        :param type: The type of its values.
        """
        request = Request("updateCustomField", "PUT", f"/api/v1/custom-fields/{segment(custom_field_id)}", body={"application": application, "key": key, "name": name, "options": options, "position": position, "required": required, "type": type}, keyed=True)
        result: t.CustomField = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncDashboards(AsyncResource):
    """The operations on dashboards."""

    async def get_sales(self, *, timeout: float | None = None, max_retries: int | None = None) -> t.SalesDashboard:
        """Get the sales dashboard. Returns open cards per board, and sales since the start of the month in the
        company's time zone. Requires the permission `reports` `GET`.
        """
        request = Request("getSalesDashboard", "GET", "/api/v1/dashboards/sales")
        result: t.SalesDashboard = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def get_service(self, *, timeout: float | None = None, max_retries: int | None = None) -> t.ServiceDashboard:
        """Get the service dashboard. Returns open tickets, waiting contacts, and today's activity in the
        company's time zone. Requires the permission `reports` `GET`.
        """
        request = Request("getServiceDashboard", "GET", "/api/v1/dashboards/service")
        result: t.ServiceDashboard = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result


class AsyncEvents(AsyncResource):
    """The operations on events."""

    async def list(self, *, after: Union[int, str] | None = None, types: Sequence[t.EventKind] | None = None, limit: int | None = None, wait: int | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.CompanyEventList:
        """List events. Lists the changes of the company's records, oldest first: one event per change, with the
        record at that time. `after` is the last event read; `wait` holds the response until there is an
        event. Events are kept for 30 days by default. Returns `404` if events are disabled, and `429` while
        the company has 200 open streams and held requests. Requires the permission `events` `GET`.

        :param after: The last event read, or `latest` for the end of the log. Default: before the oldest
            event.
        :param types: Event types, separated by commas. Default: all that the caller may see.
        :param limit: Maximum number of events; fewer if they are large.
        :param wait: How many seconds to wait for an event before responding.
        """
        request = Request("listEvents", "GET", "/api/v1/events", query={"after": after, "types": types, "limit": limit, "wait": wait})
        result: t.CompanyEventList = await self._transport.whole(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    def stream(self, *, after: int | None = None, types: Sequence[t.EventKind] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncIterator[t.CompanyEvent]:
        """Stream events. Streams the same events as Server-Sent Events, with `id`, `event` and `data`, and a
        comment every 15 seconds. Starts after `Last-Event-ID` or `after`; without either, with the next
        event. A company can have 200 open streams and held requests; further ones are answered `429`. A
        client that reads nothing for ten seconds is disconnected and can resume from its last id. A stream
        ends when its authorization changes: the token, its permissions or addresses, the company's plan, or
        the session. Requires the permission `events` `GET`.

        :param after: The last event read. Default: only new events. `Last-Event-ID` takes precedence.
        :param types: Event types, separated by commas. Default: all that the caller may see.
        """
        request = Request("streamEvents", "GET", "/api/v1/events/stream", query={"after": after, "types": types})
        return self._transport.stream(request, Options(timeout=timeout, max_retries=max_retries))


class AsyncGlobalVariables(AsyncResource):
    """The operations on globalVariables."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.GlobalVariable]:
        """List global variables. Lists the variables available in every message, ordered by id. Requires the
        permission `customFields` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches variables whose key or description contains every word; ignores case and
            accents.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listGlobalVariables", "GET", "/api/v1/global-variables", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, key: str, value: str, description: Given[Union[str, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.GlobalVariable:
        """Create a global variable. Creates a global variable; its key never changes. Requires the permission
        `customFields` `POST`.

        :param description: What the variable is for.
        :param key: Reserved names are not allowed: name, firstName, number, email, ticketId, queue, agent,
            channel, company, date, time, greeting
        :param value: The text that replaces the variable.
        """
        request = Request("createGlobalVariable", "POST", "/api/v1/global-variables", body={"description": description, "key": key, "value": value}, keyed=True)
        result: t.GlobalVariable = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, variable_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a global variable. Deletes a variable. Texts that use it show nothing in its place. Requires
        the permission `customFields` `DELETE`.
        """
        request = Request("deleteGlobalVariable", "DELETE", f"/api/v1/global-variables/{segment(variable_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, variable_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.GlobalVariable:
        """Get a global variable. Returns a global variable. Requires the permission `customFields` `GET`.
        """
        request = Request("getGlobalVariable", "GET", f"/api/v1/global-variables/{segment(variable_id)}")
        result: t.GlobalVariable = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, variable_id: int, *, description: Given[Union[str, None]] = NOT_GIVEN, key: Given[str] = NOT_GIVEN, value: Given[str] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.GlobalVariable:
        """Update a global variable. Updates the given fields. Requires the permission `customFields` `PUT`.

        :param description: What the variable is for.
        :param key: Reserved names are not allowed: name, firstName, number, email, ticketId, queue, agent,
            channel, company, date, time, greeting
        :param value: The text that replaces the variable.
        """
        request = Request("updateGlobalVariable", "PUT", f"/api/v1/global-variables/{segment(variable_id)}", body={"description": description, "key": key, "value": value}, keyed=True)
        result: t.GlobalVariable = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncMessages(AsyncResource):
    """The operations on messages."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, ticket_id: int | None = None, contact_id: int | None = None, channel_id: int | None = None, direction: Literal["inbound", "outbound", "internal"] | None = None, type: Literal["text", "media", "template", "interactive", "note", "system"] | None = None, status: Literal["queued", "sent", "delivered", "read", "failed", "received"] | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Message]:
        """List messages. Lists messages of all tickets, ordered by id. Requires the permission `messages` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param ticket_id: The ticket.
        :param contact_id: The contact.
        :param channel_id: The channel.
        :param direction: Inbound, outbound or internal (notes).
        :param type: The type.
        :param status: The status.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listMessages", "GET", "/api/v1/messages", query={"perPage": per_page, "order": order, "cursor": cursor, "ticketId": ticket_id, "contactId": contact_id, "channelId": channel_id, "direction": direction, "type": type, "status": status, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def send(self, *, type: Literal["text", "media", "template", "interactive"], body: Given[Union[str, None]] = NOT_GIVEN, channel_id: Given[Union[int, None]] = NOT_GIVEN, close_ticket: Given[Union[bool, None]] = NOT_GIVEN, contact_id: Given[Union[int, None]] = NOT_GIVEN, contact_name: Given[Union[str, None]] = NOT_GIVEN, interactive: Given[Union[Dict[str, Any], None]] = NOT_GIVEN, medias: Given[Sequence[Upload]] = NOT_GIVEN, number: Given[Union[str, None]] = NOT_GIVEN, queue_id: Given[Union[int, None]] = NOT_GIVEN, reopen_ticket: Given[Union[bool, None]] = NOT_GIVEN, template: Given[Union[t.MessageSendFormTemplate, None]] = NOT_GIVEN, ticket_id: Given[Union[int, None]] = NOT_GIVEN, user_id: Given[Union[int, None]] = NOT_GIVEN, voice: Given[Union[bool, None]] = NOT_GIVEN, wrapup_note: Given[Union[str, None]] = NOT_GIVEN, wrapup_type_id: Given[Union[int, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.QueuedJob:
        """Send a message. Queues a message and immediately returns a job. Opens a ticket if none is open.
        Requires the permission `messages` `POST`.

        :param body: The text, or a file's caption. Variables such as `{{firstName}}` are filled in.
        :param channel_id: The channel to send on; optional with `ticketId`.
        :param close_ticket: Closes the ticket once the message is handed to the channel.
        :param contact_id: The recipient, on any channel; takes precedence over `number`.
        :param contact_name: The contact's name, if `number` creates one.
        :param interactive: An interactive object in the format of the official cloud API, at most 65,536
            bytes. A webchat supports button, list, cta_url, location_request_message and carousel
        :param medias: The files, one per part of this name. Each becomes a message
        :param number: 8 to 15 digits; `+ ( ) - .` and spaces are removed
        :param queue_id: Moves the ticket to this queue once the message is handed to the channel.
        :param reopen_ticket: Reopens the contact's latest ticket on the channel if it is closed.
        :param template: An approved template: its name with `parameters`, or complete `components`.
        :param ticket_id: The ticket to send in; takes precedence over `contactId` and `number`.
        :param type: `text` requires `body`; `media` requires a form with files in `medias`; `template` and
            `interactive` require the field of the same name
        :param user_id: The user, as `GET /users` lists them.
        :param voice: Sends the files as voice messages: audio files, on WhatsApp of the type audio/ogg. Only
            with the type `media`.
        :param wrapup_note: Note about the wrap-up, with `closeTicket`.
        :param wrapup_type_id: The wrap-up type, with `closeTicket`.
        """
        request = Request("sendMessage", "POST", "/api/v1/messages", body={"body": body, "channelId": channel_id, "closeTicket": close_ticket, "contactId": contact_id, "contactName": contact_name, "interactive": interactive, "medias": medias, "number": number, "queueId": queue_id, "reopenTicket": reopen_ticket, "template": template, "ticketId": ticket_id, "type": type, "userId": user_id, "voice": voice, "wrapupNote": wrapup_note, "wrapupTypeId": wrapup_type_id}, keyed=True)
        result: t.QueuedJob = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def get_job(self, job_id: str, *, timeout: float | None = None, max_retries: int | None = None) -> t.Job:
        """Get a message job. Returns the status of a message job. Requires the permission `messages` `GET`.
        """
        request = Request("getMessageJob", "GET", f"/api/v1/messages/jobs/{segment(job_id)}")
        result: t.Job = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def get(self, message_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Message:
        """Get a message. Returns the current state of a message. Requires the permission `messages` `GET`.
        """
        request = Request("getMessage", "GET", f"/api/v1/messages/{segment(message_id)}")
        result: t.Message = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def withdraw_reaction(self, message_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Withdraw a reaction. Withdraws the company's reaction to a message. Requires the permission `messages`
        `DELETE`.
        """
        request = Request("withdrawReaction", "DELETE", f"/api/v1/messages/{segment(message_id)}/reaction")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def react_to(self, message_id: int, *, emoji: str, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Message:
        """React to a message. Reacts to a message on behalf of the company, which has one reaction of each
        message: it replaces an earlier one. It is sent to the channel's provider; if that refuses it, the
        reaction has an `error`. Requires the permission `messages` `PUT`.

        :param emoji: One emoji.
        """
        request = Request("reactToMessage", "PUT", f"/api/v1/messages/{segment(message_id)}/reaction", body={"emoji": emoji}, keyed=True)
        result: t.Message = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncProductCategories(AsyncResource):
    """The operations on productCategories."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.ProductCategory]:
        """List product categories. Lists the company's product categories, ordered by id. Requires the
        permission `products` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listProductCategories", "GET", "/api/v1/product-categories", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, name: str, description: Given[Union[str, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.ProductCategory:
        """Create a product category. Creates a product category; its name is unique in the company. Requires the
        permission `products` `POST`.

        :param description: Description.
        :param name: Name, unique in the company.
        """
        request = Request("createProductCategory", "POST", "/api/v1/product-categories", body={"description": description, "name": name}, keyed=True)
        result: t.ProductCategory = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, category_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a product category. Deletes a product category. Its products have no category afterwards.
        Requires the permission `products` `DELETE`.
        """
        request = Request("deleteProductCategory", "DELETE", f"/api/v1/product-categories/{segment(category_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, category_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.ProductCategory:
        """Get a product category. Returns a product category. Requires the permission `products` `GET`.
        """
        request = Request("getProductCategory", "GET", f"/api/v1/product-categories/{segment(category_id)}")
        result: t.ProductCategory = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, category_id: int, *, description: Given[Union[str, None]] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.ProductCategory:
        """Update a product category. Updates the given fields. Requires the permission `products` `PUT`.

        :param description: Description.
        :param name: Name, unique in the company.
        """
        request = Request("updateProductCategory", "PUT", f"/api/v1/product-categories/{segment(category_id)}", body={"description": description, "name": name}, keyed=True)
        result: t.ProductCategory = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncProducts(AsyncResource):
    """The operations on products."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, category_id: int | None = None, active: bool | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Product]:
        """List products. Lists the company's products, ordered by id. Requires the permission `products` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches products whose name or SKU contains every word; ignores case and accents.
        :param category_id: The category.
        :param active: Whether it is active.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listProducts", "GET", "/api/v1/products", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "categoryId": category_id, "active": active, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, name: str, active: Given[Union[bool, None]] = NOT_GIVEN, category_id: Given[Union[int, None]] = NOT_GIVEN, description: Given[Union[str, None]] = NOT_GIVEN, price: Given[Union[float, None]] = NOT_GIVEN, sku: Given[Union[str, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Product:
        """Create a product. Creates a product; its sku is unique in the company. Requires the permission
        `products` `POST`.

        :param active: Whether it is active.
        :param category_id: The category, as `GET /product-categories` lists it.
        :param description: Description.
        :param name: The product's name.
        :param price: Price per unit in the company's currency. Cards can override it.
        :param sku: Stock keeping unit, unique in the company.
        """
        request = Request("createProduct", "POST", "/api/v1/products", body={"active": active, "categoryId": category_id, "description": description, "name": name, "price": price, "sku": sku}, keyed=True)
        result: t.Product = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, product_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a product. Deletes a product. Cards keep their copies of its data. Requires the permission
        `products` `DELETE`.
        """
        request = Request("deleteProduct", "DELETE", f"/api/v1/products/{segment(product_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, product_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Product:
        """Get a product. Returns a product. Requires the permission `products` `GET`.
        """
        request = Request("getProduct", "GET", f"/api/v1/products/{segment(product_id)}")
        result: t.Product = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, product_id: int, *, active: Given[bool] = NOT_GIVEN, category_id: Given[Union[int, None]] = NOT_GIVEN, description: Given[Union[str, None]] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, price: Given[float] = NOT_GIVEN, sku: Given[Union[str, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Product:
        """Update a product. Updates the given fields. Requires the permission `products` `PUT`.

        :param active: Whether it is active.
        :param category_id: The category, as `GET /product-categories` lists it.
        :param description: Description.
        :param name: The product's name.
        :param price: Price per unit in the company's currency. Cards can override it.
        :param sku: Stock keeping unit, unique in the company.
        """
        request = Request("updateProduct", "PUT", f"/api/v1/products/{segment(product_id)}", body={"active": active, "categoryId": category_id, "description": description, "name": name, "price": price, "sku": sku}, keyed=True)
        result: t.Product = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncProfiles(AsyncResource):
    """The operations on profiles."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Profile]:
        """List permission profiles. Lists the permission profiles. Requires the permission `profiles` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listProfiles", "GET", "/api/v1/profiles", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, profile_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Profile:
        """Get a permission profile. Returns a permission profile. Requires the permission `profiles` `GET`.
        """
        request = Request("getProfile", "GET", f"/api/v1/profiles/{segment(profile_id)}")
        result: t.Profile = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result


class AsyncQueues(AsyncResource):
    """The operations on queues."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, active: bool | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Queue]:
        """List queues. Lists the company's queues, ordered by id. Requires the permission `queues` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param active: Whether it is active.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listQueues", "GET", "/api/v1/queues", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "active": active, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, name: str, active: Given[Union[bool, None]] = NOT_GIVEN, color: Given[Union[str, None]] = NOT_GIVEN, distribution: Given[Union[Literal["manual", "round_robin", "least_busy"], None]] = NOT_GIVEN, greeting: Given[Union[str, None]] = NOT_GIVEN, wrapup_required: Given[Union[bool, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Queue:
        """Create a queue. Creates a queue; its name is unique in the company. Requires the permission `queues`
        `POST`.

        :param active: Whether it is active.
        :param color: A colour as `#rrggbb`.
        :param distribution: How new tickets are assigned: not automatically, to each active agent in turn, or
            to the one with the fewest open tickets.
        :param greeting: Sent when a contact opens a ticket in the queue.
        :param name: Name, unique in the company.
        :param wrapup_required: Whether closing a ticket requires a wrap-up.
        """
        request = Request("createQueue", "POST", "/api/v1/queues", body={"active": active, "color": color, "distribution": distribution, "greeting": greeting, "name": name, "wrapupRequired": wrapup_required}, keyed=True)
        result: t.Queue = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, queue_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a queue. Deletes a queue. Fails while it has open tickets or a channel uses it. Requires the
        permission `queues` `DELETE`.
        """
        request = Request("deleteQueue", "DELETE", f"/api/v1/queues/{segment(queue_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, queue_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Queue:
        """Get a queue. Returns a queue. Requires the permission `queues` `GET`.
        """
        request = Request("getQueue", "GET", f"/api/v1/queues/{segment(queue_id)}")
        result: t.Queue = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, queue_id: int, *, active: Given[bool] = NOT_GIVEN, color: Given[str] = NOT_GIVEN, distribution: Given[Literal["manual", "round_robin", "least_busy"]] = NOT_GIVEN, greeting: Given[Union[str, None]] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, wrapup_required: Given[bool] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Queue:
        """Update a queue. Updates the given fields. Requires the permission `queues` `PUT`.

        :param active: Whether it is active.
        :param color: A colour as `#rrggbb`.
        :param distribution: How new tickets are assigned: not automatically, to each active agent in turn, or
            to the one with the fewest open tickets.
        :param greeting: Sent when a contact opens a ticket in the queue.
        :param name: Name, unique in the company.
        :param wrapup_required: Whether closing a ticket requires a wrap-up.
        """
        request = Request("updateQueue", "PUT", f"/api/v1/queues/{segment(queue_id)}", body={"active": active, "color": color, "distribution": distribution, "greeting": greeting, "name": name, "wrapupRequired": wrapup_required}, keyed=True)
        result: t.Queue = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    def list_users(self, queue_id: int, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, active: bool | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.User]:
        """List the agents of a queue. Lists the agents of a queue. Requires the permission `queues` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches users whose name or e-mail contains every word; ignores case and accents.
        :param active: Whether it is active.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listQueueUsers", "GET", f"/api/v1/queues/{segment(queue_id)}/users", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "active": active, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def remove_user(self, queue_id: int, user_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Remove an agent from a queue. Removes an agent from a queue and unassigns their open tickets in it.
        Requires the permission `queues` `DELETE`.
        """
        request = Request("removeQueueUser", "DELETE", f"/api/v1/queues/{segment(queue_id)}/users/{segment(user_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def add_user(self, queue_id: int, user_id: int, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Add an agent to a queue. Adds an agent to a queue. Repeating it changes nothing. Requires the
        permission `queues` `PUT`.
        """
        request = Request("addQueueUser", "PUT", f"/api/v1/queues/{segment(queue_id)}/users/{segment(user_id)}", keyed=True)
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))

    def list_wrapup_types(self, queue_id: int, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, active: bool | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.WrapupType]:
        """List the wrap-up types of a queue. Lists the wrap-up types available in a queue. Requires the
        permission `queues` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param active: Whether it is active.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listQueueWrapupTypes", "GET", f"/api/v1/queues/{segment(queue_id)}/wrapup-types", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "active": active, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))


class AsyncQuickMessages(AsyncResource):
    """The operations on quickMessages."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.QuickMessage]:
        """List quick messages. Lists the company's quick messages, ordered by id. Requires the permission
        `quickMessages` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches quick messages whose shortcut or text contains every word; ignores case and
            accents.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listQuickMessages", "GET", "/api/v1/quick-messages", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, message: str, shortcut: str, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.QuickMessage:
        """Create a quick message. Creates a quick message; its shortcut is unique in the company. Requires the
        permission `quickMessages` `POST`.

        :param message: The text.
        :param shortcut: The shortcut, unique in the company.
        """
        request = Request("createQuickMessage", "POST", "/api/v1/quick-messages", body={"message": message, "shortcut": shortcut}, keyed=True)
        result: t.QuickMessage = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, quick_message_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a quick message. Deletes a quick message. Requires the permission `quickMessages` `DELETE`.
        """
        request = Request("deleteQuickMessage", "DELETE", f"/api/v1/quick-messages/{segment(quick_message_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, quick_message_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.QuickMessage:
        """Get a quick message. Returns a quick message. Requires the permission `quickMessages` `GET`.
        """
        request = Request("getQuickMessage", "GET", f"/api/v1/quick-messages/{segment(quick_message_id)}")
        result: t.QuickMessage = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, quick_message_id: int, *, message: Given[str] = NOT_GIVEN, shortcut: Given[str] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.QuickMessage:
        """Update a quick message. Updates the given fields. Requires the permission `quickMessages` `PUT`.

        :param message: The text.
        :param shortcut: The shortcut, unique in the company.
        """
        request = Request("updateQuickMessage", "PUT", f"/api/v1/quick-messages/{segment(quick_message_id)}", body={"message": message, "shortcut": shortcut}, keyed=True)
        result: t.QuickMessage = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncReports(AsyncResource):
    """The operations on reports."""

    async def messages(self, *, from_: Union[str, datetime] | None = None, to: Union[str, datetime] | None = None, time_zone: str | None = None, group_by: Literal["day", "channel", "user", "type"] | None = None, timeout: float | None = None, max_retries: int | None = None) -> List[t.MessageReportRow]:
        """Report on messages. Reports messages by day, channel, user or type. Period and CSV work as for
        tickets. Requires the permission `reports` `GET`.

        :param from_: Start of the period. Default: 30 days before its end.
        :param to: End of the period. Default: now.
        :param time_zone: An IANA time zone. Default: the company's
        :param group_by: How rows are grouped.
        """
        request = Request("reportMessages", "GET", "/api/v1/reports/messages", query={"from": from_, "to": to, "timeZone": time_zone, "groupBy": group_by})
        result: List[t.MessageReportRow] = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def messages_csv(self, *, from_: Union[str, datetime] | None = None, to: Union[str, datetime] | None = None, time_zone: str | None = None, group_by: Literal["day", "channel", "user", "type"] | None = None, timeout: float | None = None, max_retries: int | None = None) -> str:
        """The same as CSV. Report on messages."""
        return await self._transport.text(Request("reportMessages", "GET", "/api/v1/reports/messages", query={"from": from_, "to": to, "timeZone": time_zone, "groupBy": group_by}), "text/csv", Options(timeout=timeout, max_retries=max_retries))

    async def sales(self, *, from_: Union[str, datetime] | None = None, to: Union[str, datetime] | None = None, time_zone: str | None = None, board_id: int | None = None, group_by: Literal["day", "user", "origin", "product"] | None = None, timeout: float | None = None, max_retries: int | None = None) -> List[t.SalesReportRow]:
        """Report on sales. Reports won and lost cards by day, user, origin or product, for one board or all.
        Period and CSV work as for tickets. Requires the permission `reports` `GET`.

        :param from_: Start of the period. Default: 30 days before its end.
        :param to: End of the period. Default: now.
        :param time_zone: An IANA time zone. Default: the company's
        :param board_id: The board.
        :param group_by: How rows are grouped.
        """
        request = Request("reportSales", "GET", "/api/v1/reports/sales", query={"from": from_, "to": to, "timeZone": time_zone, "boardId": board_id, "groupBy": group_by})
        result: List[t.SalesReportRow] = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def sales_csv(self, *, from_: Union[str, datetime] | None = None, to: Union[str, datetime] | None = None, time_zone: str | None = None, board_id: int | None = None, group_by: Literal["day", "user", "origin", "product"] | None = None, timeout: float | None = None, max_retries: int | None = None) -> str:
        """The same as CSV. Report on sales."""
        return await self._transport.text(Request("reportSales", "GET", "/api/v1/reports/sales", query={"from": from_, "to": to, "timeZone": time_zone, "boardId": board_id, "groupBy": group_by}), "text/csv", Options(timeout=timeout, max_retries=max_retries))

    async def tickets(self, *, from_: Union[str, datetime] | None = None, to: Union[str, datetime] | None = None, time_zone: str | None = None, group_by: Literal["day", "queue", "channel", "user"] | None = None, timeout: float | None = None, max_retries: int | None = None) -> List[t.TicketReportRow]:
        """Report on tickets. Reports tickets by day, queue, channel or user, ordered by key. Every day of the
        period has a row; other groups only if they have data. The period is rounded outward to quarter hours.
        With `Accept: text/csv`, returns the same rows as CSV. Requires the permission `reports` `GET`.

        :param from_: Start of the period. Default: 30 days before its end.
        :param to: End of the period. Default: now.
        :param time_zone: An IANA time zone. Default: the company's
        :param group_by: How rows are grouped.
        """
        request = Request("reportTickets", "GET", "/api/v1/reports/tickets", query={"from": from_, "to": to, "timeZone": time_zone, "groupBy": group_by})
        result: List[t.TicketReportRow] = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def tickets_csv(self, *, from_: Union[str, datetime] | None = None, to: Union[str, datetime] | None = None, time_zone: str | None = None, group_by: Literal["day", "queue", "channel", "user"] | None = None, timeout: float | None = None, max_retries: int | None = None) -> str:
        """The same as CSV. Report on tickets."""
        return await self._transport.text(Request("reportTickets", "GET", "/api/v1/reports/tickets", query={"from": from_, "to": to, "timeZone": time_zone, "groupBy": group_by}), "text/csv", Options(timeout=timeout, max_retries=max_retries))

    async def wrapups(self, *, from_: Union[str, datetime] | None = None, to: Union[str, datetime] | None = None, time_zone: str | None = None, queue_id: int | None = None, timeout: float | None = None, max_retries: int | None = None) -> List[t.WrapupReportRow]:
        """Report on wrap-ups. Reports how often tickets were closed with each wrap-up type, for one queue or
        all. Period and CSV work as for tickets. Requires the permission `reports` `GET`.

        :param from_: Start of the period. Default: 30 days before its end.
        :param to: End of the period. Default: now.
        :param time_zone: An IANA time zone. Default: the company's
        :param queue_id: The queue.
        """
        request = Request("reportWrapups", "GET", "/api/v1/reports/wrapups", query={"from": from_, "to": to, "timeZone": time_zone, "queueId": queue_id})
        result: List[t.WrapupReportRow] = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def wrapups_csv(self, *, from_: Union[str, datetime] | None = None, to: Union[str, datetime] | None = None, time_zone: str | None = None, queue_id: int | None = None, timeout: float | None = None, max_retries: int | None = None) -> str:
        """The same as CSV. Report on wrap-ups."""
        return await self._transport.text(Request("reportWrapups", "GET", "/api/v1/reports/wrapups", query={"from": from_, "to": to, "timeZone": time_zone, "queueId": queue_id}), "text/csv", Options(timeout=timeout, max_retries=max_retries))


class AsyncSchedules(AsyncResource):
    """The operations on schedules."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, status: Literal["pending", "sent", "canceled", "failed"] | None = None, contact_id: int | None = None, channel_id: int | None = None, send_from: Union[str, datetime] | None = None, send_to: Union[str, datetime] | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Schedule]:
        """List scheduled messages. Lists scheduled messages, including past ones, ordered by id. Includes every
        change acknowledged before the request. Requires the permission `schedules` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param status: The status.
        :param contact_id: The contact.
        :param channel_id: The channel.
        :param send_from: send at or after this time
        :param send_to: send at or before this time
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listSchedules", "GET", "/api/v1/schedules", query={"perPage": per_page, "order": order, "cursor": cursor, "status": status, "contactId": contact_id, "channelId": channel_id, "sendFrom": send_from, "sendTo": send_to, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, body: str, channel_id: int, contact_id: int, send_at: Union[str, datetime], queue_id: Given[Union[int, None]] = NOT_GIVEN, user_id: Given[Union[int, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Schedule:
        """Schedule a message. Schedules a text message. It is sent exactly once, within five seconds of
        `sendAt`, even across a restart. Variables are filled in when it is sent. Requires the permission
        `schedules` `POST`.

        :param body: At most 65,536 bytes
        :param channel_id: The channel, as `GET /channels` lists it.
        :param contact_id: The contact.
        :param queue_id: The queue, as `GET /queues` lists it.
        :param send_at: A time in the future
        :param user_id: The user, as `GET /users` lists them.
        """
        request = Request("createSchedule", "POST", "/api/v1/schedules", body={"body": body, "channelId": channel_id, "contactId": contact_id, "queueId": queue_id, "sendAt": send_at, "userId": user_id}, keyed=True)
        result: t.Schedule = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def cancel(self, schedule_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Cancel a scheduled message. Cancels a pending message. After `204` the message is guaranteed not to be
        sent. Requires the permission `schedules` `DELETE`.
        """
        request = Request("cancelSchedule", "DELETE", f"/api/v1/schedules/{segment(schedule_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, schedule_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Schedule:
        """Get a scheduled message. Returns a scheduled message. Requires the permission `schedules` `GET`.
        """
        request = Request("getSchedule", "GET", f"/api/v1/schedules/{segment(schedule_id)}")
        result: t.Schedule = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, schedule_id: int, *, body: Given[str] = NOT_GIVEN, channel_id: Given[int] = NOT_GIVEN, contact_id: Given[int] = NOT_GIVEN, queue_id: Given[Union[int, None]] = NOT_GIVEN, send_at: Given[Union[str, datetime]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Schedule:
        """Update a scheduled message. Updates the given fields while the message is pending. After `200` the
        change is guaranteed to apply. Requires the permission `schedules` `PUT`.

        :param body: At most 65,536 bytes
        :param channel_id: The channel, as `GET /channels` lists it.
        :param contact_id: The contact.
        :param queue_id: The queue, as `GET /queues` lists it.
        :param send_at: A time in the future
        """
        request = Request("updateSchedule", "PUT", f"/api/v1/schedules/{segment(schedule_id)}", body={"body": body, "channelId": channel_id, "contactId": contact_id, "queueId": queue_id, "sendAt": send_at}, keyed=True)
        result: t.Schedule = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncSessions(AsyncResource):
    """The operations on sessions."""

    async def open(self, *, channel_id: int, contact_id: Given[Union[int, None]] = NOT_GIVEN, page: Given[Union[t.SessionOpenPage, None]] = NOT_GIVEN, utm: Given[Union[t.SessionOpenUtm, None]] = NOT_GIVEN, visitor: Given[Union[t.SessionOpenVisitor, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Session:
        """Open a visitor session. Opens a visitor session in a webchat, on behalf of the company's own page or
        server. Requires the permission `webchat` `POST`.

        :param channel_id: A webchat.
        :param contact_id: The contact; otherwise `visitor` identifies one.
        :param page: The visitor's current page.
        :param utm: UTM parameters of the visit.
        :param visitor: Visitor data. A contact is found by `externalId`, then `number`, then `email`.
        """
        request = Request("openSession", "POST", "/api/v1/webchat/sessions", body={"channelId": channel_id, "contactId": contact_id, "page": page, "utm": utm, "visitor": visitor}, keyed=True, secret="token")
        result: t.Session = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def get(self, session_id: str, *, timeout: float | None = None, max_retries: int | None = None) -> t.Session:
        """Get a visitor session. Returns a visitor session. Requires the permission `webchat` `GET`.
        """
        request = Request("getSession", "GET", f"/api/v1/webchat/sessions/{segment(session_id)}")
        result: t.Session = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def end(self, session_id: str, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Session:
        """End a visitor session. Ends a session; its ticket stays open. Repeating it is not an error. Requires
        the permission `webchat` `POST`.
        """
        request = Request("endSession", "POST", f"/api/v1/webchat/sessions/{segment(session_id)}/end", keyed=True)
        result: t.Session = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    def list_messages(self, session_id: str, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, after: int | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Message]:
        """List the messages of a visitor session. Lists the messages that the visitor sees, without notes. With
        `after`, only newer messages; such a page ends at 1 MiB, and `hasMore` says whether more follow.
        Requires the permission `webchat` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param after: Only messages with a greater id: the last one read.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listSessionMessages", "GET", f"/api/v1/webchat/sessions/{segment(session_id)}/messages", query={"perPage": per_page, "order": order, "cursor": cursor, "after": after, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def send_message(self, session_id: str, *, body: Given[Union[str, None]] = NOT_GIVEN, client_id: Given[Union[str, None]] = NOT_GIVEN, reply: Given[Union[t.SessionMessageSendReply, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Message:
        """Send a message as a visitor. Sends a message as the visitor. The first message opens a ticket.
        Requires the permission `webchat` `POST`.

        :param body: At most 65,536 bytes
        :param client_id: An id chosen by the client. Sending again with the same id returns the first
            message.
        :param reply: The chosen option of an interactive message; instead of `body`.
        """
        request = Request("sendSessionMessage", "POST", f"/api/v1/webchat/sessions/{segment(session_id)}/messages", body={"body": body, "clientId": client_id, "reply": reply}, keyed=True)
        result: t.Message = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncTags(AsyncResource):
    """The operations on tags."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Tag]:
        """List tags. Lists the company's tags, ordered by id. Requires the permission `tags` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listTags", "GET", "/api/v1/tags", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, name: str, color: Given[Union[str, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Tag:
        """Create a tag. Creates a tag; its name is unique in the company. Requires the permission `tags` `POST`.

        :param color: A colour as `#rrggbb`.
        :param name: Name, unique in the company.
        """
        request = Request("createTag", "POST", "/api/v1/tags", body={"color": color, "name": name}, keyed=True)
        result: t.Tag = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, tag_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a tag. Deletes a tag and removes it from every contact. Requires the permission `tags`
        `DELETE`.
        """
        request = Request("deleteTag", "DELETE", f"/api/v1/tags/{segment(tag_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, tag_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Tag:
        """Get a tag. Returns a tag. Requires the permission `tags` `GET`.
        """
        request = Request("getTag", "GET", f"/api/v1/tags/{segment(tag_id)}")
        result: t.Tag = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, tag_id: int, *, color: Given[str] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Tag:
        """Update a tag. Updates the given fields. Requires the permission `tags` `PUT`.

        :param color: A colour as `#rrggbb`.
        :param name: Name, unique in the company.
        """
        request = Request("updateTag", "PUT", f"/api/v1/tags/{segment(tag_id)}", body={"color": color, "name": name}, keyed=True)
        result: t.Tag = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncTickets(AsyncResource):
    """The operations on tickets."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, status: Literal["open", "closed"] | None = None, queue_id: int | None = None, user_id: int | None = None, contact_id: int | None = None, channel_id: int | None = None, wrapup_type_id: int | None = None, unassigned: bool | None = None, search: str | None = None, opened_from: Union[str, datetime] | None = None, opened_to: Union[str, datetime] | None = None, closed_from: Union[str, datetime] | None = None, closed_to: Union[str, datetime] | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, sort: Literal["id", "activity", "waiting"] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Ticket]:
        """List tickets. Lists tickets, ordered by id unless `sort` is given. Includes every change acknowledged
        before the request. Requires the permission `tickets` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: The default is `asc`, unless `sort` has another
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. In the order of ids, each record that matches throughout
            is returned exactly once, even if others are added or deleted meanwhile; with another `sort`, one
            whose place changes meanwhile may be missed or repeated. A page may have fewer than `perPage`
            records; only `hasMore` says whether there are more. Use the same list, filters and order
        :param status: The status.
        :param queue_id: The queue.
        :param user_id: The user.
        :param contact_id: The contact.
        :param channel_id: The channel.
        :param wrapup_type_id: The wrap-up type.
        :param unassigned: Only unassigned tickets.
        :param search: Matches tickets whose contact's name or number contains every word; numbers in any
            format.
        :param opened_from: opened at or after this time
        :param opened_to: opened at or before this time
        :param closed_from: closed at or after this time
        :param closed_to: closed at or before this time
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        :param sort: With `status=open`. `activity`: by `lastActivityAt`, the latest first unless `order` is
            given. `waiting`: by `waitingSince`, the longest wait first; tickets in which no one waits come
            last in either order. Tickets of the same time are ordered by id
        """
        request = Request("listTickets", "GET", "/api/v1/tickets", query={"perPage": per_page, "order": order, "cursor": cursor, "status": status, "queueId": queue_id, "userId": user_id, "contactId": contact_id, "channelId": channel_id, "wrapupTypeId": wrapup_type_id, "unassigned": unassigned, "search": search, "openedFrom": opened_from, "openedTo": opened_to, "closedFrom": closed_from, "closedTo": closed_to, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to, "sort": sort})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def open(self, *, channel_id: int, contact_id: int, queue_id: Given[Union[int, None]] = NOT_GIVEN, user_id: Given[Union[int, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Ticket:
        """Open a ticket. Opens a ticket with a contact on a channel. Fails while the contact has an open ticket
        there. Requires the permission `tickets` `POST`.

        :param channel_id: The channel, as `GET /channels` lists it.
        :param contact_id: The contact.
        :param queue_id: The queue, as `GET /queues` lists it.
        :param user_id: The assigned agent, as `GET /users` lists them.
        """
        request = Request("openTicket", "POST", "/api/v1/tickets", body={"channelId": channel_id, "contactId": contact_id, "queueId": queue_id, "userId": user_id}, keyed=True)
        result: t.Ticket = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def get(self, ticket_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Ticket:
        """Get a ticket. Returns the current state of a ticket. Requires the permission `tickets` `GET`.
        """
        request = Request("getTicket", "GET", f"/api/v1/tickets/{segment(ticket_id)}")
        result: t.Ticket = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def close(self, ticket_id: int, *, wrapup_note: Given[Union[str, None]] = NOT_GIVEN, wrapup_type_id: Given[Union[int, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Ticket:
        """Close a ticket. Closes an open ticket, with a wrap-up if its queue requires one. Requires the
        permission `tickets` `POST`.

        :param wrapup_note: Note about the wrap-up.
        :param wrapup_type_id: The wrap-up type.
        """
        request = Request("closeTicket", "POST", f"/api/v1/tickets/{segment(ticket_id)}/close", body={"wrapupNote": wrapup_note, "wrapupTypeId": wrapup_type_id}, keyed=True)
        result: t.Ticket = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    def list_events(self, ticket_id: int, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.TicketEvent]:
        """List the events of a ticket. Lists the history of a ticket, oldest first. Requires the permission
        `tickets` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        """
        request = Request("listTicketEvents", "GET", f"/api/v1/tickets/{segment(ticket_id)}/events", query={"perPage": per_page, "order": order, "cursor": cursor, "createdFrom": created_from, "createdTo": created_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def merge(self, ticket_id: int, *, from_ticket_id: int, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Ticket:
        """Merge a ticket into another. Merges the ticket `fromTicketId` into the ticket of the path, which
        stays: messages and history go over. Both have the same contact and channel; an open ticket is not
        merged into a closed one. Afterwards the other id is answered with `404` and `details.mergedInto`.
        Requires the permission `tickets` `POST`.

        :param from_ticket_id: The ticket that goes.
        """
        request = Request("mergeTickets", "POST", f"/api/v1/tickets/{segment(ticket_id)}/merge", body={"fromTicketId": from_ticket_id}, keyed=True)
        result: t.Ticket = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    def list_messages(self, ticket_id: int, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Message]:
        """List the messages of a ticket. Lists the messages of a ticket, including notes, oldest first. Requires
        the permission `tickets` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listTicketMessages", "GET", f"/api/v1/tickets/{segment(ticket_id)}/messages", query={"perPage": per_page, "order": order, "cursor": cursor, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def add_note(self, ticket_id: int, *, body: str, user_id: Given[Union[int, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Message:
        """Add a note to a ticket. Adds a note for agents. Notes are never sent or shown to the contact. Requires
        the permission `tickets` `POST`.

        :param body: At most 65,536 bytes
        :param user_id: The user, as `GET /users` lists them.
        """
        request = Request("addTicketNote", "POST", f"/api/v1/tickets/{segment(ticket_id)}/notes", body={"body": body, "userId": user_id}, keyed=True)
        result: t.Message = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def mark_read(self, ticket_id: int, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Ticket:
        """Mark a ticket as read. Marks the contact's messages as read. Requires the permission `tickets` `POST`.
        """
        request = Request("markTicketRead", "POST", f"/api/v1/tickets/{segment(ticket_id)}/read", keyed=True)
        result: t.Ticket = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def reopen(self, ticket_id: int, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Ticket:
        """Reopen a ticket. Reopens a closed ticket and removes its wrap-up. Requires the permission `tickets`
        `POST`.
        """
        request = Request("reopenTicket", "POST", f"/api/v1/tickets/{segment(ticket_id)}/reopen", keyed=True)
        result: t.Ticket = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def transfer(self, ticket_id: int, *, queue_id: Given[Union[int, None]] = NOT_GIVEN, user_id: Given[Union[int, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Ticket:
        """Transfer a ticket. Transfers an open ticket to another queue, agent, or both. `userId: null` unassigns
        it. Requires the permission `tickets` `POST`.

        :param queue_id: The new queue.
        :param user_id: The new agent; `null` unassigns the ticket.
        """
        request = Request("transferTicket", "POST", f"/api/v1/tickets/{segment(ticket_id)}/transfer", body={"queueId": queue_id, "userId": user_id}, keyed=True)
        result: t.Ticket = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def set_wrapup(self, ticket_id: int, *, wrapup_type_id: int, wrapup_note: Given[Union[str, None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Ticket:
        """Set the wrap-up of a ticket. Sets or changes the wrap-up of a closed ticket. Requires the permission
        `tickets` `PUT`.

        :param wrapup_note: Note about the wrap-up.
        :param wrapup_type_id: The wrap-up type.
        """
        request = Request("setTicketWrapup", "PUT", f"/api/v1/tickets/{segment(ticket_id)}/wrapup", body={"wrapupNote": wrapup_note, "wrapupTypeId": wrapup_type_id}, keyed=True)
        result: t.Ticket = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncUsers(AsyncResource):
    """The operations on users."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, active: bool | None = None, queue_id: int | None = None, profile_id: int | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.User]:
        """List users. Lists the company's users, ordered by id. Requires the permission `users` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches users whose name or e-mail contains every word; ignores case and accents.
        :param active: Whether it is active.
        :param queue_id: The queue.
        :param profile_id: The permission profile.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listUsers", "GET", "/api/v1/users", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "active": active, "queueId": queue_id, "profileId": profile_id, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, email: str, name: str, active: Given[Union[bool, None]] = NOT_GIVEN, password: Given[Union[str, None]] = NOT_GIVEN, profile_id: Given[Union[int, None]] = NOT_GIVEN, queue_ids: Given[Union[Sequence[int], None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.User:
        """Create a user. Creates a user in the company. Requires the permission `users` `POST`.

        :param active: Whether the user is active. Only active agents are assigned tickets.
        :param email: E-mail address, unique in the company.
        :param name: The user's name in this company.
        :param password: Password for signing in; at least 12 characters.
        :param profile_id: The permission profile, as `GET /profiles` lists it.
        :param queue_ids: The user's queues; replaces the current ones.
        """
        request = Request("createUser", "POST", "/api/v1/users", body={"active": active, "email": email, "name": name, "password": password, "profileId": profile_id, "queueIds": queue_ids}, keyed=True)
        result: t.User = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    def list_metrics(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, from_: Union[str, datetime] | None = None, to: Union[str, datetime] | None = None, queue_id: int | None = None, user_id: int | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.UserMetrics]:
        """List the conversation metrics of users. Lists how many tickets each user has handled. Requires the
        permission `users` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param from_: Only tickets opened at or after this time.
        :param to: Only tickets opened at or before this time.
        :param queue_id: The queue.
        :param user_id: The user.
        """
        request = Request("listUserMetrics", "GET", "/api/v1/users/metrics", query={"perPage": per_page, "order": order, "cursor": cursor, "from": from_, "to": to, "queueId": queue_id, "userId": user_id})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def remove(self, user_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Remove a user from the company. Removes a user from the company. Their open tickets are unassigned;
        closed tickets keep them. Requires the permission `users` `DELETE`.
        """
        request = Request("removeUser", "DELETE", f"/api/v1/users/{segment(user_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, user_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.User:
        """Get a user. Returns a user with their profile and queues. Requires the permission `users` `GET`.
        """
        request = Request("getUser", "GET", f"/api/v1/users/{segment(user_id)}")
        result: t.User = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, user_id: int, *, active: Given[bool] = NOT_GIVEN, email: Given[str] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, password: Given[Union[str, None]] = NOT_GIVEN, profile_id: Given[Union[int, None]] = NOT_GIVEN, queue_ids: Given[Sequence[int]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.User:
        """Update a user. Updates the given fields; `queueIds` replaces the queues. Requires the permission
        `users` `PUT`.

        :param active: Whether the user is active. Only active agents are assigned tickets.
        :param email: E-mail address, unique in the company.
        :param name: The user's name in this company.
        :param password: Password for signing in; at least 12 characters.
        :param profile_id: The permission profile, as `GET /profiles` lists it.
        :param queue_ids: The user's queues; replaces the current ones.
        """
        request = Request("updateUser", "PUT", f"/api/v1/users/{segment(user_id)}", body={"active": active, "email": email, "name": name, "password": password, "profileId": profile_id, "queueIds": queue_ids}, keyed=True)
        result: t.User = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncVisitors(AsyncResource):
    """The operations on visitors."""

    async def get_activity(self, public_key: str, ticket_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.VisitorActivity:
        """Get the visitor's activity. Returns whether the visitor of a ticket is online and typing. Requires the
        permission `tickets` `GET`.
        """
        request = Request("getVisitorActivity", "GET", f"/webchat/{segment(public_key)}/tickets/{segment(ticket_id)}/typing")
        result: t.VisitorActivity = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def show_agent_typing(self, public_key: str, ticket_id: int, *, typing: Given[Union[bool, None]] = NOT_GIVEN, user_id: Given[Union[int, None]] = NOT_GIVEN, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Show that an agent is typing. Shows the visitor of a ticket that an agent is typing, for six seconds;
        repeat every three seconds. Requires the permission `tickets` `POST`.

        :param typing: Whether the agent is typing.
        :param user_id: The user, as `GET /users` lists them.
        """
        request = Request("showAgentTyping", "POST", f"/webchat/{segment(public_key)}/tickets/{segment(ticket_id)}/typing", body={"typing": typing, "userId": user_id})
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))


class AsyncWebhooks(AsyncResource):
    """The operations on webhooks."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, active: bool | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.Webhook]:
        """List webhooks. Lists the company's webhooks, ordered by id. `search` matches URL and description;
        `disabledReason` says why a webhook was disabled. All webhook endpoints return `404` if events are
        disabled. Requires the permission `webhooks` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches webhooks whose URL or description contains every word; ignores case and
            accents.
        :param active: Whether it is active.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listWebhooks", "GET", "/api/v1/webhooks", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "active": active, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, url: str, active: Given[Union[bool, None]] = NOT_GIVEN, description: Given[Union[str, None]] = NOT_GIVEN, types: Given[Union[Sequence[Literal["ticket.opened", "ticket.assigned", "ticket.transferred", "ticket.closed", "ticket.reopened", "ticket.wrapup_changed", "ticket.read", "message.received", "message.created", "message.sent", "message.delivered", "message.read", "message.failed", "message.updated", "note.added", "session.started", "session.ended", "contact.created", "contact.updated", "contact.deleted", "contact.tagged", "contact.untagged", "card.created", "card.updated", "card.moved", "card.won", "card.lost", "card.reopened", "card.deleted", "schedule.created", "schedule.updated", "schedule.sent", "schedule.failed", "schedule.canceled", "campaign.started", "campaign.paused", "campaign.resumed", "campaign.completed", "campaign.canceled", "channel.connected", "channel.disconnected", "channel.error", "contact.identified", "message.deleted", "message.reaction", "channel.template_changed", "contact.merged", "ticket.merged"]], None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.WebhookWithSecret:
        """Create a webhook. Creates a webhook that receives future events, and returns its secret, which is
        shown only once. A company can have 20 webhooks. Returns `404` if events are disabled. Requires the
        permission `webhooks` `POST`.

        :param active: Whether the webhook is enabled.
        :param description: Description.
        :param types: The event types to send; empty for all.
        :param url: The URL to send events to.
        """
        request = Request("createWebhook", "POST", "/api/v1/webhooks", body={"active": active, "description": description, "types": types, "url": url}, keyed=True, secret="secret")
        result: t.WebhookWithSecret = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, webhook_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a webhook. Deletes a webhook and its deliveries. Requests in flight may still arrive. Requires
        the permission `webhooks` `DELETE`.
        """
        request = Request("deleteWebhook", "DELETE", f"/api/v1/webhooks/{segment(webhook_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, webhook_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.Webhook:
        """Get a webhook. Returns a webhook. Requires the permission `webhooks` `GET`.
        """
        request = Request("getWebhook", "GET", f"/api/v1/webhooks/{segment(webhook_id)}")
        result: t.Webhook = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, webhook_id: int, *, active: Given[bool] = NOT_GIVEN, description: Given[Union[str, None]] = NOT_GIVEN, types: Given[Sequence[Literal["ticket.opened", "ticket.assigned", "ticket.transferred", "ticket.closed", "ticket.reopened", "ticket.wrapup_changed", "ticket.read", "message.received", "message.created", "message.sent", "message.delivered", "message.read", "message.failed", "message.updated", "note.added", "session.started", "session.ended", "contact.created", "contact.updated", "contact.deleted", "contact.tagged", "contact.untagged", "card.created", "card.updated", "card.moved", "card.won", "card.lost", "card.reopened", "card.deleted", "schedule.created", "schedule.updated", "schedule.sent", "schedule.failed", "schedule.canceled", "campaign.started", "campaign.paused", "campaign.resumed", "campaign.completed", "campaign.canceled", "channel.connected", "channel.disconnected", "channel.error", "contact.identified", "message.deleted", "message.reaction", "channel.template_changed", "contact.merged", "ticket.merged"]]] = NOT_GIVEN, url: Given[str] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.Webhook:
        """Update a webhook. Updates the given fields. A webhook that is enabled again resumes where it stopped,
        as far back as events are kept. Requires the permission `webhooks` `PUT`.

        :param active: Whether the webhook is enabled.
        :param description: Description.
        :param types: The event types to send; empty for all.
        :param url: The URL to send events to.
        """
        request = Request("updateWebhook", "PUT", f"/api/v1/webhooks/{segment(webhook_id)}", body={"active": active, "description": description, "types": types, "url": url}, keyed=True)
        result: t.Webhook = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    def list_deliveries(self, webhook_id: int, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, status: Literal["pending", "delivered", "failed"] | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.WebhookDelivery]:
        """List the deliveries of a webhook. Lists the deliveries of a webhook, ordered by event. A delivery
        appears after its first attempt, or one second after it was due, and is kept as long as its event.
        Requires the permission `webhooks` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param status: The status.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listWebhookDeliveries", "GET", f"/api/v1/webhooks/{segment(webhook_id)}/deliveries", query={"perPage": per_page, "order": order, "cursor": cursor, "status": status, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def replay(self, webhook_id: int, *, after: Given[Union[int, None]] = NOT_GIVEN, delivery_id: Given[Union[int, None]] = NOT_GIVEN, failed_since: Given[Union[Union[str, datetime], None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.WebhookReplayed:
        """Replay events to a webhook. Sends events again: all events after one (`after`) up to the current
        position, one delivery (`deliveryId`), or all failed since a time (`failedSince`). Exactly one is
        required. Fails while the webhook is disabled. Requires the permission `webhooks` `POST`.

        :param after: An event id: all later events are sent again, up to the current position.
        :param delivery_id: A delivery of this webhook.
        :param failed_since: A time: all deliveries that failed since then are sent again.
        """
        request = Request("replayWebhook", "POST", f"/api/v1/webhooks/{segment(webhook_id)}/replay", body={"after": after, "deliveryId": delivery_id, "failedSince": failed_since}, keyed=True)
        result: t.WebhookReplayed = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def rotate_secret(self, webhook_id: int, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.WebhookWithSecret:
        """Rotate the secret of a webhook. Replaces the webhook's secret and returns the new one, which is shown
        only once. The previous secret stays valid for 24 hours; any older one is revoked. Requires the
        permission `webhooks` `POST`.
        """
        request = Request("rotateWebhookSecret", "POST", f"/api/v1/webhooks/{segment(webhook_id)}/rotate-secret", keyed=True, secret="secret")
        result: t.WebhookWithSecret = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def test(self, webhook_id: int, *, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.WebhookTest:
        """Send a test to a webhook. Sends `webhook.test` immediately, even to a disabled webhook, and returns
        the response. The test is not logged or retried. Only one test per webhook can run at a time. Requires
        the permission `webhooks` `POST`.
        """
        request = Request("testWebhook", "POST", f"/api/v1/webhooks/{segment(webhook_id)}/test", keyed=True)
        result: t.WebhookTest = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncWrapupCategories(AsyncResource):
    """The operations on wrapupCategories."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.WrapupCategory]:
        """List wrap-up categories. Lists the wrap-up categories, ordered by id. Requires the permission
        `wrapupTypes` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listWrapupCategories", "GET", "/api/v1/wrapup-categories", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, name: str, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.WrapupCategory:
        """Create a wrap-up category. Creates a wrap-up category. Requires the permission `wrapupTypes` `POST`.

        :param name: The category's name.
        """
        request = Request("createWrapupCategory", "POST", "/api/v1/wrapup-categories", body={"name": name}, keyed=True)
        result: t.WrapupCategory = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, category_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a wrap-up category. Deletes a wrap-up category. Fails while it has types. Requires the
        permission `wrapupTypes` `DELETE`.
        """
        request = Request("deleteWrapupCategory", "DELETE", f"/api/v1/wrapup-categories/{segment(category_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def update(self, category_id: int, *, name: Given[str] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.WrapupCategory:
        """Update a wrap-up category. Updates the given fields. Requires the permission `wrapupTypes` `PUT`.

        :param name: The category's name.
        """
        request = Request("updateWrapupCategory", "PUT", f"/api/v1/wrapup-categories/{segment(category_id)}", body={"name": name}, keyed=True)
        result: t.WrapupCategory = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncWrapupTypes(AsyncResource):
    """The operations on wrapupTypes."""

    def list(self, *, per_page: int | None = None, order: Literal["asc", "desc"] | None = None, cursor: str | None = None, search: str | None = None, active: bool | None = None, category_id: int | None = None, queue_id: int | None = None, created_from: Union[str, datetime] | None = None, created_to: Union[str, datetime] | None = None, updated_from: Union[str, datetime] | None = None, updated_to: Union[str, datetime] | None = None, timeout: float | None = None, max_retries: int | None = None) -> AsyncPages[t.WrapupType]:
        """List wrap-up types. Lists the company's wrap-up types, ordered by id. Requires the permission
        `wrapupTypes` `GET`.

        :param per_page: Page size; invalid values count as 100
        :param order: Sort order: `asc` or `desc`.
        :param cursor: Cursor-based pagination, instead of `page`: empty for the first page, then
            `meta.nextCursor` of the previous page. Records are ordered by id. Each record that matches
            throughout is returned exactly once, even if others are added or deleted meanwhile. A page may
            have fewer than `perPage` records; only `hasMore` says whether there are more. Use the same list,
            filters and order
        :param search: Matches records whose name contains every word; ignores case and accents.
        :param active: Whether it is active.
        :param category_id: The category.
        :param queue_id: The queue.
        :param created_from: created at or after this time
        :param created_to: created at or before this time
        :param updated_from: updated at or after this time
        :param updated_to: updated at or before this time
        """
        request = Request("listWrapupTypes", "GET", "/api/v1/wrapup-types", query={"perPage": per_page, "order": order, "cursor": cursor, "search": search, "active": active, "categoryId": category_id, "queueId": queue_id, "createdFrom": created_from, "createdTo": created_to, "updatedFrom": updated_from, "updatedTo": updated_to})
        return self._transport.pages(request, Options(timeout=timeout, max_retries=max_retries))

    async def create(self, *, category_id: int, name: str, active: Given[Union[bool, None]] = NOT_GIVEN, queue_ids: Given[Union[Sequence[int], None]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.WrapupType:
        """Create a wrap-up type. Creates a wrap-up type in a category. Requires the permission `wrapupTypes`
        `POST`.

        :param active: Whether tickets can be closed with it.
        :param category_id: The category.
        :param name: The wrap-up type's name.
        :param queue_ids: The queues it applies to; replaces the current ones.
        """
        request = Request("createWrapupType", "POST", "/api/v1/wrapup-types", body={"active": active, "categoryId": category_id, "name": name, "queueIds": queue_ids}, keyed=True)
        result: t.WrapupType = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result

    async def delete(self, wrapup_type_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> None:
        """Delete a wrap-up type. Deletes a wrap-up type. Fails while tickets use it; set `active: false`
        instead. Requires the permission `wrapupTypes` `DELETE`.
        """
        request = Request("deleteWrapupType", "DELETE", f"/api/v1/wrapup-types/{segment(wrapup_type_id)}")
        await self._transport.nothing(request, Options(timeout=timeout, max_retries=max_retries))

    async def get(self, wrapup_type_id: int, *, timeout: float | None = None, max_retries: int | None = None) -> t.WrapupType:
        """Get a wrap-up type. Returns a wrap-up type with its queues. Requires the permission `wrapupTypes`
        `GET`.
        """
        request = Request("getWrapupType", "GET", f"/api/v1/wrapup-types/{segment(wrapup_type_id)}")
        result: t.WrapupType = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries))
        return result

    async def update(self, wrapup_type_id: int, *, active: Given[bool] = NOT_GIVEN, category_id: Given[int] = NOT_GIVEN, name: Given[str] = NOT_GIVEN, queue_ids: Given[Sequence[int]] = NOT_GIVEN, idempotency_key: str | None = None, timeout: float | None = None, max_retries: int | None = None) -> t.WrapupType:
        """Update a wrap-up type. Updates the given fields; `queueIds` replaces the queues. Requires the
        permission `wrapupTypes` `PUT`.

        :param active: Whether tickets can be closed with it.
        :param category_id: The category.
        :param name: The wrap-up type's name.
        :param queue_ids: The queues it applies to; replaces the current ones.
        """
        request = Request("updateWrapupType", "PUT", f"/api/v1/wrapup-types/{segment(wrapup_type_id)}", body={"active": active, "categoryId": category_id, "name": name, "queueIds": queue_ids}, keyed=True)
        result: t.WrapupType = await self._transport.data(request, Options(timeout=timeout, max_retries=max_retries, idempotency_key=idempotency_key))
        return result


class AsyncResources:
    """The resources of the API."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.boards = AsyncBoards(transport)
        self.businesses = AsyncBusinesses(transport)
        self.campaigns = AsyncCampaigns(transport)
        self.card_origins = AsyncCardOrigins(transport)
        self.card_statuses = AsyncCardStatuses(transport)
        self.cards = AsyncCards(transport)
        self.channels = AsyncChannels(transport)
        self.contact_lists = AsyncContactLists(transport)
        self.contacts = AsyncContacts(transport)
        self.custom_fields = AsyncCustomFields(transport)
        self.dashboards = AsyncDashboards(transport)
        self.events = AsyncEvents(transport)
        self.global_variables = AsyncGlobalVariables(transport)
        self.messages = AsyncMessages(transport)
        self.product_categories = AsyncProductCategories(transport)
        self.products = AsyncProducts(transport)
        self.profiles = AsyncProfiles(transport)
        self.queues = AsyncQueues(transport)
        self.quick_messages = AsyncQuickMessages(transport)
        self.reports = AsyncReports(transport)
        self.schedules = AsyncSchedules(transport)
        self.sessions = AsyncSessions(transport)
        self.tags = AsyncTags(transport)
        self.tickets = AsyncTickets(transport)
        self.users = AsyncUsers(transport)
        self.visitors = AsyncVisitors(transport)
        self.webhooks = AsyncWebhooks(transport)
        self.wrapup_categories = AsyncWrapupCategories(transport)
        self.wrapup_types = AsyncWrapupTypes(transport)
