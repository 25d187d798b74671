// Generated from openapi.json by `make clients-generate`. Do not edit.

import type { List } from "../list.js";
import { Resource, segment } from "../resource.js";
import type { CallOptions, ConditionalOptions, ConditionalWriteOptions, WriteOptions } from "../options.js";
import type { Transport } from "../transport.js";
import type { Upload } from "../files.js";
import type * as t from "./types.js";

/** What `boards.list` may be narrowed by. */
export interface ListBoardsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** Whether to list archived records instead of active ones. */
  archived?: boolean;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** What `boards.listCards` may be narrowed by. */
export interface ListBoardCardsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** The stage of a board. */
  crmBoardListId?: number;
  /** The responsible user. */
  assignedToUserId?: number;
  /** The contact. */
  contactId?: number;
  /** The card's status. */
  statusId?: number;
  /** The card's business. */
  businessId?: number;
  /** The card's origin. */
  originId?: number;
  /** The ticket. */
  ticketId?: number;
  /** Whether the card was won. */
  won?: boolean;
  /** Whether the card was lost. */
  lost?: boolean;
  /** Matches cards whose name or description contains every word; ignores case and accents. */
  search?: string;
  /** due at or after this time */
  dueFrom?: string | Date;
  /** due at or before this time */
  dueTo?: string | Date;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** What `boards.getIndicators` may be narrowed by. */
export interface GetBoardIndicatorsQuery {
  /** Start of the period for won and lost cards. Default: no limit. */
  from?: string | Date;
  /** End of the period for won and lost cards. Default: now. */
  to?: string | Date;
}

/** The operations on boards. */
export class Boards extends Resource {
  /**
   * List boards. Lists boards that are not archived, ordered by id; with `archived=true`, the archived ones.
   * Requires the permission `crm` `GET`.
   */
  list(query: ListBoardsQuery = {}, options: CallOptions = {}): List<t.Board> {
    return this.transport.list<t.Board>({ id: "listBoards", method: "GET", path: "/api/v1/crm/boards", query }, options);
  }

  /**
   * Create a board. Creates a board with its stages and queues, atomically. By default it has three stages: to
   * do, in progress and done. Requires the permission `crm` `POST`.
   */
  create(body: t.BoardCreate, options: WriteOptions = {}): Promise<t.Board> {
    return this.transport.data<t.Board>({ id: "createBoard", method: "POST", path: "/api/v1/crm/boards", body, keyed: true }, options);
  }

  /**
   * Delete an empty board. Deletes a board with its stages. Fails while it has cards. Requires the permission
   * `crm` `DELETE`.
   */
  delete(boardId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteBoard", method: "DELETE", path: `/api/v1/crm/boards/${segment(boardId)}` }, options);
  }

  /**
   * Get a board with its stages and first cards. Returns a board, archived or not, with its stages from left to
   * right. Each stage has its number of cards and its first cards: together at most 1,000 cards and 10,000
   * contacts, shared between the stages, with at least one card each; fewer if these contacts have more than 32
   * MiB. Requires the permission `crm` `GET`.
   */
  get(boardId: number, options: CallOptions = {}): Promise<t.BoardWithStages> {
    return this.transport.data<t.BoardWithStages>({ id: "getBoard", method: "GET", path: `/api/v1/crm/boards/${segment(boardId)}` }, options);
  }

  /**
   * Update, archive or unarchive a board. Updates the given fields; `crmBoardQueues` replaces the queues. An
   * archived board is hidden from the list but can still be used. Requires the permission `crm` `PUT`.
   */
  update(boardId: number, body: t.BoardUpdate, options: WriteOptions = {}): Promise<t.Board> {
    return this.transport.data<t.Board>({ id: "updateBoard", method: "PUT", path: `/api/v1/crm/boards/${segment(boardId)}`, body, keyed: true }, options);
  }

  /**
   * List the cards of a board. Lists the cards of a board, ordered by id; with `crmBoardListId`, the cards of
   * one stage, ordered by position. A page by number whose contacts have more than 32 MiB is refused with
   * `perPage`. Requires the permission `crm` `GET`.
   */
  listCards(boardId: number, query: ListBoardCardsQuery = {}, options: CallOptions = {}): List<t.Card> {
    return this.transport.list<t.Card>({ id: "listBoardCards", method: "GET", path: `/api/v1/crm/boards/${segment(boardId)}/cards`, query }, options);
  }

  /**
   * Get the sales indicators of a board. Returns the sales indicators of a board. `open` and `lists` are
   * current; `from` and `to` limit won and lost cards; months and years use the company's time zone. Sums are
   * exact. Requires the permission `crm` `GET`.
   */
  getIndicators(boardId: number, query: GetBoardIndicatorsQuery = {}, options: CallOptions = {}): Promise<t.BoardIndicators> {
    return this.transport.data<t.BoardIndicators>({ id: "getBoardIndicators", method: "GET", path: `/api/v1/crm/boards/${segment(boardId)}/indicators`, query }, options);
  }

  /**
   * Add a stage. Adds a stage to a board, at the end by default. At most one stage of a board is for won cards.
   * Requires the permission `crm` `POST`.
   */
  addStage(boardId: number, body: t.StageCreate, options: WriteOptions = {}): Promise<t.Stage> {
    return this.transport.data<t.Stage>({ id: "addStage", method: "POST", path: `/api/v1/crm/boards/${segment(boardId)}/lists`, body, keyed: true }, options);
  }

  /** Reorder the stages. Sets the order of all stages of a board. Requires the permission `crm` `PUT`. */
  reorderStages(boardId: number, body: t.StageOrder, options: WriteOptions = {}): Promise<t.Stage[]> {
    return this.transport.data<t.Stage[]>({ id: "reorderStages", method: "PUT", path: `/api/v1/crm/boards/${segment(boardId)}/lists/order`, body, keyed: true }, options);
  }

  /** Delete an empty stage. Deletes a stage. Fails while it has cards. Requires the permission `crm` `DELETE`. */
  deleteStage(boardId: number, listId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteStage", method: "DELETE", path: `/api/v1/crm/boards/${segment(boardId)}/lists/${segment(listId)}` }, options);
  }

  /** Update a stage. Updates the given fields. Requires the permission `crm` `PUT`. */
  updateStage(boardId: number, listId: number, body: t.StageUpdate, options: WriteOptions = {}): Promise<t.Stage> {
    return this.transport.data<t.Stage>({ id: "updateStage", method: "PUT", path: `/api/v1/crm/boards/${segment(boardId)}/lists/${segment(listId)}`, body, keyed: true }, options);
  }
}

/** What `businesses.list` may be narrowed by. */
export interface ListBusinessesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on businesses. */
export class Businesses extends Resource {
  /** List businesses. Lists the company's businesses, ordered by id. Requires the permission `crm` `GET`. */
  list(query: ListBusinessesQuery = {}, options: CallOptions = {}): List<t.Business> {
    return this.transport.list<t.Business>({ id: "listBusinesses", method: "GET", path: "/api/v1/crm/businesses", query }, options);
  }

  /**
   * Create a business. Creates a business; its name is unique in the company. Requires the permission `crm`
   * `POST`.
   */
  create(body: t.BusinessCreate, options: WriteOptions = {}): Promise<t.Business> {
    return this.transport.data<t.Business>({ id: "createBusiness", method: "POST", path: "/api/v1/crm/businesses", body, keyed: true }, options);
  }

  /**
   * Delete a business. Deletes a business. Its cards have no business afterwards. Requires the permission `crm`
   * `DELETE`.
   */
  delete(businessId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteBusiness", method: "DELETE", path: `/api/v1/crm/businesses/${segment(businessId)}` }, options);
  }

  /** Update a business. Updates the given fields. Requires the permission `crm` `PUT`. */
  update(businessId: number, body: t.BusinessUpdate, options: WriteOptions = {}): Promise<t.Business> {
    return this.transport.data<t.Business>({ id: "updateBusiness", method: "PUT", path: `/api/v1/crm/businesses/${segment(businessId)}`, body, keyed: true }, options);
  }
}

/** What `campaigns.list` may be narrowed by. */
export interface ListCampaignsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** The channel. */
  channelId?: number;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** The status. */
  status?: "scheduled" | "processing" | "paused" | "completed" | "canceled";
  /** The contact list. */
  contactListId?: number;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** What `campaigns.listRecipients` may be narrowed by. */
export interface ListCampaignRecipientsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** The status. */
  status?: "pending" | "sent" | "delivered" | "read" | "failed" | "skipped" | "unknown";
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on campaigns. */
export class Campaigns extends Resource {
  /**
   * List campaigns. Lists campaigns, ordered by id. Includes every change acknowledged before the request.
   * Requires the permission `campaigns` `GET`.
   */
  list(query: ListCampaignsQuery = {}, options: CallOptions = {}): List<t.Campaign> {
    return this.transport.list<t.Campaign>({ id: "listCampaigns", method: "GET", path: "/api/v1/campaigns", query }, options);
  }

  /**
   * Create a campaign. Creates a campaign: a text, or a template of its channel, for every contact of a list.
   * It starts at `scheduledAt`, or when `startCampaign` is called. Variables are filled in for each contact.
   * Requires the permission `campaigns` `POST`.
   */
  create(body: t.CampaignCreate, options: WriteOptions = {}): Promise<t.Campaign> {
    return this.transport.data<t.Campaign>({ id: "createCampaign", method: "POST", path: "/api/v1/campaigns", body, keyed: true }, options);
  }

  /**
   * Delete a campaign. Deletes a campaign and its recipients; its messages are kept. Fails while it is
   * processing or paused, and after a cancellation while recipients are pending. Requires the permission
   * `campaigns` `DELETE`.
   */
  delete(campaignId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteCampaign", method: "DELETE", path: `/api/v1/campaigns/${segment(campaignId)}` }, options);
  }

  /**
   * Get a campaign. Returns a campaign with the number of recipients by status. Requires the permission
   * `campaigns` `GET`.
   */
  get(campaignId: number, options: CallOptions = {}): Promise<t.Campaign> {
    return this.transport.data<t.Campaign>({ id: "getCampaign", method: "GET", path: `/api/v1/campaigns/${segment(campaignId)}` }, options);
  }

  /**
   * Update a campaign. Updates the given fields while the campaign is scheduled. A text replaces a template,
   * and vice versa. Requires the permission `campaigns` `PUT`.
   */
  update(campaignId: number, body: t.CampaignUpdate, options: WriteOptions = {}): Promise<t.Campaign> {
    return this.transport.data<t.Campaign>({ id: "updateCampaign", method: "PUT", path: `/api/v1/campaigns/${segment(campaignId)}`, body, keyed: true }, options);
  }

  /**
   * Cancel a campaign. Cancels a campaign. After the response, only messages already in flight are delivered;
   * the remaining recipients are skipped. Requires the permission `campaigns` `POST`.
   */
  cancel(campaignId: number, options: WriteOptions = {}): Promise<t.Campaign> {
    return this.transport.data<t.Campaign>({ id: "cancelCampaign", method: "POST", path: `/api/v1/campaigns/${segment(campaignId)}/cancel`, keyed: true }, options);
  }

  /**
   * Pause a campaign. Pauses a running campaign. No messages are created after the response. Messages created
   * before are still sent: at most one second of the campaign's rate, and between 1 and 64. Requires the
   * permission `campaigns` `POST`.
   */
  pause(campaignId: number, options: WriteOptions = {}): Promise<t.Campaign> {
    return this.transport.data<t.Campaign>({ id: "pauseCampaign", method: "POST", path: `/api/v1/campaigns/${segment(campaignId)}/pause`, keyed: true }, options);
  }

  /**
   * List the recipients of a campaign. Lists the recipients of a campaign with their status, ordered by contact
   * id. Empty before the campaign starts. Requires the permission `campaigns` `GET`.
   */
  listRecipients(campaignId: number, query: ListCampaignRecipientsQuery = {}, options: CallOptions = {}): List<t.CampaignRecipient> {
    return this.transport.list<t.CampaignRecipient>({ id: "listCampaignRecipients", method: "GET", path: `/api/v1/campaigns/${segment(campaignId)}/recipients`, query }, options);
  }

  /** Resume a campaign. Resumes a paused campaign where it stopped. Requires the permission `campaigns` `POST`. */
  resume(campaignId: number, options: WriteOptions = {}): Promise<t.Campaign> {
    return this.transport.data<t.Campaign>({ id: "resumeCampaign", method: "POST", path: `/api/v1/campaigns/${segment(campaignId)}/resume`, keyed: true }, options);
  }

  /**
   * Start a campaign now. Starts a campaign immediately. Its recipients are the contacts in its list at this
   * moment; each receives the message at most once, ordered by id and evenly spread at the campaign's rate.
   * Requires the permission `campaigns` `POST`.
   */
  start(campaignId: number, options: WriteOptions = {}): Promise<t.Campaign> {
    return this.transport.data<t.Campaign>({ id: "startCampaign", method: "POST", path: `/api/v1/campaigns/${segment(campaignId)}/start`, keyed: true }, options);
  }
}

/** What `cardOrigins.list` may be narrowed by. */
export interface ListCardOriginsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on cardOrigins. */
export class CardOrigins extends Resource {
  /** List card origins. Lists the company's card origins, ordered by id. Requires the permission `crm` `GET`. */
  list(query: ListCardOriginsQuery = {}, options: CallOptions = {}): List<t.CardOrigin> {
    return this.transport.list<t.CardOrigin>({ id: "listCardOrigins", method: "GET", path: "/api/v1/crm/origins", query }, options);
  }

  /**
   * Create a card origin. Creates a card origin; its name is unique in the company. Requires the permission
   * `crm` `POST`.
   */
  create(body: t.CardOriginCreate, options: WriteOptions = {}): Promise<t.CardOrigin> {
    return this.transport.data<t.CardOrigin>({ id: "createCardOrigin", method: "POST", path: "/api/v1/crm/origins", body, keyed: true }, options);
  }

  /**
   * Delete a card origin. Deletes a card origin. Its cards have no origin afterwards. Requires the permission
   * `crm` `DELETE`.
   */
  delete(originId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteCardOrigin", method: "DELETE", path: `/api/v1/crm/origins/${segment(originId)}` }, options);
  }

  /** Update a card origin. Updates the given fields. Requires the permission `crm` `PUT`. */
  update(originId: number, body: t.CardOriginUpdate, options: WriteOptions = {}): Promise<t.CardOrigin> {
    return this.transport.data<t.CardOrigin>({ id: "updateCardOrigin", method: "PUT", path: `/api/v1/crm/origins/${segment(originId)}`, body, keyed: true }, options);
  }
}

/** What `cardStatuses.list` may be narrowed by. */
export interface ListCardStatusesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on cardStatuses. */
export class CardStatuses extends Resource {
  /** List card statuses. Lists the company's card statuses, ordered by id. Requires the permission `crm` `GET`. */
  list(query: ListCardStatusesQuery = {}, options: CallOptions = {}): List<t.CardStatus> {
    return this.transport.list<t.CardStatus>({ id: "listCardStatuses", method: "GET", path: "/api/v1/crm/statuses", query }, options);
  }

  /**
   * Create a card status. Creates a card status; its name is unique in the company. Requires the permission
   * `crm` `POST`.
   */
  create(body: t.CardStatusCreate, options: WriteOptions = {}): Promise<t.CardStatus> {
    return this.transport.data<t.CardStatus>({ id: "createCardStatus", method: "POST", path: "/api/v1/crm/statuses", body, keyed: true }, options);
  }

  /**
   * Delete a card status. Deletes a card status. Its cards have no status afterwards. Requires the permission
   * `crm` `DELETE`.
   */
  delete(statusId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteCardStatus", method: "DELETE", path: `/api/v1/crm/statuses/${segment(statusId)}` }, options);
  }

  /** Update a card status. Updates the given fields. Requires the permission `crm` `PUT`. */
  update(statusId: number, body: t.CardStatusUpdate, options: WriteOptions = {}): Promise<t.CardStatus> {
    return this.transport.data<t.CardStatus>({ id: "updateCardStatus", method: "PUT", path: `/api/v1/crm/statuses/${segment(statusId)}`, body, keyed: true }, options);
  }
}

/** What `cards.list` may be narrowed by. */
export interface ListCardsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** The board. */
  boardId?: number;
  /** The stage of a board. */
  crmBoardListId?: number;
  /** The responsible user. */
  assignedToUserId?: number;
  /** The contact. */
  contactId?: number;
  /** The card's status. */
  statusId?: number;
  /** The card's business. */
  businessId?: number;
  /** The card's origin. */
  originId?: number;
  /** The ticket. */
  ticketId?: number;
  /** Whether the card was won. */
  won?: boolean;
  /** Whether the card was lost. */
  lost?: boolean;
  /** Matches cards whose name or description contains every word; ignores case and accents. */
  search?: string;
  /** due at or after this time */
  dueFrom?: string | Date;
  /** due at or before this time */
  dueTo?: string | Date;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on cards. */
export class Cards extends Resource {
  /**
   * List cards. Lists cards of all boards, ordered by id; with `crmBoardListId`, the cards of one stage,
   * ordered by position. `search` matches name and description. A page by number whose contacts have more than
   * 32 MiB is refused with `perPage`. Requires the permission `crm` `GET`.
   */
  list(query: ListCardsQuery = {}, options: CallOptions = {}): List<t.Card> {
    return this.transport.list<t.Card>({ id: "listCards", method: "GET", path: "/api/v1/crm/cards", query }, options);
  }

  /**
   * Create a card. Creates a card at the bottom of its stage. Each line's `totalPrice` is `quantity` x
   * `unitPrice`, rounded half away from zero to four decimals; `productsTotal` is their exact sum. Each amount
   * must be below 100000000000000. Requires the permission `crm` `POST`.
   */
  create(body: t.CardCreate, options: WriteOptions = {}): Promise<t.Card> {
    return this.transport.data<t.Card>({ id: "createCard", method: "POST", path: "/api/v1/crm/cards", body, keyed: true }, options);
  }

  /** Delete a card. Deletes a card. Requires the permission `crm` `DELETE`. */
  delete(cardId: number, options: ConditionalOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteCard", method: "DELETE", path: `/api/v1/crm/cards/${segment(cardId)}` }, options);
  }

  /**
   * Get a card. Returns a card with its contacts, products and custom field values. Requires the permission
   * `crm` `GET`.
   */
  get(cardId: number, options: CallOptions = {}): Promise<t.Card> {
    return this.transport.data<t.Card>({ id: "getCard", method: "GET", path: `/api/v1/crm/cards/${segment(cardId)}` }, options);
  }

  /**
   * Update a card. Updates the given fields; `null` clears one. `contactIds` and `products` replace the current
   * ones; custom field values are merged by key. A new stage places the card at its bottom; a won card cannot
   * leave the stage for won cards. Requires the permission `crm` `PUT`.
   */
  update(cardId: number, body: t.CardUpdate, options: ConditionalWriteOptions = {}): Promise<t.Card> {
    return this.transport.data<t.Card>({ id: "updateCard", method: "PUT", path: `/api/v1/crm/cards/${segment(cardId)}`, body, keyed: true }, options);
  }

  /**
   * Mark a card as lost. Marks an open card as lost; it stays in its stage. Reopen a won card first. Requires
   * the permission `crm` `POST`.
   */
  lose(cardId: number, body: t.CardLose, options: WriteOptions = {}): Promise<t.Card> {
    return this.transport.data<t.Card>({ id: "loseCard", method: "POST", path: `/api/v1/crm/cards/${segment(cardId)}/lose`, body, keyed: true }, options);
  }

  /**
   * Move a card to a stage and position. Moves a card to a stage of its board. Moving it to the stage for won
   * cards does not mark it as won. A won card cannot leave that stage; reopen it first. Requires the permission
   * `crm` `POST`.
   */
  move(cardId: number, body: t.CardMove, options: WriteOptions = {}): Promise<t.Card> {
    return this.transport.data<t.Card>({ id: "moveCard", method: "POST", path: `/api/v1/crm/cards/${segment(cardId)}/move`, body, keyed: true }, options);
  }

  /**
   * Add a product to a card. Adds a product to a card. With `productId`, omitted fields are copied from the
   * product. `totalPrice` is `quantity` x `unitPrice`, rounded half away from zero to four decimals. Requires
   * the permission `crm` `POST`.
   */
  addProduct(cardId: number, body: t.CardProductCreate, options: WriteOptions = {}): Promise<t.CardProduct> {
    return this.transport.data<t.CardProduct>({ id: "addCardProduct", method: "POST", path: `/api/v1/crm/cards/${segment(cardId)}/products`, body, keyed: true }, options);
  }

  /** Remove a product from a card. Removes a product from a card. Requires the permission `crm` `DELETE`. */
  removeProduct(cardId: number, cardProductId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "removeCardProduct", method: "DELETE", path: `/api/v1/crm/cards/${segment(cardId)}/products/${segment(cardProductId)}` }, options);
  }

  /**
   * Update a product of a card. Updates the given fields. A new `productId` copies the product's name, SKU and
   * price, except for fields that are given. Requires the permission `crm` `PUT`.
   */
  updateProduct(cardId: number, cardProductId: number, body: t.CardProductUpdate, options: WriteOptions = {}): Promise<t.CardProduct> {
    return this.transport.data<t.CardProduct>({ id: "updateCardProduct", method: "PUT", path: `/api/v1/crm/cards/${segment(cardId)}/products/${segment(cardProductId)}`, body, keyed: true }, options);
  }

  /**
   * Reopen a won or lost card. Reopens a won or lost card and clears its date and reason. It stays in its
   * stage. Requires the permission `crm` `POST`.
   */
  reopen(cardId: number, options: WriteOptions = {}): Promise<t.Card> {
    return this.transport.data<t.Card>({ id: "reopenCard", method: "POST", path: `/api/v1/crm/cards/${segment(cardId)}/reopen`, keyed: true }, options);
  }

  /**
   * Mark a card as won. Marks an open card as won and moves it to the bottom of the board's stage for won
   * cards, which must exist. Reopen a lost card first. Requires the permission `crm` `POST`.
   */
  win(cardId: number, body: t.CardWin = {}, options: WriteOptions = {}): Promise<t.Card> {
    return this.transport.data<t.Card>({ id: "winCard", method: "POST", path: `/api/v1/crm/cards/${segment(cardId)}/win`, body, keyed: true }, options);
  }
}

/** What `channels.list` may be narrowed by. */
export interface ListChannelsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches channels whose name or number contains every word; ignores case and accents. */
  search?: string;
  /** The type. */
  type?: "whatsapp" | "messenger" | "instagram" | "webchat";
  /** The status. */
  status?: "connected" | "disconnected" | "error";
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** What `channels.listTemplates` may be narrowed by. */
export interface ListChannelTemplatesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Whether to list also templates that may not be sent: paused, rejected, or in review. */
  all?: boolean;
}

/** The operations on channels. */
export class Channels extends Resource {
  /**
   * List channels. Lists the company's channels. Channels are set up in the panel or on the command line.
   * `search` matches name and number. Requires the permission `channels` `GET`.
   */
  list(query: ListChannelsQuery = {}, options: CallOptions = {}): List<t.Channel> {
    return this.transport.list<t.Channel>({ id: "listChannels", method: "GET", path: "/api/v1/channels", query }, options);
  }

  /** Get a channel. Returns a channel, including its last error. Requires the permission `channels` `GET`. */
  get(channelId: number, options: CallOptions = {}): Promise<t.Channel> {
    return this.transport.data<t.Channel>({ id: "getChannel", method: "GET", path: `/api/v1/channels/${segment(channelId)}` }, options);
  }

  /**
   * List the approved templates of a channel. Lists the templates that the provider has approved for a phone
   * channel, or all of them; empty for other channels. Requires the permission `channels` `GET`.
   */
  listTemplates(channelId: number, query: ListChannelTemplatesQuery = {}, options: CallOptions = {}): List<t.Template> {
    return this.transport.list<t.Template>({ id: "listChannelTemplates", method: "GET", path: `/api/v1/channels/${segment(channelId)}/templates`, query }, options);
  }
}

/** What `contactLists.list` may be narrowed by. */
export interface ListContactListsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** What `contactLists.listContacts` may be narrowed by. */
export interface ListContactListContactsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches contacts whose name, number, e-mail or code contains every word; numbers in any format. */
  search?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on contactLists. */
export class ContactLists extends Resource {
  /**
   * List contact lists. Lists the company's contact lists, ordered by id. Requires the permission `campaigns`
   * `GET`.
   */
  list(query: ListContactListsQuery = {}, options: CallOptions = {}): List<t.RecipientList> {
    return this.transport.list<t.RecipientList>({ id: "listContactLists", method: "GET", path: "/api/v1/contact-lists", query }, options);
  }

  /** Create a contact list. Creates an empty contact list. Requires the permission `campaigns` `POST`. */
  create(body: t.RecipientListCreate, options: WriteOptions = {}): Promise<t.RecipientList> {
    return this.transport.data<t.RecipientList>({ id: "createContactList", method: "POST", path: "/api/v1/contact-lists", body, keyed: true }, options);
  }

  /**
   * Delete a contact list. Deletes a contact list; its contacts are kept. Fails while an unfinished campaign
   * uses it. Requires the permission `campaigns` `DELETE`.
   */
  delete(contactListId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteContactList", method: "DELETE", path: `/api/v1/contact-lists/${segment(contactListId)}` }, options);
  }

  /**
   * List the contacts of a list. Lists the contacts of a list. `search` matches name, number, e-mail and code.
   * Requires the permission `campaigns` `GET`.
   */
  listContacts(contactListId: number, query: ListContactListContactsQuery = {}, options: CallOptions = {}): List<t.Contact> {
    return this.transport.list<t.Contact>({ id: "listContactListContacts", method: "GET", path: `/api/v1/contact-lists/${segment(contactListId)}/contacts`, query }, options);
  }

  /**
   * Add contacts to a list. Adds contacts to a list: by id, by tag, or both. Contacts already in the list are
   * counted separately. Requires the permission `campaigns` `POST`.
   */
  addContacts(contactListId: number, body: t.ContactListAddition, options: WriteOptions = {}): Promise<t.Added> {
    return this.transport.data<t.Added>({ id: "addContactListContacts", method: "POST", path: `/api/v1/contact-lists/${segment(contactListId)}/contacts`, body, keyed: true }, options);
  }

  /**
   * Remove a contact from a list. Removes a contact from a list. Repeating it changes nothing. Requires the
   * permission `campaigns` `DELETE`.
   */
  removeContact(contactListId: number, contactId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "removeContactListContact", method: "DELETE", path: `/api/v1/contact-lists/${segment(contactListId)}/contacts/${segment(contactId)}` }, options);
  }
}

/** What `contacts.list` may be narrowed by. */
export interface ListContactsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches contacts whose name, number, e-mail or code contains every word; numbers in any format. */
  search?: string;
  /** 8 to 15 digits; `+ ( ) - .` and spaces are removed */
  number?: string;
  /** The exact e-mail address; case-insensitive. */
  email?: string;
  /** The contact's exact code; case-sensitive. */
  code?: string;
  /** The tag. */
  tagId?: number;
  /** The channel. */
  channelId?: number;
  /** The contact's exact origin. */
  origin?: string;
  /** Whether the contact is a group. */
  isGroup?: boolean;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on contacts. */
export class Contacts extends Resource {
  /**
   * List contacts. Lists the company's contacts, ordered by id. `search` matches name, number, e-mail and code.
   * Requires the permission `contacts` `GET`.
   */
  list(query: ListContactsQuery = {}, options: CallOptions = {}): List<t.Contact> {
    return this.transport.list<t.Contact>({ id: "listContacts", method: "GET", path: "/api/v1/contacts", query }, options);
  }

  /**
   * Create a contact. Creates a contact. A number is unique in the company. Requires the permission `contacts`
   * `POST`.
   */
  create(body: t.ContactCreate, options: WriteOptions = {}): Promise<t.Contact> {
    return this.transport.data<t.Contact>({ id: "createContact", method: "POST", path: "/api/v1/contacts", body, keyed: true }, options);
  }

  /**
   * Create or update up to 1000 contacts at once. Creates or updates contacts, matched by number, then e-mail,
   * then code. Valid rows are stored even if others fail. Requires the permission `contacts` `POST`. The body
   * can be up to 16777216 bytes.
   */
  import(body: t.ContactImport, options: WriteOptions = {}): Promise<t.ImportReport> {
    return this.transport.data<t.ImportReport>({ id: "importContacts", method: "POST", path: "/api/v1/contacts/import", body, keyed: true }, options);
  }

  /**
   * Delete a contact. Deletes a contact with its closed tickets, messages and files. Fails while it has an open
   * ticket or an active session. Requires the permission `contacts` `DELETE`.
   */
  delete(contactId: number, options: ConditionalOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteContact", method: "DELETE", path: `/api/v1/contacts/${segment(contactId)}` }, options);
  }

  /**
   * Get a contact. Returns a contact with its tags and custom field values. Requires the permission `contacts`
   * `GET`.
   */
  get(contactId: number, options: CallOptions = {}): Promise<t.Contact> {
    return this.transport.data<t.Contact>({ id: "getContact", method: "GET", path: `/api/v1/contacts/${segment(contactId)}` }, options);
  }

  /**
   * Update a contact. Updates the given fields; `null` clears one. Custom field values are merged by key.
   * Requires the permission `contacts` `PUT`.
   */
  update(contactId: number, body: t.ContactUpdate, options: ConditionalWriteOptions = {}): Promise<t.Contact> {
    return this.transport.data<t.Contact>({ id: "updateContact", method: "PUT", path: `/api/v1/contacts/${segment(contactId)}`, body, keyed: true }, options);
  }

  /**
   * Merge a contact into another. Merges the contact `fromContactId` into the contact of the path, which stays.
   * What it has set stays, empty fields and missing custom fields are filled, and tags are united.
   * Conversations, identities, cards, sessions, scheduled messages, campaigns and list memberships go over; of
   * two open tickets of a channel, the older stays. A contact with several numbers or ids is answered where
   * they have written last. Afterwards the other id is answered with `404` and `details.mergedInto`. Requires
   * the permission `contacts` `POST`.
   */
  merge(contactId: number, body: t.ContactMerge, options: ConditionalWriteOptions = {}): Promise<t.Contact> {
    return this.transport.data<t.Contact>({ id: "mergeContacts", method: "POST", path: `/api/v1/contacts/${segment(contactId)}/merge`, body, keyed: true }, options);
  }

  /**
   * Remove a tag from a contact. Removes a tag from a contact. Repeating it changes nothing. Requires the
   * permission `contacts` `DELETE`.
   */
  removeTag(contactId: number, tagId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "removeContactTag", method: "DELETE", path: `/api/v1/contacts/${segment(contactId)}/tags/${segment(tagId)}` }, options);
  }

  /**
   * Add a tag to a contact. Adds a tag to a contact. Repeating it changes nothing. Requires the permission
   * `contacts` `PUT`.
   */
  addTag(contactId: number, tagId: number, options: WriteOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "addContactTag", method: "PUT", path: `/api/v1/contacts/${segment(contactId)}/tags/${segment(tagId)}`, keyed: true }, options);
  }
}

/** What `customFields.list` may be narrowed by. */
export interface ListCustomFieldsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches fields whose name or key contains every word; ignores case and accents. */
  search?: string;
  /** The kind of record the field belongs to. */
  application?: "contact" | "card";
  /** The type. */
  type?: "text" | "textarea" | "number" | "boolean" | "date" | "datetime" | "email" | "url" | "phone" | "select" | "multiselect";
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on customFields. */
export class CustomFields extends Resource {
  /**
   * List custom fields. Lists the custom fields of contacts and cards, ordered by position. Requires the
   * permission `customFields` `GET`.
   */
  list(query: ListCustomFieldsQuery = {}, options: CallOptions = {}): List<t.CustomField> {
    return this.transport.list<t.CustomField>({ id: "listCustomFields", method: "GET", path: "/api/v1/custom-fields", query }, options);
  }

  /**
   * Create a custom field. Creates a custom field. Its key is derived from the name and never changes. Requires
   * the permission `customFields` `POST`.
   */
  create(body: t.CustomFieldCreate, options: WriteOptions = {}): Promise<t.CustomField> {
    return this.transport.data<t.CustomField>({ id: "createCustomField", method: "POST", path: "/api/v1/custom-fields", body, keyed: true }, options);
  }

  /**
   * Reorder the custom fields of an application. Sets the order of all fields of one application. Requires the
   * permission `customFields` `PUT`.
   */
  reorder(body: t.CustomFieldOrder, options: WriteOptions = {}): Promise<t.CustomField[]> {
    return this.transport.data<t.CustomField[]>({ id: "reorderCustomFields", method: "PUT", path: "/api/v1/custom-fields/order", body, keyed: true }, options);
  }

  /**
   * Delete a custom field. Deletes a custom field with all its values. Requires the permission `customFields`
   * `DELETE`.
   */
  delete(customFieldId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteCustomField", method: "DELETE", path: `/api/v1/custom-fields/${segment(customFieldId)}` }, options);
  }

  /** Get a custom field. Returns a custom field. Requires the permission `customFields` `GET`. */
  get(customFieldId: number, options: CallOptions = {}): Promise<t.CustomField> {
    return this.transport.data<t.CustomField>({ id: "getCustomField", method: "GET", path: `/api/v1/custom-fields/${segment(customFieldId)}` }, options);
  }

  /**
   * Update a custom field. Updates the given fields. The type cannot change while the field has values.
   * Requires the permission `customFields` `PUT`.
   */
  update(customFieldId: number, body: t.CustomFieldUpdate, options: WriteOptions = {}): Promise<t.CustomField> {
    return this.transport.data<t.CustomField>({ id: "updateCustomField", method: "PUT", path: `/api/v1/custom-fields/${segment(customFieldId)}`, body, keyed: true }, options);
  }
}

/** The operations on dashboards. */
export class Dashboards extends Resource {
  /**
   * Get the sales dashboard. Returns open cards per board, and sales since the start of the month in the
   * company's time zone. Requires the permission `reports` `GET`.
   */
  getSales(options: CallOptions = {}): Promise<t.SalesDashboard> {
    return this.transport.data<t.SalesDashboard>({ id: "getSalesDashboard", method: "GET", path: "/api/v1/dashboards/sales" }, options);
  }

  /**
   * Get the service dashboard. Returns open tickets, waiting contacts, and today's activity in the company's
   * time zone. Requires the permission `reports` `GET`.
   */
  getService(options: CallOptions = {}): Promise<t.ServiceDashboard> {
    return this.transport.data<t.ServiceDashboard>({ id: "getServiceDashboard", method: "GET", path: "/api/v1/dashboards/service" }, options);
  }
}

/** What `events.list` may be narrowed by. */
export interface ListEventsQuery {
  /** The last event read, or `latest` for the end of the log. Default: before the oldest event. */
  after?: number | string;
  /** Event types, separated by commas. Default: all that the caller may see. */
  types?: t.EventKind[];
  /** Maximum number of events; fewer if they are large. */
  limit?: number;
  /** How many seconds to wait for an event before responding. */
  wait?: number;
}

/** What `events.stream` may be narrowed by. */
export interface StreamEventsQuery {
  /** The last event read. Default: only new events. `Last-Event-ID` takes precedence. */
  after?: number;
  /** Event types, separated by commas. Default: all that the caller may see. */
  types?: t.EventKind[];
}

/** The operations on events. */
export class Events extends Resource {
  /**
   * List events. Lists the changes of the company's records, oldest first: one event per change, with the
   * record at that time. `after` is the last event read; `wait` holds the response until there is an event.
   * Events are kept for 30 days by default. Returns `404` if events are disabled, and `429` while the company
   * has 200 open streams and held requests. Requires the permission `events` `GET`.
   */
  list(query: ListEventsQuery = {}, options: CallOptions = {}): Promise<t.CompanyEventList> {
    return this.transport.whole<t.CompanyEventList>({ id: "listEvents", method: "GET", path: "/api/v1/events", query }, options);
  }

  /**
   * Stream events. Streams the same events as Server-Sent Events, with `id`, `event` and `data`, and a comment
   * every 15 seconds. Starts after `Last-Event-ID` or `after`; without either, with the next event. A company
   * can have 200 open streams and held requests; further ones are answered `429`. A client that reads nothing
   * for ten seconds is disconnected and can resume from its last id. A stream ends when its authorization
   * changes: the token, its permissions or addresses, the company's plan, or the session. Requires the
   * permission `events` `GET`.
   */
  stream(query: StreamEventsQuery = {}, options: CallOptions = {}): AsyncGenerator<t.CompanyEvent, void, undefined> {
    return this.transport.stream<t.CompanyEvent>({ id: "streamEvents", method: "GET", path: "/api/v1/events/stream", query }, options);
  }
}

/** What `globalVariables.list` may be narrowed by. */
export interface ListGlobalVariablesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches variables whose key or description contains every word; ignores case and accents. */
  search?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on globalVariables. */
export class GlobalVariables extends Resource {
  /**
   * List global variables. Lists the variables available in every message, ordered by id. Requires the
   * permission `customFields` `GET`.
   */
  list(query: ListGlobalVariablesQuery = {}, options: CallOptions = {}): List<t.GlobalVariable> {
    return this.transport.list<t.GlobalVariable>({ id: "listGlobalVariables", method: "GET", path: "/api/v1/global-variables", query }, options);
  }

  /**
   * Create a global variable. Creates a global variable; its key never changes. Requires the permission
   * `customFields` `POST`.
   */
  create(body: t.GlobalVariableCreate, options: WriteOptions = {}): Promise<t.GlobalVariable> {
    return this.transport.data<t.GlobalVariable>({ id: "createGlobalVariable", method: "POST", path: "/api/v1/global-variables", body, keyed: true }, options);
  }

  /**
   * Delete a global variable. Deletes a variable. Texts that use it show nothing in its place. Requires the
   * permission `customFields` `DELETE`.
   */
  delete(variableId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteGlobalVariable", method: "DELETE", path: `/api/v1/global-variables/${segment(variableId)}` }, options);
  }

  /** Get a global variable. Returns a global variable. Requires the permission `customFields` `GET`. */
  get(variableId: number, options: CallOptions = {}): Promise<t.GlobalVariable> {
    return this.transport.data<t.GlobalVariable>({ id: "getGlobalVariable", method: "GET", path: `/api/v1/global-variables/${segment(variableId)}` }, options);
  }

  /** Update a global variable. Updates the given fields. Requires the permission `customFields` `PUT`. */
  update(variableId: number, body: t.GlobalVariableUpdate, options: WriteOptions = {}): Promise<t.GlobalVariable> {
    return this.transport.data<t.GlobalVariable>({ id: "updateGlobalVariable", method: "PUT", path: `/api/v1/global-variables/${segment(variableId)}`, body, keyed: true }, options);
  }
}

/** What `messages.list` may be narrowed by. */
export interface ListMessagesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** The ticket. */
  ticketId?: number;
  /** The contact. */
  contactId?: number;
  /** The channel. */
  channelId?: number;
  /** Inbound, outbound or internal (notes). */
  direction?: "inbound" | "outbound" | "internal";
  /** The type. */
  type?: "text" | "media" | "template" | "interactive" | "note" | "system";
  /** The status. */
  status?: "queued" | "sent" | "delivered" | "read" | "failed" | "received";
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** What `messages.send` sends; with files, as a form. */
export interface SendMessageBody extends t.MessageSend {
  /** Files to send: contents, streams, or `fromPath` of `@hotline/client/node`. */
  medias?: Upload[];
}

/** The operations on messages. */
export class Messages extends Resource {
  /** List messages. Lists messages of all tickets, ordered by id. Requires the permission `messages` `GET`. */
  list(query: ListMessagesQuery = {}, options: CallOptions = {}): List<t.Message> {
    return this.transport.list<t.Message>({ id: "listMessages", method: "GET", path: "/api/v1/messages", query }, options);
  }

  /**
   * Send a message. Queues a message and immediately returns a job. Opens a ticket if none is open. Requires
   * the permission `messages` `POST`.
   */
  send(body: SendMessageBody, options: WriteOptions = {}): Promise<t.QueuedJob> {
    return this.transport.data<t.QueuedJob>({ id: "sendMessage", method: "POST", path: "/api/v1/messages", body, keyed: true }, options);
  }

  /** Get a message job. Returns the status of a message job. Requires the permission `messages` `GET`. */
  getJob(jobId: string, options: CallOptions = {}): Promise<t.Job> {
    return this.transport.data<t.Job>({ id: "getMessageJob", method: "GET", path: `/api/v1/messages/jobs/${segment(jobId)}` }, options);
  }

  /** Get a message. Returns the current state of a message. Requires the permission `messages` `GET`. */
  get(messageId: number, options: CallOptions = {}): Promise<t.Message> {
    return this.transport.data<t.Message>({ id: "getMessage", method: "GET", path: `/api/v1/messages/${segment(messageId)}` }, options);
  }

  /**
   * Withdraw a reaction. Withdraws the company's reaction to a message. Requires the permission `messages`
   * `DELETE`.
   */
  withdrawReaction(messageId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "withdrawReaction", method: "DELETE", path: `/api/v1/messages/${segment(messageId)}/reaction` }, options);
  }

  /**
   * React to a message. Reacts to a message on behalf of the company, which has one reaction of each message:
   * it replaces an earlier one. It is sent to the channel's provider; if that refuses it, the reaction has an
   * `error`. Requires the permission `messages` `PUT`.
   */
  reactTo(messageId: number, body: t.MessageReact, options: WriteOptions = {}): Promise<t.Message> {
    return this.transport.data<t.Message>({ id: "reactToMessage", method: "PUT", path: `/api/v1/messages/${segment(messageId)}/reaction`, body, keyed: true }, options);
  }
}

/** What `productCategories.list` may be narrowed by. */
export interface ListProductCategoriesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on productCategories. */
export class ProductCategories extends Resource {
  /**
   * List product categories. Lists the company's product categories, ordered by id. Requires the permission
   * `products` `GET`.
   */
  list(query: ListProductCategoriesQuery = {}, options: CallOptions = {}): List<t.ProductCategory> {
    return this.transport.list<t.ProductCategory>({ id: "listProductCategories", method: "GET", path: "/api/v1/product-categories", query }, options);
  }

  /**
   * Create a product category. Creates a product category; its name is unique in the company. Requires the
   * permission `products` `POST`.
   */
  create(body: t.ProductCategoryCreate, options: WriteOptions = {}): Promise<t.ProductCategory> {
    return this.transport.data<t.ProductCategory>({ id: "createProductCategory", method: "POST", path: "/api/v1/product-categories", body, keyed: true }, options);
  }

  /**
   * Delete a product category. Deletes a product category. Its products have no category afterwards. Requires
   * the permission `products` `DELETE`.
   */
  delete(categoryId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteProductCategory", method: "DELETE", path: `/api/v1/product-categories/${segment(categoryId)}` }, options);
  }

  /** Get a product category. Returns a product category. Requires the permission `products` `GET`. */
  get(categoryId: number, options: CallOptions = {}): Promise<t.ProductCategory> {
    return this.transport.data<t.ProductCategory>({ id: "getProductCategory", method: "GET", path: `/api/v1/product-categories/${segment(categoryId)}` }, options);
  }

  /** Update a product category. Updates the given fields. Requires the permission `products` `PUT`. */
  update(categoryId: number, body: t.ProductCategoryUpdate, options: WriteOptions = {}): Promise<t.ProductCategory> {
    return this.transport.data<t.ProductCategory>({ id: "updateProductCategory", method: "PUT", path: `/api/v1/product-categories/${segment(categoryId)}`, body, keyed: true }, options);
  }
}

/** What `products.list` may be narrowed by. */
export interface ListProductsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches products whose name or SKU contains every word; ignores case and accents. */
  search?: string;
  /** The category. */
  categoryId?: number;
  /** Whether it is active. */
  active?: boolean;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on products. */
export class Products extends Resource {
  /** List products. Lists the company's products, ordered by id. Requires the permission `products` `GET`. */
  list(query: ListProductsQuery = {}, options: CallOptions = {}): List<t.Product> {
    return this.transport.list<t.Product>({ id: "listProducts", method: "GET", path: "/api/v1/products", query }, options);
  }

  /**
   * Create a product. Creates a product; its sku is unique in the company. Requires the permission `products`
   * `POST`.
   */
  create(body: t.ProductCreate, options: WriteOptions = {}): Promise<t.Product> {
    return this.transport.data<t.Product>({ id: "createProduct", method: "POST", path: "/api/v1/products", body, keyed: true }, options);
  }

  /**
   * Delete a product. Deletes a product. Cards keep their copies of its data. Requires the permission
   * `products` `DELETE`.
   */
  delete(productId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteProduct", method: "DELETE", path: `/api/v1/products/${segment(productId)}` }, options);
  }

  /** Get a product. Returns a product. Requires the permission `products` `GET`. */
  get(productId: number, options: CallOptions = {}): Promise<t.Product> {
    return this.transport.data<t.Product>({ id: "getProduct", method: "GET", path: `/api/v1/products/${segment(productId)}` }, options);
  }

  /** Update a product. Updates the given fields. Requires the permission `products` `PUT`. */
  update(productId: number, body: t.ProductUpdate, options: WriteOptions = {}): Promise<t.Product> {
    return this.transport.data<t.Product>({ id: "updateProduct", method: "PUT", path: `/api/v1/products/${segment(productId)}`, body, keyed: true }, options);
  }
}

/** What `profiles.list` may be narrowed by. */
export interface ListProfilesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on profiles. */
export class Profiles extends Resource {
  /** List permission profiles. Lists the permission profiles. Requires the permission `profiles` `GET`. */
  list(query: ListProfilesQuery = {}, options: CallOptions = {}): List<t.Profile> {
    return this.transport.list<t.Profile>({ id: "listProfiles", method: "GET", path: "/api/v1/profiles", query }, options);
  }

  /** Get a permission profile. Returns a permission profile. Requires the permission `profiles` `GET`. */
  get(profileId: number, options: CallOptions = {}): Promise<t.Profile> {
    return this.transport.data<t.Profile>({ id: "getProfile", method: "GET", path: `/api/v1/profiles/${segment(profileId)}` }, options);
  }
}

/** What `queues.list` may be narrowed by. */
export interface ListQueuesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** Whether it is active. */
  active?: boolean;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** What `queues.listUsers` may be narrowed by. */
export interface ListQueueUsersQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches users whose name or e-mail contains every word; ignores case and accents. */
  search?: string;
  /** Whether it is active. */
  active?: boolean;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** What `queues.listWrapupTypes` may be narrowed by. */
export interface ListQueueWrapupTypesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** Whether it is active. */
  active?: boolean;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on queues. */
export class Queues extends Resource {
  /** List queues. Lists the company's queues, ordered by id. Requires the permission `queues` `GET`. */
  list(query: ListQueuesQuery = {}, options: CallOptions = {}): List<t.Queue> {
    return this.transport.list<t.Queue>({ id: "listQueues", method: "GET", path: "/api/v1/queues", query }, options);
  }

  /**
   * Create a queue. Creates a queue; its name is unique in the company. Requires the permission `queues`
   * `POST`.
   */
  create(body: t.QueueCreate, options: WriteOptions = {}): Promise<t.Queue> {
    return this.transport.data<t.Queue>({ id: "createQueue", method: "POST", path: "/api/v1/queues", body, keyed: true }, options);
  }

  /**
   * Delete a queue. Deletes a queue. Fails while it has open tickets or a channel uses it. Requires the
   * permission `queues` `DELETE`.
   */
  delete(queueId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteQueue", method: "DELETE", path: `/api/v1/queues/${segment(queueId)}` }, options);
  }

  /** Get a queue. Returns a queue. Requires the permission `queues` `GET`. */
  get(queueId: number, options: CallOptions = {}): Promise<t.Queue> {
    return this.transport.data<t.Queue>({ id: "getQueue", method: "GET", path: `/api/v1/queues/${segment(queueId)}` }, options);
  }

  /** Update a queue. Updates the given fields. Requires the permission `queues` `PUT`. */
  update(queueId: number, body: t.QueueUpdate, options: WriteOptions = {}): Promise<t.Queue> {
    return this.transport.data<t.Queue>({ id: "updateQueue", method: "PUT", path: `/api/v1/queues/${segment(queueId)}`, body, keyed: true }, options);
  }

  /** List the agents of a queue. Lists the agents of a queue. Requires the permission `queues` `GET`. */
  listUsers(queueId: number, query: ListQueueUsersQuery = {}, options: CallOptions = {}): List<t.User> {
    return this.transport.list<t.User>({ id: "listQueueUsers", method: "GET", path: `/api/v1/queues/${segment(queueId)}/users`, query }, options);
  }

  /**
   * Remove an agent from a queue. Removes an agent from a queue and unassigns their open tickets in it.
   * Requires the permission `queues` `DELETE`.
   */
  removeUser(queueId: number, userId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "removeQueueUser", method: "DELETE", path: `/api/v1/queues/${segment(queueId)}/users/${segment(userId)}` }, options);
  }

  /**
   * Add an agent to a queue. Adds an agent to a queue. Repeating it changes nothing. Requires the permission
   * `queues` `PUT`.
   */
  addUser(queueId: number, userId: number, options: WriteOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "addQueueUser", method: "PUT", path: `/api/v1/queues/${segment(queueId)}/users/${segment(userId)}`, keyed: true }, options);
  }

  /**
   * List the wrap-up types of a queue. Lists the wrap-up types available in a queue. Requires the permission
   * `queues` `GET`.
   */
  listWrapupTypes(queueId: number, query: ListQueueWrapupTypesQuery = {}, options: CallOptions = {}): List<t.WrapupType> {
    return this.transport.list<t.WrapupType>({ id: "listQueueWrapupTypes", method: "GET", path: `/api/v1/queues/${segment(queueId)}/wrapup-types`, query }, options);
  }
}

/** What `quickMessages.list` may be narrowed by. */
export interface ListQuickMessagesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches quick messages whose shortcut or text contains every word; ignores case and accents. */
  search?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on quickMessages. */
export class QuickMessages extends Resource {
  /**
   * List quick messages. Lists the company's quick messages, ordered by id. Requires the permission
   * `quickMessages` `GET`.
   */
  list(query: ListQuickMessagesQuery = {}, options: CallOptions = {}): List<t.QuickMessage> {
    return this.transport.list<t.QuickMessage>({ id: "listQuickMessages", method: "GET", path: "/api/v1/quick-messages", query }, options);
  }

  /**
   * Create a quick message. Creates a quick message; its shortcut is unique in the company. Requires the
   * permission `quickMessages` `POST`.
   */
  create(body: t.QuickMessageCreate, options: WriteOptions = {}): Promise<t.QuickMessage> {
    return this.transport.data<t.QuickMessage>({ id: "createQuickMessage", method: "POST", path: "/api/v1/quick-messages", body, keyed: true }, options);
  }

  /** Delete a quick message. Deletes a quick message. Requires the permission `quickMessages` `DELETE`. */
  delete(quickMessageId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteQuickMessage", method: "DELETE", path: `/api/v1/quick-messages/${segment(quickMessageId)}` }, options);
  }

  /** Get a quick message. Returns a quick message. Requires the permission `quickMessages` `GET`. */
  get(quickMessageId: number, options: CallOptions = {}): Promise<t.QuickMessage> {
    return this.transport.data<t.QuickMessage>({ id: "getQuickMessage", method: "GET", path: `/api/v1/quick-messages/${segment(quickMessageId)}` }, options);
  }

  /** Update a quick message. Updates the given fields. Requires the permission `quickMessages` `PUT`. */
  update(quickMessageId: number, body: t.QuickMessageUpdate, options: WriteOptions = {}): Promise<t.QuickMessage> {
    return this.transport.data<t.QuickMessage>({ id: "updateQuickMessage", method: "PUT", path: `/api/v1/quick-messages/${segment(quickMessageId)}`, body, keyed: true }, options);
  }
}

/** What `reports.messages` may be narrowed by. */
export interface ReportMessagesQuery {
  /** Start of the period. Default: 30 days before its end. */
  from?: string | Date;
  /** End of the period. Default: now. */
  to?: string | Date;
  /** An IANA time zone. Default: the company's */
  timeZone?: string;
  /** How rows are grouped. */
  groupBy?: "day" | "channel" | "user" | "type";
}

/** What `reports.sales` may be narrowed by. */
export interface ReportSalesQuery {
  /** Start of the period. Default: 30 days before its end. */
  from?: string | Date;
  /** End of the period. Default: now. */
  to?: string | Date;
  /** An IANA time zone. Default: the company's */
  timeZone?: string;
  /** The board. */
  boardId?: number;
  /** How rows are grouped. */
  groupBy?: "day" | "user" | "origin" | "product";
}

/** What `reports.tickets` may be narrowed by. */
export interface ReportTicketsQuery {
  /** Start of the period. Default: 30 days before its end. */
  from?: string | Date;
  /** End of the period. Default: now. */
  to?: string | Date;
  /** An IANA time zone. Default: the company's */
  timeZone?: string;
  /** How rows are grouped. */
  groupBy?: "day" | "queue" | "channel" | "user";
}

/** What `reports.wrapups` may be narrowed by. */
export interface ReportWrapupsQuery {
  /** Start of the period. Default: 30 days before its end. */
  from?: string | Date;
  /** End of the period. Default: now. */
  to?: string | Date;
  /** An IANA time zone. Default: the company's */
  timeZone?: string;
  /** The queue. */
  queueId?: number;
}

/** The operations on reports. */
export class Reports extends Resource {
  /**
   * Report on messages. Reports messages by day, channel, user or type. Period and CSV work as for tickets.
   * Requires the permission `reports` `GET`.
   */
  messages(query: ReportMessagesQuery = {}, options: CallOptions = {}): Promise<t.MessageReportRow[]> {
    return this.transport.data<t.MessageReportRow[]>({ id: "reportMessages", method: "GET", path: "/api/v1/reports/messages", query }, options);
  }

  /** The same as CSV. Report on messages. */
  messagesCsv(query: ReportMessagesQuery = {}, options: CallOptions = {}): Promise<string> {
    return this.transport.text({ id: "reportMessages", method: "GET", path: "/api/v1/reports/messages", query }, "text/csv", options);
  }

  /**
   * Report on sales. Reports won and lost cards by day, user, origin or product, for one board or all. Period
   * and CSV work as for tickets. Requires the permission `reports` `GET`.
   */
  sales(query: ReportSalesQuery = {}, options: CallOptions = {}): Promise<t.SalesReportRow[]> {
    return this.transport.data<t.SalesReportRow[]>({ id: "reportSales", method: "GET", path: "/api/v1/reports/sales", query }, options);
  }

  /** The same as CSV. Report on sales. */
  salesCsv(query: ReportSalesQuery = {}, options: CallOptions = {}): Promise<string> {
    return this.transport.text({ id: "reportSales", method: "GET", path: "/api/v1/reports/sales", query }, "text/csv", options);
  }

  /**
   * Report on tickets. Reports tickets by day, queue, channel or user, ordered by key. Every day of the period
   * has a row; other groups only if they have data. The period is rounded outward to quarter hours. With
   * `Accept: text/csv`, returns the same rows as CSV. Requires the permission `reports` `GET`.
   */
  tickets(query: ReportTicketsQuery = {}, options: CallOptions = {}): Promise<t.TicketReportRow[]> {
    return this.transport.data<t.TicketReportRow[]>({ id: "reportTickets", method: "GET", path: "/api/v1/reports/tickets", query }, options);
  }

  /** The same as CSV. Report on tickets. */
  ticketsCsv(query: ReportTicketsQuery = {}, options: CallOptions = {}): Promise<string> {
    return this.transport.text({ id: "reportTickets", method: "GET", path: "/api/v1/reports/tickets", query }, "text/csv", options);
  }

  /**
   * Report on wrap-ups. Reports how often tickets were closed with each wrap-up type, for one queue or all.
   * Period and CSV work as for tickets. Requires the permission `reports` `GET`.
   */
  wrapups(query: ReportWrapupsQuery = {}, options: CallOptions = {}): Promise<t.WrapupReportRow[]> {
    return this.transport.data<t.WrapupReportRow[]>({ id: "reportWrapups", method: "GET", path: "/api/v1/reports/wrapups", query }, options);
  }

  /** The same as CSV. Report on wrap-ups. */
  wrapupsCsv(query: ReportWrapupsQuery = {}, options: CallOptions = {}): Promise<string> {
    return this.transport.text({ id: "reportWrapups", method: "GET", path: "/api/v1/reports/wrapups", query }, "text/csv", options);
  }
}

/** What `schedules.list` may be narrowed by. */
export interface ListSchedulesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** The status. */
  status?: "pending" | "sent" | "canceled" | "failed";
  /** The contact. */
  contactId?: number;
  /** The channel. */
  channelId?: number;
  /** send at or after this time */
  sendFrom?: string | Date;
  /** send at or before this time */
  sendTo?: string | Date;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on schedules. */
export class Schedules extends Resource {
  /**
   * List scheduled messages. Lists scheduled messages, including past ones, ordered by id. Includes every
   * change acknowledged before the request. Requires the permission `schedules` `GET`.
   */
  list(query: ListSchedulesQuery = {}, options: CallOptions = {}): List<t.Schedule> {
    return this.transport.list<t.Schedule>({ id: "listSchedules", method: "GET", path: "/api/v1/schedules", query }, options);
  }

  /**
   * Schedule a message. Schedules a text message. It is sent exactly once, within five seconds of `sendAt`,
   * even across a restart. Variables are filled in when it is sent. Requires the permission `schedules` `POST`.
   */
  create(body: t.ScheduleCreate, options: WriteOptions = {}): Promise<t.Schedule> {
    return this.transport.data<t.Schedule>({ id: "createSchedule", method: "POST", path: "/api/v1/schedules", body, keyed: true }, options);
  }

  /**
   * Cancel a scheduled message. Cancels a pending message. After `204` the message is guaranteed not to be
   * sent. Requires the permission `schedules` `DELETE`.
   */
  cancel(scheduleId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "cancelSchedule", method: "DELETE", path: `/api/v1/schedules/${segment(scheduleId)}` }, options);
  }

  /** Get a scheduled message. Returns a scheduled message. Requires the permission `schedules` `GET`. */
  get(scheduleId: number, options: CallOptions = {}): Promise<t.Schedule> {
    return this.transport.data<t.Schedule>({ id: "getSchedule", method: "GET", path: `/api/v1/schedules/${segment(scheduleId)}` }, options);
  }

  /**
   * Update a scheduled message. Updates the given fields while the message is pending. After `200` the change
   * is guaranteed to apply. Requires the permission `schedules` `PUT`.
   */
  update(scheduleId: number, body: t.ScheduleUpdate, options: WriteOptions = {}): Promise<t.Schedule> {
    return this.transport.data<t.Schedule>({ id: "updateSchedule", method: "PUT", path: `/api/v1/schedules/${segment(scheduleId)}`, body, keyed: true }, options);
  }
}

/** What `sessions.listMessages` may be narrowed by. */
export interface ListSessionMessagesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Only messages with a greater id: the last one read. */
  after?: number;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on sessions. */
export class Sessions extends Resource {
  /**
   * Open a visitor session. Opens a visitor session in a webchat, on behalf of the company's own page or
   * server. Requires the permission `webchat` `POST`.
   */
  open(body: t.SessionOpen, options: WriteOptions = {}): Promise<t.Session> {
    return this.transport.data<t.Session>({ id: "openSession", method: "POST", path: "/api/v1/webchat/sessions", body, keyed: true, secret: "token" }, options);
  }

  /** Get a visitor session. Returns a visitor session. Requires the permission `webchat` `GET`. */
  get(sessionId: string, options: CallOptions = {}): Promise<t.Session> {
    return this.transport.data<t.Session>({ id: "getSession", method: "GET", path: `/api/v1/webchat/sessions/${segment(sessionId)}` }, options);
  }

  /**
   * End a visitor session. Ends a session; its ticket stays open. Repeating it is not an error. Requires the
   * permission `webchat` `POST`.
   */
  end(sessionId: string, options: WriteOptions = {}): Promise<t.Session> {
    return this.transport.data<t.Session>({ id: "endSession", method: "POST", path: `/api/v1/webchat/sessions/${segment(sessionId)}/end`, keyed: true }, options);
  }

  /**
   * List the messages of a visitor session. Lists the messages that the visitor sees, without notes. With
   * `after`, only newer messages; such a page ends at 1 MiB, and `hasMore` says whether more follow. Requires
   * the permission `webchat` `GET`.
   */
  listMessages(sessionId: string, query: ListSessionMessagesQuery = {}, options: CallOptions = {}): List<t.Message> {
    return this.transport.list<t.Message>({ id: "listSessionMessages", method: "GET", path: `/api/v1/webchat/sessions/${segment(sessionId)}/messages`, query }, options);
  }

  /**
   * Send a message as a visitor. Sends a message as the visitor. The first message opens a ticket. Requires the
   * permission `webchat` `POST`.
   */
  sendMessage(sessionId: string, body: t.SessionMessageSend, options: WriteOptions = {}): Promise<t.Message> {
    return this.transport.data<t.Message>({ id: "sendSessionMessage", method: "POST", path: `/api/v1/webchat/sessions/${segment(sessionId)}/messages`, body, keyed: true }, options);
  }
}

/** What `tags.list` may be narrowed by. */
export interface ListTagsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on tags. */
export class Tags extends Resource {
  /** List tags. Lists the company's tags, ordered by id. Requires the permission `tags` `GET`. */
  list(query: ListTagsQuery = {}, options: CallOptions = {}): List<t.Tag> {
    return this.transport.list<t.Tag>({ id: "listTags", method: "GET", path: "/api/v1/tags", query }, options);
  }

  /** Create a tag. Creates a tag; its name is unique in the company. Requires the permission `tags` `POST`. */
  create(body: t.TagCreate, options: WriteOptions = {}): Promise<t.Tag> {
    return this.transport.data<t.Tag>({ id: "createTag", method: "POST", path: "/api/v1/tags", body, keyed: true }, options);
  }

  /** Delete a tag. Deletes a tag and removes it from every contact. Requires the permission `tags` `DELETE`. */
  delete(tagId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteTag", method: "DELETE", path: `/api/v1/tags/${segment(tagId)}` }, options);
  }

  /** Get a tag. Returns a tag. Requires the permission `tags` `GET`. */
  get(tagId: number, options: CallOptions = {}): Promise<t.Tag> {
    return this.transport.data<t.Tag>({ id: "getTag", method: "GET", path: `/api/v1/tags/${segment(tagId)}` }, options);
  }

  /** Update a tag. Updates the given fields. Requires the permission `tags` `PUT`. */
  update(tagId: number, body: t.TagUpdate, options: WriteOptions = {}): Promise<t.Tag> {
    return this.transport.data<t.Tag>({ id: "updateTag", method: "PUT", path: `/api/v1/tags/${segment(tagId)}`, body, keyed: true }, options);
  }
}

/** What `tickets.list` may be narrowed by. */
export interface ListTicketsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** The default is `asc`, unless `sort` has another */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. In the order of ids, each record that matches throughout is returned exactly once, even if
   * others are added or deleted meanwhile; with another `sort`, one whose place changes meanwhile may be missed
   * or repeated. A page may have fewer than `perPage` records; only `hasMore` says whether there are more. Use
   * the same list, filters and order
   */
  cursor?: string;
  /** The status. */
  status?: "open" | "closed";
  /** The queue. */
  queueId?: number;
  /** The user. */
  userId?: number;
  /** The contact. */
  contactId?: number;
  /** The channel. */
  channelId?: number;
  /** The wrap-up type. */
  wrapupTypeId?: number;
  /** Only unassigned tickets. */
  unassigned?: boolean;
  /** Matches tickets whose contact's name or number contains every word; numbers in any format. */
  search?: string;
  /** opened at or after this time */
  openedFrom?: string | Date;
  /** opened at or before this time */
  openedTo?: string | Date;
  /** closed at or after this time */
  closedFrom?: string | Date;
  /** closed at or before this time */
  closedTo?: string | Date;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
  /**
   * With `status=open`. `activity`: by `lastActivityAt`, the latest first unless `order` is given. `waiting`:
   * by `waitingSince`, the longest wait first; tickets in which no one waits come last in either order. Tickets
   * of the same time are ordered by id
   */
  sort?: "id" | "activity" | "waiting";
}

/** What `tickets.listEvents` may be narrowed by. */
export interface ListTicketEventsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
}

/** What `tickets.listMessages` may be narrowed by. */
export interface ListTicketMessagesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on tickets. */
export class Tickets extends Resource {
  /**
   * List tickets. Lists tickets, ordered by id unless `sort` is given. Includes every change acknowledged
   * before the request. Requires the permission `tickets` `GET`.
   */
  list(query: ListTicketsQuery = {}, options: CallOptions = {}): List<t.Ticket> {
    return this.transport.list<t.Ticket>({ id: "listTickets", method: "GET", path: "/api/v1/tickets", query }, options);
  }

  /**
   * Open a ticket. Opens a ticket with a contact on a channel. Fails while the contact has an open ticket
   * there. Requires the permission `tickets` `POST`.
   */
  open(body: t.TicketOpen, options: WriteOptions = {}): Promise<t.Ticket> {
    return this.transport.data<t.Ticket>({ id: "openTicket", method: "POST", path: "/api/v1/tickets", body, keyed: true }, options);
  }

  /** Get a ticket. Returns the current state of a ticket. Requires the permission `tickets` `GET`. */
  get(ticketId: number, options: CallOptions = {}): Promise<t.Ticket> {
    return this.transport.data<t.Ticket>({ id: "getTicket", method: "GET", path: `/api/v1/tickets/${segment(ticketId)}` }, options);
  }

  /**
   * Close a ticket. Closes an open ticket, with a wrap-up if its queue requires one. Requires the permission
   * `tickets` `POST`.
   */
  close(ticketId: number, body: t.TicketClose = {}, options: WriteOptions = {}): Promise<t.Ticket> {
    return this.transport.data<t.Ticket>({ id: "closeTicket", method: "POST", path: `/api/v1/tickets/${segment(ticketId)}/close`, body, keyed: true }, options);
  }

  /**
   * List the events of a ticket. Lists the history of a ticket, oldest first. Requires the permission `tickets`
   * `GET`.
   */
  listEvents(ticketId: number, query: ListTicketEventsQuery = {}, options: CallOptions = {}): List<t.TicketEvent> {
    return this.transport.list<t.TicketEvent>({ id: "listTicketEvents", method: "GET", path: `/api/v1/tickets/${segment(ticketId)}/events`, query }, options);
  }

  /**
   * Merge a ticket into another. Merges the ticket `fromTicketId` into the ticket of the path, which stays:
   * messages and history go over. Both have the same contact and channel; an open ticket is not merged into a
   * closed one. Afterwards the other id is answered with `404` and `details.mergedInto`. Requires the
   * permission `tickets` `POST`.
   */
  merge(ticketId: number, body: t.TicketMerge, options: WriteOptions = {}): Promise<t.Ticket> {
    return this.transport.data<t.Ticket>({ id: "mergeTickets", method: "POST", path: `/api/v1/tickets/${segment(ticketId)}/merge`, body, keyed: true }, options);
  }

  /**
   * List the messages of a ticket. Lists the messages of a ticket, including notes, oldest first. Requires the
   * permission `tickets` `GET`.
   */
  listMessages(ticketId: number, query: ListTicketMessagesQuery = {}, options: CallOptions = {}): List<t.Message> {
    return this.transport.list<t.Message>({ id: "listTicketMessages", method: "GET", path: `/api/v1/tickets/${segment(ticketId)}/messages`, query }, options);
  }

  /**
   * Add a note to a ticket. Adds a note for agents. Notes are never sent or shown to the contact. Requires the
   * permission `tickets` `POST`.
   */
  addNote(ticketId: number, body: t.NoteCreate, options: WriteOptions = {}): Promise<t.Message> {
    return this.transport.data<t.Message>({ id: "addTicketNote", method: "POST", path: `/api/v1/tickets/${segment(ticketId)}/notes`, body, keyed: true }, options);
  }

  /** Mark a ticket as read. Marks the contact's messages as read. Requires the permission `tickets` `POST`. */
  markRead(ticketId: number, options: WriteOptions = {}): Promise<t.Ticket> {
    return this.transport.data<t.Ticket>({ id: "markTicketRead", method: "POST", path: `/api/v1/tickets/${segment(ticketId)}/read`, keyed: true }, options);
  }

  /**
   * Reopen a ticket. Reopens a closed ticket and removes its wrap-up. Requires the permission `tickets` `POST`.
   */
  reopen(ticketId: number, options: WriteOptions = {}): Promise<t.Ticket> {
    return this.transport.data<t.Ticket>({ id: "reopenTicket", method: "POST", path: `/api/v1/tickets/${segment(ticketId)}/reopen`, keyed: true }, options);
  }

  /**
   * Transfer a ticket. Transfers an open ticket to another queue, agent, or both. `userId: null` unassigns it.
   * Requires the permission `tickets` `POST`.
   */
  transfer(ticketId: number, body: t.TicketTransfer, options: WriteOptions = {}): Promise<t.Ticket> {
    return this.transport.data<t.Ticket>({ id: "transferTicket", method: "POST", path: `/api/v1/tickets/${segment(ticketId)}/transfer`, body, keyed: true }, options);
  }

  /**
   * Set the wrap-up of a ticket. Sets or changes the wrap-up of a closed ticket. Requires the permission
   * `tickets` `PUT`.
   */
  setWrapup(ticketId: number, body: t.TicketWrapup, options: WriteOptions = {}): Promise<t.Ticket> {
    return this.transport.data<t.Ticket>({ id: "setTicketWrapup", method: "PUT", path: `/api/v1/tickets/${segment(ticketId)}/wrapup`, body, keyed: true }, options);
  }
}

/** What `users.list` may be narrowed by. */
export interface ListUsersQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches users whose name or e-mail contains every word; ignores case and accents. */
  search?: string;
  /** Whether it is active. */
  active?: boolean;
  /** The queue. */
  queueId?: number;
  /** The permission profile. */
  profileId?: number;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** What `users.listMetrics` may be narrowed by. */
export interface ListUserMetricsQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Only tickets opened at or after this time. */
  from?: string | Date;
  /** Only tickets opened at or before this time. */
  to?: string | Date;
  /** The queue. */
  queueId?: number;
  /** The user. */
  userId?: number;
}

/** The operations on users. */
export class Users extends Resource {
  /** List users. Lists the company's users, ordered by id. Requires the permission `users` `GET`. */
  list(query: ListUsersQuery = {}, options: CallOptions = {}): List<t.User> {
    return this.transport.list<t.User>({ id: "listUsers", method: "GET", path: "/api/v1/users", query }, options);
  }

  /** Create a user. Creates a user in the company. Requires the permission `users` `POST`. */
  create(body: t.UserCreate, options: WriteOptions = {}): Promise<t.User> {
    return this.transport.data<t.User>({ id: "createUser", method: "POST", path: "/api/v1/users", body, keyed: true }, options);
  }

  /**
   * List the conversation metrics of users. Lists how many tickets each user has handled. Requires the
   * permission `users` `GET`.
   */
  listMetrics(query: ListUserMetricsQuery = {}, options: CallOptions = {}): List<t.UserMetrics> {
    return this.transport.list<t.UserMetrics>({ id: "listUserMetrics", method: "GET", path: "/api/v1/users/metrics", query }, options);
  }

  /**
   * Remove a user from the company. Removes a user from the company. Their open tickets are unassigned; closed
   * tickets keep them. Requires the permission `users` `DELETE`.
   */
  remove(userId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "removeUser", method: "DELETE", path: `/api/v1/users/${segment(userId)}` }, options);
  }

  /** Get a user. Returns a user with their profile and queues. Requires the permission `users` `GET`. */
  get(userId: number, options: CallOptions = {}): Promise<t.User> {
    return this.transport.data<t.User>({ id: "getUser", method: "GET", path: `/api/v1/users/${segment(userId)}` }, options);
  }

  /**
   * Update a user. Updates the given fields; `queueIds` replaces the queues. Requires the permission `users`
   * `PUT`.
   */
  update(userId: number, body: t.UserUpdate, options: WriteOptions = {}): Promise<t.User> {
    return this.transport.data<t.User>({ id: "updateUser", method: "PUT", path: `/api/v1/users/${segment(userId)}`, body, keyed: true }, options);
  }
}

/** The operations on visitors. */
export class Visitors extends Resource {
  /**
   * Get the visitor's activity. Returns whether the visitor of a ticket is online and typing. Requires the
   * permission `tickets` `GET`.
   */
  getActivity(publicKey: string, ticketId: number, options: CallOptions = {}): Promise<t.VisitorActivity> {
    return this.transport.data<t.VisitorActivity>({ id: "getVisitorActivity", method: "GET", path: `/webchat/${segment(publicKey)}/tickets/${segment(ticketId)}/typing` }, options);
  }

  /**
   * Show that an agent is typing. Shows the visitor of a ticket that an agent is typing, for six seconds;
   * repeat every three seconds. Requires the permission `tickets` `POST`.
   */
  showAgentTyping(publicKey: string, ticketId: number, body: t.AgentTyping = {}, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "showAgentTyping", method: "POST", path: `/webchat/${segment(publicKey)}/tickets/${segment(ticketId)}/typing`, body }, options);
  }
}

/** What `webhooks.list` may be narrowed by. */
export interface ListWebhooksQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches webhooks whose URL or description contains every word; ignores case and accents. */
  search?: string;
  /** Whether it is active. */
  active?: boolean;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** What `webhooks.listDeliveries` may be narrowed by. */
export interface ListWebhookDeliveriesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** The status. */
  status?: "pending" | "delivered" | "failed";
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on webhooks. */
export class Webhooks extends Resource {
  /**
   * List webhooks. Lists the company's webhooks, ordered by id. `search` matches URL and description;
   * `disabledReason` says why a webhook was disabled. All webhook endpoints return `404` if events are
   * disabled. Requires the permission `webhooks` `GET`.
   */
  list(query: ListWebhooksQuery = {}, options: CallOptions = {}): List<t.Webhook> {
    return this.transport.list<t.Webhook>({ id: "listWebhooks", method: "GET", path: "/api/v1/webhooks", query }, options);
  }

  /**
   * Create a webhook. Creates a webhook that receives future events, and returns its secret, which is shown
   * only once. A company can have 20 webhooks. Returns `404` if events are disabled. Requires the permission
   * `webhooks` `POST`.
   */
  create(body: t.WebhookCreate, options: WriteOptions = {}): Promise<t.WebhookWithSecret> {
    return this.transport.data<t.WebhookWithSecret>({ id: "createWebhook", method: "POST", path: "/api/v1/webhooks", body, keyed: true, secret: "secret" }, options);
  }

  /**
   * Delete a webhook. Deletes a webhook and its deliveries. Requests in flight may still arrive. Requires the
   * permission `webhooks` `DELETE`.
   */
  delete(webhookId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteWebhook", method: "DELETE", path: `/api/v1/webhooks/${segment(webhookId)}` }, options);
  }

  /** Get a webhook. Returns a webhook. Requires the permission `webhooks` `GET`. */
  get(webhookId: number, options: CallOptions = {}): Promise<t.Webhook> {
    return this.transport.data<t.Webhook>({ id: "getWebhook", method: "GET", path: `/api/v1/webhooks/${segment(webhookId)}` }, options);
  }

  /**
   * Update a webhook. Updates the given fields. A webhook that is enabled again resumes where it stopped, as
   * far back as events are kept. Requires the permission `webhooks` `PUT`.
   */
  update(webhookId: number, body: t.WebhookUpdate, options: WriteOptions = {}): Promise<t.Webhook> {
    return this.transport.data<t.Webhook>({ id: "updateWebhook", method: "PUT", path: `/api/v1/webhooks/${segment(webhookId)}`, body, keyed: true }, options);
  }

  /**
   * List the deliveries of a webhook. Lists the deliveries of a webhook, ordered by event. A delivery appears
   * after its first attempt, or one second after it was due, and is kept as long as its event. Requires the
   * permission `webhooks` `GET`.
   */
  listDeliveries(webhookId: number, query: ListWebhookDeliveriesQuery = {}, options: CallOptions = {}): List<t.WebhookDelivery> {
    return this.transport.list<t.WebhookDelivery>({ id: "listWebhookDeliveries", method: "GET", path: `/api/v1/webhooks/${segment(webhookId)}/deliveries`, query }, options);
  }

  /**
   * Replay events to a webhook. Sends events again: all events after one (`after`) up to the current position,
   * one delivery (`deliveryId`), or all failed since a time (`failedSince`). Exactly one is required. Fails
   * while the webhook is disabled. Requires the permission `webhooks` `POST`.
   */
  replay(webhookId: number, body: t.WebhookReplay, options: WriteOptions = {}): Promise<t.WebhookReplayed> {
    return this.transport.data<t.WebhookReplayed>({ id: "replayWebhook", method: "POST", path: `/api/v1/webhooks/${segment(webhookId)}/replay`, body, keyed: true }, options);
  }

  /**
   * Rotate the secret of a webhook. Replaces the webhook's secret and returns the new one, which is shown only
   * once. The previous secret stays valid for 24 hours; any older one is revoked. Requires the permission
   * `webhooks` `POST`.
   */
  rotateSecret(webhookId: number, options: WriteOptions = {}): Promise<t.WebhookWithSecret> {
    return this.transport.data<t.WebhookWithSecret>({ id: "rotateWebhookSecret", method: "POST", path: `/api/v1/webhooks/${segment(webhookId)}/rotate-secret`, keyed: true, secret: "secret" }, options);
  }

  /**
   * Send a test to a webhook. Sends `webhook.test` immediately, even to a disabled webhook, and returns the
   * response. The test is not logged or retried. Only one test per webhook can run at a time. Requires the
   * permission `webhooks` `POST`.
   */
  test(webhookId: number, options: WriteOptions = {}): Promise<t.WebhookTest> {
    return this.transport.data<t.WebhookTest>({ id: "testWebhook", method: "POST", path: `/api/v1/webhooks/${segment(webhookId)}/test`, keyed: true }, options);
  }
}

/** What `wrapupCategories.list` may be narrowed by. */
export interface ListWrapupCategoriesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on wrapupCategories. */
export class WrapupCategories extends Resource {
  /**
   * List wrap-up categories. Lists the wrap-up categories, ordered by id. Requires the permission `wrapupTypes`
   * `GET`.
   */
  list(query: ListWrapupCategoriesQuery = {}, options: CallOptions = {}): List<t.WrapupCategory> {
    return this.transport.list<t.WrapupCategory>({ id: "listWrapupCategories", method: "GET", path: "/api/v1/wrapup-categories", query }, options);
  }

  /** Create a wrap-up category. Creates a wrap-up category. Requires the permission `wrapupTypes` `POST`. */
  create(body: t.WrapupCategoryCreate, options: WriteOptions = {}): Promise<t.WrapupCategory> {
    return this.transport.data<t.WrapupCategory>({ id: "createWrapupCategory", method: "POST", path: "/api/v1/wrapup-categories", body, keyed: true }, options);
  }

  /**
   * Delete a wrap-up category. Deletes a wrap-up category. Fails while it has types. Requires the permission
   * `wrapupTypes` `DELETE`.
   */
  delete(categoryId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteWrapupCategory", method: "DELETE", path: `/api/v1/wrapup-categories/${segment(categoryId)}` }, options);
  }

  /** Update a wrap-up category. Updates the given fields. Requires the permission `wrapupTypes` `PUT`. */
  update(categoryId: number, body: t.WrapupCategoryUpdate, options: WriteOptions = {}): Promise<t.WrapupCategory> {
    return this.transport.data<t.WrapupCategory>({ id: "updateWrapupCategory", method: "PUT", path: `/api/v1/wrapup-categories/${segment(categoryId)}`, body, keyed: true }, options);
  }
}

/** What `wrapupTypes.list` may be narrowed by. */
export interface ListWrapupTypesQuery {
  /** Page size; invalid values count as 100 */
  perPage?: number;
  /** Sort order: `asc` or `desc`. */
  order?: "asc" | "desc";
  /**
   * Cursor-based pagination, instead of `page`: empty for the first page, then `meta.nextCursor` of the
   * previous page. Records are ordered by id. Each record that matches throughout is returned exactly once,
   * even if others are added or deleted meanwhile. A page may have fewer than `perPage` records; only `hasMore`
   * says whether there are more. Use the same list, filters and order
   */
  cursor?: string;
  /** Matches records whose name contains every word; ignores case and accents. */
  search?: string;
  /** Whether it is active. */
  active?: boolean;
  /** The category. */
  categoryId?: number;
  /** The queue. */
  queueId?: number;
  /** created at or after this time */
  createdFrom?: string | Date;
  /** created at or before this time */
  createdTo?: string | Date;
  /** updated at or after this time */
  updatedFrom?: string | Date;
  /** updated at or before this time */
  updatedTo?: string | Date;
}

/** The operations on wrapupTypes. */
export class WrapupTypes extends Resource {
  /**
   * List wrap-up types. Lists the company's wrap-up types, ordered by id. Requires the permission `wrapupTypes`
   * `GET`.
   */
  list(query: ListWrapupTypesQuery = {}, options: CallOptions = {}): List<t.WrapupType> {
    return this.transport.list<t.WrapupType>({ id: "listWrapupTypes", method: "GET", path: "/api/v1/wrapup-types", query }, options);
  }

  /** Create a wrap-up type. Creates a wrap-up type in a category. Requires the permission `wrapupTypes` `POST`. */
  create(body: t.WrapupTypeCreate, options: WriteOptions = {}): Promise<t.WrapupType> {
    return this.transport.data<t.WrapupType>({ id: "createWrapupType", method: "POST", path: "/api/v1/wrapup-types", body, keyed: true }, options);
  }

  /**
   * Delete a wrap-up type. Deletes a wrap-up type. Fails while tickets use it; set `active: false` instead.
   * Requires the permission `wrapupTypes` `DELETE`.
   */
  delete(wrapupTypeId: number, options: CallOptions = {}): Promise<void> {
    return this.transport.nothing({ id: "deleteWrapupType", method: "DELETE", path: `/api/v1/wrapup-types/${segment(wrapupTypeId)}` }, options);
  }

  /** Get a wrap-up type. Returns a wrap-up type with its queues. Requires the permission `wrapupTypes` `GET`. */
  get(wrapupTypeId: number, options: CallOptions = {}): Promise<t.WrapupType> {
    return this.transport.data<t.WrapupType>({ id: "getWrapupType", method: "GET", path: `/api/v1/wrapup-types/${segment(wrapupTypeId)}` }, options);
  }

  /**
   * Update a wrap-up type. Updates the given fields; `queueIds` replaces the queues. Requires the permission
   * `wrapupTypes` `PUT`.
   */
  update(wrapupTypeId: number, body: t.WrapupTypeUpdate, options: WriteOptions = {}): Promise<t.WrapupType> {
    return this.transport.data<t.WrapupType>({ id: "updateWrapupType", method: "PUT", path: `/api/v1/wrapup-types/${segment(wrapupTypeId)}`, body, keyed: true }, options);
  }
}

/** The resources of the API. */
export class Resources {
  readonly boards: Boards;
  readonly businesses: Businesses;
  readonly campaigns: Campaigns;
  readonly cardOrigins: CardOrigins;
  readonly cardStatuses: CardStatuses;
  readonly cards: Cards;
  readonly channels: Channels;
  readonly contactLists: ContactLists;
  readonly contacts: Contacts;
  readonly customFields: CustomFields;
  readonly dashboards: Dashboards;
  readonly events: Events;
  readonly globalVariables: GlobalVariables;
  readonly messages: Messages;
  readonly productCategories: ProductCategories;
  readonly products: Products;
  readonly profiles: Profiles;
  readonly queues: Queues;
  readonly quickMessages: QuickMessages;
  readonly reports: Reports;
  readonly schedules: Schedules;
  readonly sessions: Sessions;
  readonly tags: Tags;
  readonly tickets: Tickets;
  readonly users: Users;
  readonly visitors: Visitors;
  readonly webhooks: Webhooks;
  readonly wrapupCategories: WrapupCategories;
  readonly wrapupTypes: WrapupTypes;

  constructor(transport: Transport) {
    this.boards = new Boards(transport);
    this.businesses = new Businesses(transport);
    this.campaigns = new Campaigns(transport);
    this.cardOrigins = new CardOrigins(transport);
    this.cardStatuses = new CardStatuses(transport);
    this.cards = new Cards(transport);
    this.channels = new Channels(transport);
    this.contactLists = new ContactLists(transport);
    this.contacts = new Contacts(transport);
    this.customFields = new CustomFields(transport);
    this.dashboards = new Dashboards(transport);
    this.events = new Events(transport);
    this.globalVariables = new GlobalVariables(transport);
    this.messages = new Messages(transport);
    this.productCategories = new ProductCategories(transport);
    this.products = new Products(transport);
    this.profiles = new Profiles(transport);
    this.queues = new Queues(transport);
    this.quickMessages = new QuickMessages(transport);
    this.reports = new Reports(transport);
    this.schedules = new Schedules(transport);
    this.sessions = new Sessions(transport);
    this.tags = new Tags(transport);
    this.tickets = new Tickets(transport);
    this.users = new Users(transport);
    this.visitors = new Visitors(transport);
    this.webhooks = new Webhooks(transport);
    this.wrapupCategories = new WrapupCategories(transport);
    this.wrapupTypes = new WrapupTypes(transport);
  }
}
