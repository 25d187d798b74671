// Generated from openapi.json by `make clients-generate`. Do not edit.

import type { Upload } from "../files.js";

/** The result of adding contacts to a list. */
export interface Added {
  /** Contacts that were added. */
  added: number;
  /** Contacts that were already in the list. */
  alreadyThere: number;
}

/** The response. */
export interface AddedResponse {
  /** The resource. */
  data: Added;
}

/** The typing state. Without a body, an agent is typing. */
export interface AgentTyping {
  /** Whether the agent is typing. */
  typing?: boolean | null;
  /** The user, as `GET /users` lists them. */
  userId?: number | null;
}

/** An exact decimal with at most four decimal places. */
export type Amount = number;

/** An error: `code` for programs, `message` for people. */
export interface ApiError {
  /** The error. */
  error: { code: "ERR_API_BAD_REQUEST" | "ERR_API_COMPANY_INACTIVE" | "ERR_API_CONFLICT" | "ERR_API_CONTACT_NOT_FOUND" | "ERR_API_CONTACT_NOT_IDENTIFIED" | "ERR_API_CONTACT_UNREACHABLE" | "ERR_API_FORBIDDEN_ORIGIN" | "ERR_API_FORBIDDEN_SCOPE" | "ERR_API_IDEMPOTENCY_CONFLICT" | "ERR_API_INTERACTIVE_INVALID" | "ERR_API_INTERNAL" | "ERR_API_LINK_EXPIRED" | "ERR_API_MEDIA_EMPTY" | "ERR_API_MEDIA_TYPE_MISMATCH" | "ERR_API_MEDIA_TYPE_UNKNOWN" | "ERR_API_METHOD_NOT_ALLOWED" | "ERR_API_NOT_ENABLED" | "ERR_API_NOT_FOUND" | "ERR_API_PAYLOAD_TOO_LARGE" | "ERR_API_PRECONDITION_FAILED" | "ERR_API_RANGE_NOT_SATISFIABLE" | "ERR_API_RATE_LIMITED" | "ERR_API_SECOND_FACTOR" | "ERR_API_SIGN_IN" | "ERR_API_TICKET_CLOSED" | "ERR_API_UNAUTHORIZED" | "ERR_API_UNAVAILABLE" | "ERR_API_UNSUPPORTED_MEDIA_TYPE" | "ERR_API_VALIDATION" | "ERR_API_WINDOW_CLOSED"; details?: unknown; message: string; };
}

/** A validation error that lists every missing or invalid field. */
export interface ApiValidationError {
  /** The error. */
  error: { code: "ERR_API_VALIDATION"; details?: FieldError[]; message: string; };
}

/** The kind of record a custom field belongs to. */
export type Application = "contact" | "card";

/** A board: stages, and the cards that move between them. */
export interface Board {
  /** Whether the board is hidden from the list. */
  archived: boolean;
  /** When it was archived; `null` if it is not. */
  archivedAt: Timestamp | null;
  /** When it was created. */
  createdAt: Timestamp;
  /** The user who created it; `null` if a token did, or if the user has left the company. */
  createdByUserId: UserId | null;
  /** Description. */
  description: string | null;
  /** The id. */
  id: BoardId;
  /** Monthly sales goal in the company's currency; `null` for none. */
  monthlyGoal: Amount | null;
  /** The board's name. */
  name: string;
  /** The queues whose users see the board. */
  queues: QueueRef[];
  /** When it was last updated. */
  updatedAt: Timestamp;
  /** Yearly sales goal in the company's currency; `null` for none. */
  yearlyGoal: Amount | null;
}

/** A new board. */
export interface BoardCreate {
  /** The initial stages, from left to right. Default: three stages. */
  crmBoardLists?: ({ doneList?: boolean | null; label: string; position?: number | null; })[] | null;
  /** The queues whose users see the board; replaces the current ones. */
  crmBoardQueues?: ({ queueId: number; })[] | null;
  /** Description. */
  description?: string | null;
  /** Monthly sales goal in the company's currency; `null` for none. */
  monthlyGoal?: number | null;
  /** The board's name. */
  name: string;
  /** Yearly sales goal in the company's currency; `null` for none. */
  yearlyGoal?: number | null;
}

/** A board's open cards and sales. */
export interface BoardFunnel {
  /** The id. */
  id: BoardId;
  /** Monthly sales goal; `null` for none. */
  monthlyGoal: Amount | null;
  /** Name. */
  name: string;
  /** Open cards: neither won nor lost. */
  openCards: number;
  /** Total value of the open cards. */
  openValue: Amount;
  /** The value won since the start of the month in the company's time zone. */
  wonThisMonth: Amount;
}

/** The id of a board. */
export type BoardId = number;

/** The sales indicators of a board. */
export interface BoardIndicators {
  /** The average value of a won card, to four decimals; `null` if there are none. */
  averageValue: Amount | null;
  /** The board. */
  boardId: BoardId;
  /** Won cards divided by won and lost cards, to four decimals; `null` if there are none. */
  conversionRate: Amount | null;
  /** The stages, from left to right. */
  lists: StageSum[];
  /** Cards lost from `from` to `to`. */
  lost: CardSum;
  /** The current month, in the company's time zone. */
  monthly: GoalProgress;
  /** Open cards. */
  open: CardSum;
  /** Cards won from `from` to `to`. */
  won: CardSum;
  /** The current year, in the company's time zone. */
  yearly: GoalProgress;
}

/** The response. */
export interface BoardIndicatorsResponse {
  /** The resource. */
  data: BoardIndicators;
}

/** A page of results. */
export interface BoardList {
  /** The resource. */
  data: Board[];
  /** Pagination. */
  meta: PageMeta;
}

/** The id of a stage. */
export type BoardListId = number;

/** A reference to a record, by id and name. */
export interface BoardListRef {
  /** The id of a board list. */
  id: number;
  /** Name. */
  name: string;
}

/** The response. */
export interface BoardResponse {
  /** The resource. */
  data: Board;
}

/** Changes to a board. */
export interface BoardUpdate {
  /** Whether the board is hidden from the list. */
  archived?: boolean;
  /** The queues whose users see the board; replaces the current ones. */
  crmBoardQueues?: ({ queueId: number; })[];
  /** Description. */
  description?: string | null;
  /** Monthly sales goal in the company's currency; `null` for none. */
  monthlyGoal?: number | null;
  /** The board's name. */
  name?: string;
  /** Yearly sales goal in the company's currency; `null` for none. */
  yearlyGoal?: number | null;
}

/** A board with its stages and cards. */
export interface BoardWithStages {
  /** Whether it is hidden from the list of boards; it can still be used. */
  archived: boolean;
  /** When it was archived; `null` if it is not. */
  archivedAt: Timestamp | null;
  /** When it was created. */
  createdAt: Timestamp;
  /** The user who created it; `null` if a token did, or if the user has left the company. */
  createdByUserId: UserId | null;
  /** Description. */
  description: string | null;
  /** The id. */
  id: BoardId;
  /** The stages, from left to right. */
  lists: StageWithCards[];
  /** Monthly sales goal in the company's currency; `null` for none. */
  monthlyGoal: Amount | null;
  /** Name. */
  name: string;
  /** The queues whose users see the board. */
  queues: QueueRef[];
  /** When it was last updated. */
  updatedAt: Timestamp;
  /** Yearly sales goal; `null` for none. */
  yearlyGoal: Amount | null;
}

/** The response. */
export interface BoardWithStagesResponse {
  /** The resource. */
  data: BoardWithStages;
}

/** A line of business. */
export interface Business {
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: BusinessId;
  /** Name, unique in the company. */
  name: string;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new business. */
export interface BusinessCreate {
  /** Name, unique in the company. */
  name: string;
}

/** The id of a business. */
export type BusinessId = number;

/** A page of results. */
export interface BusinessList {
  /** The resource. */
  data: Business[];
  /** Pagination. */
  meta: PageMeta;
}

/** A reference to a record, by id and name. */
export interface BusinessRef {
  /** The id of a business. */
  id: number;
  /** Name, unique in the company. */
  name: string;
}

/** The response. */
export interface BusinessResponse {
  /** The resource. */
  data: Business;
}

/** Changes to a business. */
export interface BusinessUpdate {
  /** Name, unique in the company. */
  name?: string;
}

/** Who caused an event: a user, an integration by its token, a bot, the contact, or Hotline itself. */
export type ByKind = "user" | "integration" | "bot" | "contact" | "system";

/** A campaign: a message to every contact of a list. */
export interface Campaign {
  /** The channel, as `GET /channels` lists it. */
  channelId: ChannelId;
  /** When its last recipient was completed. */
  completedAt: Timestamp | null;
  /** The contact list. */
  contactListId: ContactListId;
  /** Number of recipients by status. */
  counts: CampaignCounts;
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: CampaignId;
  /** Whether tickets opened by the campaign are closed immediately. */
  keepClosed: boolean;
  /** The text as written; variables are filled in for each contact. */
  message: string | null;
  /** Name. */
  name: string;
  /** Why it is paused, unless a user has paused it. */
  pausedReason: PausedReason | null;
  /** Messages per minute, evenly spread. */
  ratePerMinute: number;
  /** When it starts automatically, unless it is started earlier. */
  scheduledAt: Timestamp;
  /** The status. */
  status: CampaignStatus;
  /** The template, if the campaign has no text. */
  template: { [key: string]: unknown } | null;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** Number of recipients of a campaign by status. */
export interface CampaignCounts {
  /** The message has reached the contact. */
  delivered: number;
  /** The message could not be delivered; the recipient's `error` says why. */
  failed: number;
  /** The message is not created yet, or the provider has not accepted it yet. */
  pending: number;
  /** The contact has read the message. */
  read: number;
  /** The provider has accepted the message. */
  sent: number;
  /** No message was sent; the recipient's `error` says why. */
  skipped: number;
  /**
   * It is unknown whether the message has left, because the provider's answer was lost. It is not sent again; a
   * status settles it, or it fails after 24 hours.
   */
  unknown: number;
}

/** A new campaign: exactly one of `message` and `template`. */
export interface CampaignCreate {
  /** The channel, as `GET /channels` lists it. */
  channelId: number;
  /** The contact list, as it is when the campaign starts. */
  contactListId: number;
  /**
   * Whether tickets opened by the campaign are closed immediately, so that they do not wait for an agent. A
   * reply opens a new ticket.
   */
  keepClosed?: boolean | null;
  /** At most 65,536 bytes */
  message?: string | null;
  /** Name. */
  name: string;
  /** Maximum messages per minute, evenly spread. */
  ratePerMinute?: number | null;
  /** A time in the future */
  scheduledAt: string | Date;
  /** An approved template: its name with `parameters`, or complete `components`; instead of `message`. */
  template?: { components?: ({ [key: string]: unknown })[] | null; language?: string | { [key: string]: unknown } | null; name: string; parameters?: { body?: string[] | null; buttons?: string[] | null; header?: string[] | null; } | null; } | null;
}

/** The id of a campaign. */
export type CampaignId = number;

/** A page of results. */
export interface CampaignList {
  /** The resource. */
  data: Campaign[];
  /** Pagination. */
  meta: PageMeta;
}

/** A recipient of a campaign. */
export interface CampaignRecipient {
  /** The contact; `null` if it has been deleted. */
  contact: RecipientContact | null;
  /** Why the message failed or the contact was skipped. */
  error: RecipientFailure | null;
  /** The message, even before the provider has accepted it. */
  messageId: MessageId | null;
  /** The status. */
  status: RecipientStatus;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A page of results. */
export interface CampaignRecipientList {
  /** The resource. */
  data: CampaignRecipient[];
  /** Pagination. */
  meta: PageMeta;
}

/** The response. */
export interface CampaignResponse {
  /** The resource. */
  data: Campaign;
}

/** The status of a campaign. */
export type CampaignStatus = "scheduled" | "processing" | "paused" | "completed" | "canceled";

/** Changes to a campaign. */
export interface CampaignUpdate {
  /** The channel, as `GET /channels` lists it. */
  channelId?: number;
  /** The contact list, as it is when the campaign starts. */
  contactListId?: number;
  /**
   * Whether tickets opened by the campaign are closed immediately, so that they do not wait for an agent. A
   * reply opens a new ticket.
   */
  keepClosed?: boolean;
  /** At most 65,536 bytes */
  message?: string | null;
  /** Name. */
  name?: string;
  /** Maximum messages per minute, evenly spread. */
  ratePerMinute?: number;
  /** A time in the future */
  scheduledAt?: string | Date;
  /** An approved template: its name with `parameters`, or complete `components`; instead of `message`. */
  template?: { components?: ({ [key: string]: unknown })[] | null; language?: string | { [key: string]: unknown } | null; name: string; parameters?: { body?: string[] | null; buttons?: string[] | null; header?: string[] | null; } | null; } | null;
}

/** A possible sale, in a stage of a board. */
export interface Card {
  /** The responsible user. */
  assignedTo: UserRef | null;
  /** The board; it never changes. */
  boardId: BoardId;
  /** The line of business. */
  business: BusinessRef | null;
  /** The contacts. */
  contacts: Contact[];
  /** When it was created. */
  createdAt: Timestamp;
  /** Who created the card. */
  creationSource: CardSource;
  /** Values of custom fields. */
  customFields: CustomFieldValue[];
  /** Description. */
  description: string | null;
  /** Due date. */
  due: Timestamp | null;
  /** The id. */
  id: CardId;
  /** The stage. */
  list: BoardListRef | null;
  /** Whether the card is lost. */
  lost: boolean;
  /** When it was lost. */
  lostDate: Timestamp | null;
  /** The card's name. */
  name: string;
  /** The origin. */
  origin: CardOriginRef | null;
  /** The products; replaces the current ones. */
  products: CardProduct[];
  /** The sum of its products' `totalPrice`. */
  productsTotal: Amount;
  /** The status, as defined by the company. */
  status: CardStatusRef | null;
  /** Why it was won or lost. */
  statusReason: string | null;
  /** The ticket the card was created from. */
  ticketId: TicketId | null;
  /** When it was last updated. */
  updatedAt: Timestamp;
  /** Whether the card is won. */
  won: boolean;
  /** When it was won. */
  wonDate: Timestamp | null;
}

/** A new card: at least `boardId` and `name`. */
export interface CardCreate {
  /** The responsible user, as `GET /users` lists them. */
  assignedToUserId?: number | null;
  /** The board; it never changes. */
  boardId: number;
  /** The line of business. */
  businessId?: number | null;
  /** The contacts; replaces the current ones. */
  contactIds?: number[] | null;
  /** The stage. Default: the board's first. */
  crmBoardListId?: number | null;
  /** Values of custom fields. */
  customFields?: ({ key: string; value?: string | null; })[] | null;
  /** Description. */
  description?: string | null;
  /** Due date. */
  due?: string | Date | null;
  /** The card's name. */
  name: string;
  /** The origin. */
  originId?: number | null;
  /** The products; replaces the current ones. */
  products?: ({ name?: string | null; productId?: number | null; quantity?: number | null; sku?: string | null; unitPrice?: number | null; })[] | null;
  /** The status, as defined by the company. */
  statusId?: number | null;
  /** The ticket the card was created from. */
  ticketId?: number | null;
}

/** The id of a card. */
export type CardId = number;

/** A page of results. */
export interface CardList {
  /** The resource. */
  data: Card[];
  /** Pagination. */
  meta: PageMeta;
}

/** The reason for losing a card. */
export interface CardLose {
  /** Why the card is lost. */
  statusReason: string;
}

/** A card's new stage and position. */
export interface CardMove {
  /** The new stage, on the same board. */
  crmBoardListId: number;
  /** Number of cards above it in the stage, up to 1,000,000. Default, or beyond the end: the bottom. */
  position?: number | null;
}

/** An origin of cards. */
export interface CardOrigin {
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: CardOriginId;
  /** Name, unique in the company. */
  name: string;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new card origin. */
export interface CardOriginCreate {
  /** Name, unique in the company. */
  name: string;
}

/** The id of a card origin. */
export type CardOriginId = number;

/** A page of results. */
export interface CardOriginList {
  /** The resource. */
  data: CardOrigin[];
  /** Pagination. */
  meta: PageMeta;
}

/** A reference to a record, by id and name. */
export interface CardOriginRef {
  /** The id of a card origin. */
  id: number;
  /** Name, unique in the company. */
  name: string;
}

/** The response. */
export interface CardOriginResponse {
  /** The resource. */
  data: CardOrigin;
}

/** Changes to a card origin. */
export interface CardOriginUpdate {
  /** Name, unique in the company. */
  name?: string;
}

/** A line of a card: a product, its quantity and its price. */
export interface CardProduct {
  /** The id. */
  id: CardProductId;
  /** Name. Default: the product's name. */
  name: string;
  /** A product of the catalogue. */
  productId: ProductId | null;
  /** Quantity. */
  quantity: Amount;
  /** Stock keeping unit. */
  sku: string | null;
  /** `quantity` x `unitPrice`, rounded half away from zero to four decimals. */
  totalPrice: Amount;
  /** Price per unit. */
  unitPrice: Amount;
}

/** A product to add to a card: `productId`, or `name` and `unitPrice`. */
export interface CardProductCreate {
  /** Name. Default: the product's name. */
  name?: string | null;
  /** A product of the catalogue. */
  productId?: number | null;
  /** Quantity. */
  quantity?: number | null;
  /** Stock keeping unit. */
  sku?: string | null;
  /** Price per unit. */
  unitPrice?: number | null;
}

/** The id of a product on a card. */
export type CardProductId = number;

/** The response. */
export interface CardProductResponse {
  /** The resource. */
  data: CardProduct;
}

/** Changes to a product on a card. */
export interface CardProductUpdate {
  /** Name. Default: the product's name. */
  name?: string;
  /** A product of the catalogue. */
  productId?: number | null;
  /** Quantity. */
  quantity?: number;
  /** Stock keeping unit. */
  sku?: string | null;
  /** Price per unit. */
  unitPrice?: number;
}

/** The response. */
export interface CardResponse {
  /** The resource. */
  data: Card;
}

/** Who created a card: the API, a user in the panel, a chatbot, or an automation. */
export type CardSource = "api" | "user" | "bot" | "automation";

/** A status of cards, defined by the company. */
export interface CardStatus {
  /** A colour as `#rrggbb`; `null` for none. */
  color: string | null;
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: CardStatusId;
  /** Name, unique in the company. */
  name: string;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new card status. */
export interface CardStatusCreate {
  /** A colour as `#rrggbb`; `null` for none. */
  color?: string | null;
  /** Name, unique in the company. */
  name: string;
}

/** The id of a card status. */
export type CardStatusId = number;

/** A page of results. */
export interface CardStatusList {
  /** The resource. */
  data: CardStatus[];
  /** Pagination. */
  meta: PageMeta;
}

/** A reference to a card's status, by id, name and colour. */
export interface CardStatusRef {
  /** A colour as `#rrggbb`; `null` for none. */
  color: string | null;
  /** The id. */
  id: CardStatusId;
  /** The status's name. */
  name: string;
}

/** The response. */
export interface CardStatusResponse {
  /** The resource. */
  data: CardStatus;
}

/** Changes to a card status. */
export interface CardStatusUpdate {
  /** A colour as `#rrggbb`; `null` for none. */
  color?: string | null;
  /** Name, unique in the company. */
  name?: string;
}

/** Number of cards, and the total of their products. */
export interface CardSum {
  /** Number of cards. */
  cards: number;
  /** The sum of their `productsTotal`. */
  value: Amount;
}

/** Changes to a card; omitted fields stay the same. */
export interface CardUpdate {
  /** The responsible user, as `GET /users` lists them. */
  assignedToUserId?: number | null;
  /** The board; it never changes. */
  boardId?: number;
  /** The line of business. */
  businessId?: number | null;
  /** The contacts; replaces the current ones. */
  contactIds?: number[];
  /** The stage. Default: the board's first. */
  crmBoardListId?: number;
  /** Values of custom fields. */
  customFields?: ({ key: string; value?: string | null; })[];
  /** Description. */
  description?: string | null;
  /** Due date. */
  due?: string | Date | null;
  /** The card's name. */
  name?: string;
  /** The origin. */
  originId?: number | null;
  /** The products; replaces the current ones. */
  products?: ({ name?: string | null; productId?: number | null; quantity?: number | null; sku?: string | null; unitPrice?: number | null; })[];
  /** The status, as defined by the company. */
  statusId?: number | null;
  /** The ticket the card was created from. */
  ticketId?: number | null;
}

/** The reason for winning a card. The body is optional. */
export interface CardWin {
  /** Why the card is won. */
  statusReason?: string | null;
}

/** What a provider has changed of a template. */
export interface ChangedTemplate {
  /** The new category. */
  category: string | null;
  /** The language, in the provider's format. */
  language: string | null;
  /** The name. */
  name: string;
  /** The new quality, as the provider names it. */
  quality: string | null;
  /** The provider's reason. */
  reason: string | null;
  /** The new state, as the provider names it; `null` if something else has changed. */
  status: string | null;
}

/** A channel: a phone number, a social account or a webchat. */
export interface Channel {
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: ChannelId;
  /** The last error. */
  lastError: string | null;
  /** How many conversations the number may begin in a day, as its provider names that limit. */
  messagingLimit: string | null;
  /** The channel's name. */
  name: string;
  /** The number of a phone channel, in digits. */
  number: string | null;
  /** The quality of the number's messages, as its provider last reported it. */
  quality: ChannelQuality | null;
  /** The queue of new tickets. */
  queue: QueueRef | null;
  /** Whether the channel delivers messages; see `lastError` for `error`. */
  status: ChannelStatus;
  /** `whatsapp` is a phone channel; `messenger` and `instagram` are social channels. */
  type: ChannelType;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** The id of a channel. */
export type ChannelId = number;

/** A page of results. */
export interface ChannelList {
  /** The resource. */
  data: Channel[];
  /** Pagination. */
  meta: PageMeta;
}

/** The quality of a phone number's messages, as its recipients rate them at the provider. */
export type ChannelQuality = "normal" | "low";

/** The response. */
export interface ChannelResponse {
  /** The resource. */
  data: Channel;
}

/** Whether a channel delivers messages. */
export type ChannelStatus = "connected" | "disconnected" | "error";

/** The type of a channel. `whatsapp` is a phone channel; `messenger` and `instagram` are social channels. */
export type ChannelType = "whatsapp" | "messenger" | "instagram" | "webchat";

/** The option that the contact chose. */
export interface ChosenOption {
  /** The second line of a list row. */
  description?: string;
  /** The option's id as it was sent, or the payload if the provider only has payloads. */
  id: string | null;
  /**
   * The payload, if the provider has one: for quick replies and postbacks of social channels, and for template
   * buttons.
   */
  payload: string | null;
  /** The displayed text; also the message's `body`. */
  title: string | null;
}

/** Unverified data about a visitor. */
export interface Claimed {
  /** E-mail address. */
  email: string | null;
  /** The company's own id of the visitor. */
  externalId: string | null;
  /** Name. */
  name: string | null;
  /** Phone number: digits only, including the country code. */
  number: string | null;
}

/** Events, oldest first. */
export interface CompanyEventList {
  /** The resource. */
  data: CompanyEvent[];
  /** Pagination. */
  meta: EventMeta;
}

/** A contact: a person or group the company talks to. */
export interface Contact {
  /** The company's own code for the contact. */
  code: string | null;
  /** Tax number: 11 digits for a person, 14 for a company. */
  cpfCnpj: string | null;
  /** When it was created. */
  createdAt: Timestamp;
  /** Click id of a click-to-chat advertisement. */
  ctwaClid: string | null;
  /** Values of custom fields. */
  customFields: CustomFieldValue[];
  /** E-mail address. */
  email: string | null;
  /** Click id of an advertisement. */
  fbclid: string | null;
  /** Click id of an advertisement. */
  gclid: string | null;
  /** The advertisement's headline. */
  headline: string | null;
  /** The id. */
  id: ContactId;
  /**
   * By what the contact is or was known: its number, and the ids that providers have of it. Former ones still
   * find it.
   */
  identities: ContactIdentity[];
  /** Whether the contact is a group rather than a person. */
  isGroup: boolean;
  /** The channel of the latest message. Changes to it do not change `updatedAt`. */
  lastChannel: LastChannel | null;
  /** The provider's id for a contact whose number it hides. */
  lid: string | null;
  /** Whether the contact is excluded from campaigns. */
  marketingOptOut: boolean;
  /** Type of the advertisement's media. */
  mediaType: string | null;
  /** URL of the advertisement's picture or video. */
  mediaUrl: string | null;
  /** Other contacts that are the same person, as a provider says. They are never merged by themselves. */
  mergeSuggestions: MergeSuggestion[];
  /** Name. */
  name: string;
  /** Phone number: digits only, including the country code. */
  number: string | null;
  /** Country code derived from the number. */
  numberCountry: string | null;
  /** How the contact was acquired. */
  origin: string | null;
  /** URL of the contact's picture. */
  profilePicUrl: string | null;
  /** User name on a social channel. */
  socialUsername: string | null;
  /** The advertisement's id. */
  sourceId: string | null;
  /** URL of the page or advertisement. */
  sourceUrl: string | null;
  /** The contact's tags. */
  tags: ContactTag[];
  /** When it was last updated. */
  updatedAt: Timestamp;
  /** UTM campaign. */
  utmCampaign: string | null;
  /** UTM id. */
  utmId: string | null;
  /** UTM medium. */
  utmMedium: string | null;
  /** UTM source. */
  utmSource: string | null;
  /** Whether a webchat visitor's identity was confirmed by the company or by an identity it signed. */
  verified: boolean;
}

/** A new contact: `name`, or at least `number`. */
export interface ContactCreate {
  /** The company's own code for the contact. */
  code?: string | null;
  /** 11 digits for a person or 14 for a company, with valid check digits; `. - /` are removed */
  cpfCnpj?: string | null;
  /** Click id of a click-to-chat advertisement. */
  ctwaClid?: string | null;
  /** Values of custom fields. */
  customFields?: ({ key: string; value?: string | null; })[] | null;
  /** E-mail address. */
  email?: string | null;
  /** Click id of an advertisement. */
  fbclid?: string | null;
  /** Click id of an advertisement. */
  gclid?: string | null;
  /** The advertisement's headline. */
  headline?: string | null;
  /** Whether the contact is a group rather than a person. */
  isGroup?: boolean | null;
  /** The provider's id for a contact whose number it hides. */
  lid?: string | null;
  /**
   * Whether the contact is excluded from campaigns. Set when the contact sends one of the company's stop words
   * (`STOP`, `SAIR`, …), ignoring punctuation and emoji. Write `false` to opt the contact in again.
   */
  marketingOptOut?: boolean | null;
  /** Type of the advertisement's media. */
  mediaType?: string | null;
  /** URL of the advertisement's picture or video. */
  mediaUrl?: string | null;
  /** Name. */
  name?: string | null;
  /** 8 to 15 digits; `+ ( ) - .` and spaces are removed */
  number?: string | null;
  /** How the contact was acquired. */
  origin?: string | null;
  /** `https` or `http` */
  profilePicUrl?: string | null;
  /** User name on a social channel. */
  socialUsername?: string | null;
  /** The advertisement's id. */
  sourceId?: string | null;
  /** URL of the page or advertisement. */
  sourceUrl?: string | null;
  /** The tags; replaces the current ones. */
  tagIds?: number[] | null;
  /** UTM campaign. */
  utmCampaign?: string | null;
  /** UTM id. */
  utmId?: string | null;
  /** UTM medium. */
  utmMedium?: string | null;
  /** UTM source. */
  utmSource?: string | null;
}

/** The id of a contact. */
export type ContactId = number;

/** A number or a provider's id by which a contact is or was identified. */
export interface ContactIdentity {
  /** `null` for a number, which all phone channels share. */
  channelType: ChannelType | null;
  /** The kind of the identity. */
  kind: IdentityKind;
  /** The id of the channel whose provider gave the id; `null` for a number. */
  scope: string | null;
  /** When it was first seen; `null` if that was not recorded. */
  since: Timestamp | null;
  /** When another one replaced it; it still finds the contact. `null` while it is in use. */
  until: Timestamp | null;
  /** The number in digits, or the provider's id. */
  value: string;
}

/** Contacts to create or update. */
export interface ContactImport {
  /** The rows: each has the fields of a contact. */
  contacts: ({ code?: string | null; cpfCnpj?: string | null; ctwaClid?: string | null; customFields?: ({ key: string; value?: string | null; })[] | null; email?: string | null; fbclid?: string | null; gclid?: string | null; headline?: string | null; isGroup?: boolean | null; lid?: string | null; marketingOptOut?: boolean | null; mediaType?: string | null; mediaUrl?: string | null; name?: string | null; number?: string | null; origin?: string | null; profilePicUrl?: string | null; socialUsername?: string | null; sourceId?: string | null; sourceUrl?: string | null; tagIds?: number[] | null; utmCampaign?: string | null; utmId?: string | null; utmMedium?: string | null; utmSource?: string | null; })[];
  /** How to handle a row whose contact exists, matched by number, then e-mail, then code */
  onConflict?: "update" | "skip" | null;
}

/** A page of results. */
export interface ContactList {
  /** The resource. */
  data: Contact[];
  /** Pagination. */
  meta: PageMeta;
}

/** Contacts to add to a list: `contactIds`, `tagId`, or both. */
export interface ContactListAddition {
  /** Ids of contacts to add. */
  contactIds?: number[] | null;
  /** A tag: all its contacts are added. */
  tagId?: number | null;
}

/** The id of a contact list. */
export type ContactListId = number;

/** The contact that goes. */
export interface ContactMerge {
  /** The contact that goes. */
  fromContactId: number;
}

/** A reference to a record, by id and name. */
export interface ContactRef {
  /** The id of a contact. */
  id: number;
  /** Name. */
  name: string;
}

/** The response. */
export interface ContactResponse {
  /** The resource. */
  data: Contact;
}

/** A tag on a contact. */
export interface ContactTag {
  /** A colour as `#rrggbb`. */
  color: string;
  /** The id. */
  id: TagId;
  /** The tag's name. */
  name: string;
}

/** Changes to a contact; omitted fields stay the same. */
export interface ContactUpdate {
  /** The company's own code for the contact. */
  code?: string | null;
  /** 11 digits for a person or 14 for a company, with valid check digits; `. - /` are removed */
  cpfCnpj?: string | null;
  /** Click id of a click-to-chat advertisement. */
  ctwaClid?: string | null;
  /** Values of custom fields. */
  customFields?: ({ key: string; value?: string | null; })[];
  /** E-mail address. */
  email?: string | null;
  /** Click id of an advertisement. */
  fbclid?: string | null;
  /** Click id of an advertisement. */
  gclid?: string | null;
  /** The advertisement's headline. */
  headline?: string | null;
  /** Whether the contact is a group rather than a person. */
  isGroup?: boolean;
  /** The provider's id for a contact whose number it hides. */
  lid?: string | null;
  /**
   * Whether the contact is excluded from campaigns. Set when the contact sends one of the company's stop words
   * (`STOP`, `SAIR`, …), ignoring punctuation and emoji. Write `false` to opt the contact in again.
   */
  marketingOptOut?: boolean;
  /** Type of the advertisement's media. */
  mediaType?: string | null;
  /** URL of the advertisement's picture or video. */
  mediaUrl?: string | null;
  /** Name. */
  name?: string;
  /** 8 to 15 digits; `+ ( ) - .` and spaces are removed */
  number?: string | null;
  /** How the contact was acquired. */
  origin?: string | null;
  /** `https` or `http` */
  profilePicUrl?: string | null;
  /** User name on a social channel. */
  socialUsername?: string | null;
  /** The advertisement's id. */
  sourceId?: string | null;
  /** URL of the page or advertisement. */
  sourceUrl?: string | null;
  /** The tags; replaces the current ones. */
  tagIds?: number[];
  /** UTM campaign. */
  utmCampaign?: string | null;
  /** UTM id. */
  utmId?: string | null;
  /** UTM medium. */
  utmMedium?: string | null;
  /** UTM source. */
  utmSource?: string | null;
}

/** The kind of a message's additional content. If a message has several, the first of these. */
export type ContentKind = "reply" | "form" | "order" | "location" | "contacts" | "story" | "product" | "referral" | "forwarded";

/** A company's own field of contacts or cards. */
export interface CustomField {
  /** The kind of record the field belongs to. */
  application: Application;
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: CustomFieldId;
  /** The field's key in values. Derived from the first name; never changes. */
  key: string;
  /** The displayed name. */
  name: string;
  /** The options of `select` and `multiselect`. An option in use cannot be removed. */
  options: string[];
  /**
   * Position among the fields of its application, in ascending order; ties are ordered by id. The first field
   * is 1 by default.
   */
  position: number;
  /** Whether forms require it. The API does not. */
  required: boolean;
  /** The type of its values. */
  type: CustomFieldType;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new custom field. */
export interface CustomFieldCreate {
  /** The kind of record the field belongs to. */
  application: "contact" | "card";
  /** The displayed name. */
  name: string;
  /** Required for `select` and `multiselect`; at least one, without duplicates */
  options?: string[] | null;
  /**
   * Position among the fields of its application, in ascending order; ties are ordered by id. The first field
   * is 1 by default.
   */
  position?: number | null;
  /** Whether forms require it. The API does not. */
  required?: boolean | null;
  /** The type of its values. */
  type: "text" | "textarea" | "number" | "boolean" | "date" | "datetime" | "email" | "url" | "phone" | "select" | "multiselect";
}

/** The id of a custom field. */
export type CustomFieldId = number;

/** A page of results. */
export interface CustomFieldList {
  /** The resource. */
  data: CustomField[];
  /** Pagination. */
  meta: PageMeta;
}

/** The order of an application's fields: all of them, each once. */
export interface CustomFieldOrder {
  /** The application whose fields are ordered. */
  application: "contact" | "card";
  /** All ids, each once */
  orderedIds: number[];
}

/** The response. */
export interface CustomFieldResponse {
  /** The resource. */
  data: CustomField;
}

/** The type of a custom field's values. */
export type CustomFieldType = "text" | "textarea" | "number" | "boolean" | "date" | "datetime" | "email" | "url" | "phone" | "select" | "multiselect";

/** Changes to a custom field. */
export interface CustomFieldUpdate {
  /** The kind of record the field belongs to. */
  application?: "contact" | "card";
  /** The field's key in values. Derived from the first name; never changes. */
  key?: string;
  /** The displayed name. */
  name?: string;
  /** Required for `select` and `multiselect`; at least one, without duplicates */
  options?: string[];
  /**
   * Position among the fields of its application, in ascending order; ties are ordered by id. The first field
   * is 1 by default.
   */
  position?: number;
  /** Whether forms require it. The API does not. */
  required?: boolean;
  /** The type of its values. */
  type?: "text" | "textarea" | "number" | "boolean" | "date" | "datetime" | "email" | "url" | "phone" | "select" | "multiselect";
}

/** The value of a custom field. */
export interface CustomFieldValue {
  /** The custom field. */
  customFieldId: number;
  /** The field's key. Use it to write values, since the name may change. */
  key: string | null;
  /** The displayed name. */
  name: string | null;
  /** The type of the field's values. */
  type: string | null;
  /** The value as text, in the format of the type. */
  value: string;
}

/** The status of a delivery. */
export type DeliveryStatus = "pending" | "delivered" | "failed";

/** The direction of a message. */
export type Direction = "inbound" | "outbound" | "internal";

/**
 * How a queue's new tickets are assigned to its active users: not automatically, in turn, or to the one with
 * the fewest open tickets.
 */
export type Distribution = "manual" | "round_robin" | "least_busy";

/** Who caused an event; `id` and `name` are `null` for Hotline itself. */
export interface EventAuthor {
  /** The id. */
  id: number | null;
  /** Name. */
  name: string | null;
  /** The type. */
  type: ByKind;
}

/** The id of a ticket event. */
export type EventId = number;

/** The type of an event. */
export type EventKind = "ticket.opened" | "ticket.assigned" | "ticket.transferred" | "ticket.closed" | "ticket.reopened" | "ticket.wrapup_changed" | "ticket.read" | "message.received" | "message.created" | "message.sent" | "message.delivered" | "message.read" | "message.failed" | "message.updated" | "note.added" | "session.started" | "session.ended" | "contact.created" | "contact.updated" | "contact.deleted" | "contact.tagged" | "contact.untagged" | "card.created" | "card.updated" | "card.moved" | "card.won" | "card.lost" | "card.reopened" | "card.deleted" | "schedule.created" | "schedule.updated" | "schedule.sent" | "schedule.failed" | "schedule.canceled" | "campaign.started" | "campaign.paused" | "campaign.resumed" | "campaign.completed" | "campaign.canceled" | "channel.connected" | "channel.disconnected" | "channel.error" | "contact.identified" | "message.deleted" | "message.reaction" | "channel.template_changed" | "contact.merged" | "ticket.merged";

/** A message. For `message.received`, also the ticket and the contact at that time, and the chosen option. */
export interface EventMessage {
  /** That app, with `via`. */
  app: MessageApp | null;
  /** The member of a group who wrote it. */
  author: MessageAuthor | null;
  /** The text. */
  body: string | null;
  /** The channel, as `GET /channels` lists it. */
  channelId: ChannelId;
  /** The sender. */
  contact?: ContactRef;
  /** The contact. */
  contactId: ContactId;
  /** Additional content, such as the option that the contact chose. */
  content: MessageContent | null;
  /** When it was created. */
  createdAt: Timestamp;
  /** When the author deleted it, with its text and file. */
  deletedAt: Timestamp | null;
  /** When the message reached the recipient's device. */
  deliveredAt: Timestamp | null;
  /** `inbound` from the contact, `outbound` from the company, `internal` between agents. */
  direction: Direction;
  /** When the author changed the text. */
  editedAt: Timestamp | null;
  /** The earlier texts of an edited message, the oldest first. */
  edits: MessageEdit[];
  /** Why the message failed. */
  error: MessageFailure | null;
  /** The id. */
  id: MessageId;
  /** The API token that sent it. */
  integration: TokenRef | null;
  /**
   * Buttons or a list, with `type: interactive`; of a contact's message, the submitted form as the provider
   * sent it.
   */
  interactive: { [key: string]: unknown } | null;
  /** The send that created it; `null` for messages from a contact. */
  jobId: string | null;
  /** The file, with `type: media`. */
  media: MediaFile | null;
  /** The message it replies to. */
  quotedMessageId: MessageId | null;
  /** The reactions, one per person. */
  reactions: MessageReaction[];
  /** When the recipient read it. */
  readAt: Timestamp | null;
  /** The chosen option, as in the message's `content`. */
  reply?: ChosenOption;
  /** When the provider accepted the message. */
  sentAt: Timestamp | null;
  /** Who caused it. */
  source: Source;
  /** The status. */
  status: MessageStatus;
  /** The approved template, with `type: template`. */
  template: { [key: string]: unknown } | null;
  /** The ticket. */
  ticket?: ReceivedIn;
  /** The ticket. */
  ticketId: TicketId;
  /** The type. */
  type: MessageType;
  /** When the message or its status last changed. */
  updatedAt: Timestamp;
  /** The agent on whose behalf it was sent. */
  user: MessageUser | null;
  /**
   * The kind of app that sent or received the message in place of Hotline: the company wrote it there, or
   * another app handled the conversation when the contact wrote.
   */
  via: Via | null;
}

/** Where to continue reading events. */
export interface EventMeta {
  /**
   * Whether events after the given `after` have expired, or the log, restored from a backup, ends before it. If
   * so, read the current records instead.
   */
  gap: boolean;
  /** Whether more events are available now. */
  hasMore: boolean;
  /** The value for the next `after`. */
  lastId: LoggedEventId;
  /** The oldest event kept; `null` if there is none. */
  oldestId: LoggedEventId | null;
}

/** A channel of which a template has changed. */
export interface EventTemplate {
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: ChannelId;
  /** The last error. */
  lastError: string | null;
  /** How many conversations the number may begin in a day, as its provider names that limit. */
  messagingLimit: string | null;
  /** Name. */
  name: string;
  /** Phone number: digits only, including the country code. */
  number: string | null;
  /** The quality of the number's messages, as its provider last reported it. */
  quality: ChannelQuality | null;
  /** The queue of new tickets. */
  queue: QueueRef | null;
  /** The status. */
  status: ChannelStatus;
  /** The provider's change of the template. */
  template: ChangedTemplate;
  /** The type. */
  type: ChannelType;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** The type of a ticket event. */
export type EventType = "opened" | "transferred" | "closed" | "reopened" | "wrapup_changed" | "note_added" | "read" | "merged";

/** Who caused an event, with their name at that time. */
export interface EventUser {
  /** The id. */
  id: UserId;
  /** The user's name at that time. */
  name: string | null;
}

/** An invalid field. */
export interface FieldError {
  /** A code for programs and translations. New codes may be added. */
  code: "address_forbidden" | "blank" | "changed_elsewhere" | "common_password" | "easy_password" | "empty" | "fixed" | "forbidden_characters" | "given_together" | "given_twice" | "negative" | "not_a_boolean" | "not_a_color" | "not_a_date" | "not_a_date_time" | "not_a_key" | "not_a_list" | "not_a_number" | "not_a_phone_number" | "not_a_string" | "not_a_tax_number" | "not_a_time_zone" | "not_a_url" | "not_accepted" | "not_an_email" | "not_an_integer" | "not_an_ip_range" | "not_an_object" | "not_an_option" | "not_an_origin" | "not_applicable" | "not_digits" | "not_every_record_once" | "not_in_the_future" | "not_one_line" | "not_one_word" | "not_this_list" | "not_unique" | "null" | "out_of_range" | "required" | "reserved" | "second_factor_missing" | "too_broad" | "too_deep" | "too_large" | "too_long" | "too_many" | "too_many_decimals" | "too_short" | "too_small" | "unknown_key" | "unknown_record" | "wrong_code" | "wrong_count" | "wrong_password" | "wrong_record";
  /** The path in the body, or the parameter's name. */
  field: string;
  /** Parameters of the reason, such as `max` and `unit` for `too_long`, or `options` for `not_an_option`. */
  params: { [key: string]: unknown };
  /** A phrase that follows the field's name. */
  reason: string;
}

/** Open cards and sales of all boards. */
export interface FunnelTotal {
  /** Open cards on all boards. */
  openCards: number;
  /** Total value of the open cards. */
  openValue: Amount;
  /** Value won on all boards since the start of the month. */
  wonThisMonth: Amount;
}

/** A text that replaces its key in messages. */
export interface GlobalVariable {
  /** When it was created. */
  createdAt: Timestamp;
  /** What the variable is for. */
  description: string | null;
  /** The id. */
  id: GlobalVariableId;
  /** The key; it never changes. */
  key: string;
  /** When it was last updated. */
  updatedAt: Timestamp;
  /** The text that replaces the variable. */
  value: string;
}

/** A new global variable. */
export interface GlobalVariableCreate {
  /** What the variable is for. */
  description?: string | null;
  /**
   * Reserved names are not allowed: name, firstName, number, email, ticketId, queue, agent, channel, company,
   * date, time, greeting
   */
  key: string;
  /** The text that replaces the variable. */
  value: string;
}

/** The id of a global variable. */
export type GlobalVariableId = number;

/** A page of results. */
export interface GlobalVariableList {
  /** The resource. */
  data: GlobalVariable[];
  /** Pagination. */
  meta: PageMeta;
}

/** The response. */
export interface GlobalVariableResponse {
  /** The resource. */
  data: GlobalVariable;
}

/** Changes to a global variable. */
export interface GlobalVariableUpdate {
  /** What the variable is for. */
  description?: string | null;
  /**
   * Reserved names are not allowed: name, firstName, number, email, ticketId, queue, agent, channel, company,
   * date, time, greeting
   */
  key?: string;
  /** The text that replaces the variable. */
  value?: string;
}

/** A sales goal and its progress. */
export interface GoalProgress {
  /** The goal. */
  goal: Amount | null;
  /** `won` divided by `goal`, to four decimals; `null` without a goal. */
  progress: Amount | null;
  /** The value of the cards won. */
  won: Amount;
}

/** A message that was later deleted with its contact; its content is no longer available. */
export interface GoneMessage {
  /** Always true. */
  deleted: boolean;
  /** The id. */
  id: MessageId;
  /** The ticket. */
  ticketId: TicketId;
}

/** A session that was deleted with its contact before the event was written. */
export interface GoneSession {
  /** Always true. */
  deleted: boolean;
  /** The id. */
  id: SessionId;
}

/** The result of a call, by part. */
export interface HookReport {
  /** Parts that were ignored, because conversations do not support them. */
  ignored: number;
  /** Parts that had already been processed. */
  repeated: number;
  /** Parts that were processed. */
  taken: number;
  /** Parts that could not be read. */
  unreadable: number;
}

/** The response. */
export interface HookReportResponse {
  /** The resource. */
  data: HookReport;
}

/** What identifies a contact. */
export type IdentityKind = "number" | "userId" | "groupId";

/** An error in a row. */
export interface ImportError {
  /** A code for programs and translations, as in the `details` of a `422`. New codes may be added. */
  code: "address_forbidden" | "blank" | "changed_elsewhere" | "common_password" | "easy_password" | "empty" | "fixed" | "forbidden_characters" | "given_together" | "given_twice" | "negative" | "not_a_boolean" | "not_a_color" | "not_a_date" | "not_a_date_time" | "not_a_key" | "not_a_list" | "not_a_number" | "not_a_phone_number" | "not_a_string" | "not_a_tax_number" | "not_a_time_zone" | "not_a_url" | "not_accepted" | "not_an_email" | "not_an_integer" | "not_an_ip_range" | "not_an_object" | "not_an_option" | "not_an_origin" | "not_applicable" | "not_digits" | "not_every_record_once" | "not_in_the_future" | "not_one_line" | "not_one_word" | "not_this_list" | "not_unique" | "null" | "out_of_range" | "required" | "reserved" | "second_factor_missing" | "too_broad" | "too_deep" | "too_large" | "too_long" | "too_many" | "too_many_decimals" | "too_short" | "too_small" | "unknown_key" | "unknown_record" | "wrong_code" | "wrong_count" | "wrong_password" | "wrong_record";
  /** The path of the field in the row. */
  field: string;
  /** The index of the row, from 0. */
  index: number;
  /** Parameters of the reason. */
  params: { [key: string]: unknown };
  /** A phrase that follows the field's name. */
  reason: string;
}

/** The result of an import. */
export interface ImportReport {
  /** The contact of each successful row, in row order. Several rows may share a contact. */
  contacts: ImportedContact[];
  /** Number of contacts created. */
  created: number;
  /** Errors of rows. Such rows are not stored; all others are. */
  errors: ImportError[];
  /** Rows skipped because their contact exists, with `onConflict: skip`. */
  skipped: number;
  /** Number of contacts updated. */
  updated: number;
}

/** The response. */
export interface ImportReportResponse {
  /** The resource. */
  data: ImportReport;
}

/** The result of a row. */
export type ImportResult = "created" | "updated" | "skipped";

/** The contact of one row. */
export interface ImportedContact {
  /** The id. */
  id: ContactId;
  /** The index of the row, from 0. */
  index: number;
  /** The result of the row. */
  result: ImportResult;
}

/** The status of a send. For several messages, that of the slowest; `failed` as soon as one has failed. */
export interface Job {
  /**
   * Number of calls to the provider that it did not refuse: two if its answer to the first was lost and the
   * message was sent again, so that the contact may have received it twice.
   */
  attempts: number;
  /** Why the message failed. */
  error: MessageFailure | null;
  /** The id of the send; `GET /messages/jobs/{jobId}` returns its status. */
  jobId: string;
  /** The first message of the send. */
  messageId: MessageId;
  /** `unknown` while it is unknown whether the provider received a queued message. */
  outcome: JobOutcome | null;
  /** The status. */
  status: MessageStatus;
  /** The ticket. */
  ticketId: TicketId;
  /** Why a queued message cannot be sent yet. */
  waitingFor: WaitingFor | null;
}

/** Whether the provider received the message. */
export type JobOutcome = "unknown";

/** The response. */
export interface JobResponse {
  /** The resource. */
  data: Job;
}

/** The channel of a contact's latest message. */
export interface LastChannel {
  /** The id. */
  id: ChannelId;
  /** The channel's name. */
  name: string;
  /** The type. */
  type: ChannelType;
}

/** The latest message of a ticket. */
export interface LastMessage {
  /** The text. */
  body: string | null;
  /** When it was created. */
  createdAt: Timestamp;
  /** `inbound` from the contact, `outbound` from the company, `internal` between agents. */
  direction: Direction;
  /** The id. */
  id: MessageId;
}

/** The process is running. */
export interface Liveness {
  /** Always `live`. */
  status: string;
}

/** The id of an event. */
export type LoggedEventId = number;

/** A file that was sent or received. */
export interface MediaFile {
  /** File name. */
  fileName: string;
  /** MIME type, detected from the content. */
  mimeType: string;
  /** Size in bytes. */
  size: number;
  /** A URL that needs no token, valid for about a day. */
  url: string;
  /** Whether it is a voice message. */
  voice: boolean;
}

/** Another contact that is the same person, as a provider says. */
export interface MergeSuggestion {
  /** The contact. */
  contactId: ContactId;
  /** The kind of the identity that both have. */
  kind: IdentityKind;
  /** When this was first seen. */
  since: Timestamp;
  /** The number in digits, or the provider's id, that both have. */
  value: string;
}

/** A contact that another one was merged into. */
export interface MergedContact {
  /** The company's own code for the contact. */
  code: string | null;
  /** Tax number: 11 digits for a person, 14 for a company. */
  cpfCnpj: string | null;
  /** When it was created. */
  createdAt: Timestamp;
  /** Click id of a click-to-chat advertisement. */
  ctwaClid: string | null;
  /** Values of custom fields. */
  customFields: CustomFieldValue[];
  /** E-mail address. */
  email: string | null;
  /** Click id of an advertisement. */
  fbclid: string | null;
  /** Click id of an advertisement. */
  gclid: string | null;
  /** The advertisement's headline. */
  headline: string | null;
  /** The id. */
  id: ContactId;
  /**
   * By what the contact is or was known: its number, and the ids that providers have of it. Former ones still
   * find it.
   */
  identities: ContactIdentity[];
  /** Whether the contact is a group rather than a person. */
  isGroup: boolean;
  /** The channel of the latest message. Changes to it do not change `updatedAt`. */
  lastChannel: LastChannel | null;
  /** The provider's id for a contact whose number it hides. */
  lid: string | null;
  /** Whether the contact is excluded from campaigns. */
  marketingOptOut: boolean;
  /** Type of the advertisement's media. */
  mediaType: string | null;
  /** URL of the advertisement's picture or video. */
  mediaUrl: string | null;
  /** Other contacts that are the same person, as a provider says. They are never merged by themselves. */
  mergeSuggestions: MergeSuggestion[];
  /** The id of the other contact, which no longer exists. Records that referred to it refer to this one. */
  mergedFrom: ContactId;
  /** Name. */
  name: string;
  /** Phone number: digits only, including the country code. */
  number: string | null;
  /** Country code derived from the number. */
  numberCountry: string | null;
  /** How the contact was acquired. */
  origin: string | null;
  /** URL of the contact's picture. */
  profilePicUrl: string | null;
  /** User name on a social channel. */
  socialUsername: string | null;
  /** The advertisement's id. */
  sourceId: string | null;
  /** URL of the page or advertisement. */
  sourceUrl: string | null;
  /** The contact's tags. */
  tags: ContactTag[];
  /** When it was last updated. */
  updatedAt: Timestamp;
  /** UTM campaign. */
  utmCampaign: string | null;
  /** UTM id. */
  utmId: string | null;
  /** UTM medium. */
  utmMedium: string | null;
  /** UTM source. */
  utmSource: string | null;
  /** Whether a webchat visitor's identity was confirmed by the company or by an identity it signed. */
  verified: boolean;
}

/** A ticket that another one was merged into. */
export interface MergedTicket {
  /** The assigned agent. */
  assignedTo: UserRef | null;
  /** The channel. */
  channel: NamedChannel | null;
  /** When it was closed; `null` while it is open. */
  closedAt: Timestamp | null;
  /** The contact. */
  contact: TicketContact;
  /** When it was created. */
  createdAt: Timestamp;
  /** Who opened the ticket. */
  creationSource: Source;
  /** When the first reply since the opening was sent: by a user, an integration or a chatbot. */
  firstResponseAt: Timestamp | null;
  /**
   * The app of the provider that handles the conversation, if it is not Hotline: the provider may refuse the
   * company's messages meanwhile.
   */
  handledBy: TicketHandler | null;
  /** The id. */
  id: TicketId;
  /** When it was last opened, its last message was written, or it was closed. */
  lastActivityAt: Timestamp;
  /** The latest message. */
  lastMessage: LastMessage | null;
  /** The id of the other ticket, which no longer exists. */
  mergedFrom: TicketId;
  /** When it was last opened. */
  openedAt: Timestamp;
  /** The queue. */
  queue: QueueRef | null;
  /** How many times it was reopened. */
  reopenCount: number;
  /** The status. */
  status: TicketStatus;
  /** Number of unread messages from the contact. */
  unreadCount: number;
  /** When it was last updated. */
  updatedAt: Timestamp;
  /**
   * Whether the contact is verified: a webchat visitor's identity was confirmed by the company or by an
   * identity it signed.
   */
  verified: boolean;
  /** Since when the contact has been waiting for an answer; `null`: no one waits. */
  waitingSince: Timestamp | null;
  /** Note about the wrap-up. */
  wrapupNote: string | null;
  /** The wrap-up type. */
  wrapupType: WrapupTypeRef | null;
}

/** A message in a ticket: from the contact, from the company, or between agents. */
export interface Message {
  /** That app, with `via`. */
  app: MessageApp | null;
  /** The member of a group who wrote it. */
  author: MessageAuthor | null;
  /** The text. */
  body: string | null;
  /** The channel, as `GET /channels` lists it. */
  channelId: ChannelId;
  /** The contact. */
  contactId: ContactId;
  /** Additional content, such as the option that the contact chose. */
  content: MessageContent | null;
  /** When it was accepted or received. */
  createdAt: Timestamp;
  /** When the author deleted it, with its text and file. */
  deletedAt: Timestamp | null;
  /** When the message reached the recipient's device. */
  deliveredAt: Timestamp | null;
  /** `inbound` from the contact, `outbound` from the company, `internal` between agents. */
  direction: Direction;
  /** When the author changed the text. */
  editedAt: Timestamp | null;
  /** The earlier texts of an edited message, the oldest first. */
  edits: MessageEdit[];
  /** Why the message failed. */
  error: MessageFailure | null;
  /** The id. */
  id: MessageId;
  /** The API token that sent it. */
  integration: TokenRef | null;
  /**
   * Buttons or a list, with `type: interactive`; of a contact's message, the submitted form as the provider
   * sent it.
   */
  interactive: { [key: string]: unknown } | null;
  /** The send that created it; `null` for messages from a contact. */
  jobId: string | null;
  /** The file, with `type: media`. */
  media: MediaFile | null;
  /** The message it replies to. */
  quotedMessageId: MessageId | null;
  /** The reactions, one per person. */
  reactions: MessageReaction[];
  /** When the recipient read it. */
  readAt: Timestamp | null;
  /** When the provider accepted the message. */
  sentAt: Timestamp | null;
  /** Who caused it. */
  source: Source;
  /** The status. */
  status: MessageStatus;
  /** The approved template, with `type: template`. */
  template: { [key: string]: unknown } | null;
  /** The ticket. */
  ticketId: TicketId;
  /** The type. */
  type: MessageType;
  /** When the message or its status last changed. */
  updatedAt: Timestamp;
  /** The agent on whose behalf it was sent. */
  user: MessageUser | null;
  /**
   * The kind of app that sent or received the message in place of Hotline: the company wrote it there, or
   * another app handled the conversation when the contact wrote.
   */
  via: Via | null;
}

/** The agent who sent the message. */
export interface MessageAgent {
  /** The agent's name. */
  name: string;
}

/** An app of a provider's account. */
export interface MessageApp {
  /** The provider's id of it. */
  id: string | null;
  /** Its name, if it is known. */
  name: string | null;
}

/** Who of a group wrote a message. */
export interface MessageAuthor {
  /** The provider's own id of them. */
  address: string | null;
  /** Their name, as they gave it to the provider. */
  name: string | null;
  /** Phone number: digits only, including the country code. */
  number: string | null;
}

/** Additional content of a message: the part that `kind` names, and any other that the message has. */
export interface MessageContent {
  /** The shared contacts, each with what its provider gave: names, numbers, addresses, organization. */
  contacts?: ({ [key: string]: unknown })[];
  /** The submitted form. */
  form?: SubmittedForm;
  /** Whether the message was forwarded. */
  forwarded?: boolean;
  /** Whether it was forwarded many times. */
  frequentlyForwarded?: boolean;
  /** The kind of content. */
  kind: ContentKind;
  /** The place. */
  location?: SharedLocation;
  /** The order. */
  order?: PlacedOrder;
  /** The product that the message is about. */
  product?: ProductReference;
  /** The advertisement or link that brought the contact with this message. */
  referral?: MessageReferral;
  /** The chosen option. */
  reply?: ChosenOption;
  /** The story that the message replies to, or that mentions the company. */
  story?: StoryReference;
}

/** An earlier text of an edited message. */
export interface MessageEdit {
  /** When it was replaced. */
  at: Timestamp;
  /** The text. */
  body: string | null;
}

/** Why a message failed. */
export interface MessageFailure {
  /** The provider's own code, or one of Hotline's. */
  code: string;
  /** A message for people. */
  message: string;
}

/** The id of a message. */
export type MessageId = number;

/** A page of results. */
export interface MessageList {
  /** The resource. */
  data: Message[];
  /** Pagination. */
  meta: PageMeta;
}

/** A reaction of the company: an emoji. */
export interface MessageReact {
  /** One emoji. */
  emoji: string;
}

/** A reaction to a message. */
export interface MessageReaction {
  /** When it was sent. */
  at: Timestamp;
  /** Who has reacted. */
  by: Reactor;
  /** The emoji. */
  emoji: string;
  /** Why the provider refused the company's reaction. */
  error: MessageFailure | null;
  /** The name of the contact, or of a member of their group. */
  name: string | null;
  /** The user who has reacted, with `by: user`. */
  user: MessageUser | null;
}

/** The advertisement, post or link that brought a contact with a message. */
export interface MessageReferral {
  /** The text. */
  body: string | null;
  /** The provider's id of the click. */
  ctwaClid: string | null;
  /** The advertisement's headline. */
  headline: string | null;
  /** Type of the advertisement's media. */
  mediaType: string | null;
  /** URL of the advertisement's picture or video. */
  mediaUrl: string | null;
  /** The reference that the link contains. */
  reference: string | null;
  /** The advertisement's id. */
  sourceId: string | null;
  /** As the provider writes it: `ad`, `post`, `ADS`, `SHORTLINK`. */
  sourceType: string | null;
  /** URL of the page or advertisement. */
  sourceUrl: string | null;
}

/** Messages by day, channel, user or type. Notes are not counted. */
export interface MessageReportRow {
  /** Failed outbound messages, counted when they were created. */
  failed: number;
  /** Messages from contacts. */
  inbound: number;
  /** The group: a day, the id of a channel or user, or a message type; `null` for messages without one. */
  key: ReportKey | null;
  /** The day or the type, or the record's name; `null` if there is none. */
  label: string | null;
  /** Messages from the company, including failed ones. */
  outbound: number;
}

/** The rows of a report. */
export interface MessageReportRowReport {
  /** The resource. */
  data: MessageReportRow[];
}

/** The response. */
export interface MessageResponse {
  /** The resource. */
  data: Message;
}

/** A message to send to a ticket, a contact or a number. `ticketId` takes precedence, then `contactId`. */
export interface MessageSend {
  /** The text, or a file's caption. Variables such as `{{firstName}}` are filled in. */
  body?: string | null;
  /** The channel to send on; optional with `ticketId`. */
  channelId?: number | null;
  /** Closes the ticket once the message is handed to the channel. */
  closeTicket?: boolean | null;
  /** The recipient, on any channel; takes precedence over `number`. */
  contactId?: number | null;
  /** The contact's name, if `number` creates one. */
  contactName?: string | null;
  /**
   * An interactive object in the format of the official cloud API, at most 65,536 bytes. A webchat supports
   * button, list, cta_url, location_request_message and carousel
   */
  interactive?: { [key: string]: unknown } | null;
  /** 8 to 15 digits; `+ ( ) - .` and spaces are removed */
  number?: string | null;
  /** Moves the ticket to this queue once the message is handed to the channel. */
  queueId?: number | null;
  /** Reopens the contact's latest ticket on the channel if it is closed. */
  reopenTicket?: boolean | null;
  /** An approved template: its name with `parameters`, or complete `components`. */
  template?: { components?: ({ [key: string]: unknown })[] | null; language?: string | { [key: string]: unknown } | null; name: string; parameters?: { body?: string[] | null; buttons?: string[] | null; header?: string[] | null; } | null; } | null;
  /** The ticket to send in; takes precedence over `contactId` and `number`. */
  ticketId?: number | null;
  /**
   * `text` requires `body`; `media` requires a form with files in `medias`; `template` and `interactive`
   * require the field of the same name
   */
  type: "text" | "media" | "template" | "interactive";
  /** The user, as `GET /users` lists them. */
  userId?: number | null;
  /**
   * Sends the files as voice messages: audio files, on WhatsApp of the type audio/ogg. Only with the type
   * `media`.
   */
  voice?: boolean | null;
  /** Note about the wrap-up, with `closeTicket`. */
  wrapupNote?: string | null;
  /** The wrap-up type, with `closeTicket`. */
  wrapupTypeId?: number | null;
}

/** The same as a form, with files. Objects are sent as JSON. */
export interface MessageSendForm {
  /** The text, or a file's caption. Variables such as `{{firstName}}` are filled in. */
  body?: string | null;
  /** The channel to send on; optional with `ticketId`. */
  channelId?: number | null;
  /** Closes the ticket once the message is handed to the channel. */
  closeTicket?: boolean | null;
  /** The recipient, on any channel; takes precedence over `number`. */
  contactId?: number | null;
  /** The contact's name, if `number` creates one. */
  contactName?: string | null;
  /**
   * An interactive object in the format of the official cloud API, at most 65,536 bytes. A webchat supports
   * button, list, cta_url, location_request_message and carousel
   */
  interactive?: { [key: string]: unknown } | null;
  /** The files, one per part of this name. Each becomes a message */
  medias?: Upload[];
  /** 8 to 15 digits; `+ ( ) - .` and spaces are removed */
  number?: string | null;
  /** Moves the ticket to this queue once the message is handed to the channel. */
  queueId?: number | null;
  /** Reopens the contact's latest ticket on the channel if it is closed. */
  reopenTicket?: boolean | null;
  /** An approved template: its name with `parameters`, or complete `components`. */
  template?: { components?: ({ [key: string]: unknown })[] | null; language?: string | { [key: string]: unknown } | null; name: string; parameters?: { body?: string[] | null; buttons?: string[] | null; header?: string[] | null; } | null; } | null;
  /** The ticket to send in; takes precedence over `contactId` and `number`. */
  ticketId?: number | null;
  /**
   * `text` requires `body`; `media` requires a form with files in `medias`; `template` and `interactive`
   * require the field of the same name
   */
  type: "text" | "media" | "template" | "interactive";
  /** The user, as `GET /users` lists them. */
  userId?: number | null;
  /**
   * Sends the files as voice messages: audio files, on WhatsApp of the type audio/ogg. Only with the type
   * `media`.
   */
  voice?: boolean | null;
  /** Note about the wrap-up, with `closeTicket`. */
  wrapupNote?: string | null;
  /** The wrap-up type, with `closeTicket`. */
  wrapupTypeId?: number | null;
}

/** The status of a message. It only moves forward; `failed` is final; inbound messages are `received`. */
export type MessageStatus = "queued" | "sent" | "delivered" | "read" | "failed" | "received";

/** The type of a message. */
export type MessageType = "text" | "media" | "template" | "interactive" | "note" | "system";

/** The user who sent a message, with their name at that time. */
export interface MessageUser {
  /** The id. */
  id: UserId;
  /** The user's name at that time. */
  name: string | null;
}

/** A channel, by id, name and type. */
export interface NamedChannel {
  /** The id. */
  id: ChannelId;
  /** The channel's name. */
  name: string;
  /** The type. */
  type: ChannelType;
}

/** A note for agents. */
export interface NoteCreate {
  /** At most 65,536 bytes */
  body: string;
  /** The user, as `GET /users` lists them. */
  userId?: number | null;
}

/** A product of an order. */
export interface OrderItem {
  /** ISO 4217. */
  currency: string | null;
  /** The price of one, as the provider writes it. */
  price: string | null;
  /** How many are ordered. */
  quantity: number | null;
  /** The product's id in the catalogue. */
  retailerId: string | null;
}

/** Pagination of a list. */
export interface PageMeta {
  /** Whether there are more pages. */
  hasMore: boolean;
  /** With `cursor`: the `cursor` of the next page; `null` on the last page. */
  nextCursor?: string | null;
  /** The page number, from 1. Omitted with `cursor`. */
  page?: number;
  /** Maximum page size. */
  perPage: number;
}

/** Why a campaign is paused that no user has paused. */
export type PausedReason = "template_paused" | "template_disabled" | "template_rejected" | "template_deleted";

/** An order from a catalogue. */
export interface PlacedOrder {
  /** The catalogue. */
  catalogId: string | null;
  /** The ordered products. */
  items: OrderItem[];
  /** The contact's text. */
  text: string | null;
}

/** The side of the page where the widget opens. */
export type WidgetPosition = "left" | "right";

/** A field that a webchat asks for before the conversation. */
export type PreChatField = "name" | "email" | "number";

/** A product. */
export interface Product {
  /** Whether it is active. */
  active: boolean;
  /** The category. */
  category: ProductCategoryRef | null;
  /** When it was created. */
  createdAt: Timestamp;
  /** Description. */
  description: string | null;
  /** The id. */
  id: ProductId;
  /** The product's name. */
  name: string;
  /** Price per unit in the company's currency. Cards can override it. */
  price: Amount;
  /** Stock keeping unit, unique in the company. */
  sku: string | null;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A category of products. */
export interface ProductCategory {
  /** When it was created. */
  createdAt: Timestamp;
  /** Description. */
  description: string | null;
  /** The id. */
  id: ProductCategoryId;
  /** Name, unique in the company. */
  name: string;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new product category. */
export interface ProductCategoryCreate {
  /** Description. */
  description?: string | null;
  /** Name, unique in the company. */
  name: string;
}

/** The id of a product category. */
export type ProductCategoryId = number;

/** A page of results. */
export interface ProductCategoryList {
  /** The resource. */
  data: ProductCategory[];
  /** Pagination. */
  meta: PageMeta;
}

/** A reference to a record, by id and name. */
export interface ProductCategoryRef {
  /** The category's id. */
  id: number;
  /** The category's name. */
  name: string;
}

/** The response. */
export interface ProductCategoryResponse {
  /** The resource. */
  data: ProductCategory;
}

/** Changes to a product category. */
export interface ProductCategoryUpdate {
  /** Description. */
  description?: string | null;
  /** Name, unique in the company. */
  name?: string;
}

/** A new product. */
export interface ProductCreate {
  /** Whether it is active. */
  active?: boolean | null;
  /** The category, as `GET /product-categories` lists it. */
  categoryId?: number | null;
  /** Description. */
  description?: string | null;
  /** The product's name. */
  name: string;
  /** Price per unit in the company's currency. Cards can override it. */
  price?: number | null;
  /** Stock keeping unit, unique in the company. */
  sku?: string | null;
}

/** The id of a product. */
export type ProductId = number;

/** A page of results. */
export interface ProductList {
  /** The resource. */
  data: Product[];
  /** Pagination. */
  meta: PageMeta;
}

/** A product of a catalogue. */
export interface ProductReference {
  /** The catalogue. */
  catalogId: string | null;
  /** The product's id in the catalogue. */
  retailerId: string | null;
}

/** The response. */
export interface ProductResponse {
  /** The resource. */
  data: Product;
}

/** Changes to a product. */
export interface ProductUpdate {
  /** Whether it is active. */
  active?: boolean;
  /** The category, as `GET /product-categories` lists it. */
  categoryId?: number | null;
  /** Description. */
  description?: string | null;
  /** The product's name. */
  name?: string;
  /** Price per unit in the company's currency. Cards can override it. */
  price?: number;
  /** Stock keeping unit, unique in the company. */
  sku?: string | null;
}

/** A permission profile. */
export interface Profile {
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: ProfileId;
  /** The profile's name. */
  name: string;
  /** Allowed methods, by module. */
  permissions: { [key: string]: string[] };
  /** Whether its users see cards assigned to others. */
  seesAllCards: boolean;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** The id of a permission profile. */
export type ProfileId = number;

/** A page of results. */
export interface ProfileList {
  /** The resource. */
  data: Profile[];
  /** Pagination. */
  meta: PageMeta;
}

/** A reference to a record, by id and name. */
export interface ProfileRef {
  /** The profile's id. */
  id: number;
  /** The profile's name. */
  name: string;
}

/** The response. */
export interface ProfileResponse {
  /** The resource. */
  data: Profile;
}

/** A callback, in the provider's format. */
export interface ProviderCall {
  /** The changes. */
  entry?: ({ [key: string]: unknown })[];
  /** The kind of account. */
  object?: string;
}

/** A queue of tickets. */
export interface Queue {
  /** Whether it is active. */
  active: boolean;
  /** A colour as `#rrggbb`. */
  color: string;
  /** When it was created. */
  createdAt: Timestamp;
  /**
   * How new tickets are assigned: not automatically, to each active agent in turn, or to the one with the
   * fewest open tickets.
   */
  distribution: Distribution;
  /** Sent when a contact opens a ticket in the queue. */
  greeting: string | null;
  /** The id. */
  id: QueueId;
  /** Name, unique in the company. */
  name: string;
  /** When it was last updated. */
  updatedAt: Timestamp;
  /** Whether closing a ticket requires a wrap-up. */
  wrapupRequired: boolean;
}

/** A new queue. */
export interface QueueCreate {
  /** Whether it is active. */
  active?: boolean | null;
  /** A colour as `#rrggbb`. */
  color?: string | null;
  /**
   * How new tickets are assigned: not automatically, to each active agent in turn, or to the one with the
   * fewest open tickets.
   */
  distribution?: "manual" | "round_robin" | "least_busy" | null;
  /** Sent when a contact opens a ticket in the queue. */
  greeting?: string | null;
  /** Name, unique in the company. */
  name: string;
  /** Whether closing a ticket requires a wrap-up. */
  wrapupRequired?: boolean | null;
}

/** Open tickets of a queue. */
export interface QueueDesk {
  /** The id. */
  id: QueueId;
  /** Name. */
  name: string;
  /** Open tickets in the queue. */
  open: number;
  /** Open tickets without an agent. */
  unassigned: number;
}

/** The id of a queue. */
export type QueueId = number;

/** A page of results. */
export interface QueueList {
  /** The resource. */
  data: Queue[];
  /** Pagination. */
  meta: PageMeta;
}

/** A reference to a record, by id and name. */
export interface QueueRef {
  /** The queue's id. */
  id: number;
  /** Name, unique in the company. */
  name: string;
}

/** The response. */
export interface QueueResponse {
  /** The resource. */
  data: Queue;
}

/** Changes to a queue. */
export interface QueueUpdate {
  /** Whether it is active. */
  active?: boolean;
  /** A colour as `#rrggbb`. */
  color?: string;
  /**
   * How new tickets are assigned: not automatically, to each active agent in turn, or to the one with the
   * fewest open tickets.
   */
  distribution?: "manual" | "round_robin" | "least_busy";
  /** Sent when a contact opens a ticket in the queue. */
  greeting?: string | null;
  /** Name, unique in the company. */
  name?: string;
  /** Whether closing a ticket requires a wrap-up. */
  wrapupRequired?: boolean;
}

/** An accepted message that will be sent. */
export interface QueuedJob {
  /** The id of the send; `GET /messages/jobs/{jobId}` returns its status. */
  jobId: string;
  /** Always `queued`. */
  status: MessageStatus;
}

/** The response. */
export interface QueuedJobResponse {
  /** The resource. */
  data: QueuedJob;
}

/** A text that agents insert by a shortcut. */
export interface QuickMessage {
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: QuickMessageId;
  /** The text. */
  message: string;
  /** The shortcut, unique in the company. */
  shortcut: string;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new quick message. */
export interface QuickMessageCreate {
  /** The text. */
  message: string;
  /** The shortcut, unique in the company. */
  shortcut: string;
}

/** The id of a quick message. */
export type QuickMessageId = number;

/** A page of results. */
export interface QuickMessageList {
  /** The resource. */
  data: QuickMessage[];
  /** Pagination. */
  meta: PageMeta;
}

/** The response. */
export interface QuickMessageResponse {
  /** The resource. */
  data: QuickMessage;
}

/** Changes to a quick message. */
export interface QuickMessageUpdate {
  /** The text. */
  message?: string;
  /** The shortcut, unique in the company. */
  shortcut?: string;
}

/** Whose reaction it is. */
export type Reactor = "contact" | "user";

/** The readiness of the service. */
export interface Readiness {
  /** The components, by name. */
  parts: ReadyParts;
  /** Why it is not `ready`. */
  reasons: ReadinessReason[];
  /**
   * `ready`; `degraded` if it serves while something needs attention; `starting`, `stopping` or `not ready` if
   * it must get no requests.
   */
  status: string;
}

/** Why the service is not `ready`. */
export interface ReadinessReason {
  /** For people. */
  message: string;
  /**
   * For programs: `starting`, `stopping`, `no_lease`, `journal_filling`, or a condition that is also in the log
   * and the metrics: `database`, `database_changes`, `database_connections`, `journal`, `connections`,
   * `open_files`, `message_files`, `disk`, `rejected_rows`, `peer`, `shared_folder` or `node_name`. There may
   * be more in later releases.
   */
  reason: string;
  /** Since when, if that is known. */
  since: Timestamp | null;
}

/** The components of the service: each is `ready` or `not ready`. */
export interface ReadyParts {
  /** Whether the service accepts requests; not while it is starting or stopping. */
  accepting: string;
  /** Whether PostgreSQL responds. */
  database: string;
  /** Whether changes are accepted. */
  journal: string;
  /** Whether accepted changes are being written to the database. */
  persister: string;
}

/** The ticket of a received message at that time. */
export interface ReceivedIn {
  /** The assigned agent. */
  assignedTo: UserRef | null;
  /** The id. */
  id: TicketId;
  /** The queue. */
  queue: QueueRef | null;
  /** The status. */
  status: TicketStatus | null;
}

/** The contact of a recipient. */
export interface RecipientContact {
  /** The id. */
  id: ContactId;
  /** Name. */
  name: string;
  /** Phone number: digits only, including the country code. */
  number: string | null;
}

/** Why a recipient did not receive the message. */
export interface RecipientFailure {
  /** The error code of `POST /messages`, or of the message. */
  code: string;
  /** A message for people. */
  message: string;
}

/** A list of contacts for campaigns. */
export interface RecipientList {
  /** Number of contacts. */
  contactsCount: number;
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: ContactListId;
  /** Name. */
  name: string;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new contact list. */
export interface RecipientListCreate {
  /** Name. */
  name: string;
}

/** A page of results. */
export interface RecipientListList {
  /** The resource. */
  data: RecipientList[];
  /** Pagination. */
  meta: PageMeta;
}

/** The response. */
export interface RecipientListResponse {
  /** The resource. */
  data: RecipientList;
}

/** The status of a campaign's recipient. */
export type RecipientStatus = "pending" | "sent" | "delivered" | "read" | "failed" | "skipped" | "unknown";

/** The group of a row. */
export type ReportKey = number | string;

/** The current sales funnel. */
export interface SalesDashboard {
  /** Boards that are not archived, ordered by id; for a user, those they may see. */
  boards: BoardFunnel[];
  /** The total of all boards. */
  total: FunnelTotal;
}

/** The response. */
export interface SalesDashboardResponse {
  /** The resource. */
  data: SalesDashboard;
}

/** Won and lost cards by day, user, origin or product. For a product, values are the totals of its lines. */
export interface SalesReportRow {
  /** The group: a day, or the id of a user, origin or product; `null` for cards without one. */
  key: ReportKey | null;
  /** The day, or the record's name; `null` if there is none. */
  label: string | null;
  /** Lost cards. */
  lostCards: number;
  /** Total value of the lost cards. */
  lostValue: Amount;
  /** Won cards. */
  wonCards: number;
  /** Total value of the won cards. */
  wonValue: Amount;
}

/** The rows of a report. */
export interface SalesReportRowReport {
  /** The resource. */
  data: SalesReportRow[];
}

/** A scheduled message. */
export interface Schedule {
  /** The text as written; variables are filled in when it is sent. */
  body: string;
  /** The channel, as `GET /channels` lists it. */
  channelId: ChannelId;
  /** The recipient; `null` if the contact has been deleted. */
  contact: ScheduleContact | null;
  /** When it was created. */
  createdAt: Timestamp;
  /** Why the message failed. */
  error: ScheduleFailure | null;
  /** The id. */
  id: ScheduleId;
  /** The message that was sent. */
  messageId: MessageId | null;
  /** The queue its ticket is moved to when it is sent. */
  queueId: QueueId | null;
  /** When it is sent, within five seconds. */
  sendAt: Timestamp;
  /** The status. */
  status: ScheduleStatus;
  /** When it was last updated. */
  updatedAt: Timestamp;
  /** The user on whose behalf it was scheduled. */
  userCreated: UserRef | null;
}

/** The recipient of a scheduled message. */
export interface ScheduleContact {
  /** The id. */
  id: ContactId;
  /** Name. */
  name: string;
  /** Phone number: digits only, including the country code. */
  number: string | null;
}

/** A new scheduled message. */
export interface ScheduleCreate {
  /** At most 65,536 bytes */
  body: string;
  /** The channel, as `GET /channels` lists it. */
  channelId: number;
  /** The contact. */
  contactId: number;
  /** The queue, as `GET /queues` lists it. */
  queueId?: number | null;
  /** A time in the future */
  sendAt: string | Date;
  /** The user, as `GET /users` lists them. */
  userId?: number | null;
}

/** Why a scheduled message could not be sent. */
export interface ScheduleFailure {
  /** The error code of `POST /messages`. */
  code: string;
  /** A message for people. */
  message: string;
}

/** The id of a schedule. */
export type ScheduleId = number;

/** A page of results. */
export interface ScheduleList {
  /** The resource. */
  data: Schedule[];
  /** Pagination. */
  meta: PageMeta;
}

/** The response. */
export interface ScheduleResponse {
  /** The resource. */
  data: Schedule;
}

/** The status of a scheduled message. */
export type ScheduleStatus = "pending" | "sent" | "canceled" | "failed";

/** Changes to a scheduled message. */
export interface ScheduleUpdate {
  /** At most 65,536 bytes */
  body?: string;
  /** The channel, as `GET /channels` lists it. */
  channelId?: number;
  /** The contact. */
  contactId?: number;
  /** The queue, as `GET /queues` lists it. */
  queueId?: number | null;
  /** A time in the future */
  sendAt?: string | Date;
}

/** The current state of the service desk. */
export interface ServiceDashboard {
  /** The longest current wait for a reply, in seconds; `null` if no contact is waiting. */
  oldestWaitingSeconds: number | null;
  /** The company's open tickets. */
  openTickets: number;
  /** All queues, ordered by id. */
  queues: QueueDesk[];
  /** Activity since midnight in the company's time zone. */
  today: ServiceDay;
  /** Open tickets without an agent. */
  unassignedTickets: number;
  /** All users, ordered by id. */
  users: UserDesk[];
  /** Open tickets whose contact is waiting for a reply by a user, an integration or a chatbot. */
  waitingAgent: number;
  /** Open tickets that wait for the contact: the company replied last, or there are no messages yet. */
  waitingContact: number;
}

/** The response. */
export interface ServiceDashboardResponse {
  /** The resource. */
  data: ServiceDashboard;
}

/** Today's activity. */
export interface ServiceDay {
  /** As in the ticket report. */
  avgFirstResponseSeconds: number | null;
  /** Tickets closed. */
  closed: number;
  /** Messages from contacts. */
  inbound: number;
  /** Tickets opened. */
  opened: number;
  /** Messages from the company. */
  outbound: number;
}

/** A visitor session in a webchat. */
export interface Session {
  /** The channel, as `GET /channels` lists it. */
  channelId: ChannelId;
  /** Unverified data from the visitor's browser; `null` if there is none. */
  claimed: Claimed | null;
  /** The contact. */
  contact: Contact;
  /** When it was created. */
  createdAt: Timestamp;
  /** When it ended. */
  endedAt: Timestamp | null;
  /** The id. */
  id: SessionId;
  /** When the visitor was last online. */
  lastSeenAt: Timestamp;
  /** `active` until it ends. */
  status: SessionStatus;
  /** The ticket; `null` until the first message. */
  ticketId: TicketId | null;
  /** The visitor's token, only in the response to the opening; `null` in the response to a retry. */
  token?: string | null;
  /** Whether the visitor's identity was confirmed by the company or by an identity it signed. */
  verified: boolean;
}

/** The id of a visitor session: an unguessable string. */
export type SessionId = string;

/** A visitor's message: `body` or `reply`. */
export interface SessionMessageSend {
  /** At most 65,536 bytes */
  body?: string | null;
  /** An id chosen by the client. Sending again with the same id returns the first message. */
  clientId?: string | null;
  /** The chosen option of an interactive message; instead of `body`. */
  reply?: { id: string; messageId: number; } | null;
}

/** One file, with an optional text. */
export interface SessionMessageSendForm {
  /** Text that accompanies the file. */
  body?: string | null;
  /** An id chosen by the client. Sending again with the same id returns the first message. */
  clientId?: string | null;
  /** The file: exactly one part of this name. */
  medias?: Upload[];
}

/** A new visitor session. */
export interface SessionOpen {
  /** A webchat. */
  channelId: number;
  /** The contact; otherwise `visitor` identifies one. */
  contactId?: number | null;
  /** The visitor's current page. */
  page?: { referrer?: string | null; title?: string | null; url?: string | null; } | null;
  /** UTM parameters of the visit. */
  utm?: { campaign?: string | null; id?: string | null; medium?: string | null; source?: string | null; } | null;
  /** Visitor data. A contact is found by `externalId`, then `number`, then `email`. */
  visitor?: { email?: string | null; externalId?: string | null; name?: string | null; number?: string | null; } | null;
}

/** The response. */
export interface SessionResponse {
  /** The resource. */
  data: Session;
}

/** The status of a visitor session. */
export type SessionStatus = "active" | "ended";

/** A place. */
export interface SharedLocation {
  /** The address. */
  address: string | null;
  /** The latitude in degrees. */
  latitude: number | null;
  /** The longitude in degrees. */
  longitude: number | null;
  /** Name. */
  name: string | null;
  /** The address of a web page on it. */
  url: string | null;
}

/** Who caused a change. */
export type Source = "api" | "user" | "bot" | "automation" | "campaign" | "schedule" | "contact";

/** A stage of a board. */
export interface Stage {
  /** When it was created. */
  createdAt: Timestamp;
  /** The board. */
  crmBoardId: BoardId;
  /** Whether the stage is for won cards; at most one stage of a board. */
  doneList: boolean;
  /** The id. */
  id: BoardListId;
  /** The stage's name. */
  label: string;
  /** Position from left to right, in ascending order; ties are ordered by id. The first stage is 1 by default. */
  position: number;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new stage. */
export interface StageCreate {
  /** Whether the stage is for won cards; at most one stage of a board. */
  doneList?: boolean | null;
  /** The stage's name. */
  label: string;
  /** Position from left to right, in ascending order; ties are ordered by id. The first stage is 1 by default. */
  position?: number | null;
}

/** A page of results. */
export interface StageList {
  /** The resource. */
  data: Stage[];
  /** Pagination. */
  meta: PageMeta;
}

/** The order of a board's stages: all of them, each once. */
export interface StageOrder {
  /** All ids, each once */
  orderedIds: number[];
}

/** The response. */
export interface StageResponse {
  /** The resource. */
  data: Stage;
}

/** The open cards of a stage. */
export interface StageSum {
  /** Open cards in the stage. */
  cards: number;
  /** The id. */
  id: BoardListId;
  /** The stage's name. */
  label: string;
  /** The sum of their `productsTotal`. */
  value: Amount;
}

/** Changes to a stage. */
export interface StageUpdate {
  /** Whether the stage is for won cards; at most one stage of a board. */
  doneList?: boolean;
  /** The stage's name. */
  label?: string;
  /** Position from left to right, in ascending order; ties are ordered by id. The first stage is 1 by default. */
  position?: number;
}

/** A stage of a board with its first cards. */
export interface StageWithCards {
  /**
   * The first cards, from the top. Boards with more than ten stages return fewer per stage, at most 1,000 cards
   * in total. `GET /crm/boards/{boardId}/cards?crmBoardListId=` returns all of them.
   */
  cards: Card[];
  /** Number of cards in the stage, including those not returned here. */
  countCards: number;
  /** When it was created. */
  createdAt: Timestamp;
  /** The board. */
  crmBoardId: BoardId;
  /** Whether the stage is for won cards; at most one stage of a board. */
  doneList: boolean;
  /** The id. */
  id: BoardListId;
  /** The name. */
  label: string;
  /** Position from left to right, in ascending order; ties are ordered by id. The first stage is 1 by default. */
  position: number;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A story of a social channel. Its picture is the message's `media`. */
export interface StoryReference {
  /** The provider's id of the story. */
  id: string | null;
  /** The provider's id of its picture or video. */
  mediaId: string | null;
  /** Where the provider shows it, for a day at most. */
  url: string | null;
}

/** A form that the contact submitted. */
export interface SubmittedForm {
  /** What the contact entered, by the names of the form's fields. */
  answers: { [key: string]: unknown } | null;
  /** Its name at the provider. */
  name: string | null;
}

/** A coloured label for contacts. */
export interface Tag {
  /** A colour as `#rrggbb`. */
  color: string;
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: TagId;
  /** Name, unique in the company. */
  name: string;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new tag. */
export interface TagCreate {
  /** A colour as `#rrggbb`. */
  color?: string | null;
  /** Name, unique in the company. */
  name: string;
}

/** The id of a tag. */
export type TagId = number;

/** A page of results. */
export interface TagList {
  /** The resource. */
  data: Tag[];
  /** Pagination. */
  meta: PageMeta;
}

/** The response. */
export interface TagResponse {
  /** The resource. */
  data: Tag;
}

/** Changes to a tag. */
export interface TagUpdate {
  /** A colour as `#rrggbb`. */
  color?: string;
  /** Name, unique in the company. */
  name?: string;
}

/** A message template of the channel's account at the provider. */
export interface Template {
  /** The category of use. */
  category: string;
  /** The components, in the provider's format. */
  components: ({ [key: string]: unknown })[];
  /** The language, in the provider's format. */
  language: string;
  /** The name; unique in the channel together with the language. */
  name: string;
  /** The provider's review status. */
  status: string;
}

/** A page of results. */
export interface TemplateList {
  /** The resource. */
  data: Template[];
  /** Pagination. */
  meta: PageMeta;
}

/** A ticket: a case in a conversation with a contact on a channel. */
export interface Ticket {
  /** The assigned agent. */
  assignedTo: UserRef | null;
  /** The channel. */
  channel: NamedChannel | null;
  /** When it was closed; `null` while it is open. */
  closedAt: Timestamp | null;
  /** The contact. */
  contact: TicketContact;
  /** When it was created. */
  createdAt: Timestamp;
  /** Who opened the ticket. */
  creationSource: Source;
  /** When the first reply since the opening was sent: by a user, an integration or a chatbot. */
  firstResponseAt: Timestamp | null;
  /**
   * The app of the provider that handles the conversation, if it is not Hotline: the provider may refuse the
   * company's messages meanwhile.
   */
  handledBy: TicketHandler | null;
  /** The id. */
  id: TicketId;
  /** When it was last opened, its last message was written, or it was closed. */
  lastActivityAt: Timestamp;
  /** The latest message. */
  lastMessage: LastMessage | null;
  /** When it was last opened. */
  openedAt: Timestamp;
  /** The queue. */
  queue: QueueRef | null;
  /** How many times it was reopened. */
  reopenCount: number;
  /** `open` or `closed`. */
  status: TicketStatus;
  /** Number of unread messages from the contact. */
  unreadCount: number;
  /** When it was last updated. */
  updatedAt: Timestamp;
  /**
   * Whether the contact is verified: a webchat visitor's identity was confirmed by the company or by an
   * identity it signed.
   */
  verified: boolean;
  /** Since when the contact has been waiting for an answer; `null`: no one waits. */
  waitingSince: Timestamp | null;
  /** Note about the wrap-up. */
  wrapupNote: string | null;
  /** The wrap-up type. */
  wrapupType: WrapupTypeRef | null;
}

/** The wrap-up of a ticket that is closed. */
export interface TicketClose {
  /** Note about the wrap-up. */
  wrapupNote?: string | null;
  /** The wrap-up type. */
  wrapupTypeId?: number | null;
}

/** The contact of a ticket. */
export interface TicketContact {
  /** The id. */
  id: ContactId;
  /** The contact's name. */
  name: string;
  /** Phone number: digits only, including the country code. */
  number: string | null;
}

/** A change of a ticket, with its author and the values before and after. */
export interface TicketEvent {
  /** When it was created. */
  createdAt: Timestamp;
  /** The changed values before: for example `{"queue": null, "assignedTo": null}` for a transfer. */
  from: { [key: string]: unknown } | null;
  /** The id. */
  id: EventId;
  /** The API token that caused it. */
  integration: TokenRef | null;
  /** Who caused it. */
  source: Source;
  /** The changed values after: for example `{"queue": {"id": 7, "name": "Support"}, "assignedTo": null}`. */
  to: { [key: string]: unknown } | null;
  /** The type of event. */
  type: EventType;
  /** The user, with their name at that time. */
  user: EventUser | null;
}

/** A page of results. */
export interface TicketEventList {
  /** The resource. */
  data: TicketEvent[];
  /** Pagination. */
  meta: PageMeta;
}

/** Who handles a conversation in place of Hotline. */
export interface TicketHandler {
  /** The app. */
  app: MessageApp;
}

/** The id of a ticket. */
export type TicketId = number;

/** A page of results. */
export interface TicketList {
  /** The resource. */
  data: Ticket[];
  /** Pagination. */
  meta: PageMeta;
}

/** The ticket that goes. */
export interface TicketMerge {
  /** The ticket that goes. */
  fromTicketId: number;
}

/** A new ticket. */
export interface TicketOpen {
  /** The channel, as `GET /channels` lists it. */
  channelId: number;
  /** The contact. */
  contactId: number;
  /** The queue, as `GET /queues` lists it. */
  queueId?: number | null;
  /** The assigned agent, as `GET /users` lists them. */
  userId?: number | null;
}

/** Tickets by day, queue, channel or user. */
export interface TicketReportRow {
  /**
   * Average time from the opening or last reopening of a ticket to its first response (`firstResponseAt`). Only
   * openings by contacts count, at the time of the response; failed messages, greetings, scheduled messages and
   * campaigns are not responses. `null` if there are none.
   */
  avgFirstResponseSeconds: number | null;
  /**
   * Average time from the opening or last reopening of a ticket to its closing, counted at each closing. `null`
   * if there are none.
   */
  avgResolutionSeconds: number | null;
  /** Number of closings. */
  closed: number;
  /** The group: a day, or the id of a queue, channel or user; `null` for tickets without one. */
  key: ReportKey | null;
  /** The day, or the record's name; `null` if there is none. */
  label: string | null;
  /** Tickets opened. */
  opened: number;
  /** Number of reopenings. */
  reopened: number;
}

/** The rows of a report. */
export interface TicketReportRowReport {
  /** The resource. */
  data: TicketReportRow[];
}

/** The response. */
export interface TicketResponse {
  /** The resource. */
  data: Ticket;
}

/** The status of a ticket. */
export type TicketStatus = "open" | "closed";

/** A ticket's new queue, agent, or both. */
export interface TicketTransfer {
  /** The new queue. */
  queueId?: number | null;
  /** The new agent; `null` unassigns the ticket. */
  userId?: number | null;
}

/** The wrap-up of a closed ticket. */
export interface TicketWrapup {
  /** Note about the wrap-up. */
  wrapupNote?: string | null;
  /** The wrap-up type. */
  wrapupTypeId: number;
}

/** A UTC time with milliseconds and `Z`. */
export type Timestamp = string;

/** A reference to a record, by id and name. */
export interface TokenRef {
  /** The token's id. */
  id: number;
  /** Name. */
  name: string;
}

/** A user: a person as a member of one company. In another company the same person is another user. */
export interface User {
  /** Whether the user is active. Only active agents are assigned tickets. */
  active: boolean;
  /** When it was created. */
  createdAt: Timestamp;
  /** E-mail address, unique in the company. */
  email: string;
  /** The id. */
  id: UserId;
  /** The user's name in this company. */
  name: string;
  /** The permission profile. */
  profile: ProfileRef | null;
  /** The user's queues. */
  queues: QueueRef[];
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new user. */
export interface UserCreate {
  /** Whether the user is active. Only active agents are assigned tickets. */
  active?: boolean | null;
  /** E-mail address, unique in the company. */
  email: string;
  /** The user's name in this company. */
  name: string;
  /** Password for signing in; at least 12 characters. */
  password?: string | null;
  /** The permission profile, as `GET /profiles` lists it. */
  profileId?: number | null;
  /** The user's queues; replaces the current ones. */
  queueIds?: number[] | null;
}

/** A user's open tickets. */
export interface UserDesk {
  /** The id. */
  id: UserId;
  /** Name. */
  name: string;
  /** The user's open tickets. */
  open: number;
}

/** The id of a user: a person's membership in one company. */
export type UserId = number;

/** A page of results. */
export interface UserList {
  /** The resource. */
  data: User[];
  /** Pagination. */
  meta: PageMeta;
}

/** Ticket metrics of a user. */
export interface UserMetrics {
  /** Number of tickets assigned to the user. */
  count_tickets: number;
  /** Ids of the user's queues, comma-separated. */
  queues: string;
  /** The user. */
  user_id: UserId;
  /** The user's name. */
  user_name: string;
  /** Name of the user's profile; empty if there is none. */
  user_profile: string;
}

/** A page of results. */
export interface UserMetricsList {
  /** The resource. */
  data: UserMetrics[];
  /** Pagination. */
  meta: PageMeta;
}

/** A reference to a record, by id and name. */
export interface UserRef {
  /** The user's id. */
  id: number;
  /** The user's name in this company. */
  name: string;
}

/** The response. */
export interface UserResponse {
  /** The resource. */
  data: User;
}

/** Changes to a user. */
export interface UserUpdate {
  /** Whether the user is active. Only active agents are assigned tickets. */
  active?: boolean;
  /** E-mail address, unique in the company. */
  email?: string;
  /** The user's name in this company. */
  name?: string;
  /** Password for signing in; at least 12 characters. */
  password?: string | null;
  /** The permission profile, as `GET /profiles` lists it. */
  profileId?: number | null;
  /** The user's queues; replaces the current ones. */
  queueIds?: number[];
}

/** Which build this is. */
export interface Version {
  /** The date of that commit, or `unknown`. */
  built: string;
  /** The commit it was built from, or `unknown`. */
  commit: string;
  /** The version of the release. */
  version: string;
}

/** By which app a message was sent or handled instead of Hotline. */
export type Via = "nativeApp" | "otherApp";

/** A visitor's activity. */
export interface VisitorActivity {
  /** Whether the visitor has an open socket. */
  online: boolean;
  /** Whether the visitor is typing. */
  typing: boolean;
}

/** The response. */
export interface VisitorActivityResponse {
  /** The resource. */
  data: VisitorActivity;
}

/** Visitor data and origin. An empty object opens an anonymous session. */
export interface VisitorArrival {
  /** A JSON Web Token signed by the website's server with the channel's identity secret. */
  identity?: string | null;
  /** The visitor's current page. */
  page?: { referrer?: string | null; title?: string | null; url?: string | null; } | null;
  /** UTM parameters of the visit. */
  utm?: { campaign?: string | null; id?: string | null; medium?: string | null; source?: string | null; } | null;
  /** Unverified visitor data. It is stored with the session and never used to find a contact. */
  visitor?: { email?: string | null; externalId?: string | null; name?: string | null; number?: string | null; } | null;
}

/** The visitor's identity, signed by the website. */
export interface VisitorIdentity {
  /** A JSON Web Token signed by the website's server with the channel's identity secret. */
  identity: string;
}

/** A message, as a visitor sees it. */
export interface VisitorMessage {
  /** The agent who wrote it; for messages from the company. */
  agent: MessageAgent | null;
  /** The text; `null` for messages without one. */
  body: string | null;
  /** The id chosen by this session's browser; `null` for other messages. */
  clientId: string | null;
  /** When it was created. */
  createdAt: Timestamp;
  /** `inbound` from the contact, `outbound` from the company, `internal` between agents. */
  direction: Direction;
  /** The id. */
  id: MessageId;
  /** The options to choose from, as they were sent. */
  interactive: { [key: string]: unknown } | null;
  /** The file. */
  media: MediaFile | null;
  /** The message it replies to. */
  quotedMessageId: MessageId | null;
  /** When the recipient read it. */
  readAt: Timestamp | null;
  /** `sent`, `delivered` or `read`; `received` for the visitor's own messages. */
  status: MessageStatus;
  /** The type. */
  type: MessageType;
}

/** A page of results. */
export interface VisitorMessageList {
  /** The resource. */
  data: VisitorMessage[];
  /** Pagination. */
  meta: PageMeta;
}

/** The response. */
export interface VisitorMessageResponse {
  /** The resource. */
  data: VisitorMessage;
}

/** A session, as its visitor sees it. */
export interface VisitorSession {
  /** When it was created. */
  createdAt: Timestamp;
  /** When it ended. */
  endedAt: Timestamp | null;
  /** The id. */
  id: SessionId;
  /** When the visitor was last online. */
  lastSeenAt: Timestamp;
  /** `active` until it ends. */
  status: SessionStatus;
  /** The session's token, only in the response that opens the session. */
  token?: string;
  /** Whether the website confirmed the visitor's identity by a signature. */
  verified: boolean;
}

/** The response. */
export interface VisitorSessionResponse {
  /** The resource. */
  data: VisitorSession;
}

/** Why a message is waiting. */
export interface WaitingFor {
  /** `channel_disconnected` or `channel_error`. */
  code: string;
  /** A message for people. */
  message: string;
}

/** A webhook: an endpoint that receives a company's events. */
export interface Webhook {
  /** Whether the webhook is enabled. */
  active: boolean;
  /** When it was created. */
  createdAt: Timestamp;
  /** Description. */
  description: string | null;
  /** Why the webhook was disabled automatically. */
  disabledReason: string | null;
  /** The id. */
  id: WebhookId;
  /** The event types to send; empty for all. */
  types: string[];
  /** When it was last updated. */
  updatedAt: Timestamp;
  /** The URL to send events to. */
  url: string;
}

/** An attempt to deliver an event. */
export interface WebhookAttempt {
  /** When the attempt started. */
  at: Timestamp;
  /** Duration in milliseconds. */
  durationMs: number;
  /** Why the delivery failed. */
  error: string | null;
  /** The endpoint's HTTP status; `null` if it did not respond. */
  status: number | null;
}

/** A new webhook: at least `url`. */
export interface WebhookCreate {
  /** Whether the webhook is enabled. */
  active?: boolean | null;
  /** Description. */
  description?: string | null;
  /** The event types to send; empty for all. */
  types?: ("ticket.opened" | "ticket.assigned" | "ticket.transferred" | "ticket.closed" | "ticket.reopened" | "ticket.wrapup_changed" | "ticket.read" | "message.received" | "message.created" | "message.sent" | "message.delivered" | "message.read" | "message.failed" | "message.updated" | "note.added" | "session.started" | "session.ended" | "contact.created" | "contact.updated" | "contact.deleted" | "contact.tagged" | "contact.untagged" | "card.created" | "card.updated" | "card.moved" | "card.won" | "card.lost" | "card.reopened" | "card.deleted" | "schedule.created" | "schedule.updated" | "schedule.sent" | "schedule.failed" | "schedule.canceled" | "campaign.started" | "campaign.paused" | "campaign.resumed" | "campaign.completed" | "campaign.canceled" | "channel.connected" | "channel.disconnected" | "channel.error" | "contact.identified" | "message.deleted" | "message.reaction" | "channel.template_changed" | "contact.merged" | "ticket.merged")[] | null;
  /** The URL to send events to. */
  url: string;
}

/** The delivery of an event to a webhook. */
export interface WebhookDelivery {
  /** The latest attempts, at most 20. */
  attempts: WebhookAttempt[];
  /** When the event happened. */
  createdAt: Timestamp;
  /** The event's id. */
  eventId: LoggedEventId;
  /** The event's id; unique within the webhook. */
  id: LoggedEventId;
  /** When a pending delivery is retried; `null` while an earlier event of the same record is pending. */
  nextAttemptAt: Timestamp | null;
  /** The delivery's status. */
  status: DeliveryStatus;
  /** The event's type. */
  type: EventKind;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A page of results. */
export interface WebhookDeliveryList {
  /** The resource. */
  data: WebhookDelivery[];
  /** Pagination. */
  meta: PageMeta;
}

/** The id of a webhook. */
export type WebhookId = number;

/** A page of results. */
export interface WebhookList {
  /** The resource. */
  data: Webhook[];
  /** Pagination. */
  meta: PageMeta;
}

/** The events to send again: exactly one of `after`, `deliveryId` and `failedSince`. */
export interface WebhookReplay {
  /** An event id: all later events are sent again, up to the current position. */
  after?: number | null;
  /** A delivery of this webhook. */
  deliveryId?: number | null;
  /** A time: all deliveries that failed since then are sent again. */
  failedSince?: string | Date | null;
}

/** The events that are sent again. */
export interface WebhookReplayed {
  /** Number of deliveries; with `after`, the number of events to examine. */
  deliveries: number;
}

/** The response. */
export interface WebhookReplayedResponse {
  /** The resource. */
  data: WebhookReplayed;
}

/** The response. */
export interface WebhookResponse {
  /** The resource. */
  data: Webhook;
}

/** The result of a test. */
export interface WebhookTest {
  /** The first 1,000 characters of the response. */
  body: string;
  /** Whether the delivery succeeded. */
  delivered: boolean;
  /** Duration in milliseconds. */
  durationMs: number;
  /** Why the delivery failed. */
  error: string | null;
  /** The endpoint's HTTP status; `null` if it did not respond. */
  status: number | null;
}

/** The response. */
export interface WebhookTestResponse {
  /** The resource. */
  data: WebhookTest;
}

/** Changes to a webhook. */
export interface WebhookUpdate {
  /** Whether the webhook is enabled. */
  active?: boolean;
  /** Description. */
  description?: string | null;
  /** The event types to send; empty for all. */
  types?: ("ticket.opened" | "ticket.assigned" | "ticket.transferred" | "ticket.closed" | "ticket.reopened" | "ticket.wrapup_changed" | "ticket.read" | "message.received" | "message.created" | "message.sent" | "message.delivered" | "message.read" | "message.failed" | "message.updated" | "note.added" | "session.started" | "session.ended" | "contact.created" | "contact.updated" | "contact.deleted" | "contact.tagged" | "contact.untagged" | "card.created" | "card.updated" | "card.moved" | "card.won" | "card.lost" | "card.reopened" | "card.deleted" | "schedule.created" | "schedule.updated" | "schedule.sent" | "schedule.failed" | "schedule.canceled" | "campaign.started" | "campaign.paused" | "campaign.resumed" | "campaign.completed" | "campaign.canceled" | "channel.connected" | "channel.disconnected" | "channel.error" | "contact.identified" | "message.deleted" | "message.reaction" | "channel.template_changed" | "contact.merged" | "ticket.merged")[];
  /** The URL to send events to. */
  url?: string;
}

/** A webhook with its secret, which is shown only once. */
export interface WebhookWithSecret {
  /** Whether it is active. */
  active: boolean;
  /** When it was created. */
  createdAt: Timestamp;
  /** Description. */
  description: string | null;
  /** Why the webhook was disabled automatically. */
  disabledReason: string | null;
  /** The id. */
  id: WebhookId;
  /** The signing secret: `whsec_` and a key in base64. `null` in the response to a retry. */
  secret: string | null;
  /** The event types to send; empty for all. */
  types: string[];
  /** When it was last updated. */
  updatedAt: Timestamp;
  /** The URL to send events to. */
  url: string;
}

/** The response. */
export interface WebhookWithSecretResponse {
  /** The resource. */
  data: WebhookWithSecret;
}

/** Attachments that a visitor may send. */
export interface WidgetAttachments {
  /** Maximum size of a file in bytes. */
  bytesMax: number;
}

/** Whether a visitor can expect a reply. */
export interface WidgetAvailability {
  /**
   * Whether an agent is available: in the last ten minutes, an active user of the channel's queue (without a
   * queue: of the company) has used the panel, or a reply on this channel was sent with an API token.
   */
  now: boolean;
}

/** The widget's configuration. */
export interface WidgetConfig {
  /** Attachments that a visitor may send. */
  attachments: WidgetAttachments;
  /** Whether a visitor can expect a reply. */
  availability: WidgetAvailability;
  /** The widget's colour. */
  color: string;
  /** The text shown before the first message. */
  greeting: string | null;
  /** Whether visitors must have a signed identity. */
  identityRequired: boolean;
  /** The side of the page where the widget opens. */
  position: WidgetPosition;
  /** The fields to ask for before the conversation, in this order; empty for none. */
  preChatFields: PreChatField[];
  /** The widget's title. */
  title: string | null;
}

/** The response. */
export interface WidgetConfigResponse {
  /** The resource. */
  data: WidgetConfig;
}

/** A category of wrap-up types. */
export interface WrapupCategory {
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: WrapupCategoryId;
  /** The category's name. */
  name: string;
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new wrap-up category. */
export interface WrapupCategoryCreate {
  /** The category's name. */
  name: string;
}

/** The id of a wrap-up category. */
export type WrapupCategoryId = number;

/** A page of results. */
export interface WrapupCategoryList {
  /** The resource. */
  data: WrapupCategory[];
  /** Pagination. */
  meta: PageMeta;
}

/** The response. */
export interface WrapupCategoryResponse {
  /** The resource. */
  data: WrapupCategory;
}

/** Changes to a wrap-up category. */
export interface WrapupCategoryUpdate {
  /** The category's name. */
  name?: string;
}

/** Closings with a wrap-up type. */
export interface WrapupReportRow {
  /** The category; `null` if the type has been deleted. */
  categoryId: WrapupCategoryId | null;
  /** Number of closings with this type; of a ticket that was reopened, with the type it had then. */
  count: number;
  /** Name. */
  name: string | null;
  /** Share of the closings with a wrap-up type, from 0 to 1, to four decimals. */
  share: number;
  /** The wrap-up type. */
  wrapupTypeId: WrapupTypeId;
}

/** The rows of a report. */
export interface WrapupReportRowReport {
  /** The resource. */
  data: WrapupReportRow[];
}

/** A wrap-up type: how a conversation ended. */
export interface WrapupType {
  /** Whether tickets can be closed with it. */
  active: boolean;
  /** The category. */
  categoryId: WrapupCategoryId;
  /** When it was created. */
  createdAt: Timestamp;
  /** The id. */
  id: WrapupTypeId;
  /** The wrap-up type's name. */
  name: string;
  /** The queues where it can be used. */
  queues: QueueRef[];
  /** When it was last updated. */
  updatedAt: Timestamp;
}

/** A new wrap-up type. */
export interface WrapupTypeCreate {
  /** Whether tickets can be closed with it. */
  active?: boolean | null;
  /** The category. */
  categoryId: number;
  /** The wrap-up type's name. */
  name: string;
  /** The queues it applies to; replaces the current ones. */
  queueIds?: number[] | null;
}

/** The id of a wrap-up type. */
export type WrapupTypeId = number;

/** A page of results. */
export interface WrapupTypeList {
  /** The resource. */
  data: WrapupType[];
  /** Pagination. */
  meta: PageMeta;
}

/** A reference to a record, by id and name. */
export interface WrapupTypeRef {
  /** The wrap-up type's id. */
  id: number;
  /** The wrap-up type's name. */
  name: string;
}

/** The response. */
export interface WrapupTypeResponse {
  /** The resource. */
  data: WrapupType;
}

/** Changes to a wrap-up type. */
export interface WrapupTypeUpdate {
  /** Whether tickets can be closed with it. */
  active?: boolean;
  /** The category. */
  categoryId?: number;
  /** The wrap-up type's name. */
  name?: string;
  /** The queues it applies to; replaces the current ones. */
  queueIds?: number[];
}

/** `campaign.canceled` */
export interface CampaignCanceledEvent extends EventBase {
  type: "campaign.canceled";
  /** The record at that time. */
  data: Campaign;
}

/** `campaign.completed` */
export interface CampaignCompletedEvent extends EventBase {
  type: "campaign.completed";
  /** The record at that time. */
  data: Campaign;
}

/** `campaign.paused` */
export interface CampaignPausedEvent extends EventBase {
  type: "campaign.paused";
  /** The record at that time. */
  data: Campaign;
}

/** `campaign.resumed` */
export interface CampaignResumedEvent extends EventBase {
  type: "campaign.resumed";
  /** The record at that time. */
  data: Campaign;
}

/** `campaign.started` */
export interface CampaignStartedEvent extends EventBase {
  type: "campaign.started";
  /** The record at that time. */
  data: Campaign;
}

/** `card.created` */
export interface CardCreatedEvent extends EventBase {
  type: "card.created";
  /** The record at that time. */
  data: Card;
}

/** `card.deleted` */
export interface CardDeletedEvent extends EventBase {
  type: "card.deleted";
  /** The record at that time. */
  data: Card;
}

/** `card.lost` */
export interface CardLostEvent extends EventBase {
  type: "card.lost";
  /** The record at that time. */
  data: Card;
}

/** `card.moved` */
export interface CardMovedEvent extends EventBase {
  type: "card.moved";
  /** The record at that time. */
  data: Card;
}

/** `card.reopened` */
export interface CardReopenedEvent extends EventBase {
  type: "card.reopened";
  /** The record at that time. */
  data: Card;
}

/** `card.updated` */
export interface CardUpdatedEvent extends EventBase {
  type: "card.updated";
  /** The record at that time. */
  data: Card;
}

/** `card.won` */
export interface CardWonEvent extends EventBase {
  type: "card.won";
  /** The record at that time. */
  data: Card;
}

/** `channel.connected` */
export interface ChannelConnectedEvent extends EventBase {
  type: "channel.connected";
  /** The record at that time. */
  data: Channel;
}

/** `channel.disconnected` */
export interface ChannelDisconnectedEvent extends EventBase {
  type: "channel.disconnected";
  /** The record at that time. */
  data: Channel;
}

/** `channel.error` */
export interface ChannelErrorEvent extends EventBase {
  type: "channel.error";
  /** The record at that time. */
  data: Channel;
}

/** `channel.template_changed` */
export interface ChannelTemplateChangedEvent extends EventBase {
  type: "channel.template_changed";
  /** The record at that time. */
  data: EventTemplate;
}

/** `contact.created` */
export interface ContactCreatedEvent extends EventBase {
  type: "contact.created";
  /** The record at that time. */
  data: Contact;
}

/** `contact.deleted` */
export interface ContactDeletedEvent extends EventBase {
  type: "contact.deleted";
  /** The record at that time. */
  data: Contact;
}

/** `contact.identified` */
export interface ContactIdentifiedEvent extends EventBase {
  type: "contact.identified";
  /** The record at that time. */
  data: Contact;
}

/** `contact.merged` */
export interface ContactMergedEvent extends EventBase {
  type: "contact.merged";
  /** The record at that time. */
  data: MergedContact;
}

/** `contact.tagged` */
export interface ContactTaggedEvent extends EventBase {
  type: "contact.tagged";
  /** The record at that time. */
  data: Contact;
}

/** `contact.untagged` */
export interface ContactUntaggedEvent extends EventBase {
  type: "contact.untagged";
  /** The record at that time. */
  data: Contact;
}

/** `contact.updated` */
export interface ContactUpdatedEvent extends EventBase {
  type: "contact.updated";
  /** The record at that time. */
  data: Contact;
}

/** `message.created` */
export interface MessageCreatedEvent extends EventBase {
  type: "message.created";
  /** The record at that time. */
  data: Message | GoneMessage;
}

/** `message.deleted` */
export interface MessageDeletedEvent extends EventBase {
  type: "message.deleted";
  /** The record at that time. */
  data: Message | GoneMessage;
}

/** `message.delivered` */
export interface MessageDeliveredEvent extends EventBase {
  type: "message.delivered";
  /** The record at that time. */
  data: Message | GoneMessage;
}

/** `message.failed` */
export interface MessageFailedEvent extends EventBase {
  type: "message.failed";
  /** The record at that time. */
  data: Message | GoneMessage;
}

/** `message.reaction` */
export interface MessageReactionEvent extends EventBase {
  type: "message.reaction";
  /** The record at that time. */
  data: Message | GoneMessage;
}

/** `message.read` */
export interface MessageReadEvent extends EventBase {
  type: "message.read";
  /** The record at that time. */
  data: Message | GoneMessage;
}

/** `message.received` */
export interface MessageReceivedEvent extends EventBase {
  type: "message.received";
  /** The record at that time. */
  data: EventMessage | GoneMessage;
}

/** `message.sent` */
export interface MessageSentEvent extends EventBase {
  type: "message.sent";
  /** The record at that time. */
  data: Message | GoneMessage;
}

/** `message.updated` */
export interface MessageUpdatedEvent extends EventBase {
  type: "message.updated";
  /** The record at that time. */
  data: Message | GoneMessage;
}

/** `note.added` */
export interface NoteAddedEvent extends EventBase {
  type: "note.added";
  /** The record at that time. */
  data: Message | GoneMessage;
}

/** `schedule.canceled` */
export interface ScheduleCanceledEvent extends EventBase {
  type: "schedule.canceled";
  /** The record at that time. */
  data: Schedule;
}

/** `schedule.created` */
export interface ScheduleCreatedEvent extends EventBase {
  type: "schedule.created";
  /** The record at that time. */
  data: Schedule;
}

/** `schedule.failed` */
export interface ScheduleFailedEvent extends EventBase {
  type: "schedule.failed";
  /** The record at that time. */
  data: Schedule;
}

/** `schedule.sent` */
export interface ScheduleSentEvent extends EventBase {
  type: "schedule.sent";
  /** The record at that time. */
  data: Schedule;
}

/** `schedule.updated` */
export interface ScheduleUpdatedEvent extends EventBase {
  type: "schedule.updated";
  /** The record at that time. */
  data: Schedule;
}

/** `session.ended` */
export interface SessionEndedEvent extends EventBase {
  type: "session.ended";
  /** The record at that time. */
  data: Session | GoneSession;
}

/** `session.started` */
export interface SessionStartedEvent extends EventBase {
  type: "session.started";
  /** The record at that time. */
  data: Session | GoneSession;
}

/** `ticket.assigned` */
export interface TicketAssignedEvent extends EventBase {
  type: "ticket.assigned";
  /** The record at that time. */
  data: Ticket;
}

/** `ticket.closed` */
export interface TicketClosedEvent extends EventBase {
  type: "ticket.closed";
  /** The record at that time. */
  data: Ticket;
}

/** `ticket.merged` */
export interface TicketMergedEvent extends EventBase {
  type: "ticket.merged";
  /** The record at that time. */
  data: MergedTicket;
}

/** `ticket.opened` */
export interface TicketOpenedEvent extends EventBase {
  type: "ticket.opened";
  /** The record at that time. */
  data: Ticket;
}

/** `ticket.read` */
export interface TicketReadEvent extends EventBase {
  type: "ticket.read";
  /** The record at that time. */
  data: Ticket;
}

/** `ticket.reopened` */
export interface TicketReopenedEvent extends EventBase {
  type: "ticket.reopened";
  /** The record at that time. */
  data: Ticket;
}

/** `ticket.transferred` */
export interface TicketTransferredEvent extends EventBase {
  type: "ticket.transferred";
  /** The record at that time. */
  data: Ticket;
}

/** `ticket.wrapup_changed` */
export interface TicketWrapupChangedEvent extends EventBase {
  type: "ticket.wrapup_changed";
  /** The record at that time. */
  data: Ticket;
}

/** `webhook.test` */
export interface WebhookTestEvent extends EventBase {
  type: "webhook.test";
  /** The record at that time. */
  data: { webhookId: number; };
}

/** The fields of every event. */
export interface EventBase {
  /** Who caused it. */
  by: EventAuthor;
  /** When it happened. */
  createdAt: Timestamp;
  /** Increases by one per event within the company. */
  id: LoggedEventId;
  /** The previous values of the changed fields; `null` if there are none. */
  previous: { [key: string]: unknown } | null;
}

/** A change of a record: `type` determines the type of `data`. */
export type CompanyEvent =
  | CampaignCanceledEvent
  | CampaignCompletedEvent
  | CampaignPausedEvent
  | CampaignResumedEvent
  | CampaignStartedEvent
  | CardCreatedEvent
  | CardDeletedEvent
  | CardLostEvent
  | CardMovedEvent
  | CardReopenedEvent
  | CardUpdatedEvent
  | CardWonEvent
  | ChannelConnectedEvent
  | ChannelDisconnectedEvent
  | ChannelErrorEvent
  | ChannelTemplateChangedEvent
  | ContactCreatedEvent
  | ContactDeletedEvent
  | ContactIdentifiedEvent
  | ContactMergedEvent
  | ContactTaggedEvent
  | ContactUntaggedEvent
  | ContactUpdatedEvent
  | MessageCreatedEvent
  | MessageDeletedEvent
  | MessageDeliveredEvent
  | MessageFailedEvent
  | MessageReactionEvent
  | MessageReadEvent
  | MessageReceivedEvent
  | MessageSentEvent
  | MessageUpdatedEvent
  | NoteAddedEvent
  | ScheduleCanceledEvent
  | ScheduleCreatedEvent
  | ScheduleFailedEvent
  | ScheduleSentEvent
  | ScheduleUpdatedEvent
  | SessionEndedEvent
  | SessionStartedEvent
  | TicketAssignedEvent
  | TicketClosedEvent
  | TicketMergedEvent
  | TicketOpenedEvent
  | TicketReadEvent
  | TicketReopenedEvent
  | TicketTransferredEvent
  | TicketWrapupChangedEvent
  | WebhookTestEvent;

/** A stable identifier of an error. */
export type ErrorCode =
  | "ERR_API_BAD_REQUEST"
  | "ERR_API_COMPANY_INACTIVE"
  | "ERR_API_CONFLICT"
  | "ERR_API_CONTACT_NOT_FOUND"
  | "ERR_API_CONTACT_NOT_IDENTIFIED"
  | "ERR_API_CONTACT_UNREACHABLE"
  | "ERR_API_FORBIDDEN_ORIGIN"
  | "ERR_API_FORBIDDEN_SCOPE"
  | "ERR_API_IDEMPOTENCY_CONFLICT"
  | "ERR_API_INTERACTIVE_INVALID"
  | "ERR_API_INTERNAL"
  | "ERR_API_LINK_EXPIRED"
  | "ERR_API_MEDIA_EMPTY"
  | "ERR_API_MEDIA_TYPE_MISMATCH"
  | "ERR_API_MEDIA_TYPE_UNKNOWN"
  | "ERR_API_METHOD_NOT_ALLOWED"
  | "ERR_API_NOT_ENABLED"
  | "ERR_API_NOT_FOUND"
  | "ERR_API_PAYLOAD_TOO_LARGE"
  | "ERR_API_PRECONDITION_FAILED"
  | "ERR_API_RANGE_NOT_SATISFIABLE"
  | "ERR_API_RATE_LIMITED"
  | "ERR_API_SECOND_FACTOR"
  | "ERR_API_SIGN_IN"
  | "ERR_API_TICKET_CLOSED"
  | "ERR_API_UNAUTHORIZED"
  | "ERR_API_UNAVAILABLE"
  | "ERR_API_UNSUPPORTED_MEDIA_TYPE"
  | "ERR_API_VALIDATION"
  | "ERR_API_WINDOW_CLOSED";
