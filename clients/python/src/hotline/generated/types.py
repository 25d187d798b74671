# Generated from openapi.json by `make clients-generate`. Do not edit.
from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, List, Literal, Sequence, Union

from typing_extensions import NotRequired, TypedDict

from hotline.files import Upload


Amount = float
"""An exact decimal with at most four decimal places."""


Application = Literal["contact", "card"]
"""The kind of record a custom field belongs to."""


BoardId = int
"""The id of a board."""


BoardListId = int
"""The id of a stage."""


BusinessId = int
"""The id of a business."""


ByKind = Literal["user", "integration", "bot", "contact", "system"]
"""Who caused an event: a user, an integration by its token, a bot, the contact, or Hotline itself."""


CampaignId = int
"""The id of a campaign."""


CampaignStatus = Literal["scheduled", "processing", "paused", "completed", "canceled"]
"""The status of a campaign."""


CardId = int
"""The id of a card."""


CardOriginId = int
"""The id of a card origin."""


CardProductId = int
"""The id of a product on a card."""


CardSource = Literal["api", "user", "bot", "automation"]
"""Who created a card: the API, a user in the panel, a chatbot, or an automation."""


CardStatusId = int
"""The id of a card status."""


ChannelId = int
"""The id of a channel."""


ChannelQuality = Literal["normal", "low"]
"""The quality of a phone number's messages, as its recipients rate them at the provider."""


ChannelStatus = Literal["connected", "disconnected", "error"]
"""Whether a channel delivers messages."""


ChannelType = Literal["whatsapp", "messenger", "instagram", "webchat"]
"""The type of a channel. `whatsapp` is a phone channel; `messenger` and `instagram` are social channels."""


ContactId = int
"""The id of a contact."""


ContactListId = int
"""The id of a contact list."""


ContentKind = Literal["reply", "form", "order", "location", "contacts", "story", "product", "referral", "forwarded"]
"""The kind of a message's additional content. If a message has several, the first of these."""


CustomFieldId = int
"""The id of a custom field."""


CustomFieldType = Literal["text", "textarea", "number", "boolean", "date", "datetime", "email", "url", "phone", "select", "multiselect"]
"""The type of a custom field's values."""


DeliveryStatus = Literal["pending", "delivered", "failed"]
"""The status of a delivery."""


Direction = Literal["inbound", "outbound", "internal"]
"""The direction of a message."""


Distribution = Literal["manual", "round_robin", "least_busy"]
"""How a queue's new tickets are assigned to its active users: not automatically, in turn, or to the one with the fewest open tickets."""


EventId = int
"""The id of a ticket event."""


EventKind = Literal["ticket.opened", "ticket.assigned", "ticket.transferred", "ticket.closed", "ticket.reopened", "ticket.wrapup_changed", "ticket.read", "message.received", "message.created", "message.sent", "message.delivered", "message.read", "message.failed", "message.updated", "note.added", "session.started", "session.ended", "contact.created", "contact.updated", "contact.deleted", "contact.tagged", "contact.untagged", "card.created", "card.updated", "card.moved", "card.won", "card.lost", "card.reopened", "card.deleted", "schedule.created", "schedule.updated", "schedule.sent", "schedule.failed", "schedule.canceled", "campaign.started", "campaign.paused", "campaign.resumed", "campaign.completed", "campaign.canceled", "channel.connected", "channel.disconnected", "channel.error", "contact.identified", "message.deleted", "message.reaction", "channel.template_changed", "contact.merged", "ticket.merged"]
"""The type of an event."""


EventType = Literal["opened", "transferred", "closed", "reopened", "wrapup_changed", "note_added", "read", "merged"]
"""The type of a ticket event."""


GlobalVariableId = int
"""The id of a global variable."""


IdentityKind = Literal["number", "userId", "groupId"]
"""What identifies a contact."""


ImportResult = Literal["created", "updated", "skipped"]
"""The result of a row."""


JobOutcome = Literal["unknown"]
"""Whether the provider received the message."""


LoggedEventId = int
"""The id of an event."""


MessageId = int
"""The id of a message."""


MessageStatus = Literal["queued", "sent", "delivered", "read", "failed", "received"]
"""The status of a message. It only moves forward; `failed` is final; inbound messages are `received`."""


MessageType = Literal["text", "media", "template", "interactive", "note", "system"]
"""The type of a message."""


PausedReason = Literal["template_paused", "template_disabled", "template_rejected", "template_deleted"]
"""Why a campaign is paused that no user has paused."""


Position = Literal["left", "right"]
"""The side of the page where the widget opens."""


PreChatField = Literal["name", "email", "number"]
"""A field that a webchat asks for before the conversation."""


ProductCategoryId = int
"""The id of a product category."""


ProductId = int
"""The id of a product."""


ProfileId = int
"""The id of a permission profile."""


QueueId = int
"""The id of a queue."""


QuickMessageId = int
"""The id of a quick message."""


Reactor = Literal["contact", "user"]
"""Whose reaction it is."""


RecipientStatus = Literal["pending", "sent", "delivered", "read", "failed", "skipped", "unknown"]
"""The status of a campaign's recipient."""


ReportKey = Union[int, str]
"""The group of a row."""


ScheduleId = int
"""The id of a schedule."""


ScheduleStatus = Literal["pending", "sent", "canceled", "failed"]
"""The status of a scheduled message."""


SessionId = str
"""The id of a visitor session: an unguessable string."""


SessionStatus = Literal["active", "ended"]
"""The status of a visitor session."""


Source = Literal["api", "user", "bot", "automation", "campaign", "schedule", "contact"]
"""Who caused a change."""


TagId = int
"""The id of a tag."""


TicketId = int
"""The id of a ticket."""


TicketStatus = Literal["open", "closed"]
"""The status of a ticket."""


Timestamp = str
"""A UTC time with milliseconds and `Z`."""


UserId = int
"""The id of a user: a person's membership in one company."""


Via = Literal["nativeApp", "otherApp"]
"""By which app a message was sent or handled instead of Hotline."""


WebhookId = int
"""The id of a webhook."""


WrapupCategoryId = int
"""The id of a wrap-up category."""


WrapupTypeId = int
"""The id of a wrap-up type."""


class ApiErrorError(TypedDict):
    """A part of `ApiErrorError`."""

    # A stable identifier for programs.
    code: Literal["ERR_API_BAD_REQUEST", "ERR_API_COMPANY_INACTIVE", "ERR_API_CONFLICT", "ERR_API_CONTACT_NOT_FOUND", "ERR_API_CONTACT_NOT_IDENTIFIED", "ERR_API_CONTACT_UNREACHABLE", "ERR_API_FORBIDDEN_ORIGIN", "ERR_API_FORBIDDEN_SCOPE", "ERR_API_IDEMPOTENCY_CONFLICT", "ERR_API_INTERACTIVE_INVALID", "ERR_API_INTERNAL", "ERR_API_LINK_EXPIRED", "ERR_API_MEDIA_EMPTY", "ERR_API_MEDIA_TYPE_MISMATCH", "ERR_API_MEDIA_TYPE_UNKNOWN", "ERR_API_METHOD_NOT_ALLOWED", "ERR_API_NOT_ENABLED", "ERR_API_NOT_FOUND", "ERR_API_PAYLOAD_TOO_LARGE", "ERR_API_PRECONDITION_FAILED", "ERR_API_RANGE_NOT_SATISFIABLE", "ERR_API_RATE_LIMITED", "ERR_API_SECOND_FACTOR", "ERR_API_SIGN_IN", "ERR_API_TICKET_CLOSED", "ERR_API_UNAUTHORIZED", "ERR_API_UNAVAILABLE", "ERR_API_UNSUPPORTED_MEDIA_TYPE", "ERR_API_VALIDATION", "ERR_API_WINDOW_CLOSED"]
    # Details for programs, such as the conflicting record or the invalid field.
    details: NotRequired[Any]
    # A message for people; its wording may change.
    message: str


class ApiValidationErrorError(TypedDict):
    """A part of `ApiValidationErrorError`."""

    # A stable identifier for programs.
    code: Literal["ERR_API_VALIDATION"]
    # Every invalid field.
    details: NotRequired[List[FieldError]]
    # A message for people; its wording may change.
    message: str


class BoardCreateCrmBoardLists(TypedDict):
    """A part of `BoardCreateCrmBoardLists`."""

    # Whether the stage is for won cards; at most one stage.
    doneList: NotRequired[Union[bool, None]]
    # The stage's name.
    label: str
    # The stage's position. Default: after the stages before it.
    position: NotRequired[Union[int, None]]


class BoardCreateCrmBoardQueues(TypedDict):
    """A part of `BoardCreateCrmBoardQueues`."""

    # The queue, as `GET /queues` lists it.
    queueId: int


class BoardUpdateCrmBoardQueues(TypedDict):
    """A part of `BoardUpdateCrmBoardQueues`."""

    # The queue, as `GET /queues` lists it.
    queueId: int


class CampaignCreateTemplateParameters(TypedDict):
    """A part of `CampaignCreateTemplateParameters`."""

    # The text.
    body: NotRequired[Union[Sequence[str], None]]
    # Values of the buttons, in order.
    buttons: NotRequired[Union[Sequence[str], None]]
    # Values of the header, in order.
    header: NotRequired[Union[Sequence[str], None]]


class CampaignCreateTemplate(TypedDict):
    """A part of `CampaignCreateTemplate`."""

    # The components in the provider's format; instead of `parameters`.
    components: NotRequired[Union[Sequence[Dict[str, Any]], None]]
    # Optional if the template exists in one language only. Also accepts `{"code": …}`.
    language: NotRequired[Union[str, Dict[str, Any], None]]
    # Name.
    name: str
    # Values for the template's placeholders, by component.
    parameters: NotRequired[Union[CampaignCreateTemplateParameters, None]]


class CampaignUpdateTemplateParameters(TypedDict):
    """A part of `CampaignUpdateTemplateParameters`."""

    # The text.
    body: NotRequired[Union[Sequence[str], None]]
    # Values of the buttons, in order.
    buttons: NotRequired[Union[Sequence[str], None]]
    # Values of the header, in order.
    header: NotRequired[Union[Sequence[str], None]]


class CampaignUpdateTemplate(TypedDict):
    """A part of `CampaignUpdateTemplate`."""

    # The components in the provider's format; instead of `parameters`.
    components: NotRequired[Union[Sequence[Dict[str, Any]], None]]
    # Optional if the template exists in one language only. Also accepts `{"code": …}`.
    language: NotRequired[Union[str, Dict[str, Any], None]]
    # Name.
    name: str
    # Values for the template's placeholders, by component.
    parameters: NotRequired[Union[CampaignUpdateTemplateParameters, None]]


class CardCreateCustomFields(TypedDict):
    """A part of `CardCreateCustomFields`."""

    # The field's key.
    key: str
    # The value as text, in the format of the field's type; `null` clears it.
    value: NotRequired[Union[str, None]]


class CardCreateProducts(TypedDict):
    """A part of `CardCreateProducts`."""

    # Name. Default: the product's name.
    name: NotRequired[Union[str, None]]
    # A product of the catalogue.
    productId: NotRequired[Union[int, None]]
    # Quantity. Default: 1.
    quantity: NotRequired[Union[float, None]]
    # Stock keeping unit. Default: the product's.
    sku: NotRequired[Union[str, None]]
    # Price per unit. Default: the product's.
    unitPrice: NotRequired[Union[float, None]]


class CardUpdateCustomFields(TypedDict):
    """A part of `CardUpdateCustomFields`."""

    # The field's key.
    key: str
    # The value as text, in the format of the field's type; `null` clears it.
    value: NotRequired[Union[str, None]]


class CardUpdateProducts(TypedDict):
    """A part of `CardUpdateProducts`."""

    # Name. Default: the product's name.
    name: NotRequired[Union[str, None]]
    # A product of the catalogue.
    productId: NotRequired[Union[int, None]]
    # Quantity. Default: 1.
    quantity: NotRequired[Union[float, None]]
    # Stock keeping unit. Default: the product's.
    sku: NotRequired[Union[str, None]]
    # Price per unit. Default: the product's.
    unitPrice: NotRequired[Union[float, None]]


class ContactCreateCustomFields(TypedDict):
    """A part of `ContactCreateCustomFields`."""

    # The field's key.
    key: str
    # The value as text, in the format of the field's type; `null` clears it.
    value: NotRequired[Union[str, None]]


class ContactImportContactsCustomFields(TypedDict):
    """A part of `ContactImportContactsCustomFields`."""

    # The field's key.
    key: str
    # The value as text, in the format of the field's type; `null` clears it.
    value: NotRequired[Union[str, None]]


class ContactImportContacts(TypedDict):
    """A part of `ContactImportContacts`."""

    # The company's own code for the contact.
    code: NotRequired[Union[str, None]]
    # 11 digits for a person or 14 for a company, with valid check digits; `. - /` are removed
    cpfCnpj: NotRequired[Union[str, None]]
    # Click id of a click-to-chat advertisement.
    ctwaClid: NotRequired[Union[str, None]]
    # Values of custom fields.
    customFields: NotRequired[Union[Sequence[ContactImportContactsCustomFields], None]]
    # E-mail address.
    email: NotRequired[Union[str, None]]
    # Click id of an advertisement.
    fbclid: NotRequired[Union[str, None]]
    # Click id of an advertisement.
    gclid: NotRequired[Union[str, None]]
    # The advertisement's headline.
    headline: NotRequired[Union[str, None]]
    # Whether the contact is a group rather than a person.
    isGroup: NotRequired[Union[bool, None]]
    # The provider's id for a contact whose number it hides.
    lid: NotRequired[Union[str, None]]
    # Whether the contact is excluded from campaigns. Set when the contact sends one of the company's stop words
    # (`STOP`, `SAIR`, …), ignoring punctuation and emoji. Write `false` to opt the contact in again.
    marketingOptOut: NotRequired[Union[bool, None]]
    # Type of the advertisement's media.
    mediaType: NotRequired[Union[str, None]]
    # URL of the advertisement's picture or video.
    mediaUrl: NotRequired[Union[str, None]]
    # Name.
    name: NotRequired[Union[str, None]]
    # 8 to 15 digits; `+ ( ) - .` and spaces are removed
    number: NotRequired[Union[str, None]]
    # How the contact was acquired.
    origin: NotRequired[Union[str, None]]
    # `https` or `http`
    profilePicUrl: NotRequired[Union[str, None]]
    # User name on a social channel.
    socialUsername: NotRequired[Union[str, None]]
    # The advertisement's id.
    sourceId: NotRequired[Union[str, None]]
    # URL of the page or advertisement.
    sourceUrl: NotRequired[Union[str, None]]
    # The tags; replaces the contact's current ones.
    tagIds: NotRequired[Union[Sequence[int], None]]
    # UTM campaign.
    utmCampaign: NotRequired[Union[str, None]]
    # UTM id.
    utmId: NotRequired[Union[str, None]]
    # UTM medium.
    utmMedium: NotRequired[Union[str, None]]
    # UTM source.
    utmSource: NotRequired[Union[str, None]]


class ContactUpdateCustomFields(TypedDict):
    """A part of `ContactUpdateCustomFields`."""

    # The field's key.
    key: str
    # The value as text, in the format of the field's type; `null` clears it.
    value: NotRequired[Union[str, None]]


class MessageSendTemplateParameters(TypedDict):
    """A part of `MessageSendTemplateParameters`."""

    # Values of the body, in order.
    body: NotRequired[Union[Sequence[str], None]]
    # Values of the buttons, in order.
    buttons: NotRequired[Union[Sequence[str], None]]
    # Values of the header, in order.
    header: NotRequired[Union[Sequence[str], None]]


class MessageSendTemplate(TypedDict):
    """A part of `MessageSendTemplate`."""

    # The components in the provider's format; instead of `parameters`.
    components: NotRequired[Union[Sequence[Dict[str, Any]], None]]
    # Optional if the template exists in one language only. Also accepts `{"code": …}`.
    language: NotRequired[Union[str, Dict[str, Any], None]]
    # The template's name.
    name: str
    # Values for the template's placeholders, by component.
    parameters: NotRequired[Union[MessageSendTemplateParameters, None]]


class MessageSendFormTemplateParameters(TypedDict):
    """A part of `MessageSendFormTemplateParameters`."""

    # Values of the body, in order.
    body: NotRequired[Union[Sequence[str], None]]
    # Values of the buttons, in order.
    buttons: NotRequired[Union[Sequence[str], None]]
    # Values of the header, in order.
    header: NotRequired[Union[Sequence[str], None]]


class MessageSendFormTemplate(TypedDict):
    """A part of `MessageSendFormTemplate`."""

    # The components in the provider's format; instead of `parameters`.
    components: NotRequired[Union[Sequence[Dict[str, Any]], None]]
    # Optional if the template exists in one language only. Also accepts `{"code": …}`.
    language: NotRequired[Union[str, Dict[str, Any], None]]
    # The template's name.
    name: str
    # Values for the template's placeholders, by component.
    parameters: NotRequired[Union[MessageSendFormTemplateParameters, None]]


class SessionMessageSendReply(TypedDict):
    """A part of `SessionMessageSendReply`."""

    # The option's id.
    id: str
    # The interactive message.
    messageId: int


class SessionOpenPage(TypedDict):
    """A part of `SessionOpenPage`."""

    # The page's referrer.
    referrer: NotRequired[Union[str, None]]
    # The page's title.
    title: NotRequired[Union[str, None]]
    # The page's URL.
    url: NotRequired[Union[str, None]]


class SessionOpenUtm(TypedDict):
    """A part of `SessionOpenUtm`."""

    # UTM campaign.
    campaign: NotRequired[Union[str, None]]
    # UTM id.
    id: NotRequired[Union[str, None]]
    # UTM medium.
    medium: NotRequired[Union[str, None]]
    # UTM source.
    source: NotRequired[Union[str, None]]


class SessionOpenVisitor(TypedDict):
    """A part of `SessionOpenVisitor`."""

    # E-mail address.
    email: NotRequired[Union[str, None]]
    # The company's own id of the visitor.
    externalId: NotRequired[Union[str, None]]
    # Name.
    name: NotRequired[Union[str, None]]
    # 8 to 15 digits; `+ ( ) - .` and spaces are removed
    number: NotRequired[Union[str, None]]


class VisitorArrivalPage(TypedDict):
    """A part of `VisitorArrivalPage`."""

    # The page's referrer.
    referrer: NotRequired[Union[str, None]]
    # The page's title.
    title: NotRequired[Union[str, None]]
    # The page's URL.
    url: NotRequired[Union[str, None]]


class VisitorArrivalUtm(TypedDict):
    """A part of `VisitorArrivalUtm`."""

    # UTM campaign.
    campaign: NotRequired[Union[str, None]]
    # UTM id.
    id: NotRequired[Union[str, None]]
    # UTM medium.
    medium: NotRequired[Union[str, None]]
    # UTM source.
    source: NotRequired[Union[str, None]]


class VisitorArrivalVisitor(TypedDict):
    """A part of `VisitorArrivalVisitor`."""

    # E-mail address.
    email: NotRequired[Union[str, None]]
    # The company's own id of the visitor.
    externalId: NotRequired[Union[str, None]]
    # Name.
    name: NotRequired[Union[str, None]]
    # 8 to 15 digits; `+ ( ) - .` and spaces are removed
    number: NotRequired[Union[str, None]]


class WebhookTestEventData(TypedDict):
    """A part of `WebhookTestEventData`."""

    # The webhook.
    webhookId: int


class Added(TypedDict):
    """The result of adding contacts to a list."""

    # Contacts that were added.
    added: int
    # Contacts that were already in the list.
    alreadyThere: int


class AddedResponse(TypedDict):
    """The response."""

    # The resource.
    data: Added


class AgentTyping(TypedDict):
    """The typing state. Without a body, an agent is typing."""

    # Whether the agent is typing.
    typing: NotRequired[Union[bool, None]]
    # The user, as `GET /users` lists them.
    userId: NotRequired[Union[int, None]]


class ApiError(TypedDict):
    """An error: `code` for programs, `message` for people."""

    # The error.
    error: ApiErrorError


class ApiValidationError(TypedDict):
    """A validation error that lists every missing or invalid field."""

    # The error.
    error: ApiValidationErrorError


class Board(TypedDict):
    """A board: stages, and the cards that move between them."""

    # Whether the board is hidden from the list.
    archived: bool
    # When it was archived; `null` if it is not.
    archivedAt: Union[Timestamp, None]
    # When it was created.
    createdAt: Timestamp
    # The user who created it; `null` if a token did, or if the user has left the company.
    createdByUserId: Union[UserId, None]
    # Description.
    description: Union[str, None]
    # The id.
    id: BoardId
    # Monthly sales goal in the company's currency; `null` for none.
    monthlyGoal: Union[Amount, None]
    # The board's name.
    name: str
    # The queues whose users see the board.
    queues: List[QueueRef]
    # When it was last updated.
    updatedAt: Timestamp
    # Yearly sales goal in the company's currency; `null` for none.
    yearlyGoal: Union[Amount, None]


class BoardCreate(TypedDict):
    """A new board."""

    # The initial stages, from left to right. Default: three stages.
    crmBoardLists: NotRequired[Union[Sequence[BoardCreateCrmBoardLists], None]]
    # The queues whose users see the board; replaces the current ones.
    crmBoardQueues: NotRequired[Union[Sequence[BoardCreateCrmBoardQueues], None]]
    # Description.
    description: NotRequired[Union[str, None]]
    # Monthly sales goal in the company's currency; `null` for none.
    monthlyGoal: NotRequired[Union[float, None]]
    # The board's name.
    name: str
    # Yearly sales goal in the company's currency; `null` for none.
    yearlyGoal: NotRequired[Union[float, None]]


class BoardFunnel(TypedDict):
    """A board's open cards and sales."""

    # The id.
    id: BoardId
    # Monthly sales goal; `null` for none.
    monthlyGoal: Union[Amount, None]
    # Name.
    name: str
    # Open cards: neither won nor lost.
    openCards: int
    # Total value of the open cards.
    openValue: Amount
    # The value won since the start of the month in the company's time zone.
    wonThisMonth: Amount


class BoardIndicators(TypedDict):
    """The sales indicators of a board."""

    # The average value of a won card, to four decimals; `null` if there are none.
    averageValue: Union[Amount, None]
    # The board.
    boardId: BoardId
    # Won cards divided by won and lost cards, to four decimals; `null` if there are none.
    conversionRate: Union[Amount, None]
    # The stages, from left to right.
    lists: List[StageSum]
    # Cards lost from `from` to `to`.
    lost: CardSum
    # The current month, in the company's time zone.
    monthly: GoalProgress
    # Open cards.
    open: CardSum
    # Cards won from `from` to `to`.
    won: CardSum
    # The current year, in the company's time zone.
    yearly: GoalProgress


class BoardIndicatorsResponse(TypedDict):
    """The response."""

    # The resource.
    data: BoardIndicators


class BoardList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Board]
    # Pagination.
    meta: PageMeta


class BoardListRef(TypedDict):
    """A reference to a record, by id and name."""

    # The id of a board list.
    id: int
    # Name.
    name: str


class BoardResponse(TypedDict):
    """The response."""

    # The resource.
    data: Board


class BoardUpdate(TypedDict):
    """Changes to a board."""

    # Whether the board is hidden from the list.
    archived: NotRequired[bool]
    # The queues whose users see the board; replaces the current ones.
    crmBoardQueues: NotRequired[Sequence[BoardUpdateCrmBoardQueues]]
    # Description.
    description: NotRequired[Union[str, None]]
    # Monthly sales goal in the company's currency; `null` for none.
    monthlyGoal: NotRequired[Union[float, None]]
    # The board's name.
    name: NotRequired[str]
    # Yearly sales goal in the company's currency; `null` for none.
    yearlyGoal: NotRequired[Union[float, None]]


class BoardWithStages(TypedDict):
    """A board with its stages and cards."""

    # Whether it is hidden from the list of boards; it can still be used.
    archived: bool
    # When it was archived; `null` if it is not.
    archivedAt: Union[Timestamp, None]
    # When it was created.
    createdAt: Timestamp
    # The user who created it; `null` if a token did, or if the user has left the company.
    createdByUserId: Union[UserId, None]
    # Description.
    description: Union[str, None]
    # The id.
    id: BoardId
    # The stages, from left to right.
    lists: List[StageWithCards]
    # Monthly sales goal in the company's currency; `null` for none.
    monthlyGoal: Union[Amount, None]
    # Name.
    name: str
    # The queues whose users see the board.
    queues: List[QueueRef]
    # When it was last updated.
    updatedAt: Timestamp
    # Yearly sales goal; `null` for none.
    yearlyGoal: Union[Amount, None]


class BoardWithStagesResponse(TypedDict):
    """The response."""

    # The resource.
    data: BoardWithStages


class Business(TypedDict):
    """A line of business."""

    # When it was created.
    createdAt: Timestamp
    # The id.
    id: BusinessId
    # Name, unique in the company.
    name: str
    # When it was last updated.
    updatedAt: Timestamp


class BusinessCreate(TypedDict):
    """A new business."""

    # Name, unique in the company.
    name: str


class BusinessList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Business]
    # Pagination.
    meta: PageMeta


class BusinessRef(TypedDict):
    """A reference to a record, by id and name."""

    # The id of a business.
    id: int
    # Name, unique in the company.
    name: str


class BusinessResponse(TypedDict):
    """The response."""

    # The resource.
    data: Business


class BusinessUpdate(TypedDict):
    """Changes to a business."""

    # Name, unique in the company.
    name: NotRequired[str]


class Campaign(TypedDict):
    """A campaign: a message to every contact of a list."""

    # The channel, as `GET /channels` lists it.
    channelId: ChannelId
    # When its last recipient was completed.
    completedAt: Union[Timestamp, None]
    # The contact list.
    contactListId: ContactListId
    # Number of recipients by status.
    counts: CampaignCounts
    # When it was created.
    createdAt: Timestamp
    # The id.
    id: CampaignId
    # Whether tickets opened by the campaign are closed immediately.
    keepClosed: bool
    # The text as written; variables are filled in for each contact.
    message: Union[str, None]
    # Name.
    name: str
    # Why it is paused, unless a user has paused it.
    pausedReason: Union[PausedReason, None]
    # Messages per minute, evenly spread.
    ratePerMinute: int
    # When it starts automatically, unless it is started earlier.
    scheduledAt: Timestamp
    # The status.
    status: CampaignStatus
    # The template, if the campaign has no text.
    template: Union[Dict[str, Any], None]
    # When it was last updated.
    updatedAt: Timestamp


class CampaignCounts(TypedDict):
    """Number of recipients of a campaign by status."""

    # The message has reached the contact.
    delivered: int
    # The message could not be delivered; the recipient's `error` says why.
    failed: int
    # The message is not created yet, or the provider has not accepted it yet.
    pending: int
    # The contact has read the message.
    read: int
    # The provider has accepted the message.
    sent: int
    # No message was sent; the recipient's `error` says why.
    skipped: int
    # It is unknown whether the message has left, because the provider's answer was lost. It is not sent again; a
    # status settles it, or it fails after 24 hours.
    unknown: int


class CampaignCreate(TypedDict):
    """A new campaign: exactly one of `message` and `template`."""

    # The channel, as `GET /channels` lists it.
    channelId: int
    # The contact list, as it is when the campaign starts.
    contactListId: int
    # Whether tickets opened by the campaign are closed immediately, so that they do not wait for an agent. A reply
    # opens a new ticket.
    keepClosed: NotRequired[Union[bool, None]]
    # At most 65,536 bytes
    message: NotRequired[Union[str, None]]
    # Name.
    name: str
    # Maximum messages per minute, evenly spread.
    ratePerMinute: NotRequired[Union[int, None]]
    # A time in the future
    scheduledAt: Union[str, datetime]
    # An approved template: its name with `parameters`, or complete `components`; instead of `message`.
    template: NotRequired[Union[CampaignCreateTemplate, None]]


class CampaignList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Campaign]
    # Pagination.
    meta: PageMeta


class CampaignRecipient(TypedDict):
    """A recipient of a campaign."""

    # The contact; `null` if it has been deleted.
    contact: Union[RecipientContact, None]
    # Why the message failed or the contact was skipped.
    error: Union[RecipientFailure, None]
    # The message, even before the provider has accepted it.
    messageId: Union[MessageId, None]
    # The status.
    status: RecipientStatus
    # When it was last updated.
    updatedAt: Timestamp


class CampaignRecipientList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[CampaignRecipient]
    # Pagination.
    meta: PageMeta


class CampaignResponse(TypedDict):
    """The response."""

    # The resource.
    data: Campaign


class CampaignUpdate(TypedDict):
    """Changes to a campaign."""

    # The channel, as `GET /channels` lists it.
    channelId: NotRequired[int]
    # The contact list, as it is when the campaign starts.
    contactListId: NotRequired[int]
    # Whether tickets opened by the campaign are closed immediately, so that they do not wait for an agent. A reply
    # opens a new ticket.
    keepClosed: NotRequired[bool]
    # At most 65,536 bytes
    message: NotRequired[Union[str, None]]
    # Name.
    name: NotRequired[str]
    # Maximum messages per minute, evenly spread.
    ratePerMinute: NotRequired[int]
    # A time in the future
    scheduledAt: NotRequired[Union[str, datetime]]
    # An approved template: its name with `parameters`, or complete `components`; instead of `message`.
    template: NotRequired[Union[CampaignUpdateTemplate, None]]


class Card(TypedDict):
    """A possible sale, in a stage of a board."""

    # The responsible user.
    assignedTo: Union[UserRef, None]
    # The board; it never changes.
    boardId: BoardId
    # The line of business.
    business: Union[BusinessRef, None]
    # The contacts.
    contacts: List[Contact]
    # When it was created.
    createdAt: Timestamp
    # Who created the card.
    creationSource: CardSource
    # Values of custom fields.
    customFields: List[CustomFieldValue]
    # Description.
    description: Union[str, None]
    # Due date.
    due: Union[Timestamp, None]
    # The id.
    id: CardId
    # The stage.
    list: Union[BoardListRef, None]
    # Whether the card is lost.
    lost: bool
    # When it was lost.
    lostDate: Union[Timestamp, None]
    # The card's name.
    name: str
    # The origin.
    origin: Union[CardOriginRef, None]
    # The products; replaces the current ones.
    products: List[CardProduct]
    # The sum of its products' `totalPrice`.
    productsTotal: Amount
    # The status, as defined by the company.
    status: Union[CardStatusRef, None]
    # Why it was won or lost.
    statusReason: Union[str, None]
    # The ticket the card was created from.
    ticketId: Union[TicketId, None]
    # When it was last updated.
    updatedAt: Timestamp
    # Whether the card is won.
    won: bool
    # When it was won.
    wonDate: Union[Timestamp, None]


class CardCreate(TypedDict):
    """A new card: at least `boardId` and `name`."""

    # The responsible user, as `GET /users` lists them.
    assignedToUserId: NotRequired[Union[int, None]]
    # The board; it never changes.
    boardId: int
    # The line of business.
    businessId: NotRequired[Union[int, None]]
    # The contacts; replaces the current ones.
    contactIds: NotRequired[Union[Sequence[int], None]]
    # The stage. Default: the board's first.
    crmBoardListId: NotRequired[Union[int, None]]
    # Values of custom fields.
    customFields: NotRequired[Union[Sequence[CardCreateCustomFields], None]]
    # Description.
    description: NotRequired[Union[str, None]]
    # Due date.
    due: NotRequired[Union[Union[str, datetime], None]]
    # The card's name.
    name: str
    # The origin.
    originId: NotRequired[Union[int, None]]
    # The products; replaces the current ones.
    products: NotRequired[Union[Sequence[CardCreateProducts], None]]
    # The status, as defined by the company.
    statusId: NotRequired[Union[int, None]]
    # The ticket the card was created from.
    ticketId: NotRequired[Union[int, None]]


class CardList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Card]
    # Pagination.
    meta: PageMeta


class CardLose(TypedDict):
    """The reason for losing a card."""

    # Why the card is lost.
    statusReason: str


class CardMove(TypedDict):
    """A card's new stage and position."""

    # The new stage, on the same board.
    crmBoardListId: int
    # Number of cards above it in the stage, up to 1,000,000. Default, or beyond the end: the bottom.
    position: NotRequired[Union[int, None]]


class CardOrigin(TypedDict):
    """An origin of cards."""

    # When it was created.
    createdAt: Timestamp
    # The id.
    id: CardOriginId
    # Name, unique in the company.
    name: str
    # When it was last updated.
    updatedAt: Timestamp


class CardOriginCreate(TypedDict):
    """A new card origin."""

    # Name, unique in the company.
    name: str


class CardOriginList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[CardOrigin]
    # Pagination.
    meta: PageMeta


class CardOriginRef(TypedDict):
    """A reference to a record, by id and name."""

    # The id of a card origin.
    id: int
    # Name, unique in the company.
    name: str


class CardOriginResponse(TypedDict):
    """The response."""

    # The resource.
    data: CardOrigin


class CardOriginUpdate(TypedDict):
    """Changes to a card origin."""

    # Name, unique in the company.
    name: NotRequired[str]


class CardProduct(TypedDict):
    """A line of a card: a product, its quantity and its price."""

    # The id.
    id: CardProductId
    # Name. Default: the product's name.
    name: str
    # A product of the catalogue.
    productId: Union[ProductId, None]
    # Quantity.
    quantity: Amount
    # Stock keeping unit.
    sku: Union[str, None]
    # `quantity` x `unitPrice`, rounded half away from zero to four decimals.
    totalPrice: Amount
    # Price per unit.
    unitPrice: Amount


class CardProductCreate(TypedDict):
    """A product to add to a card: `productId`, or `name` and `unitPrice`."""

    # Name. Default: the product's name.
    name: NotRequired[Union[str, None]]
    # A product of the catalogue.
    productId: NotRequired[Union[int, None]]
    # Quantity.
    quantity: NotRequired[Union[float, None]]
    # Stock keeping unit.
    sku: NotRequired[Union[str, None]]
    # Price per unit.
    unitPrice: NotRequired[Union[float, None]]


class CardProductResponse(TypedDict):
    """The response."""

    # The resource.
    data: CardProduct


class CardProductUpdate(TypedDict):
    """Changes to a product on a card."""

    # Name. Default: the product's name.
    name: NotRequired[str]
    # A product of the catalogue.
    productId: NotRequired[Union[int, None]]
    # Quantity.
    quantity: NotRequired[float]
    # Stock keeping unit.
    sku: NotRequired[Union[str, None]]
    # Price per unit.
    unitPrice: NotRequired[float]


class CardResponse(TypedDict):
    """The response."""

    # The resource.
    data: Card


class CardStatus(TypedDict):
    """A status of cards, defined by the company."""

    # A colour as `#rrggbb`; `null` for none.
    color: Union[str, None]
    # When it was created.
    createdAt: Timestamp
    # The id.
    id: CardStatusId
    # Name, unique in the company.
    name: str
    # When it was last updated.
    updatedAt: Timestamp


class CardStatusCreate(TypedDict):
    """A new card status."""

    # A colour as `#rrggbb`; `null` for none.
    color: NotRequired[Union[str, None]]
    # Name, unique in the company.
    name: str


class CardStatusList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[CardStatus]
    # Pagination.
    meta: PageMeta


class CardStatusRef(TypedDict):
    """A reference to a card's status, by id, name and colour."""

    # A colour as `#rrggbb`; `null` for none.
    color: Union[str, None]
    # The id.
    id: CardStatusId
    # The status's name.
    name: str


class CardStatusResponse(TypedDict):
    """The response."""

    # The resource.
    data: CardStatus


class CardStatusUpdate(TypedDict):
    """Changes to a card status."""

    # A colour as `#rrggbb`; `null` for none.
    color: NotRequired[Union[str, None]]
    # Name, unique in the company.
    name: NotRequired[str]


class CardSum(TypedDict):
    """Number of cards, and the total of their products."""

    # Number of cards.
    cards: int
    # The sum of their `productsTotal`.
    value: Amount


class CardUpdate(TypedDict):
    """Changes to a card; omitted fields stay the same."""

    # The responsible user, as `GET /users` lists them.
    assignedToUserId: NotRequired[Union[int, None]]
    # The board; it never changes.
    boardId: NotRequired[int]
    # The line of business.
    businessId: NotRequired[Union[int, None]]
    # The contacts; replaces the current ones.
    contactIds: NotRequired[Sequence[int]]
    # The stage. Default: the board's first.
    crmBoardListId: NotRequired[int]
    # Values of custom fields.
    customFields: NotRequired[Sequence[CardUpdateCustomFields]]
    # Description.
    description: NotRequired[Union[str, None]]
    # Due date.
    due: NotRequired[Union[Union[str, datetime], None]]
    # The card's name.
    name: NotRequired[str]
    # The origin.
    originId: NotRequired[Union[int, None]]
    # The products; replaces the current ones.
    products: NotRequired[Sequence[CardUpdateProducts]]
    # The status, as defined by the company.
    statusId: NotRequired[Union[int, None]]
    # The ticket the card was created from.
    ticketId: NotRequired[Union[int, None]]


class CardWin(TypedDict):
    """The reason for winning a card. The body is optional."""

    # Why the card is won.
    statusReason: NotRequired[Union[str, None]]


class ChangedTemplate(TypedDict):
    """What a provider has changed of a template."""

    # The new category.
    category: Union[str, None]
    # The language, in the provider's format.
    language: Union[str, None]
    # The name.
    name: str
    # The new quality, as the provider names it.
    quality: Union[str, None]
    # The provider's reason.
    reason: Union[str, None]
    # The new state, as the provider names it; `null` if something else has changed.
    status: Union[str, None]


class Channel(TypedDict):
    """A channel: a phone number, a social account or a webchat."""

    # When it was created.
    createdAt: Timestamp
    # The id.
    id: ChannelId
    # The last error.
    lastError: Union[str, None]
    # How many conversations the number may begin in a day, as its provider names that limit.
    messagingLimit: Union[str, None]
    # The channel's name.
    name: str
    # The number of a phone channel, in digits.
    number: Union[str, None]
    # The quality of the number's messages, as its provider last reported it.
    quality: Union[ChannelQuality, None]
    # The queue of new tickets.
    queue: Union[QueueRef, None]
    # Whether the channel delivers messages; see `lastError` for `error`.
    status: ChannelStatus
    # `whatsapp` is a phone channel; `messenger` and `instagram` are social channels.
    type: ChannelType
    # When it was last updated.
    updatedAt: Timestamp


class ChannelList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Channel]
    # Pagination.
    meta: PageMeta


class ChannelResponse(TypedDict):
    """The response."""

    # The resource.
    data: Channel


class ChosenOption(TypedDict):
    """The option that the contact chose."""

    # The second line of a list row.
    description: NotRequired[str]
    # The option's id as it was sent, or the payload if the provider only has payloads.
    id: Union[str, None]
    # The payload, if the provider has one: for quick replies and postbacks of social channels, and for template
    # buttons.
    payload: Union[str, None]
    # The displayed text; also the message's `body`.
    title: Union[str, None]


class Claimed(TypedDict):
    """Unverified data about a visitor."""

    # E-mail address.
    email: Union[str, None]
    # The company's own id of the visitor.
    externalId: Union[str, None]
    # Name.
    name: Union[str, None]
    # Phone number: digits only, including the country code.
    number: Union[str, None]


class CompanyEventList(TypedDict):
    """Events, oldest first."""

    # The resource.
    data: List[CompanyEvent]
    # Pagination.
    meta: EventMeta


class Contact(TypedDict):
    """A contact: a person or group the company talks to."""

    # The company's own code for the contact.
    code: Union[str, None]
    # Tax number: 11 digits for a person, 14 for a company.
    cpfCnpj: Union[str, None]
    # When it was created.
    createdAt: Timestamp
    # Click id of a click-to-chat advertisement.
    ctwaClid: Union[str, None]
    # Values of custom fields.
    customFields: List[CustomFieldValue]
    # E-mail address.
    email: Union[str, None]
    # Click id of an advertisement.
    fbclid: Union[str, None]
    # Click id of an advertisement.
    gclid: Union[str, None]
    # The advertisement's headline.
    headline: Union[str, None]
    # The id.
    id: ContactId
    # By what the contact is or was known: its number, and the ids that providers have of it. Former ones still find
    # it.
    identities: List[ContactIdentity]
    # Whether the contact is a group rather than a person.
    isGroup: bool
    # The channel of the latest message. Changes to it do not change `updatedAt`.
    lastChannel: Union[LastChannel, None]
    # The provider's id for a contact whose number it hides.
    lid: Union[str, None]
    # Whether the contact is excluded from campaigns.
    marketingOptOut: bool
    # Type of the advertisement's media.
    mediaType: Union[str, None]
    # URL of the advertisement's picture or video.
    mediaUrl: Union[str, None]
    # Other contacts that are the same person, as a provider says. They are never merged by themselves.
    mergeSuggestions: List[MergeSuggestion]
    # Name.
    name: str
    # Phone number: digits only, including the country code.
    number: Union[str, None]
    # Country code derived from the number.
    numberCountry: Union[str, None]
    # How the contact was acquired.
    origin: Union[str, None]
    # URL of the contact's picture.
    profilePicUrl: Union[str, None]
    # User name on a social channel.
    socialUsername: Union[str, None]
    # The advertisement's id.
    sourceId: Union[str, None]
    # URL of the page or advertisement.
    sourceUrl: Union[str, None]
    # The contact's tags.
    tags: List[ContactTag]
    # When it was last updated.
    updatedAt: Timestamp
    # UTM campaign.
    utmCampaign: Union[str, None]
    # UTM id.
    utmId: Union[str, None]
    # UTM medium.
    utmMedium: Union[str, None]
    # UTM source.
    utmSource: Union[str, None]
    # Whether a webchat visitor's identity was confirmed by the company or by an identity it signed.
    verified: bool


class ContactCreate(TypedDict):
    """A new contact: `name`, or at least `number`."""

    # The company's own code for the contact.
    code: NotRequired[Union[str, None]]
    # 11 digits for a person or 14 for a company, with valid check digits; `. - /` are removed
    cpfCnpj: NotRequired[Union[str, None]]
    # Click id of a click-to-chat advertisement.
    ctwaClid: NotRequired[Union[str, None]]
    # Values of custom fields.
    customFields: NotRequired[Union[Sequence[ContactCreateCustomFields], None]]
    # E-mail address.
    email: NotRequired[Union[str, None]]
    # Click id of an advertisement.
    fbclid: NotRequired[Union[str, None]]
    # Click id of an advertisement.
    gclid: NotRequired[Union[str, None]]
    # The advertisement's headline.
    headline: NotRequired[Union[str, None]]
    # Whether the contact is a group rather than a person.
    isGroup: NotRequired[Union[bool, None]]
    # The provider's id for a contact whose number it hides.
    lid: NotRequired[Union[str, None]]
    # Whether the contact is excluded from campaigns. Set when the contact sends one of the company's stop words
    # (`STOP`, `SAIR`, …), ignoring punctuation and emoji. Write `false` to opt the contact in again.
    marketingOptOut: NotRequired[Union[bool, None]]
    # Type of the advertisement's media.
    mediaType: NotRequired[Union[str, None]]
    # URL of the advertisement's picture or video.
    mediaUrl: NotRequired[Union[str, None]]
    # Name.
    name: NotRequired[Union[str, None]]
    # 8 to 15 digits; `+ ( ) - .` and spaces are removed
    number: NotRequired[Union[str, None]]
    # How the contact was acquired.
    origin: NotRequired[Union[str, None]]
    # `https` or `http`
    profilePicUrl: NotRequired[Union[str, None]]
    # User name on a social channel.
    socialUsername: NotRequired[Union[str, None]]
    # The advertisement's id.
    sourceId: NotRequired[Union[str, None]]
    # URL of the page or advertisement.
    sourceUrl: NotRequired[Union[str, None]]
    # The tags; replaces the current ones.
    tagIds: NotRequired[Union[Sequence[int], None]]
    # UTM campaign.
    utmCampaign: NotRequired[Union[str, None]]
    # UTM id.
    utmId: NotRequired[Union[str, None]]
    # UTM medium.
    utmMedium: NotRequired[Union[str, None]]
    # UTM source.
    utmSource: NotRequired[Union[str, None]]


class ContactIdentity(TypedDict):
    """A number or a provider's id by which a contact is or was identified."""

    # `null` for a number, which all phone channels share.
    channelType: Union[ChannelType, None]
    # The kind of the identity.
    kind: IdentityKind
    # The id of the channel whose provider gave the id; `null` for a number.
    scope: Union[str, None]
    # When it was first seen; `null` if that was not recorded.
    since: Union[Timestamp, None]
    # When another one replaced it; it still finds the contact. `null` while it is in use.
    until: Union[Timestamp, None]
    # The number in digits, or the provider's id.
    value: str


class ContactImport(TypedDict):
    """Contacts to create or update."""

    # The rows: each has the fields of a contact.
    contacts: Sequence[ContactImportContacts]
    # How to handle a row whose contact exists, matched by number, then e-mail, then code
    onConflict: NotRequired[Union[Literal["update", "skip"], None]]


class ContactList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Contact]
    # Pagination.
    meta: PageMeta


class ContactListAddition(TypedDict):
    """Contacts to add to a list: `contactIds`, `tagId`, or both."""

    # Ids of contacts to add.
    contactIds: NotRequired[Union[Sequence[int], None]]
    # A tag: all its contacts are added.
    tagId: NotRequired[Union[int, None]]


class ContactMerge(TypedDict):
    """The contact that goes."""

    # The contact that goes.
    fromContactId: int


class ContactRef(TypedDict):
    """A reference to a record, by id and name."""

    # The id of a contact.
    id: int
    # Name.
    name: str


class ContactResponse(TypedDict):
    """The response."""

    # The resource.
    data: Contact


class ContactTag(TypedDict):
    """A tag on a contact."""

    # A colour as `#rrggbb`.
    color: str
    # The id.
    id: TagId
    # The tag's name.
    name: str


class ContactUpdate(TypedDict):
    """Changes to a contact; omitted fields stay the same."""

    # The company's own code for the contact.
    code: NotRequired[Union[str, None]]
    # 11 digits for a person or 14 for a company, with valid check digits; `. - /` are removed
    cpfCnpj: NotRequired[Union[str, None]]
    # Click id of a click-to-chat advertisement.
    ctwaClid: NotRequired[Union[str, None]]
    # Values of custom fields.
    customFields: NotRequired[Sequence[ContactUpdateCustomFields]]
    # E-mail address.
    email: NotRequired[Union[str, None]]
    # Click id of an advertisement.
    fbclid: NotRequired[Union[str, None]]
    # Click id of an advertisement.
    gclid: NotRequired[Union[str, None]]
    # The advertisement's headline.
    headline: NotRequired[Union[str, None]]
    # Whether the contact is a group rather than a person.
    isGroup: NotRequired[bool]
    # The provider's id for a contact whose number it hides.
    lid: NotRequired[Union[str, None]]
    # Whether the contact is excluded from campaigns. Set when the contact sends one of the company's stop words
    # (`STOP`, `SAIR`, …), ignoring punctuation and emoji. Write `false` to opt the contact in again.
    marketingOptOut: NotRequired[bool]
    # Type of the advertisement's media.
    mediaType: NotRequired[Union[str, None]]
    # URL of the advertisement's picture or video.
    mediaUrl: NotRequired[Union[str, None]]
    # Name.
    name: NotRequired[str]
    # 8 to 15 digits; `+ ( ) - .` and spaces are removed
    number: NotRequired[Union[str, None]]
    # How the contact was acquired.
    origin: NotRequired[Union[str, None]]
    # `https` or `http`
    profilePicUrl: NotRequired[Union[str, None]]
    # User name on a social channel.
    socialUsername: NotRequired[Union[str, None]]
    # The advertisement's id.
    sourceId: NotRequired[Union[str, None]]
    # URL of the page or advertisement.
    sourceUrl: NotRequired[Union[str, None]]
    # The tags; replaces the current ones.
    tagIds: NotRequired[Sequence[int]]
    # UTM campaign.
    utmCampaign: NotRequired[Union[str, None]]
    # UTM id.
    utmId: NotRequired[Union[str, None]]
    # UTM medium.
    utmMedium: NotRequired[Union[str, None]]
    # UTM source.
    utmSource: NotRequired[Union[str, None]]


class CustomField(TypedDict):
    """A company's own field of contacts or cards."""

    # The kind of record the field belongs to.
    application: Application
    # When it was created.
    createdAt: Timestamp
    # The id.
    id: CustomFieldId
    # The field's key in values. Derived from the first name; never changes.
    key: str
    # The displayed name.
    name: str
    # The options of `select` and `multiselect`. An option in use cannot be removed.
    options: List[str]
    # Position among the fields of its application, in ascending order; ties are ordered by id. The first field is 1
    # by default.
    position: int
    # Whether forms require it. The API does not.
    required: bool
    # The type of its values.
    type: CustomFieldType
    # When it was last updated.
    updatedAt: Timestamp


class CustomFieldCreate(TypedDict):
    """A new custom field."""

    # The kind of record the field belongs to.
    application: Literal["contact", "card"]
    # The displayed name.
    name: str
    # Required for `select` and `multiselect`; at least one, without duplicates
    options: NotRequired[Union[Sequence[str], None]]
    # Position among the fields of its application, in ascending order; ties are ordered by id. The first field is 1
    # by default.
    position: NotRequired[Union[int, None]]
    # Whether forms require it. The API does not.
    required: NotRequired[Union[bool, None]]
    # The type of its values.
    type: Literal["text", "textarea", "number", "boolean", "date", "datetime", "email", "url", "phone", "select", "multiselect"]


class CustomFieldList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[CustomField]
    # Pagination.
    meta: PageMeta


class CustomFieldOrder(TypedDict):
    """The order of an application's fields: all of them, each once."""

    # The application whose fields are ordered.
    application: Literal["contact", "card"]
    # All ids, each once
    orderedIds: Sequence[int]


class CustomFieldResponse(TypedDict):
    """The response."""

    # The resource.
    data: CustomField


class CustomFieldUpdate(TypedDict):
    """Changes to a custom field."""

    # The kind of record the field belongs to.
    application: NotRequired[Literal["contact", "card"]]
    # The field's key in values. Derived from the first name; never changes.
    key: NotRequired[str]
    # The displayed name.
    name: NotRequired[str]
    # Required for `select` and `multiselect`; at least one, without duplicates
    options: NotRequired[Sequence[str]]
    # Position among the fields of its application, in ascending order; ties are ordered by id. The first field is 1
    # by default.
    position: NotRequired[int]
    # Whether forms require it. The API does not.
    required: NotRequired[bool]
    # The type of its values.
    type: NotRequired[Literal["text", "textarea", "number", "boolean", "date", "datetime", "email", "url", "phone", "select", "multiselect"]]


class CustomFieldValue(TypedDict):
    """The value of a custom field."""

    # The custom field.
    customFieldId: int
    # The field's key. Use it to write values, since the name may change.
    key: Union[str, None]
    # The displayed name.
    name: Union[str, None]
    # The type of the field's values.
    type: Union[str, None]
    # The value as text, in the format of the type.
    value: str


class EventAuthor(TypedDict):
    """Who caused an event; `id` and `name` are `null` for Hotline itself."""

    # The id.
    id: Union[int, None]
    # Name.
    name: Union[str, None]
    # The type.
    type: ByKind


class EventMessage(TypedDict):
    """A message. For `message.received`, also the ticket and the contact at that time, and the chosen option."""

    # That app, with `via`.
    app: Union[MessageApp, None]
    # The member of a group who wrote it.
    author: Union[MessageAuthor, None]
    # The text.
    body: Union[str, None]
    # The channel, as `GET /channels` lists it.
    channelId: ChannelId
    # The sender.
    contact: NotRequired[ContactRef]
    # The contact.
    contactId: ContactId
    # Additional content, such as the option that the contact chose.
    content: Union[MessageContent, None]
    # When it was created.
    createdAt: Timestamp
    # When the author deleted it, with its text and file.
    deletedAt: Union[Timestamp, None]
    # When the message reached the recipient's device.
    deliveredAt: Union[Timestamp, None]
    # `inbound` from the contact, `outbound` from the company, `internal` between agents.
    direction: Direction
    # When the author changed the text.
    editedAt: Union[Timestamp, None]
    # The earlier texts of an edited message, the oldest first.
    edits: List[MessageEdit]
    # Why the message failed.
    error: Union[MessageFailure, None]
    # The id.
    id: MessageId
    # The API token that sent it.
    integration: Union[TokenRef, None]
    # Buttons or a list, with `type: interactive`; of a contact's message, the submitted form as the provider sent
    # it.
    interactive: Union[Dict[str, Any], None]
    # The send that created it; `null` for messages from a contact.
    jobId: Union[str, None]
    # The file, with `type: media`.
    media: Union[MediaFile, None]
    # The message it replies to.
    quotedMessageId: Union[MessageId, None]
    # The reactions, one per person.
    reactions: List[MessageReaction]
    # When the recipient read it.
    readAt: Union[Timestamp, None]
    # The chosen option, as in the message's `content`.
    reply: NotRequired[ChosenOption]
    # When the provider accepted the message.
    sentAt: Union[Timestamp, None]
    # Who caused it.
    source: Source
    # The status.
    status: MessageStatus
    # The approved template, with `type: template`.
    template: Union[Dict[str, Any], None]
    # The ticket.
    ticket: NotRequired[ReceivedIn]
    # The ticket.
    ticketId: TicketId
    # The type.
    type: MessageType
    # When the message or its status last changed.
    updatedAt: Timestamp
    # The agent on whose behalf it was sent.
    user: Union[MessageUser, None]
    # The kind of app that sent or received the message in place of Hotline: the company wrote it there, or another
    # app handled the conversation when the contact wrote.
    via: Union[Via, None]


class EventMeta(TypedDict):
    """Where to continue reading events."""

    # Whether events after the given `after` have expired, or the log, restored from a backup, ends before it. If
    # so, read the current records instead.
    gap: bool
    # Whether more events are available now.
    hasMore: bool
    # The value for the next `after`.
    lastId: LoggedEventId
    # The oldest event kept; `null` if there is none.
    oldestId: Union[LoggedEventId, None]


class EventTemplate(TypedDict):
    """A channel of which a template has changed."""

    # When it was created.
    createdAt: Timestamp
    # The id.
    id: ChannelId
    # The last error.
    lastError: Union[str, None]
    # How many conversations the number may begin in a day, as its provider names that limit.
    messagingLimit: Union[str, None]
    # Name.
    name: str
    # Phone number: digits only, including the country code.
    number: Union[str, None]
    # The quality of the number's messages, as its provider last reported it.
    quality: Union[ChannelQuality, None]
    # The queue of new tickets.
    queue: Union[QueueRef, None]
    # The status.
    status: ChannelStatus
    # The provider's change of the template.
    template: ChangedTemplate
    # The type.
    type: ChannelType
    # When it was last updated.
    updatedAt: Timestamp


class EventUser(TypedDict):
    """Who caused an event, with their name at that time."""

    # The id.
    id: UserId
    # The user's name at that time.
    name: Union[str, None]


class FieldError(TypedDict):
    """An invalid field."""

    # A code for programs and translations. New codes may be added.
    code: Literal["address_forbidden", "blank", "changed_elsewhere", "common_password", "easy_password", "empty", "fixed", "forbidden_characters", "given_together", "given_twice", "negative", "not_a_boolean", "not_a_color", "not_a_date", "not_a_date_time", "not_a_key", "not_a_list", "not_a_number", "not_a_phone_number", "not_a_string", "not_a_tax_number", "not_a_time_zone", "not_a_url", "not_accepted", "not_an_email", "not_an_integer", "not_an_ip_range", "not_an_object", "not_an_option", "not_an_origin", "not_applicable", "not_digits", "not_every_record_once", "not_in_the_future", "not_one_line", "not_one_word", "not_this_list", "not_unique", "null", "out_of_range", "required", "reserved", "second_factor_missing", "too_broad", "too_deep", "too_large", "too_long", "too_many", "too_many_decimals", "too_short", "too_small", "unknown_key", "unknown_record", "wrong_code", "wrong_count", "wrong_password", "wrong_record"]
    # The path in the body, or the parameter's name.
    field: str
    # Parameters of the reason, such as `max` and `unit` for `too_long`, or `options` for `not_an_option`.
    params: Dict[str, Any]
    # A phrase that follows the field's name.
    reason: str


class FunnelTotal(TypedDict):
    """Open cards and sales of all boards."""

    # Open cards on all boards.
    openCards: int
    # Total value of the open cards.
    openValue: Amount
    # Value won on all boards since the start of the month.
    wonThisMonth: Amount


class GlobalVariable(TypedDict):
    """A text that replaces its key in messages."""

    # When it was created.
    createdAt: Timestamp
    # What the variable is for.
    description: Union[str, None]
    # The id.
    id: GlobalVariableId
    # The key; it never changes.
    key: str
    # When it was last updated.
    updatedAt: Timestamp
    # The text that replaces the variable.
    value: str


class GlobalVariableCreate(TypedDict):
    """A new global variable."""

    # What the variable is for.
    description: NotRequired[Union[str, None]]
    # Reserved names are not allowed: name, firstName, number, email, ticketId, queue, agent, channel, company,
    # date, time, greeting
    key: str
    # The text that replaces the variable.
    value: str


class GlobalVariableList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[GlobalVariable]
    # Pagination.
    meta: PageMeta


class GlobalVariableResponse(TypedDict):
    """The response."""

    # The resource.
    data: GlobalVariable


class GlobalVariableUpdate(TypedDict):
    """Changes to a global variable."""

    # What the variable is for.
    description: NotRequired[Union[str, None]]
    # Reserved names are not allowed: name, firstName, number, email, ticketId, queue, agent, channel, company,
    # date, time, greeting
    key: NotRequired[str]
    # The text that replaces the variable.
    value: NotRequired[str]


class GoalProgress(TypedDict):
    """A sales goal and its progress."""

    # The goal.
    goal: Union[Amount, None]
    # `won` divided by `goal`, to four decimals; `null` without a goal.
    progress: Union[Amount, None]
    # The value of the cards won.
    won: Amount


class GoneMessage(TypedDict):
    """A message that was later deleted with its contact; its content is no longer available."""

    # Always true.
    deleted: bool
    # The id.
    id: MessageId
    # The ticket.
    ticketId: TicketId


class GoneSession(TypedDict):
    """A session that was deleted with its contact before the event was written."""

    # Always true.
    deleted: bool
    # The id.
    id: SessionId


class HookReport(TypedDict):
    """The result of a call, by part."""

    # Parts that were ignored, because conversations do not support them.
    ignored: int
    # Parts that had already been processed.
    repeated: int
    # Parts that were processed.
    taken: int
    # Parts that could not be read.
    unreadable: int


class HookReportResponse(TypedDict):
    """The response."""

    # The resource.
    data: HookReport


class ImportError(TypedDict):
    """An error in a row."""

    # A code for programs and translations, as in the `details` of a `422`. New codes may be added.
    code: Literal["address_forbidden", "blank", "changed_elsewhere", "common_password", "easy_password", "empty", "fixed", "forbidden_characters", "given_together", "given_twice", "negative", "not_a_boolean", "not_a_color", "not_a_date", "not_a_date_time", "not_a_key", "not_a_list", "not_a_number", "not_a_phone_number", "not_a_string", "not_a_tax_number", "not_a_time_zone", "not_a_url", "not_accepted", "not_an_email", "not_an_integer", "not_an_ip_range", "not_an_object", "not_an_option", "not_an_origin", "not_applicable", "not_digits", "not_every_record_once", "not_in_the_future", "not_one_line", "not_one_word", "not_this_list", "not_unique", "null", "out_of_range", "required", "reserved", "second_factor_missing", "too_broad", "too_deep", "too_large", "too_long", "too_many", "too_many_decimals", "too_short", "too_small", "unknown_key", "unknown_record", "wrong_code", "wrong_count", "wrong_password", "wrong_record"]
    # The path of the field in the row.
    field: str
    # The index of the row, from 0.
    index: int
    # Parameters of the reason.
    params: Dict[str, Any]
    # A phrase that follows the field's name.
    reason: str


class ImportReport(TypedDict):
    """The result of an import."""

    # The contact of each successful row, in row order. Several rows may share a contact.
    contacts: List[ImportedContact]
    # Number of contacts created.
    created: int
    # Errors of rows. Such rows are not stored; all others are.
    errors: List[ImportError]
    # Rows skipped because their contact exists, with `onConflict: skip`.
    skipped: int
    # Number of contacts updated.
    updated: int


class ImportReportResponse(TypedDict):
    """The response."""

    # The resource.
    data: ImportReport


class ImportedContact(TypedDict):
    """The contact of one row."""

    # The id.
    id: ContactId
    # The index of the row, from 0.
    index: int
    # The result of the row.
    result: ImportResult


class Job(TypedDict):
    """The status of a send. For several messages, that of the slowest; `failed` as soon as one has failed."""

    # Number of calls to the provider that it did not refuse: two if its answer to the first was lost and the
    # message was sent again, so that the contact may have received it twice.
    attempts: int
    # Why the message failed.
    error: Union[MessageFailure, None]
    # The id of the send; `GET /messages/jobs/{jobId}` returns its status.
    jobId: str
    # The first message of the send.
    messageId: MessageId
    # `unknown` while it is unknown whether the provider received a queued message.
    outcome: Union[JobOutcome, None]
    # The status.
    status: MessageStatus
    # The ticket.
    ticketId: TicketId
    # Why a queued message cannot be sent yet.
    waitingFor: Union[WaitingFor, None]


class JobResponse(TypedDict):
    """The response."""

    # The resource.
    data: Job


class LastChannel(TypedDict):
    """The channel of a contact's latest message."""

    # The id.
    id: ChannelId
    # The channel's name.
    name: str
    # The type.
    type: ChannelType


class LastMessage(TypedDict):
    """The latest message of a ticket."""

    # The text.
    body: Union[str, None]
    # When it was created.
    createdAt: Timestamp
    # `inbound` from the contact, `outbound` from the company, `internal` between agents.
    direction: Direction
    # The id.
    id: MessageId


class Liveness(TypedDict):
    """The process is running."""

    # Always `live`.
    status: str


class MediaFile(TypedDict):
    """A file that was sent or received."""

    # File name.
    fileName: str
    # MIME type, detected from the content.
    mimeType: str
    # Size in bytes.
    size: int
    # A URL that needs no token, valid for about a day.
    url: str
    # Whether it is a voice message.
    voice: bool


class MergeSuggestion(TypedDict):
    """Another contact that is the same person, as a provider says."""

    # The contact.
    contactId: ContactId
    # The kind of the identity that both have.
    kind: IdentityKind
    # When this was first seen.
    since: Timestamp
    # The number in digits, or the provider's id, that both have.
    value: str


class MergedContact(TypedDict):
    """A contact that another one was merged into."""

    # The company's own code for the contact.
    code: Union[str, None]
    # Tax number: 11 digits for a person, 14 for a company.
    cpfCnpj: Union[str, None]
    # When it was created.
    createdAt: Timestamp
    # Click id of a click-to-chat advertisement.
    ctwaClid: Union[str, None]
    # Values of custom fields.
    customFields: List[CustomFieldValue]
    # E-mail address.
    email: Union[str, None]
    # Click id of an advertisement.
    fbclid: Union[str, None]
    # Click id of an advertisement.
    gclid: Union[str, None]
    # The advertisement's headline.
    headline: Union[str, None]
    # The id.
    id: ContactId
    # By what the contact is or was known: its number, and the ids that providers have of it. Former ones still find
    # it.
    identities: List[ContactIdentity]
    # Whether the contact is a group rather than a person.
    isGroup: bool
    # The channel of the latest message. Changes to it do not change `updatedAt`.
    lastChannel: Union[LastChannel, None]
    # The provider's id for a contact whose number it hides.
    lid: Union[str, None]
    # Whether the contact is excluded from campaigns.
    marketingOptOut: bool
    # Type of the advertisement's media.
    mediaType: Union[str, None]
    # URL of the advertisement's picture or video.
    mediaUrl: Union[str, None]
    # Other contacts that are the same person, as a provider says. They are never merged by themselves.
    mergeSuggestions: List[MergeSuggestion]
    # The id of the other contact, which no longer exists. Records that referred to it refer to this one.
    mergedFrom: ContactId
    # Name.
    name: str
    # Phone number: digits only, including the country code.
    number: Union[str, None]
    # Country code derived from the number.
    numberCountry: Union[str, None]
    # How the contact was acquired.
    origin: Union[str, None]
    # URL of the contact's picture.
    profilePicUrl: Union[str, None]
    # User name on a social channel.
    socialUsername: Union[str, None]
    # The advertisement's id.
    sourceId: Union[str, None]
    # URL of the page or advertisement.
    sourceUrl: Union[str, None]
    # The contact's tags.
    tags: List[ContactTag]
    # When it was last updated.
    updatedAt: Timestamp
    # UTM campaign.
    utmCampaign: Union[str, None]
    # UTM id.
    utmId: Union[str, None]
    # UTM medium.
    utmMedium: Union[str, None]
    # UTM source.
    utmSource: Union[str, None]
    # Whether a webchat visitor's identity was confirmed by the company or by an identity it signed.
    verified: bool


class MergedTicket(TypedDict):
    """A ticket that another one was merged into."""

    # The assigned agent.
    assignedTo: Union[UserRef, None]
    # The channel.
    channel: Union[NamedChannel, None]
    # When it was closed; `null` while it is open.
    closedAt: Union[Timestamp, None]
    # The contact.
    contact: TicketContact
    # When it was created.
    createdAt: Timestamp
    # Who opened the ticket.
    creationSource: Source
    # When the first reply since the opening was sent: by a user, an integration or a chatbot.
    firstResponseAt: Union[Timestamp, None]
    # The app of the provider that handles the conversation, if it is not Hotline: the provider may refuse the
    # company's messages meanwhile.
    handledBy: Union[TicketHandler, None]
    # The id.
    id: TicketId
    # When it was last opened, its last message was written, or it was closed.
    lastActivityAt: Timestamp
    # The latest message.
    lastMessage: Union[LastMessage, None]
    # The id of the other ticket, which no longer exists.
    mergedFrom: TicketId
    # When it was last opened.
    openedAt: Timestamp
    # The queue.
    queue: Union[QueueRef, None]
    # How many times it was reopened.
    reopenCount: int
    # The status.
    status: TicketStatus
    # Number of unread messages from the contact.
    unreadCount: int
    # When it was last updated.
    updatedAt: Timestamp
    # Whether the contact is verified: a webchat visitor's identity was confirmed by the company or by an identity
    # it signed.
    verified: bool
    # Since when the contact has been waiting for an answer; `null`: no one waits.
    waitingSince: Union[Timestamp, None]
    # Note about the wrap-up.
    wrapupNote: Union[str, None]
    # The wrap-up type.
    wrapupType: Union[WrapupTypeRef, None]


class Message(TypedDict):
    """A message in a ticket: from the contact, from the company, or between agents."""

    # That app, with `via`.
    app: Union[MessageApp, None]
    # The member of a group who wrote it.
    author: Union[MessageAuthor, None]
    # The text.
    body: Union[str, None]
    # The channel, as `GET /channels` lists it.
    channelId: ChannelId
    # The contact.
    contactId: ContactId
    # Additional content, such as the option that the contact chose.
    content: Union[MessageContent, None]
    # When it was accepted or received.
    createdAt: Timestamp
    # When the author deleted it, with its text and file.
    deletedAt: Union[Timestamp, None]
    # When the message reached the recipient's device.
    deliveredAt: Union[Timestamp, None]
    # `inbound` from the contact, `outbound` from the company, `internal` between agents.
    direction: Direction
    # When the author changed the text.
    editedAt: Union[Timestamp, None]
    # The earlier texts of an edited message, the oldest first.
    edits: List[MessageEdit]
    # Why the message failed.
    error: Union[MessageFailure, None]
    # The id.
    id: MessageId
    # The API token that sent it.
    integration: Union[TokenRef, None]
    # Buttons or a list, with `type: interactive`; of a contact's message, the submitted form as the provider sent
    # it.
    interactive: Union[Dict[str, Any], None]
    # The send that created it; `null` for messages from a contact.
    jobId: Union[str, None]
    # The file, with `type: media`.
    media: Union[MediaFile, None]
    # The message it replies to.
    quotedMessageId: Union[MessageId, None]
    # The reactions, one per person.
    reactions: List[MessageReaction]
    # When the recipient read it.
    readAt: Union[Timestamp, None]
    # When the provider accepted the message.
    sentAt: Union[Timestamp, None]
    # Who caused it.
    source: Source
    # The status.
    status: MessageStatus
    # The approved template, with `type: template`.
    template: Union[Dict[str, Any], None]
    # The ticket.
    ticketId: TicketId
    # The type.
    type: MessageType
    # When the message or its status last changed.
    updatedAt: Timestamp
    # The agent on whose behalf it was sent.
    user: Union[MessageUser, None]
    # The kind of app that sent or received the message in place of Hotline: the company wrote it there, or another
    # app handled the conversation when the contact wrote.
    via: Union[Via, None]


class MessageAgent(TypedDict):
    """The agent who sent the message."""

    # The agent's name.
    name: str


class MessageApp(TypedDict):
    """An app of a provider's account."""

    # The provider's id of it.
    id: Union[str, None]
    # Its name, if it is known.
    name: Union[str, None]


class MessageAuthor(TypedDict):
    """Who of a group wrote a message."""

    # The provider's own id of them.
    address: Union[str, None]
    # Their name, as they gave it to the provider.
    name: Union[str, None]
    # Phone number: digits only, including the country code.
    number: Union[str, None]


class MessageContent(TypedDict):
    """Additional content of a message: the part that `kind` names, and any other that the message has."""

    # The shared contacts, each with what its provider gave: names, numbers, addresses, organization.
    contacts: NotRequired[List[Dict[str, Any]]]
    # The submitted form.
    form: NotRequired[SubmittedForm]
    # Whether the message was forwarded.
    forwarded: NotRequired[bool]
    # Whether it was forwarded many times.
    frequentlyForwarded: NotRequired[bool]
    # The kind of content.
    kind: ContentKind
    # The place.
    location: NotRequired[SharedLocation]
    # The order.
    order: NotRequired[PlacedOrder]
    # The product that the message is about.
    product: NotRequired[ProductReference]
    # The advertisement or link that brought the contact with this message.
    referral: NotRequired[MessageReferral]
    # The chosen option.
    reply: NotRequired[ChosenOption]
    # The story that the message replies to, or that mentions the company.
    story: NotRequired[StoryReference]


class MessageEdit(TypedDict):
    """An earlier text of an edited message."""

    # When it was replaced.
    at: Timestamp
    # The text.
    body: Union[str, None]


class MessageFailure(TypedDict):
    """Why a message failed."""

    # The provider's own code, or one of Hotline's.
    code: str
    # A message for people.
    message: str


class MessageList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Message]
    # Pagination.
    meta: PageMeta


class MessageReact(TypedDict):
    """A reaction of the company: an emoji."""

    # One emoji.
    emoji: str


class MessageReaction(TypedDict):
    """A reaction to a message."""

    # When it was sent.
    at: Timestamp
    # Who has reacted.
    by: Reactor
    # The emoji.
    emoji: str
    # Why the provider refused the company's reaction.
    error: Union[MessageFailure, None]
    # The name of the contact, or of a member of their group.
    name: Union[str, None]
    # The user who has reacted, with `by: user`.
    user: Union[MessageUser, None]


class MessageReferral(TypedDict):
    """The advertisement, post or link that brought a contact with a message."""

    # The text.
    body: Union[str, None]
    # The provider's id of the click.
    ctwaClid: Union[str, None]
    # The advertisement's headline.
    headline: Union[str, None]
    # Type of the advertisement's media.
    mediaType: Union[str, None]
    # URL of the advertisement's picture or video.
    mediaUrl: Union[str, None]
    # The reference that the link contains.
    reference: Union[str, None]
    # The advertisement's id.
    sourceId: Union[str, None]
    # As the provider writes it: `ad`, `post`, `ADS`, `SHORTLINK`.
    sourceType: Union[str, None]
    # URL of the page or advertisement.
    sourceUrl: Union[str, None]


class MessageReportRow(TypedDict):
    """Messages by day, channel, user or type. Notes are not counted."""

    # Failed outbound messages, counted when they were created.
    failed: int
    # Messages from contacts.
    inbound: int
    # The group: a day, the id of a channel or user, or a message type; `null` for messages without one.
    key: Union[ReportKey, None]
    # The day or the type, or the record's name; `null` if there is none.
    label: Union[str, None]
    # Messages from the company, including failed ones.
    outbound: int


class MessageReportRowReport(TypedDict):
    """The rows of a report."""

    # The resource.
    data: List[MessageReportRow]


class MessageResponse(TypedDict):
    """The response."""

    # The resource.
    data: Message


class MessageSend(TypedDict):
    """A message to send to a ticket, a contact or a number. `ticketId` takes precedence, then `contactId`."""

    # The text, or a file's caption. Variables such as `{{firstName}}` are filled in.
    body: NotRequired[Union[str, None]]
    # The channel to send on; optional with `ticketId`.
    channelId: NotRequired[Union[int, None]]
    # Closes the ticket once the message is handed to the channel.
    closeTicket: NotRequired[Union[bool, None]]
    # The recipient, on any channel; takes precedence over `number`.
    contactId: NotRequired[Union[int, None]]
    # The contact's name, if `number` creates one.
    contactName: NotRequired[Union[str, None]]
    # An interactive object in the format of the official cloud API, at most 65,536 bytes. A webchat supports
    # button, list, cta_url, location_request_message and carousel
    interactive: NotRequired[Union[Dict[str, Any], None]]
    # 8 to 15 digits; `+ ( ) - .` and spaces are removed
    number: NotRequired[Union[str, None]]
    # Moves the ticket to this queue once the message is handed to the channel.
    queueId: NotRequired[Union[int, None]]
    # Reopens the contact's latest ticket on the channel if it is closed.
    reopenTicket: NotRequired[Union[bool, None]]
    # An approved template: its name with `parameters`, or complete `components`.
    template: NotRequired[Union[MessageSendTemplate, None]]
    # The ticket to send in; takes precedence over `contactId` and `number`.
    ticketId: NotRequired[Union[int, None]]
    # `text` requires `body`; `media` requires a form with files in `medias`; `template` and `interactive` require
    # the field of the same name
    type: Literal["text", "media", "template", "interactive"]
    # The user, as `GET /users` lists them.
    userId: NotRequired[Union[int, None]]
    # Sends the files as voice messages: audio files, on WhatsApp of the type audio/ogg. Only with the type `media`.
    voice: NotRequired[Union[bool, None]]
    # Note about the wrap-up, with `closeTicket`.
    wrapupNote: NotRequired[Union[str, None]]
    # The wrap-up type, with `closeTicket`.
    wrapupTypeId: NotRequired[Union[int, None]]


class MessageSendForm(TypedDict):
    """The same as a form, with files. Objects are sent as JSON."""

    # The text, or a file's caption. Variables such as `{{firstName}}` are filled in.
    body: NotRequired[Union[str, None]]
    # The channel to send on; optional with `ticketId`.
    channelId: NotRequired[Union[int, None]]
    # Closes the ticket once the message is handed to the channel.
    closeTicket: NotRequired[Union[bool, None]]
    # The recipient, on any channel; takes precedence over `number`.
    contactId: NotRequired[Union[int, None]]
    # The contact's name, if `number` creates one.
    contactName: NotRequired[Union[str, None]]
    # An interactive object in the format of the official cloud API, at most 65,536 bytes. A webchat supports
    # button, list, cta_url, location_request_message and carousel
    interactive: NotRequired[Union[Dict[str, Any], None]]
    # The files, one per part of this name. Each becomes a message
    medias: NotRequired[Sequence[Upload]]
    # 8 to 15 digits; `+ ( ) - .` and spaces are removed
    number: NotRequired[Union[str, None]]
    # Moves the ticket to this queue once the message is handed to the channel.
    queueId: NotRequired[Union[int, None]]
    # Reopens the contact's latest ticket on the channel if it is closed.
    reopenTicket: NotRequired[Union[bool, None]]
    # An approved template: its name with `parameters`, or complete `components`.
    template: NotRequired[Union[MessageSendFormTemplate, None]]
    # The ticket to send in; takes precedence over `contactId` and `number`.
    ticketId: NotRequired[Union[int, None]]
    # `text` requires `body`; `media` requires a form with files in `medias`; `template` and `interactive` require
    # the field of the same name
    type: Literal["text", "media", "template", "interactive"]
    # The user, as `GET /users` lists them.
    userId: NotRequired[Union[int, None]]
    # Sends the files as voice messages: audio files, on WhatsApp of the type audio/ogg. Only with the type `media`.
    voice: NotRequired[Union[bool, None]]
    # Note about the wrap-up, with `closeTicket`.
    wrapupNote: NotRequired[Union[str, None]]
    # The wrap-up type, with `closeTicket`.
    wrapupTypeId: NotRequired[Union[int, None]]


class MessageUser(TypedDict):
    """The user who sent a message, with their name at that time."""

    # The id.
    id: UserId
    # The user's name at that time.
    name: Union[str, None]


class NamedChannel(TypedDict):
    """A channel, by id, name and type."""

    # The id.
    id: ChannelId
    # The channel's name.
    name: str
    # The type.
    type: ChannelType


class NoteCreate(TypedDict):
    """A note for agents."""

    # At most 65,536 bytes
    body: str
    # The user, as `GET /users` lists them.
    userId: NotRequired[Union[int, None]]


class OrderItem(TypedDict):
    """A product of an order."""

    # ISO 4217.
    currency: Union[str, None]
    # The price of one, as the provider writes it.
    price: Union[str, None]
    # How many are ordered.
    quantity: Union[float, None]
    # The product's id in the catalogue.
    retailerId: Union[str, None]


class PageMeta(TypedDict):
    """Pagination of a list."""

    # Whether there are more pages.
    hasMore: bool
    # With `cursor`: the `cursor` of the next page; `null` on the last page.
    nextCursor: NotRequired[Union[str, None]]
    # The page number, from 1. Omitted with `cursor`.
    page: NotRequired[int]
    # Maximum page size.
    perPage: int


class PlacedOrder(TypedDict):
    """An order from a catalogue."""

    # The catalogue.
    catalogId: Union[str, None]
    # The ordered products.
    items: List[OrderItem]
    # The contact's text.
    text: Union[str, None]


class Product(TypedDict):
    """A product."""

    # Whether it is active.
    active: bool
    # The category.
    category: Union[ProductCategoryRef, None]
    # When it was created.
    createdAt: Timestamp
    # Description.
    description: Union[str, None]
    # The id.
    id: ProductId
    # The product's name.
    name: str
    # Price per unit in the company's currency. Cards can override it.
    price: Amount
    # Stock keeping unit, unique in the company.
    sku: Union[str, None]
    # When it was last updated.
    updatedAt: Timestamp


class ProductCategory(TypedDict):
    """A category of products."""

    # When it was created.
    createdAt: Timestamp
    # Description.
    description: Union[str, None]
    # The id.
    id: ProductCategoryId
    # Name, unique in the company.
    name: str
    # When it was last updated.
    updatedAt: Timestamp


class ProductCategoryCreate(TypedDict):
    """A new product category."""

    # Description.
    description: NotRequired[Union[str, None]]
    # Name, unique in the company.
    name: str


class ProductCategoryList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[ProductCategory]
    # Pagination.
    meta: PageMeta


class ProductCategoryRef(TypedDict):
    """A reference to a record, by id and name."""

    # The category's id.
    id: int
    # The category's name.
    name: str


class ProductCategoryResponse(TypedDict):
    """The response."""

    # The resource.
    data: ProductCategory


class ProductCategoryUpdate(TypedDict):
    """Changes to a product category."""

    # Description.
    description: NotRequired[Union[str, None]]
    # Name, unique in the company.
    name: NotRequired[str]


class ProductCreate(TypedDict):
    """A new product."""

    # Whether it is active.
    active: NotRequired[Union[bool, None]]
    # The category, as `GET /product-categories` lists it.
    categoryId: NotRequired[Union[int, None]]
    # Description.
    description: NotRequired[Union[str, None]]
    # The product's name.
    name: str
    # Price per unit in the company's currency. Cards can override it.
    price: NotRequired[Union[float, None]]
    # Stock keeping unit, unique in the company.
    sku: NotRequired[Union[str, None]]


class ProductList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Product]
    # Pagination.
    meta: PageMeta


class ProductReference(TypedDict):
    """A product of a catalogue."""

    # The catalogue.
    catalogId: Union[str, None]
    # The product's id in the catalogue.
    retailerId: Union[str, None]


class ProductResponse(TypedDict):
    """The response."""

    # The resource.
    data: Product


class ProductUpdate(TypedDict):
    """Changes to a product."""

    # Whether it is active.
    active: NotRequired[bool]
    # The category, as `GET /product-categories` lists it.
    categoryId: NotRequired[Union[int, None]]
    # Description.
    description: NotRequired[Union[str, None]]
    # The product's name.
    name: NotRequired[str]
    # Price per unit in the company's currency. Cards can override it.
    price: NotRequired[float]
    # Stock keeping unit, unique in the company.
    sku: NotRequired[Union[str, None]]


class Profile(TypedDict):
    """A permission profile."""

    # When it was created.
    createdAt: Timestamp
    # The id.
    id: ProfileId
    # The profile's name.
    name: str
    # Allowed methods, by module.
    permissions: Dict[str, List[str]]
    # Whether its users see cards assigned to others.
    seesAllCards: bool
    # When it was last updated.
    updatedAt: Timestamp


class ProfileList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Profile]
    # Pagination.
    meta: PageMeta


class ProfileRef(TypedDict):
    """A reference to a record, by id and name."""

    # The profile's id.
    id: int
    # The profile's name.
    name: str


class ProfileResponse(TypedDict):
    """The response."""

    # The resource.
    data: Profile


class ProviderCall(TypedDict):
    """A callback, in the provider's format."""

    # The changes.
    entry: NotRequired[Sequence[Dict[str, Any]]]
    # The kind of account.
    object: NotRequired[str]


class Queue(TypedDict):
    """A queue of tickets."""

    # Whether it is active.
    active: bool
    # A colour as `#rrggbb`.
    color: str
    # When it was created.
    createdAt: Timestamp
    # How new tickets are assigned: not automatically, to each active agent in turn, or to the one with the fewest
    # open tickets.
    distribution: Distribution
    # Sent when a contact opens a ticket in the queue.
    greeting: Union[str, None]
    # The id.
    id: QueueId
    # Name, unique in the company.
    name: str
    # When it was last updated.
    updatedAt: Timestamp
    # Whether closing a ticket requires a wrap-up.
    wrapupRequired: bool


class QueueCreate(TypedDict):
    """A new queue."""

    # Whether it is active.
    active: NotRequired[Union[bool, None]]
    # A colour as `#rrggbb`.
    color: NotRequired[Union[str, None]]
    # How new tickets are assigned: not automatically, to each active agent in turn, or to the one with the fewest
    # open tickets.
    distribution: NotRequired[Union[Literal["manual", "round_robin", "least_busy"], None]]
    # Sent when a contact opens a ticket in the queue.
    greeting: NotRequired[Union[str, None]]
    # Name, unique in the company.
    name: str
    # Whether closing a ticket requires a wrap-up.
    wrapupRequired: NotRequired[Union[bool, None]]


class QueueDesk(TypedDict):
    """Open tickets of a queue."""

    # The id.
    id: QueueId
    # Name.
    name: str
    # Open tickets in the queue.
    open: int
    # Open tickets without an agent.
    unassigned: int


class QueueList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Queue]
    # Pagination.
    meta: PageMeta


class QueueRef(TypedDict):
    """A reference to a record, by id and name."""

    # The queue's id.
    id: int
    # Name, unique in the company.
    name: str


class QueueResponse(TypedDict):
    """The response."""

    # The resource.
    data: Queue


class QueueUpdate(TypedDict):
    """Changes to a queue."""

    # Whether it is active.
    active: NotRequired[bool]
    # A colour as `#rrggbb`.
    color: NotRequired[str]
    # How new tickets are assigned: not automatically, to each active agent in turn, or to the one with the fewest
    # open tickets.
    distribution: NotRequired[Literal["manual", "round_robin", "least_busy"]]
    # Sent when a contact opens a ticket in the queue.
    greeting: NotRequired[Union[str, None]]
    # Name, unique in the company.
    name: NotRequired[str]
    # Whether closing a ticket requires a wrap-up.
    wrapupRequired: NotRequired[bool]


class QueuedJob(TypedDict):
    """An accepted message that will be sent."""

    # The id of the send; `GET /messages/jobs/{jobId}` returns its status.
    jobId: str
    # Always `queued`.
    status: MessageStatus


class QueuedJobResponse(TypedDict):
    """The response."""

    # The resource.
    data: QueuedJob


class QuickMessage(TypedDict):
    """A text that agents insert by a shortcut."""

    # When it was created.
    createdAt: Timestamp
    # The id.
    id: QuickMessageId
    # The text.
    message: str
    # The shortcut, unique in the company.
    shortcut: str
    # When it was last updated.
    updatedAt: Timestamp


class QuickMessageCreate(TypedDict):
    """A new quick message."""

    # The text.
    message: str
    # The shortcut, unique in the company.
    shortcut: str


class QuickMessageList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[QuickMessage]
    # Pagination.
    meta: PageMeta


class QuickMessageResponse(TypedDict):
    """The response."""

    # The resource.
    data: QuickMessage


class QuickMessageUpdate(TypedDict):
    """Changes to a quick message."""

    # The text.
    message: NotRequired[str]
    # The shortcut, unique in the company.
    shortcut: NotRequired[str]


class Readiness(TypedDict):
    """The readiness of the service."""

    # The components, by name.
    parts: ReadyParts
    # Why it is not `ready`.
    reasons: List[ReadinessReason]
    # `ready`; `degraded` if it serves while something needs attention; `starting`, `stopping` or `not ready` if it
    # must get no requests.
    status: str


class ReadinessReason(TypedDict):
    """Why the service is not `ready`."""

    # For people.
    message: str
    # For programs: `starting`, `stopping`, `no_lease`, `journal_filling`, or a condition that is also in the log
    # and the metrics: `database`, `database_changes`, `database_connections`, `journal`, `connections`,
    # `open_files`, `message_files`, `disk`, `rejected_rows`, `peer`, `shared_folder` or `node_name`. There may be
    # more in later releases.
    reason: str
    # Since when, if that is known.
    since: Union[Timestamp, None]


class ReadyParts(TypedDict):
    """The components of the service: each is `ready` or `not ready`."""

    # Whether the service accepts requests; not while it is starting or stopping.
    accepting: str
    # Whether PostgreSQL responds.
    database: str
    # Whether changes are accepted.
    journal: str
    # Whether accepted changes are being written to the database.
    persister: str


class ReceivedIn(TypedDict):
    """The ticket of a received message at that time."""

    # The assigned agent.
    assignedTo: Union[UserRef, None]
    # The id.
    id: TicketId
    # The queue.
    queue: Union[QueueRef, None]
    # The status.
    status: Union[TicketStatus, None]


class RecipientContact(TypedDict):
    """The contact of a recipient."""

    # The id.
    id: ContactId
    # Name.
    name: str
    # Phone number: digits only, including the country code.
    number: Union[str, None]


class RecipientFailure(TypedDict):
    """Why a recipient did not receive the message."""

    # The error code of `POST /messages`, or of the message.
    code: str
    # A message for people.
    message: str


class RecipientList(TypedDict):
    """A list of contacts for campaigns."""

    # Number of contacts.
    contactsCount: int
    # When it was created.
    createdAt: Timestamp
    # The id.
    id: ContactListId
    # Name.
    name: str
    # When it was last updated.
    updatedAt: Timestamp


class RecipientListCreate(TypedDict):
    """A new contact list."""

    # Name.
    name: str


class RecipientListList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[RecipientList]
    # Pagination.
    meta: PageMeta


class RecipientListResponse(TypedDict):
    """The response."""

    # The resource.
    data: RecipientList


class SalesDashboard(TypedDict):
    """The current sales funnel."""

    # Boards that are not archived, ordered by id; for a user, those they may see.
    boards: List[BoardFunnel]
    # The total of all boards.
    total: FunnelTotal


class SalesDashboardResponse(TypedDict):
    """The response."""

    # The resource.
    data: SalesDashboard


class SalesReportRow(TypedDict):
    """Won and lost cards by day, user, origin or product. For a product, values are the totals of its lines."""

    # The group: a day, or the id of a user, origin or product; `null` for cards without one.
    key: Union[ReportKey, None]
    # The day, or the record's name; `null` if there is none.
    label: Union[str, None]
    # Lost cards.
    lostCards: int
    # Total value of the lost cards.
    lostValue: Amount
    # Won cards.
    wonCards: int
    # Total value of the won cards.
    wonValue: Amount


class SalesReportRowReport(TypedDict):
    """The rows of a report."""

    # The resource.
    data: List[SalesReportRow]


class Schedule(TypedDict):
    """A scheduled message."""

    # The text as written; variables are filled in when it is sent.
    body: str
    # The channel, as `GET /channels` lists it.
    channelId: ChannelId
    # The recipient; `null` if the contact has been deleted.
    contact: Union[ScheduleContact, None]
    # When it was created.
    createdAt: Timestamp
    # Why the message failed.
    error: Union[ScheduleFailure, None]
    # The id.
    id: ScheduleId
    # The message that was sent.
    messageId: Union[MessageId, None]
    # The queue its ticket is moved to when it is sent.
    queueId: Union[QueueId, None]
    # When it is sent, within five seconds.
    sendAt: Timestamp
    # The status.
    status: ScheduleStatus
    # When it was last updated.
    updatedAt: Timestamp
    # The user on whose behalf it was scheduled.
    userCreated: Union[UserRef, None]


class ScheduleContact(TypedDict):
    """The recipient of a scheduled message."""

    # The id.
    id: ContactId
    # Name.
    name: str
    # Phone number: digits only, including the country code.
    number: Union[str, None]


class ScheduleCreate(TypedDict):
    """A new scheduled message."""

    # At most 65,536 bytes
    body: str
    # The channel, as `GET /channels` lists it.
    channelId: int
    # The contact.
    contactId: int
    # The queue, as `GET /queues` lists it.
    queueId: NotRequired[Union[int, None]]
    # A time in the future
    sendAt: Union[str, datetime]
    # The user, as `GET /users` lists them.
    userId: NotRequired[Union[int, None]]


class ScheduleFailure(TypedDict):
    """Why a scheduled message could not be sent."""

    # The error code of `POST /messages`.
    code: str
    # A message for people.
    message: str


class ScheduleList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Schedule]
    # Pagination.
    meta: PageMeta


class ScheduleResponse(TypedDict):
    """The response."""

    # The resource.
    data: Schedule


class ScheduleUpdate(TypedDict):
    """Changes to a scheduled message."""

    # At most 65,536 bytes
    body: NotRequired[str]
    # The channel, as `GET /channels` lists it.
    channelId: NotRequired[int]
    # The contact.
    contactId: NotRequired[int]
    # The queue, as `GET /queues` lists it.
    queueId: NotRequired[Union[int, None]]
    # A time in the future
    sendAt: NotRequired[Union[str, datetime]]


class ServiceDashboard(TypedDict):
    """The current state of the service desk."""

    # The longest current wait for a reply, in seconds; `null` if no contact is waiting.
    oldestWaitingSeconds: Union[int, None]
    # The company's open tickets.
    openTickets: int
    # All queues, ordered by id.
    queues: List[QueueDesk]
    # Activity since midnight in the company's time zone.
    today: ServiceDay
    # Open tickets without an agent.
    unassignedTickets: int
    # All users, ordered by id.
    users: List[UserDesk]
    # Open tickets whose contact is waiting for a reply by a user, an integration or a chatbot.
    waitingAgent: int
    # Open tickets that wait for the contact: the company replied last, or there are no messages yet.
    waitingContact: int


class ServiceDashboardResponse(TypedDict):
    """The response."""

    # The resource.
    data: ServiceDashboard


class ServiceDay(TypedDict):
    """Today's activity."""

    # As in the ticket report.
    avgFirstResponseSeconds: Union[float, None]
    # Tickets closed.
    closed: int
    # Messages from contacts.
    inbound: int
    # Tickets opened.
    opened: int
    # Messages from the company.
    outbound: int


class Session(TypedDict):
    """A visitor session in a webchat."""

    # The channel, as `GET /channels` lists it.
    channelId: ChannelId
    # Unverified data from the visitor's browser; `null` if there is none.
    claimed: Union[Claimed, None]
    # The contact.
    contact: Contact
    # When it was created.
    createdAt: Timestamp
    # When it ended.
    endedAt: Union[Timestamp, None]
    # The id.
    id: SessionId
    # When the visitor was last online.
    lastSeenAt: Timestamp
    # `active` until it ends.
    status: SessionStatus
    # The ticket; `null` until the first message.
    ticketId: Union[TicketId, None]
    # The visitor's token, only in the response to the opening; `null` in the response to a retry.
    token: NotRequired[Union[str, None]]
    # Whether the visitor's identity was confirmed by the company or by an identity it signed.
    verified: bool


class SessionMessageSend(TypedDict):
    """A visitor's message: `body` or `reply`."""

    # At most 65,536 bytes
    body: NotRequired[Union[str, None]]
    # An id chosen by the client. Sending again with the same id returns the first message.
    clientId: NotRequired[Union[str, None]]
    # The chosen option of an interactive message; instead of `body`.
    reply: NotRequired[Union[SessionMessageSendReply, None]]


class SessionMessageSendForm(TypedDict):
    """One file, with an optional text."""

    # Text that accompanies the file.
    body: NotRequired[Union[str, None]]
    # An id chosen by the client. Sending again with the same id returns the first message.
    clientId: NotRequired[Union[str, None]]
    # The file: exactly one part of this name.
    medias: NotRequired[Sequence[Upload]]


class SessionOpen(TypedDict):
    """A new visitor session."""

    # A webchat.
    channelId: int
    # The contact; otherwise `visitor` identifies one.
    contactId: NotRequired[Union[int, None]]
    # The visitor's current page.
    page: NotRequired[Union[SessionOpenPage, None]]
    # UTM parameters of the visit.
    utm: NotRequired[Union[SessionOpenUtm, None]]
    # Visitor data. A contact is found by `externalId`, then `number`, then `email`.
    visitor: NotRequired[Union[SessionOpenVisitor, None]]


class SessionResponse(TypedDict):
    """The response."""

    # The resource.
    data: Session


class SharedLocation(TypedDict):
    """A place."""

    # The address.
    address: Union[str, None]
    # The latitude in degrees.
    latitude: Union[float, None]
    # The longitude in degrees.
    longitude: Union[float, None]
    # Name.
    name: Union[str, None]
    # The address of a web page on it.
    url: Union[str, None]


class Stage(TypedDict):
    """A stage of a board."""

    # When it was created.
    createdAt: Timestamp
    # The board.
    crmBoardId: BoardId
    # Whether the stage is for won cards; at most one stage of a board.
    doneList: bool
    # The id.
    id: BoardListId
    # The stage's name.
    label: str
    # Position from left to right, in ascending order; ties are ordered by id. The first stage is 1 by default.
    position: int
    # When it was last updated.
    updatedAt: Timestamp


class StageCreate(TypedDict):
    """A new stage."""

    # Whether the stage is for won cards; at most one stage of a board.
    doneList: NotRequired[Union[bool, None]]
    # The stage's name.
    label: str
    # Position from left to right, in ascending order; ties are ordered by id. The first stage is 1 by default.
    position: NotRequired[Union[int, None]]


class StageList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Stage]
    # Pagination.
    meta: PageMeta


class StageOrder(TypedDict):
    """The order of a board's stages: all of them, each once."""

    # All ids, each once
    orderedIds: Sequence[int]


class StageResponse(TypedDict):
    """The response."""

    # The resource.
    data: Stage


class StageSum(TypedDict):
    """The open cards of a stage."""

    # Open cards in the stage.
    cards: int
    # The id.
    id: BoardListId
    # The stage's name.
    label: str
    # The sum of their `productsTotal`.
    value: Amount


class StageUpdate(TypedDict):
    """Changes to a stage."""

    # Whether the stage is for won cards; at most one stage of a board.
    doneList: NotRequired[bool]
    # The stage's name.
    label: NotRequired[str]
    # Position from left to right, in ascending order; ties are ordered by id. The first stage is 1 by default.
    position: NotRequired[int]


class StageWithCards(TypedDict):
    """A stage of a board with its first cards."""

    # The first cards, from the top. Boards with more than ten stages return fewer per stage, at most 1,000 cards in
    # total. `GET /crm/boards/{boardId}/cards?crmBoardListId=` returns all of them.
    cards: List[Card]
    # Number of cards in the stage, including those not returned here.
    countCards: int
    # When it was created.
    createdAt: Timestamp
    # The board.
    crmBoardId: BoardId
    # Whether the stage is for won cards; at most one stage of a board.
    doneList: bool
    # The id.
    id: BoardListId
    # The name.
    label: str
    # Position from left to right, in ascending order; ties are ordered by id. The first stage is 1 by default.
    position: int
    # When it was last updated.
    updatedAt: Timestamp


class StoryReference(TypedDict):
    """A story of a social channel. Its picture is the message's `media`."""

    # The provider's id of the story.
    id: Union[str, None]
    # The provider's id of its picture or video.
    mediaId: Union[str, None]
    # Where the provider shows it, for a day at most.
    url: Union[str, None]


class SubmittedForm(TypedDict):
    """A form that the contact submitted."""

    # What the contact entered, by the names of the form's fields.
    answers: Union[Dict[str, Any], None]
    # Its name at the provider.
    name: Union[str, None]


class Tag(TypedDict):
    """A coloured label for contacts."""

    # A colour as `#rrggbb`.
    color: str
    # When it was created.
    createdAt: Timestamp
    # The id.
    id: TagId
    # Name, unique in the company.
    name: str
    # When it was last updated.
    updatedAt: Timestamp


class TagCreate(TypedDict):
    """A new tag."""

    # A colour as `#rrggbb`.
    color: NotRequired[Union[str, None]]
    # Name, unique in the company.
    name: str


class TagList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Tag]
    # Pagination.
    meta: PageMeta


class TagResponse(TypedDict):
    """The response."""

    # The resource.
    data: Tag


class TagUpdate(TypedDict):
    """Changes to a tag."""

    # A colour as `#rrggbb`.
    color: NotRequired[str]
    # Name, unique in the company.
    name: NotRequired[str]


class Template(TypedDict):
    """A message template of the channel's account at the provider."""

    # The category of use.
    category: str
    # The components, in the provider's format.
    components: List[Dict[str, Any]]
    # The language, in the provider's format.
    language: str
    # The name; unique in the channel together with the language.
    name: str
    # The provider's review status.
    status: str


class TemplateList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Template]
    # Pagination.
    meta: PageMeta


class Ticket(TypedDict):
    """A ticket: a case in a conversation with a contact on a channel."""

    # The assigned agent.
    assignedTo: Union[UserRef, None]
    # The channel.
    channel: Union[NamedChannel, None]
    # When it was closed; `null` while it is open.
    closedAt: Union[Timestamp, None]
    # The contact.
    contact: TicketContact
    # When it was created.
    createdAt: Timestamp
    # Who opened the ticket.
    creationSource: Source
    # When the first reply since the opening was sent: by a user, an integration or a chatbot.
    firstResponseAt: Union[Timestamp, None]
    # The app of the provider that handles the conversation, if it is not Hotline: the provider may refuse the
    # company's messages meanwhile.
    handledBy: Union[TicketHandler, None]
    # The id.
    id: TicketId
    # When it was last opened, its last message was written, or it was closed.
    lastActivityAt: Timestamp
    # The latest message.
    lastMessage: Union[LastMessage, None]
    # When it was last opened.
    openedAt: Timestamp
    # The queue.
    queue: Union[QueueRef, None]
    # How many times it was reopened.
    reopenCount: int
    # `open` or `closed`.
    status: TicketStatus
    # Number of unread messages from the contact.
    unreadCount: int
    # When it was last updated.
    updatedAt: Timestamp
    # Whether the contact is verified: a webchat visitor's identity was confirmed by the company or by an identity
    # it signed.
    verified: bool
    # Since when the contact has been waiting for an answer; `null`: no one waits.
    waitingSince: Union[Timestamp, None]
    # Note about the wrap-up.
    wrapupNote: Union[str, None]
    # The wrap-up type.
    wrapupType: Union[WrapupTypeRef, None]


class TicketClose(TypedDict):
    """The wrap-up of a ticket that is closed."""

    # Note about the wrap-up.
    wrapupNote: NotRequired[Union[str, None]]
    # The wrap-up type.
    wrapupTypeId: NotRequired[Union[int, None]]


class TicketContact(TypedDict):
    """The contact of a ticket."""

    # The id.
    id: ContactId
    # The contact's name.
    name: str
    # Phone number: digits only, including the country code.
    number: Union[str, None]


TicketEvent = TypedDict(
    "TicketEvent",
    {
        "createdAt": "Timestamp",
        "from": "Union[Dict[str, Any], None]",
        "id": "EventId",
        "integration": "Union[TokenRef, None]",
        "source": "Source",
        "to": "Union[Dict[str, Any], None]",
        "type": "EventType",
        "user": "Union[EventUser, None]",
    },
)
"""A change of a ticket, with its author and the values before and after."""


class TicketEventList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[TicketEvent]
    # Pagination.
    meta: PageMeta


class TicketHandler(TypedDict):
    """Who handles a conversation in place of Hotline."""

    # The app.
    app: MessageApp


class TicketList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Ticket]
    # Pagination.
    meta: PageMeta


class TicketMerge(TypedDict):
    """The ticket that goes."""

    # The ticket that goes.
    fromTicketId: int


class TicketOpen(TypedDict):
    """A new ticket."""

    # The channel, as `GET /channels` lists it.
    channelId: int
    # The contact.
    contactId: int
    # The queue, as `GET /queues` lists it.
    queueId: NotRequired[Union[int, None]]
    # The assigned agent, as `GET /users` lists them.
    userId: NotRequired[Union[int, None]]


class TicketReportRow(TypedDict):
    """Tickets by day, queue, channel or user."""

    # Average time from the opening or last reopening of a ticket to its first response (`firstResponseAt`). Only
    # openings by contacts count, at the time of the response; failed messages, greetings, scheduled messages and
    # campaigns are not responses. `null` if there are none.
    avgFirstResponseSeconds: Union[float, None]
    # Average time from the opening or last reopening of a ticket to its closing, counted at each closing. `null` if
    # there are none.
    avgResolutionSeconds: Union[float, None]
    # Number of closings.
    closed: int
    # The group: a day, or the id of a queue, channel or user; `null` for tickets without one.
    key: Union[ReportKey, None]
    # The day, or the record's name; `null` if there is none.
    label: Union[str, None]
    # Tickets opened.
    opened: int
    # Number of reopenings.
    reopened: int


class TicketReportRowReport(TypedDict):
    """The rows of a report."""

    # The resource.
    data: List[TicketReportRow]


class TicketResponse(TypedDict):
    """The response."""

    # The resource.
    data: Ticket


class TicketTransfer(TypedDict):
    """A ticket's new queue, agent, or both."""

    # The new queue.
    queueId: NotRequired[Union[int, None]]
    # The new agent; `null` unassigns the ticket.
    userId: NotRequired[Union[int, None]]


class TicketWrapup(TypedDict):
    """The wrap-up of a closed ticket."""

    # Note about the wrap-up.
    wrapupNote: NotRequired[Union[str, None]]
    # The wrap-up type.
    wrapupTypeId: int


class TokenRef(TypedDict):
    """A reference to a record, by id and name."""

    # The token's id.
    id: int
    # Name.
    name: str


class User(TypedDict):
    """A user: a person as a member of one company. In another company the same person is another user."""

    # Whether the user is active. Only active agents are assigned tickets.
    active: bool
    # When it was created.
    createdAt: Timestamp
    # E-mail address, unique in the company.
    email: str
    # The id.
    id: UserId
    # The user's name in this company.
    name: str
    # The permission profile.
    profile: Union[ProfileRef, None]
    # The user's queues.
    queues: List[QueueRef]
    # When it was last updated.
    updatedAt: Timestamp


class UserCreate(TypedDict):
    """A new user."""

    # Whether the user is active. Only active agents are assigned tickets.
    active: NotRequired[Union[bool, None]]
    # E-mail address, unique in the company.
    email: str
    # The user's name in this company.
    name: str
    # Password for signing in; at least 12 characters.
    password: NotRequired[Union[str, None]]
    # The permission profile, as `GET /profiles` lists it.
    profileId: NotRequired[Union[int, None]]
    # The user's queues; replaces the current ones.
    queueIds: NotRequired[Union[Sequence[int], None]]


class UserDesk(TypedDict):
    """A user's open tickets."""

    # The id.
    id: UserId
    # Name.
    name: str
    # The user's open tickets.
    open: int


class UserList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[User]
    # Pagination.
    meta: PageMeta


class UserMetrics(TypedDict):
    """Ticket metrics of a user."""

    # Number of tickets assigned to the user.
    count_tickets: int
    # Ids of the user's queues, comma-separated.
    queues: str
    # The user.
    user_id: UserId
    # The user's name.
    user_name: str
    # Name of the user's profile; empty if there is none.
    user_profile: str


class UserMetricsList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[UserMetrics]
    # Pagination.
    meta: PageMeta


class UserRef(TypedDict):
    """A reference to a record, by id and name."""

    # The user's id.
    id: int
    # The user's name in this company.
    name: str


class UserResponse(TypedDict):
    """The response."""

    # The resource.
    data: User


class UserUpdate(TypedDict):
    """Changes to a user."""

    # Whether the user is active. Only active agents are assigned tickets.
    active: NotRequired[bool]
    # E-mail address, unique in the company.
    email: NotRequired[str]
    # The user's name in this company.
    name: NotRequired[str]
    # Password for signing in; at least 12 characters.
    password: NotRequired[Union[str, None]]
    # The permission profile, as `GET /profiles` lists it.
    profileId: NotRequired[Union[int, None]]
    # The user's queues; replaces the current ones.
    queueIds: NotRequired[Sequence[int]]


class Version(TypedDict):
    """Which build this is."""

    # The date of that commit, or `unknown`.
    built: str
    # The commit it was built from, or `unknown`.
    commit: str
    # The version of the release.
    version: str


class VisitorActivity(TypedDict):
    """A visitor's activity."""

    # Whether the visitor has an open socket.
    online: bool
    # Whether the visitor is typing.
    typing: bool


class VisitorActivityResponse(TypedDict):
    """The response."""

    # The resource.
    data: VisitorActivity


class VisitorArrival(TypedDict):
    """Visitor data and origin. An empty object opens an anonymous session."""

    # A JSON Web Token signed by the website's server with the channel's identity secret.
    identity: NotRequired[Union[str, None]]
    # The visitor's current page.
    page: NotRequired[Union[VisitorArrivalPage, None]]
    # UTM parameters of the visit.
    utm: NotRequired[Union[VisitorArrivalUtm, None]]
    # Unverified visitor data. It is stored with the session and never used to find a contact.
    visitor: NotRequired[Union[VisitorArrivalVisitor, None]]


class VisitorIdentity(TypedDict):
    """The visitor's identity, signed by the website."""

    # A JSON Web Token signed by the website's server with the channel's identity secret.
    identity: str


class VisitorMessage(TypedDict):
    """A message, as a visitor sees it."""

    # The agent who wrote it; for messages from the company.
    agent: Union[MessageAgent, None]
    # The text; `null` for messages without one.
    body: Union[str, None]
    # The id chosen by this session's browser; `null` for other messages.
    clientId: Union[str, None]
    # When it was created.
    createdAt: Timestamp
    # `inbound` from the contact, `outbound` from the company, `internal` between agents.
    direction: Direction
    # The id.
    id: MessageId
    # The options to choose from, as they were sent.
    interactive: Union[Dict[str, Any], None]
    # The file.
    media: Union[MediaFile, None]
    # The message it replies to.
    quotedMessageId: Union[MessageId, None]
    # When the recipient read it.
    readAt: Union[Timestamp, None]
    # `sent`, `delivered` or `read`; `received` for the visitor's own messages.
    status: MessageStatus
    # The type.
    type: MessageType


class VisitorMessageList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[VisitorMessage]
    # Pagination.
    meta: PageMeta


class VisitorMessageResponse(TypedDict):
    """The response."""

    # The resource.
    data: VisitorMessage


class VisitorSession(TypedDict):
    """A session, as its visitor sees it."""

    # When it was created.
    createdAt: Timestamp
    # When it ended.
    endedAt: Union[Timestamp, None]
    # The id.
    id: SessionId
    # When the visitor was last online.
    lastSeenAt: Timestamp
    # `active` until it ends.
    status: SessionStatus
    # The session's token, only in the response that opens the session.
    token: NotRequired[str]
    # Whether the website confirmed the visitor's identity by a signature.
    verified: bool


class VisitorSessionResponse(TypedDict):
    """The response."""

    # The resource.
    data: VisitorSession


class WaitingFor(TypedDict):
    """Why a message is waiting."""

    # `channel_disconnected` or `channel_error`.
    code: str
    # A message for people.
    message: str


class Webhook(TypedDict):
    """A webhook: an endpoint that receives a company's events."""

    # Whether the webhook is enabled.
    active: bool
    # When it was created.
    createdAt: Timestamp
    # Description.
    description: Union[str, None]
    # Why the webhook was disabled automatically.
    disabledReason: Union[str, None]
    # The id.
    id: WebhookId
    # The event types to send; empty for all.
    types: List[str]
    # When it was last updated.
    updatedAt: Timestamp
    # The URL to send events to.
    url: str


class WebhookAttempt(TypedDict):
    """An attempt to deliver an event."""

    # When the attempt started.
    at: Timestamp
    # Duration in milliseconds.
    durationMs: int
    # Why the delivery failed.
    error: Union[str, None]
    # The endpoint's HTTP status; `null` if it did not respond.
    status: Union[int, None]


class WebhookCreate(TypedDict):
    """A new webhook: at least `url`."""

    # Whether the webhook is enabled.
    active: NotRequired[Union[bool, None]]
    # Description.
    description: NotRequired[Union[str, None]]
    # The event types to send; empty for all.
    types: NotRequired[Union[Sequence[Literal["ticket.opened", "ticket.assigned", "ticket.transferred", "ticket.closed", "ticket.reopened", "ticket.wrapup_changed", "ticket.read", "message.received", "message.created", "message.sent", "message.delivered", "message.read", "message.failed", "message.updated", "note.added", "session.started", "session.ended", "contact.created", "contact.updated", "contact.deleted", "contact.tagged", "contact.untagged", "card.created", "card.updated", "card.moved", "card.won", "card.lost", "card.reopened", "card.deleted", "schedule.created", "schedule.updated", "schedule.sent", "schedule.failed", "schedule.canceled", "campaign.started", "campaign.paused", "campaign.resumed", "campaign.completed", "campaign.canceled", "channel.connected", "channel.disconnected", "channel.error", "contact.identified", "message.deleted", "message.reaction", "channel.template_changed", "contact.merged", "ticket.merged"]], None]]
    # The URL to send events to.
    url: str


class WebhookDelivery(TypedDict):
    """The delivery of an event to a webhook."""

    # The latest attempts, at most 20.
    attempts: List[WebhookAttempt]
    # When the event happened.
    createdAt: Timestamp
    # The event's id.
    eventId: LoggedEventId
    # The event's id; unique within the webhook.
    id: LoggedEventId
    # When a pending delivery is retried; `null` while an earlier event of the same record is pending.
    nextAttemptAt: Union[Timestamp, None]
    # The delivery's status.
    status: DeliveryStatus
    # The event's type.
    type: EventKind
    # When it was last updated.
    updatedAt: Timestamp


class WebhookDeliveryList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[WebhookDelivery]
    # Pagination.
    meta: PageMeta


class WebhookList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[Webhook]
    # Pagination.
    meta: PageMeta


class WebhookReplay(TypedDict):
    """The events to send again: exactly one of `after`, `deliveryId` and `failedSince`."""

    # An event id: all later events are sent again, up to the current position.
    after: NotRequired[Union[int, None]]
    # A delivery of this webhook.
    deliveryId: NotRequired[Union[int, None]]
    # A time: all deliveries that failed since then are sent again.
    failedSince: NotRequired[Union[Union[str, datetime], None]]


class WebhookReplayed(TypedDict):
    """The events that are sent again."""

    # Number of deliveries; with `after`, the number of events to examine.
    deliveries: int


class WebhookReplayedResponse(TypedDict):
    """The response."""

    # The resource.
    data: WebhookReplayed


class WebhookResponse(TypedDict):
    """The response."""

    # The resource.
    data: Webhook


class WebhookTest(TypedDict):
    """The result of a test."""

    # The first 1,000 characters of the response.
    body: str
    # Whether the delivery succeeded.
    delivered: bool
    # Duration in milliseconds.
    durationMs: int
    # Why the delivery failed.
    error: Union[str, None]
    # The endpoint's HTTP status; `null` if it did not respond.
    status: Union[int, None]


class WebhookTestResponse(TypedDict):
    """The response."""

    # The resource.
    data: WebhookTest


class WebhookUpdate(TypedDict):
    """Changes to a webhook."""

    # Whether the webhook is enabled.
    active: NotRequired[bool]
    # Description.
    description: NotRequired[Union[str, None]]
    # The event types to send; empty for all.
    types: NotRequired[Sequence[Literal["ticket.opened", "ticket.assigned", "ticket.transferred", "ticket.closed", "ticket.reopened", "ticket.wrapup_changed", "ticket.read", "message.received", "message.created", "message.sent", "message.delivered", "message.read", "message.failed", "message.updated", "note.added", "session.started", "session.ended", "contact.created", "contact.updated", "contact.deleted", "contact.tagged", "contact.untagged", "card.created", "card.updated", "card.moved", "card.won", "card.lost", "card.reopened", "card.deleted", "schedule.created", "schedule.updated", "schedule.sent", "schedule.failed", "schedule.canceled", "campaign.started", "campaign.paused", "campaign.resumed", "campaign.completed", "campaign.canceled", "channel.connected", "channel.disconnected", "channel.error", "contact.identified", "message.deleted", "message.reaction", "channel.template_changed", "contact.merged", "ticket.merged"]]]
    # The URL to send events to.
    url: NotRequired[str]


class WebhookWithSecret(TypedDict):
    """A webhook with its secret, which is shown only once."""

    # Whether it is active.
    active: bool
    # When it was created.
    createdAt: Timestamp
    # Description.
    description: Union[str, None]
    # Why the webhook was disabled automatically.
    disabledReason: Union[str, None]
    # The id.
    id: WebhookId
    # The signing secret: `whsec_` and a key in base64. `null` in the response to a retry.
    secret: Union[str, None]
    # The event types to send; empty for all.
    types: List[str]
    # When it was last updated.
    updatedAt: Timestamp
    # The URL to send events to.
    url: str


class WebhookWithSecretResponse(TypedDict):
    """The response."""

    # The resource.
    data: WebhookWithSecret


class WidgetAttachments(TypedDict):
    """Attachments that a visitor may send."""

    # Maximum size of a file in bytes.
    bytesMax: int


class WidgetAvailability(TypedDict):
    """Whether a visitor can expect a reply."""

    # Whether an agent is available: in the last ten minutes, an active user of the channel's queue (without a
    # queue: of the company) has used the panel, or a reply on this channel was sent with an API token.
    now: bool


class WidgetConfig(TypedDict):
    """The widget's configuration."""

    # Attachments that a visitor may send.
    attachments: WidgetAttachments
    # Whether a visitor can expect a reply.
    availability: WidgetAvailability
    # The widget's colour.
    color: str
    # The text shown before the first message.
    greeting: Union[str, None]
    # Whether visitors must have a signed identity.
    identityRequired: bool
    # The side of the page where the widget opens.
    position: Position
    # The fields to ask for before the conversation, in this order; empty for none.
    preChatFields: List[PreChatField]
    # The widget's title.
    title: Union[str, None]


class WidgetConfigResponse(TypedDict):
    """The response."""

    # The resource.
    data: WidgetConfig


class WrapupCategory(TypedDict):
    """A category of wrap-up types."""

    # When it was created.
    createdAt: Timestamp
    # The id.
    id: WrapupCategoryId
    # The category's name.
    name: str
    # When it was last updated.
    updatedAt: Timestamp


class WrapupCategoryCreate(TypedDict):
    """A new wrap-up category."""

    # The category's name.
    name: str


class WrapupCategoryList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[WrapupCategory]
    # Pagination.
    meta: PageMeta


class WrapupCategoryResponse(TypedDict):
    """The response."""

    # The resource.
    data: WrapupCategory


class WrapupCategoryUpdate(TypedDict):
    """Changes to a wrap-up category."""

    # The category's name.
    name: NotRequired[str]


class WrapupReportRow(TypedDict):
    """Closings with a wrap-up type."""

    # The category; `null` if the type has been deleted.
    categoryId: Union[WrapupCategoryId, None]
    # Number of closings with this type; of a ticket that was reopened, with the type it had then.
    count: int
    # Name.
    name: Union[str, None]
    # Share of the closings with a wrap-up type, from 0 to 1, to four decimals.
    share: float
    # The wrap-up type.
    wrapupTypeId: WrapupTypeId


class WrapupReportRowReport(TypedDict):
    """The rows of a report."""

    # The resource.
    data: List[WrapupReportRow]


class WrapupType(TypedDict):
    """A wrap-up type: how a conversation ended."""

    # Whether tickets can be closed with it.
    active: bool
    # The category.
    categoryId: WrapupCategoryId
    # When it was created.
    createdAt: Timestamp
    # The id.
    id: WrapupTypeId
    # The wrap-up type's name.
    name: str
    # The queues where it can be used.
    queues: List[QueueRef]
    # When it was last updated.
    updatedAt: Timestamp


class WrapupTypeCreate(TypedDict):
    """A new wrap-up type."""

    # Whether tickets can be closed with it.
    active: NotRequired[Union[bool, None]]
    # The category.
    categoryId: int
    # The wrap-up type's name.
    name: str
    # The queues it applies to; replaces the current ones.
    queueIds: NotRequired[Union[Sequence[int], None]]


class WrapupTypeList(TypedDict):
    """A page of results."""

    # The resource.
    data: List[WrapupType]
    # Pagination.
    meta: PageMeta


class WrapupTypeRef(TypedDict):
    """A reference to a record, by id and name."""

    # The wrap-up type's id.
    id: int
    # The wrap-up type's name.
    name: str


class WrapupTypeResponse(TypedDict):
    """The response."""

    # The resource.
    data: WrapupType


class WrapupTypeUpdate(TypedDict):
    """Changes to a wrap-up type."""

    # Whether tickets can be closed with it.
    active: NotRequired[bool]
    # The category.
    categoryId: NotRequired[int]
    # The wrap-up type's name.
    name: NotRequired[str]
    # The queues it applies to; replaces the current ones.
    queueIds: NotRequired[Sequence[int]]


class CampaignCanceledEvent(TypedDict):
    """`campaign.canceled`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Campaign
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["campaign.canceled"]


class CampaignCompletedEvent(TypedDict):
    """`campaign.completed`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Campaign
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["campaign.completed"]


class CampaignPausedEvent(TypedDict):
    """`campaign.paused`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Campaign
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["campaign.paused"]


class CampaignResumedEvent(TypedDict):
    """`campaign.resumed`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Campaign
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["campaign.resumed"]


class CampaignStartedEvent(TypedDict):
    """`campaign.started`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Campaign
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["campaign.started"]


class CardCreatedEvent(TypedDict):
    """`card.created`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Card
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["card.created"]


class CardDeletedEvent(TypedDict):
    """`card.deleted`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Card
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["card.deleted"]


class CardLostEvent(TypedDict):
    """`card.lost`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Card
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["card.lost"]


class CardMovedEvent(TypedDict):
    """`card.moved`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Card
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["card.moved"]


class CardReopenedEvent(TypedDict):
    """`card.reopened`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Card
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["card.reopened"]


class CardUpdatedEvent(TypedDict):
    """`card.updated`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Card
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["card.updated"]


class CardWonEvent(TypedDict):
    """`card.won`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Card
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["card.won"]


class ChannelConnectedEvent(TypedDict):
    """`channel.connected`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Channel
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["channel.connected"]


class ChannelDisconnectedEvent(TypedDict):
    """`channel.disconnected`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Channel
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["channel.disconnected"]


class ChannelErrorEvent(TypedDict):
    """`channel.error`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Channel
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["channel.error"]


class ChannelTemplateChangedEvent(TypedDict):
    """`channel.template_changed`"""

    by: EventAuthor
    createdAt: Timestamp
    data: EventTemplate
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["channel.template_changed"]


class ContactCreatedEvent(TypedDict):
    """`contact.created`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Contact
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["contact.created"]


class ContactDeletedEvent(TypedDict):
    """`contact.deleted`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Contact
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["contact.deleted"]


class ContactIdentifiedEvent(TypedDict):
    """`contact.identified`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Contact
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["contact.identified"]


class ContactMergedEvent(TypedDict):
    """`contact.merged`"""

    by: EventAuthor
    createdAt: Timestamp
    data: MergedContact
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["contact.merged"]


class ContactTaggedEvent(TypedDict):
    """`contact.tagged`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Contact
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["contact.tagged"]


class ContactUntaggedEvent(TypedDict):
    """`contact.untagged`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Contact
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["contact.untagged"]


class ContactUpdatedEvent(TypedDict):
    """`contact.updated`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Contact
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["contact.updated"]


class MessageCreatedEvent(TypedDict):
    """`message.created`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[Message, GoneMessage]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["message.created"]


class MessageDeletedEvent(TypedDict):
    """`message.deleted`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[Message, GoneMessage]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["message.deleted"]


class MessageDeliveredEvent(TypedDict):
    """`message.delivered`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[Message, GoneMessage]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["message.delivered"]


class MessageFailedEvent(TypedDict):
    """`message.failed`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[Message, GoneMessage]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["message.failed"]


class MessageReactionEvent(TypedDict):
    """`message.reaction`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[Message, GoneMessage]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["message.reaction"]


class MessageReadEvent(TypedDict):
    """`message.read`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[Message, GoneMessage]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["message.read"]


class MessageReceivedEvent(TypedDict):
    """`message.received`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[EventMessage, GoneMessage]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["message.received"]


class MessageSentEvent(TypedDict):
    """`message.sent`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[Message, GoneMessage]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["message.sent"]


class MessageUpdatedEvent(TypedDict):
    """`message.updated`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[Message, GoneMessage]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["message.updated"]


class NoteAddedEvent(TypedDict):
    """`note.added`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[Message, GoneMessage]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["note.added"]


class ScheduleCanceledEvent(TypedDict):
    """`schedule.canceled`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Schedule
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["schedule.canceled"]


class ScheduleCreatedEvent(TypedDict):
    """`schedule.created`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Schedule
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["schedule.created"]


class ScheduleFailedEvent(TypedDict):
    """`schedule.failed`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Schedule
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["schedule.failed"]


class ScheduleSentEvent(TypedDict):
    """`schedule.sent`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Schedule
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["schedule.sent"]


class ScheduleUpdatedEvent(TypedDict):
    """`schedule.updated`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Schedule
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["schedule.updated"]


class SessionEndedEvent(TypedDict):
    """`session.ended`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[Session, GoneSession]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["session.ended"]


class SessionStartedEvent(TypedDict):
    """`session.started`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Union[Session, GoneSession]
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["session.started"]


class TicketAssignedEvent(TypedDict):
    """`ticket.assigned`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Ticket
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["ticket.assigned"]


class TicketClosedEvent(TypedDict):
    """`ticket.closed`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Ticket
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["ticket.closed"]


class TicketMergedEvent(TypedDict):
    """`ticket.merged`"""

    by: EventAuthor
    createdAt: Timestamp
    data: MergedTicket
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["ticket.merged"]


class TicketOpenedEvent(TypedDict):
    """`ticket.opened`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Ticket
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["ticket.opened"]


class TicketReadEvent(TypedDict):
    """`ticket.read`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Ticket
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["ticket.read"]


class TicketReopenedEvent(TypedDict):
    """`ticket.reopened`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Ticket
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["ticket.reopened"]


class TicketTransferredEvent(TypedDict):
    """`ticket.transferred`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Ticket
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["ticket.transferred"]


class TicketWrapupChangedEvent(TypedDict):
    """`ticket.wrapup_changed`"""

    by: EventAuthor
    createdAt: Timestamp
    data: Ticket
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["ticket.wrapup_changed"]


class WebhookTestEvent(TypedDict):
    """`webhook.test`"""

    by: EventAuthor
    createdAt: Timestamp
    data: WebhookTestEventData
    id: LoggedEventId
    previous: Union[Dict[str, Any], None]
    type: Literal["webhook.test"]


CompanyEvent = Union["CampaignCanceledEvent", "CampaignCompletedEvent", "CampaignPausedEvent", "CampaignResumedEvent", "CampaignStartedEvent", "CardCreatedEvent", "CardDeletedEvent", "CardLostEvent", "CardMovedEvent", "CardReopenedEvent", "CardUpdatedEvent", "CardWonEvent", "ChannelConnectedEvent", "ChannelDisconnectedEvent", "ChannelErrorEvent", "ChannelTemplateChangedEvent", "ContactCreatedEvent", "ContactDeletedEvent", "ContactIdentifiedEvent", "ContactMergedEvent", "ContactTaggedEvent", "ContactUntaggedEvent", "ContactUpdatedEvent", "MessageCreatedEvent", "MessageDeletedEvent", "MessageDeliveredEvent", "MessageFailedEvent", "MessageReactionEvent", "MessageReadEvent", "MessageReceivedEvent", "MessageSentEvent", "MessageUpdatedEvent", "NoteAddedEvent", "ScheduleCanceledEvent", "ScheduleCreatedEvent", "ScheduleFailedEvent", "ScheduleSentEvent", "ScheduleUpdatedEvent", "SessionEndedEvent", "SessionStartedEvent", "TicketAssignedEvent", "TicketClosedEvent", "TicketMergedEvent", "TicketOpenedEvent", "TicketReadEvent", "TicketReopenedEvent", "TicketTransferredEvent", "TicketWrapupChangedEvent", "WebhookTestEvent"]
"""A change of a record: `type` determines the type of `data`."""


ErrorCode = Literal["ERR_API_BAD_REQUEST", "ERR_API_COMPANY_INACTIVE", "ERR_API_CONFLICT", "ERR_API_CONTACT_NOT_FOUND", "ERR_API_CONTACT_NOT_IDENTIFIED", "ERR_API_CONTACT_UNREACHABLE", "ERR_API_FORBIDDEN_ORIGIN", "ERR_API_FORBIDDEN_SCOPE", "ERR_API_IDEMPOTENCY_CONFLICT", "ERR_API_INTERACTIVE_INVALID", "ERR_API_INTERNAL", "ERR_API_LINK_EXPIRED", "ERR_API_MEDIA_EMPTY", "ERR_API_MEDIA_TYPE_MISMATCH", "ERR_API_MEDIA_TYPE_UNKNOWN", "ERR_API_METHOD_NOT_ALLOWED", "ERR_API_NOT_ENABLED", "ERR_API_NOT_FOUND", "ERR_API_PAYLOAD_TOO_LARGE", "ERR_API_PRECONDITION_FAILED", "ERR_API_RANGE_NOT_SATISFIABLE", "ERR_API_RATE_LIMITED", "ERR_API_SECOND_FACTOR", "ERR_API_SIGN_IN", "ERR_API_TICKET_CLOSED", "ERR_API_UNAUTHORIZED", "ERR_API_UNAVAILABLE", "ERR_API_UNSUPPORTED_MEDIA_TYPE", "ERR_API_VALIDATION", "ERR_API_WINDOW_CLOSED"]
"""A stable identifier of an error."""
