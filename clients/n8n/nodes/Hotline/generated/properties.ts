// Generated from openapi.json by `make clients-generate`. Do not edit.

import type { INodeProperties } from "n8n-workflow";

/** The form of the node. */
export const PROPERTIES: INodeProperties[] = [
  {
    "displayName": "Resource",
    "name": "resource",
    "type": "options",
    "noDataExpression": true,
    "default": "message",
    "options": [
      {
        "name": "Campaign",
        "value": "campaign"
      },
      {
        "name": "Card",
        "value": "card"
      },
      {
        "name": "Contact",
        "value": "contact"
      },
      {
        "name": "Message",
        "value": "message"
      },
      {
        "name": "Ticket",
        "value": "ticket"
      }
    ]
  },
  {
    "displayName": "Operation",
    "name": "operation",
    "type": "options",
    "noDataExpression": true,
    "default": "list",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ]
      }
    },
    "options": [
      {
        "name": "Cancel",
        "value": "cancel",
        "action": "Cancel a campaign",
        "description": "Cancels a campaign. After the response, only messages already in flight are delivered; the remaining recipients are skipped."
      },
      {
        "name": "Create",
        "value": "create",
        "action": "Create a campaign",
        "description": "Creates a campaign: a text, or a template of its channel, for every contact of a list. It starts at scheduledAt, or when startCampaign is called. Variables are filled in for each contact."
      },
      {
        "name": "Delete",
        "value": "delete",
        "action": "Delete a campaign",
        "description": "Deletes a campaign and its recipients; its messages are kept. Fails while it is processing or paused, and after a cancellation while recipients are pending."
      },
      {
        "name": "Get",
        "value": "get",
        "action": "Get a campaign",
        "description": "Returns a campaign with the number of recipients by status"
      },
      {
        "name": "Get Many",
        "value": "list",
        "action": "Get many campaigns",
        "description": "Lists campaigns, ordered by id. Includes every change acknowledged before the request."
      },
      {
        "name": "Get Many Recipients",
        "value": "listRecipients",
        "action": "Get many recipients of a campaign",
        "description": "Lists the recipients of a campaign with their status, ordered by contact id. Empty before the campaign starts."
      },
      {
        "name": "Pause",
        "value": "pause",
        "action": "Pause a campaign",
        "description": "Pauses a running campaign. No messages are created after the response. Messages created before are still sent: at most one second of the campaign's rate, and between 1 and 64."
      },
      {
        "name": "Resume",
        "value": "resume",
        "action": "Resume a campaign",
        "description": "Resumes a paused campaign where it stopped"
      },
      {
        "name": "Start",
        "value": "start",
        "action": "Start a campaign now",
        "description": "Starts a campaign immediately. Its recipients are the contacts in its list at this moment; each receives the message at most once, ordered by id and evenly spread at the campaign's rate."
      },
      {
        "name": "Update",
        "value": "update",
        "action": "Update a campaign",
        "description": "Updates the given fields while the campaign is scheduled. A text replaces a template, and vice versa."
      }
    ]
  },
  {
    "displayName": "Operation",
    "name": "operation",
    "type": "options",
    "noDataExpression": true,
    "default": "list",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ]
      }
    },
    "options": [
      {
        "name": "Add Product",
        "value": "addProduct",
        "action": "Add a product to a card",
        "description": "Adds a product to a card. With productId, omitted fields are copied from the product. totalPrice is quantity x unitPrice, rounded half away from zero to four decimals."
      },
      {
        "name": "Create",
        "value": "create",
        "action": "Create a card",
        "description": "Creates a card at the bottom of its stage. Each line's totalPrice is quantity x unitPrice, rounded half away from zero to four decimals; productsTotal is their exact sum. Each amount must be below 100000000000000."
      },
      {
        "name": "Delete",
        "value": "delete",
        "action": "Delete a card",
        "description": "Deletes a card"
      },
      {
        "name": "Get",
        "value": "get",
        "action": "Get a card",
        "description": "Returns a card with its contacts, products and custom field values"
      },
      {
        "name": "Get Many",
        "value": "list",
        "action": "Get many cards",
        "description": "Lists cards of all boards, ordered by id; with crmBoardListId, the cards of one stage, ordered by position. search matches name and description. A page by number whose contacts have more than 32 MiB is refused with perPage."
      },
      {
        "name": "Lose",
        "value": "lose",
        "action": "Mark a card as lost",
        "description": "Marks an open card as lost; it stays in its stage. Reopen a won card first."
      },
      {
        "name": "Move",
        "value": "move",
        "action": "Move a card to a stage and position",
        "description": "Moves a card to a stage of its board. Moving it to the stage for won cards does not mark it as won. A won card cannot leave that stage; reopen it first."
      },
      {
        "name": "Remove Product",
        "value": "removeProduct",
        "action": "Remove a product from a card",
        "description": "Removes a product from a card"
      },
      {
        "name": "Reopen",
        "value": "reopen",
        "action": "Reopen a won or lost card",
        "description": "Reopens a won or lost card and clears its date and reason. It stays in its stage."
      },
      {
        "name": "Update",
        "value": "update",
        "action": "Update a card",
        "description": "Updates the given fields; null clears one. contactIds and products replace the current ones; custom field values are merged by key. A new stage places the card at its bottom; a won card cannot leave the stage for won cards."
      },
      {
        "name": "Update Product",
        "value": "updateProduct",
        "action": "Update a product of a card",
        "description": "Updates the given fields. A new productId copies the product's name, SKU and price, except for fields that are given."
      },
      {
        "name": "Win",
        "value": "win",
        "action": "Mark a card as won",
        "description": "Marks an open card as won and moves it to the bottom of the board's stage for won cards, which must exist. Reopen a lost card first."
      }
    ]
  },
  {
    "displayName": "Operation",
    "name": "operation",
    "type": "options",
    "noDataExpression": true,
    "default": "list",
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ]
      }
    },
    "options": [
      {
        "name": "Add Tag",
        "value": "addTag",
        "action": "Add a tag to a contact",
        "description": "Adds a tag to a contact. Repeating it changes nothing."
      },
      {
        "name": "Create",
        "value": "create",
        "action": "Create a contact",
        "description": "Creates a contact. A number is unique in the company."
      },
      {
        "name": "Delete",
        "value": "delete",
        "action": "Delete a contact",
        "description": "Deletes a contact with its closed tickets, messages and files. Fails while it has an open ticket or an active session."
      },
      {
        "name": "Get",
        "value": "get",
        "action": "Get a contact",
        "description": "Returns a contact with its tags and custom field values"
      },
      {
        "name": "Get Many",
        "value": "list",
        "action": "Get many contacts",
        "description": "Lists the company's contacts, ordered by id. search matches name, number, e-mail and code"
      },
      {
        "name": "Import",
        "value": "import",
        "action": "Create or update up to 1000 contacts at once",
        "description": "Creates or updates contacts, matched by number, then e-mail, then code. Valid rows are stored even if others fail."
      },
      {
        "name": "Merge",
        "value": "merge",
        "action": "Merge a contact into another",
        "description": "Merges the contact fromContactId into the contact of the path, which stays. What it has set stays, empty fields and missing custom fields are filled, and tags are united. Conversations, identities, cards, sessions, scheduled messages, campaigns and list memberships go over; of two open tickets of a channel, the older stays. A contact with several numbers or ids is answered where they have written last. Afterwards the other id is answered with 404 and details.mergedInto."
      },
      {
        "name": "Remove Tag",
        "value": "removeTag",
        "action": "Remove a tag from a contact",
        "description": "Removes a tag from a contact. Repeating it changes nothing."
      },
      {
        "name": "Update",
        "value": "update",
        "action": "Update a contact",
        "description": "Updates the given fields; null clears one. Custom field values are merged by key."
      }
    ]
  },
  {
    "displayName": "Operation",
    "name": "operation",
    "type": "options",
    "noDataExpression": true,
    "default": "list",
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ]
      }
    },
    "options": [
      {
        "name": "Get",
        "value": "get",
        "action": "Get a message",
        "description": "Returns the current state of a message"
      },
      {
        "name": "Get Job",
        "value": "getJob",
        "action": "Get a message job",
        "description": "Returns the status of a message job"
      },
      {
        "name": "Get Many",
        "value": "list",
        "action": "Get many messages",
        "description": "Lists messages of all tickets, ordered by id"
      },
      {
        "name": "React To",
        "value": "reactTo",
        "action": "React to a message",
        "description": "Reacts to a message on behalf of the company, which has one reaction of each message: it replaces an earlier one. It is sent to the channel's provider; if that refuses it, the reaction has an error."
      },
      {
        "name": "Send",
        "value": "send",
        "action": "Send a message",
        "description": "Queues a message and immediately returns a job. Opens a ticket if none is open."
      },
      {
        "name": "Withdraw Reaction",
        "value": "withdrawReaction",
        "action": "Withdraw a reaction",
        "description": "Withdraws the company's reaction to a message"
      }
    ]
  },
  {
    "displayName": "Operation",
    "name": "operation",
    "type": "options",
    "noDataExpression": true,
    "default": "list",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ]
      }
    },
    "options": [
      {
        "name": "Add Note",
        "value": "addNote",
        "action": "Add a note to a ticket",
        "description": "Adds a note for agents. Notes are never sent or shown to the contact."
      },
      {
        "name": "Close",
        "value": "close",
        "action": "Close a ticket",
        "description": "Closes an open ticket, with a wrap-up if its queue requires one"
      },
      {
        "name": "Get",
        "value": "get",
        "action": "Get a ticket",
        "description": "Returns the current state of a ticket"
      },
      {
        "name": "Get Many",
        "value": "list",
        "action": "Get many tickets",
        "description": "Lists tickets, ordered by id unless sort is given. Includes every change acknowledged before the request."
      },
      {
        "name": "Get Many Events",
        "value": "listEvents",
        "action": "Get many events of a ticket",
        "description": "Lists the history of a ticket, oldest first"
      },
      {
        "name": "Get Many Messages",
        "value": "listMessages",
        "action": "Get many messages of a ticket",
        "description": "Lists the messages of a ticket, including notes, oldest first"
      },
      {
        "name": "Mark Read",
        "value": "markRead",
        "action": "Mark a ticket as read",
        "description": "Marks the contact's messages as read"
      },
      {
        "name": "Merge",
        "value": "merge",
        "action": "Merge a ticket into another",
        "description": "Merges the ticket fromTicketId into the ticket of the path, which stays: messages and history go over. Both have the same contact and channel; an open ticket is not merged into a closed one. Afterwards the other id is answered with 404 and details.mergedInto."
      },
      {
        "name": "Open",
        "value": "open",
        "action": "Open a ticket",
        "description": "Opens a ticket with a contact on a channel. Fails while the contact has an open ticket there."
      },
      {
        "name": "Reopen",
        "value": "reopen",
        "action": "Reopen a ticket",
        "description": "Reopens a closed ticket and removes its wrap-up"
      },
      {
        "name": "Set Wrapup",
        "value": "setWrapup",
        "action": "Set the wrap-up of a ticket",
        "description": "Sets or changes the wrap-up of a closed ticket"
      },
      {
        "name": "Transfer",
        "value": "transfer",
        "action": "Transfer a ticket",
        "description": "Transfers an open ticket to another queue, agent, or both. userId: null unassigns it"
      }
    ]
  },
  {
    "displayName": "Return All",
    "name": "returnAll",
    "type": "boolean",
    "default": false,
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "list"
        ]
      }
    },
    "description": "Whether to return all results or only up to a given limit"
  },
  {
    "displayName": "Limit",
    "name": "limit",
    "type": "number",
    "default": 50,
    "typeOptions": {
      "minValue": 1
    },
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "list"
        ],
        "returnAll": [
          false
        ]
      }
    },
    "description": "Max number of results to return"
  },
  {
    "displayName": "Filters",
    "name": "filters",
    "type": "collection",
    "placeholder": "Add Filter",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "list"
        ]
      }
    },
    "options": [
      {
        "displayName": "Channel ID",
        "name": "channelId",
        "type": "number",
        "default": 0,
        "description": "The channel"
      },
      {
        "displayName": "Contact List ID",
        "name": "contactListId",
        "type": "number",
        "default": 0,
        "description": "The contact list"
      },
      {
        "displayName": "Created From",
        "name": "createdFrom",
        "type": "dateTime",
        "default": "",
        "description": "created at or after this time"
      },
      {
        "displayName": "Created To",
        "name": "createdTo",
        "type": "dateTime",
        "default": "",
        "description": "created at or before this time"
      },
      {
        "displayName": "Order",
        "name": "order",
        "type": "options",
        "options": [
          {
            "name": "Asc",
            "value": "asc"
          },
          {
            "name": "Desc",
            "value": "desc"
          }
        ],
        "default": "asc",
        "description": "Sort order: asc or desc"
      },
      {
        "displayName": "Search",
        "name": "search",
        "type": "string",
        "default": "",
        "description": "Matches records whose name contains every word; ignores case and accents"
      },
      {
        "displayName": "Status",
        "name": "status",
        "type": "options",
        "options": [
          {
            "name": "Canceled",
            "value": "canceled"
          },
          {
            "name": "Completed",
            "value": "completed"
          },
          {
            "name": "Paused",
            "value": "paused"
          },
          {
            "name": "Processing",
            "value": "processing"
          },
          {
            "name": "Scheduled",
            "value": "scheduled"
          }
        ],
        "default": "canceled",
        "description": "The status"
      },
      {
        "displayName": "Updated From",
        "name": "updatedFrom",
        "type": "dateTime",
        "default": "",
        "description": "updated at or after this time"
      },
      {
        "displayName": "Updated To",
        "name": "updatedTo",
        "type": "dateTime",
        "default": "",
        "description": "updated at or before this time"
      }
    ]
  },
  {
    "displayName": "Channel ID",
    "name": "channelId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The channel, as GET /channels lists it",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "create"
        ]
      }
    }
  },
  {
    "displayName": "Contact List ID",
    "name": "contactListId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The contact list, as it is when the campaign starts",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "create"
        ]
      }
    }
  },
  {
    "displayName": "Name",
    "name": "name",
    "type": "string",
    "required": true,
    "default": "",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "create"
        ]
      }
    }
  },
  {
    "displayName": "Scheduled At",
    "name": "scheduledAt",
    "type": "dateTime",
    "required": true,
    "default": "",
    "description": "A time in the future",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "create"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "create"
        ]
      }
    },
    "options": [
      {
        "displayName": "Keep Closed",
        "name": "keepClosed",
        "type": "boolean",
        "default": false,
        "description": "Whether tickets opened by the campaign are closed immediately, so that they do not wait for an agent. A reply opens a new ticket."
      },
      {
        "displayName": "Message",
        "name": "message",
        "type": "string",
        "default": "",
        "description": "At most 65,536 bytes"
      },
      {
        "displayName": "Rate Per Minute",
        "name": "ratePerMinute",
        "type": "number",
        "default": 0,
        "description": "Maximum messages per minute, evenly spread"
      },
      {
        "displayName": "Template",
        "name": "template",
        "type": "json",
        "default": "{}",
        "description": "An approved template: its name with parameters, or complete components; instead of message"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "create"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Campaign ID",
    "name": "campaignId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The campaign",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "delete"
        ]
      }
    }
  },
  {
    "displayName": "Campaign ID",
    "name": "campaignId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The campaign",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "get"
        ]
      }
    }
  },
  {
    "displayName": "Campaign ID",
    "name": "campaignId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The campaign",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "update"
        ]
      }
    }
  },
  {
    "displayName": "Update Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "update"
        ]
      }
    },
    "options": [
      {
        "displayName": "Channel ID",
        "name": "channelId",
        "type": "number",
        "default": 0,
        "description": "The channel, as GET /channels lists it"
      },
      {
        "displayName": "Contact List ID",
        "name": "contactListId",
        "type": "number",
        "default": 0,
        "description": "The contact list, as it is when the campaign starts"
      },
      {
        "displayName": "Keep Closed",
        "name": "keepClosed",
        "type": "boolean",
        "default": false,
        "description": "Whether tickets opened by the campaign are closed immediately, so that they do not wait for an agent. A reply opens a new ticket."
      },
      {
        "displayName": "Message",
        "name": "message",
        "type": "string",
        "default": "",
        "description": "At most 65,536 bytes"
      },
      {
        "displayName": "Name",
        "name": "name",
        "type": "string",
        "default": ""
      },
      {
        "displayName": "Rate Per Minute",
        "name": "ratePerMinute",
        "type": "number",
        "default": 0,
        "description": "Maximum messages per minute, evenly spread"
      },
      {
        "displayName": "Scheduled At",
        "name": "scheduledAt",
        "type": "dateTime",
        "default": "",
        "description": "A time in the future"
      },
      {
        "displayName": "Template",
        "name": "template",
        "type": "json",
        "default": "{}",
        "description": "An approved template: its name with parameters, or complete components; instead of message"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "update"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Campaign ID",
    "name": "campaignId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The campaign",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "cancel"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "cancel"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Campaign ID",
    "name": "campaignId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The campaign",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "pause"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "pause"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Campaign ID",
    "name": "campaignId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The campaign",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "listRecipients"
        ]
      }
    }
  },
  {
    "displayName": "Return All",
    "name": "returnAll",
    "type": "boolean",
    "default": false,
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "listRecipients"
        ]
      }
    },
    "description": "Whether to return all results or only up to a given limit"
  },
  {
    "displayName": "Limit",
    "name": "limit",
    "type": "number",
    "default": 50,
    "typeOptions": {
      "minValue": 1
    },
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "listRecipients"
        ],
        "returnAll": [
          false
        ]
      }
    },
    "description": "Max number of results to return"
  },
  {
    "displayName": "Filters",
    "name": "filters",
    "type": "collection",
    "placeholder": "Add Filter",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "listRecipients"
        ]
      }
    },
    "options": [
      {
        "displayName": "Order",
        "name": "order",
        "type": "options",
        "options": [
          {
            "name": "Asc",
            "value": "asc"
          },
          {
            "name": "Desc",
            "value": "desc"
          }
        ],
        "default": "asc",
        "description": "Sort order: asc or desc"
      },
      {
        "displayName": "Status",
        "name": "status",
        "type": "options",
        "options": [
          {
            "name": "Delivered",
            "value": "delivered"
          },
          {
            "name": "Failed",
            "value": "failed"
          },
          {
            "name": "Pending",
            "value": "pending"
          },
          {
            "name": "Read",
            "value": "read"
          },
          {
            "name": "Sent",
            "value": "sent"
          },
          {
            "name": "Skipped",
            "value": "skipped"
          },
          {
            "name": "Unknown",
            "value": "unknown"
          }
        ],
        "default": "delivered",
        "description": "The status"
      },
      {
        "displayName": "Updated From",
        "name": "updatedFrom",
        "type": "dateTime",
        "default": "",
        "description": "updated at or after this time"
      },
      {
        "displayName": "Updated To",
        "name": "updatedTo",
        "type": "dateTime",
        "default": "",
        "description": "updated at or before this time"
      }
    ]
  },
  {
    "displayName": "Campaign ID",
    "name": "campaignId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The campaign",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "resume"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "resume"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Campaign ID",
    "name": "campaignId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The campaign",
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "start"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "campaign"
        ],
        "operation": [
          "start"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Return All",
    "name": "returnAll",
    "type": "boolean",
    "default": false,
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "list"
        ]
      }
    },
    "description": "Whether to return all results or only up to a given limit"
  },
  {
    "displayName": "Limit",
    "name": "limit",
    "type": "number",
    "default": 50,
    "typeOptions": {
      "minValue": 1
    },
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "list"
        ],
        "returnAll": [
          false
        ]
      }
    },
    "description": "Max number of results to return"
  },
  {
    "displayName": "Filters",
    "name": "filters",
    "type": "collection",
    "placeholder": "Add Filter",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "list"
        ]
      }
    },
    "options": [
      {
        "displayName": "Assigned to User ID",
        "name": "assignedToUserId",
        "type": "number",
        "default": 0,
        "description": "The responsible user"
      },
      {
        "displayName": "Board ID",
        "name": "boardId",
        "type": "number",
        "default": 0,
        "description": "The board"
      },
      {
        "displayName": "Business ID",
        "name": "businessId",
        "type": "number",
        "default": 0,
        "description": "The card's business"
      },
      {
        "displayName": "Contact ID",
        "name": "contactId",
        "type": "number",
        "default": 0,
        "description": "The contact"
      },
      {
        "displayName": "Created From",
        "name": "createdFrom",
        "type": "dateTime",
        "default": "",
        "description": "created at or after this time"
      },
      {
        "displayName": "Created To",
        "name": "createdTo",
        "type": "dateTime",
        "default": "",
        "description": "created at or before this time"
      },
      {
        "displayName": "Due From",
        "name": "dueFrom",
        "type": "dateTime",
        "default": "",
        "description": "due at or after this time"
      },
      {
        "displayName": "Due To",
        "name": "dueTo",
        "type": "dateTime",
        "default": "",
        "description": "due at or before this time"
      },
      {
        "displayName": "Lost",
        "name": "lost",
        "type": "boolean",
        "default": false,
        "description": "Whether the card was lost"
      },
      {
        "displayName": "Order",
        "name": "order",
        "type": "options",
        "options": [
          {
            "name": "Asc",
            "value": "asc"
          },
          {
            "name": "Desc",
            "value": "desc"
          }
        ],
        "default": "asc",
        "description": "Sort order: asc or desc"
      },
      {
        "displayName": "Origin ID",
        "name": "originId",
        "type": "number",
        "default": 0,
        "description": "The card's origin"
      },
      {
        "displayName": "Search",
        "name": "search",
        "type": "string",
        "default": "",
        "description": "Matches cards whose name or description contains every word; ignores case and accents"
      },
      {
        "displayName": "Stage ID",
        "name": "crmBoardListId",
        "type": "number",
        "default": 0,
        "description": "The stage of a board"
      },
      {
        "displayName": "Status ID",
        "name": "statusId",
        "type": "number",
        "default": 0,
        "description": "The card's status"
      },
      {
        "displayName": "Ticket ID",
        "name": "ticketId",
        "type": "number",
        "default": 0,
        "description": "The ticket"
      },
      {
        "displayName": "Updated From",
        "name": "updatedFrom",
        "type": "dateTime",
        "default": "",
        "description": "updated at or after this time"
      },
      {
        "displayName": "Updated To",
        "name": "updatedTo",
        "type": "dateTime",
        "default": "",
        "description": "updated at or before this time"
      },
      {
        "displayName": "Won",
        "name": "won",
        "type": "boolean",
        "default": false,
        "description": "Whether the card was won"
      }
    ]
  },
  {
    "displayName": "Board ID",
    "name": "boardId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The board; it never changes",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "create"
        ]
      }
    }
  },
  {
    "displayName": "Name",
    "name": "name",
    "type": "string",
    "required": true,
    "default": "",
    "description": "The card's name",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "create"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "create"
        ]
      }
    },
    "options": [
      {
        "displayName": "Assigned to User ID",
        "name": "assignedToUserId",
        "type": "number",
        "default": 0,
        "description": "The responsible user, as GET /users lists them"
      },
      {
        "displayName": "Business ID",
        "name": "businessId",
        "type": "number",
        "default": 0,
        "description": "The line of business"
      },
      {
        "displayName": "Contact IDs",
        "name": "contactIds",
        "type": "string",
        "default": "",
        "description": "The contacts; replaces the current ones, as IDs separated by commas"
      },
      {
        "displayName": "Custom Fields",
        "name": "customFields",
        "type": "json",
        "default": "{}",
        "description": "Values of custom fields"
      },
      {
        "displayName": "Description",
        "name": "description",
        "type": "string",
        "default": ""
      },
      {
        "displayName": "Due",
        "name": "due",
        "type": "dateTime",
        "default": "",
        "description": "Due date"
      },
      {
        "displayName": "Origin ID",
        "name": "originId",
        "type": "number",
        "default": 0,
        "description": "The origin"
      },
      {
        "displayName": "Products",
        "name": "products",
        "type": "json",
        "default": "{}",
        "description": "The products; replaces the current ones"
      },
      {
        "displayName": "Stage ID",
        "name": "crmBoardListId",
        "type": "number",
        "default": 0,
        "description": "The stage. Default: the board's first."
      },
      {
        "displayName": "Status ID",
        "name": "statusId",
        "type": "number",
        "default": 0,
        "description": "The status, as defined by the company"
      },
      {
        "displayName": "Ticket ID",
        "name": "ticketId",
        "type": "number",
        "default": 0,
        "description": "The ticket the card was created from"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "create"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Card ID",
    "name": "cardId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "delete"
        ]
      }
    }
  },
  {
    "displayName": "Card ID",
    "name": "cardId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "get"
        ]
      }
    }
  },
  {
    "displayName": "Card ID",
    "name": "cardId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "update"
        ]
      }
    }
  },
  {
    "displayName": "Update Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "update"
        ]
      }
    },
    "options": [
      {
        "displayName": "Assigned to User ID",
        "name": "assignedToUserId",
        "type": "number",
        "default": 0,
        "description": "The responsible user, as GET /users lists them"
      },
      {
        "displayName": "Board ID",
        "name": "boardId",
        "type": "number",
        "default": 0,
        "description": "The board; it never changes"
      },
      {
        "displayName": "Business ID",
        "name": "businessId",
        "type": "number",
        "default": 0,
        "description": "The line of business"
      },
      {
        "displayName": "Contact IDs",
        "name": "contactIds",
        "type": "string",
        "default": "",
        "description": "The contacts; replaces the current ones, as IDs separated by commas"
      },
      {
        "displayName": "Custom Fields",
        "name": "customFields",
        "type": "json",
        "default": "{}",
        "description": "Values of custom fields"
      },
      {
        "displayName": "Description",
        "name": "description",
        "type": "string",
        "default": ""
      },
      {
        "displayName": "Due",
        "name": "due",
        "type": "dateTime",
        "default": "",
        "description": "Due date"
      },
      {
        "displayName": "Name",
        "name": "name",
        "type": "string",
        "default": "",
        "description": "The card's name"
      },
      {
        "displayName": "Origin ID",
        "name": "originId",
        "type": "number",
        "default": 0,
        "description": "The origin"
      },
      {
        "displayName": "Products",
        "name": "products",
        "type": "json",
        "default": "{}",
        "description": "The products; replaces the current ones"
      },
      {
        "displayName": "Stage ID",
        "name": "crmBoardListId",
        "type": "number",
        "default": 0,
        "description": "The stage. Default: the board's first."
      },
      {
        "displayName": "Status ID",
        "name": "statusId",
        "type": "number",
        "default": 0,
        "description": "The status, as defined by the company"
      },
      {
        "displayName": "Ticket ID",
        "name": "ticketId",
        "type": "number",
        "default": 0,
        "description": "The ticket the card was created from"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "update"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Card ID",
    "name": "cardId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "lose"
        ]
      }
    }
  },
  {
    "displayName": "Status Reason",
    "name": "statusReason",
    "type": "string",
    "required": true,
    "default": "",
    "description": "Why the card is lost",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "lose"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "lose"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Card ID",
    "name": "cardId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "move"
        ]
      }
    }
  },
  {
    "displayName": "Stage ID",
    "name": "crmBoardListId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The new stage, on the same board",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "move"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "move"
        ]
      }
    },
    "options": [
      {
        "displayName": "Position",
        "name": "position",
        "type": "number",
        "default": 0,
        "description": "Number of cards above it in the stage, up to 1,000,000. Default, or beyond the end: the bottom."
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "move"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Card ID",
    "name": "cardId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "addProduct"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "addProduct"
        ]
      }
    },
    "options": [
      {
        "displayName": "Name",
        "name": "name",
        "type": "string",
        "default": "",
        "description": "Name. Default: the product's name."
      },
      {
        "displayName": "Product ID",
        "name": "productId",
        "type": "number",
        "default": 0,
        "description": "A product of the catalogue"
      },
      {
        "displayName": "Quantity",
        "name": "quantity",
        "type": "number",
        "default": 0
      },
      {
        "displayName": "SKU",
        "name": "sku",
        "type": "string",
        "default": "",
        "description": "Stock keeping unit"
      },
      {
        "displayName": "Unit Price",
        "name": "unitPrice",
        "type": "number",
        "default": 0,
        "description": "Price per unit"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "addProduct"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Card ID",
    "name": "cardId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "removeProduct"
        ]
      }
    }
  },
  {
    "displayName": "Card Product ID",
    "name": "cardProductId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The product on the card, by its id on the card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "removeProduct"
        ]
      }
    }
  },
  {
    "displayName": "Card ID",
    "name": "cardId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "updateProduct"
        ]
      }
    }
  },
  {
    "displayName": "Card Product ID",
    "name": "cardProductId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The product on the card, by its id on the card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "updateProduct"
        ]
      }
    }
  },
  {
    "displayName": "Update Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "updateProduct"
        ]
      }
    },
    "options": [
      {
        "displayName": "Name",
        "name": "name",
        "type": "string",
        "default": "",
        "description": "Name. Default: the product's name."
      },
      {
        "displayName": "Product ID",
        "name": "productId",
        "type": "number",
        "default": 0,
        "description": "A product of the catalogue"
      },
      {
        "displayName": "Quantity",
        "name": "quantity",
        "type": "number",
        "default": 0
      },
      {
        "displayName": "SKU",
        "name": "sku",
        "type": "string",
        "default": "",
        "description": "Stock keeping unit"
      },
      {
        "displayName": "Unit Price",
        "name": "unitPrice",
        "type": "number",
        "default": 0,
        "description": "Price per unit"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "updateProduct"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Card ID",
    "name": "cardId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "reopen"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "reopen"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Card ID",
    "name": "cardId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The card",
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "win"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "win"
        ]
      }
    },
    "options": [
      {
        "displayName": "Status Reason",
        "name": "statusReason",
        "type": "string",
        "default": "",
        "description": "Why the card is won"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "card"
        ],
        "operation": [
          "win"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Return All",
    "name": "returnAll",
    "type": "boolean",
    "default": false,
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "list"
        ]
      }
    },
    "description": "Whether to return all results or only up to a given limit"
  },
  {
    "displayName": "Limit",
    "name": "limit",
    "type": "number",
    "default": 50,
    "typeOptions": {
      "minValue": 1
    },
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "list"
        ],
        "returnAll": [
          false
        ]
      }
    },
    "description": "Max number of results to return"
  },
  {
    "displayName": "Filters",
    "name": "filters",
    "type": "collection",
    "placeholder": "Add Filter",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "list"
        ]
      }
    },
    "options": [
      {
        "displayName": "Channel ID",
        "name": "channelId",
        "type": "number",
        "default": 0,
        "description": "The channel"
      },
      {
        "displayName": "Code",
        "name": "code",
        "type": "string",
        "default": "",
        "description": "The contact's exact code; case-sensitive"
      },
      {
        "displayName": "Created From",
        "name": "createdFrom",
        "type": "dateTime",
        "default": "",
        "description": "created at or after this time"
      },
      {
        "displayName": "Created To",
        "name": "createdTo",
        "type": "dateTime",
        "default": "",
        "description": "created at or before this time"
      },
      {
        "displayName": "Email",
        "name": "email",
        "type": "string",
        "default": "",
        "description": "The exact e-mail address; case-insensitive"
      },
      {
        "displayName": "Is Group",
        "name": "isGroup",
        "type": "boolean",
        "default": false,
        "description": "Whether the contact is a group"
      },
      {
        "displayName": "Number",
        "name": "number",
        "type": "string",
        "default": "",
        "description": "8 to 15 digits; + ( ) - . and spaces are removed"
      },
      {
        "displayName": "Order",
        "name": "order",
        "type": "options",
        "options": [
          {
            "name": "Asc",
            "value": "asc"
          },
          {
            "name": "Desc",
            "value": "desc"
          }
        ],
        "default": "asc",
        "description": "Sort order: asc or desc"
      },
      {
        "displayName": "Origin",
        "name": "origin",
        "type": "string",
        "default": "",
        "description": "The contact's exact origin"
      },
      {
        "displayName": "Search",
        "name": "search",
        "type": "string",
        "default": "",
        "description": "Matches contacts whose name, number, e-mail or code contains every word; numbers in any format"
      },
      {
        "displayName": "Tag ID",
        "name": "tagId",
        "type": "number",
        "default": 0,
        "description": "The tag"
      },
      {
        "displayName": "Updated From",
        "name": "updatedFrom",
        "type": "dateTime",
        "default": "",
        "description": "updated at or after this time"
      },
      {
        "displayName": "Updated To",
        "name": "updatedTo",
        "type": "dateTime",
        "default": "",
        "description": "updated at or before this time"
      }
    ]
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "create"
        ]
      }
    },
    "options": [
      {
        "displayName": "Code",
        "name": "code",
        "type": "string",
        "default": "",
        "description": "The company's own code for the contact"
      },
      {
        "displayName": "Cpf Cnpj",
        "name": "cpfCnpj",
        "type": "string",
        "default": "",
        "description": "11 digits for a person or 14 for a company, with valid check digits; . - / are removed"
      },
      {
        "displayName": "Ctwa Clid",
        "name": "ctwaClid",
        "type": "string",
        "default": "",
        "description": "Click id of a click-to-chat advertisement"
      },
      {
        "displayName": "Custom Fields",
        "name": "customFields",
        "type": "json",
        "default": "{}",
        "description": "Values of custom fields"
      },
      {
        "displayName": "Email",
        "name": "email",
        "type": "string",
        "default": "",
        "description": "E-mail address"
      },
      {
        "displayName": "Fbclid",
        "name": "fbclid",
        "type": "string",
        "default": "",
        "description": "Click id of an advertisement"
      },
      {
        "displayName": "Gclid",
        "name": "gclid",
        "type": "string",
        "default": "",
        "description": "Click id of an advertisement"
      },
      {
        "displayName": "Headline",
        "name": "headline",
        "type": "string",
        "default": "",
        "description": "The advertisement's headline"
      },
      {
        "displayName": "Is Group",
        "name": "isGroup",
        "type": "boolean",
        "default": false,
        "description": "Whether the contact is a group rather than a person"
      },
      {
        "displayName": "LID",
        "name": "lid",
        "type": "string",
        "default": "",
        "description": "The provider's id for a contact whose number it hides"
      },
      {
        "displayName": "Marketing Opt Out",
        "name": "marketingOptOut",
        "type": "boolean",
        "default": false,
        "description": "Whether the contact is excluded from campaigns. Set when the contact sends one of the company's stop words (STOP, SAIR, …), ignoring punctuation and emoji. Write false to opt the contact in again."
      },
      {
        "displayName": "Media Type",
        "name": "mediaType",
        "type": "string",
        "default": "",
        "description": "Type of the advertisement's media"
      },
      {
        "displayName": "Media URL",
        "name": "mediaUrl",
        "type": "string",
        "default": "",
        "description": "URL of the advertisement's picture or video"
      },
      {
        "displayName": "Name",
        "name": "name",
        "type": "string",
        "default": ""
      },
      {
        "displayName": "Number",
        "name": "number",
        "type": "string",
        "default": "",
        "description": "8 to 15 digits; + ( ) - . and spaces are removed"
      },
      {
        "displayName": "Origin",
        "name": "origin",
        "type": "string",
        "default": "",
        "description": "How the contact was acquired"
      },
      {
        "displayName": "Profile Picture URL",
        "name": "profilePicUrl",
        "type": "string",
        "default": "",
        "description": "https or http"
      },
      {
        "displayName": "Social Username",
        "name": "socialUsername",
        "type": "string",
        "default": "",
        "description": "User name on a social channel"
      },
      {
        "displayName": "Source ID",
        "name": "sourceId",
        "type": "string",
        "default": "",
        "description": "The advertisement's id"
      },
      {
        "displayName": "Source URL",
        "name": "sourceUrl",
        "type": "string",
        "default": "",
        "description": "URL of the page or advertisement"
      },
      {
        "displayName": "Tag IDs",
        "name": "tagIds",
        "type": "string",
        "default": "",
        "description": "The tags; replaces the current ones, as IDs separated by commas"
      },
      {
        "displayName": "UTM Campaign",
        "name": "utmCampaign",
        "type": "string",
        "default": ""
      },
      {
        "displayName": "UTM ID",
        "name": "utmId",
        "type": "string",
        "default": ""
      },
      {
        "displayName": "UTM Medium",
        "name": "utmMedium",
        "type": "string",
        "default": ""
      },
      {
        "displayName": "UTM Source",
        "name": "utmSource",
        "type": "string",
        "default": ""
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "create"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Contacts",
    "name": "contacts",
    "type": "json",
    "required": true,
    "default": "{}",
    "description": "The rows: each has the fields of a contact",
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "import"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "import"
        ]
      }
    },
    "options": [
      {
        "displayName": "On Conflict",
        "name": "onConflict",
        "type": "options",
        "options": [
          {
            "name": "Skip",
            "value": "skip"
          },
          {
            "name": "Update",
            "value": "update"
          }
        ],
        "default": "skip",
        "description": "How to handle a row whose contact exists, matched by number, then e-mail, then code"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "import"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Contact ID",
    "name": "contactId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The contact",
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "delete"
        ]
      }
    }
  },
  {
    "displayName": "Contact ID",
    "name": "contactId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The contact",
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "get"
        ]
      }
    }
  },
  {
    "displayName": "Contact ID",
    "name": "contactId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The contact",
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "update"
        ]
      }
    }
  },
  {
    "displayName": "Update Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "update"
        ]
      }
    },
    "options": [
      {
        "displayName": "Code",
        "name": "code",
        "type": "string",
        "default": "",
        "description": "The company's own code for the contact"
      },
      {
        "displayName": "Cpf Cnpj",
        "name": "cpfCnpj",
        "type": "string",
        "default": "",
        "description": "11 digits for a person or 14 for a company, with valid check digits; . - / are removed"
      },
      {
        "displayName": "Ctwa Clid",
        "name": "ctwaClid",
        "type": "string",
        "default": "",
        "description": "Click id of a click-to-chat advertisement"
      },
      {
        "displayName": "Custom Fields",
        "name": "customFields",
        "type": "json",
        "default": "{}",
        "description": "Values of custom fields"
      },
      {
        "displayName": "Email",
        "name": "email",
        "type": "string",
        "default": "",
        "description": "E-mail address"
      },
      {
        "displayName": "Fbclid",
        "name": "fbclid",
        "type": "string",
        "default": "",
        "description": "Click id of an advertisement"
      },
      {
        "displayName": "Gclid",
        "name": "gclid",
        "type": "string",
        "default": "",
        "description": "Click id of an advertisement"
      },
      {
        "displayName": "Headline",
        "name": "headline",
        "type": "string",
        "default": "",
        "description": "The advertisement's headline"
      },
      {
        "displayName": "Is Group",
        "name": "isGroup",
        "type": "boolean",
        "default": false,
        "description": "Whether the contact is a group rather than a person"
      },
      {
        "displayName": "LID",
        "name": "lid",
        "type": "string",
        "default": "",
        "description": "The provider's id for a contact whose number it hides"
      },
      {
        "displayName": "Marketing Opt Out",
        "name": "marketingOptOut",
        "type": "boolean",
        "default": false,
        "description": "Whether the contact is excluded from campaigns. Set when the contact sends one of the company's stop words (STOP, SAIR, …), ignoring punctuation and emoji. Write false to opt the contact in again."
      },
      {
        "displayName": "Media Type",
        "name": "mediaType",
        "type": "string",
        "default": "",
        "description": "Type of the advertisement's media"
      },
      {
        "displayName": "Media URL",
        "name": "mediaUrl",
        "type": "string",
        "default": "",
        "description": "URL of the advertisement's picture or video"
      },
      {
        "displayName": "Name",
        "name": "name",
        "type": "string",
        "default": ""
      },
      {
        "displayName": "Number",
        "name": "number",
        "type": "string",
        "default": "",
        "description": "8 to 15 digits; + ( ) - . and spaces are removed"
      },
      {
        "displayName": "Origin",
        "name": "origin",
        "type": "string",
        "default": "",
        "description": "How the contact was acquired"
      },
      {
        "displayName": "Profile Picture URL",
        "name": "profilePicUrl",
        "type": "string",
        "default": "",
        "description": "https or http"
      },
      {
        "displayName": "Social Username",
        "name": "socialUsername",
        "type": "string",
        "default": "",
        "description": "User name on a social channel"
      },
      {
        "displayName": "Source ID",
        "name": "sourceId",
        "type": "string",
        "default": "",
        "description": "The advertisement's id"
      },
      {
        "displayName": "Source URL",
        "name": "sourceUrl",
        "type": "string",
        "default": "",
        "description": "URL of the page or advertisement"
      },
      {
        "displayName": "Tag IDs",
        "name": "tagIds",
        "type": "string",
        "default": "",
        "description": "The tags; replaces the current ones, as IDs separated by commas"
      },
      {
        "displayName": "UTM Campaign",
        "name": "utmCampaign",
        "type": "string",
        "default": ""
      },
      {
        "displayName": "UTM ID",
        "name": "utmId",
        "type": "string",
        "default": ""
      },
      {
        "displayName": "UTM Medium",
        "name": "utmMedium",
        "type": "string",
        "default": ""
      },
      {
        "displayName": "UTM Source",
        "name": "utmSource",
        "type": "string",
        "default": ""
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "update"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Contact ID",
    "name": "contactId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The contact",
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "merge"
        ]
      }
    }
  },
  {
    "displayName": "From Contact ID",
    "name": "fromContactId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The contact that goes",
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "merge"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "merge"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Contact ID",
    "name": "contactId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The contact",
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "removeTag"
        ]
      }
    }
  },
  {
    "displayName": "Tag ID",
    "name": "tagId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The tag",
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "removeTag"
        ]
      }
    }
  },
  {
    "displayName": "Contact ID",
    "name": "contactId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The contact",
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "addTag"
        ]
      }
    }
  },
  {
    "displayName": "Tag ID",
    "name": "tagId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The tag",
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "addTag"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "contact"
        ],
        "operation": [
          "addTag"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Return All",
    "name": "returnAll",
    "type": "boolean",
    "default": false,
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "list"
        ]
      }
    },
    "description": "Whether to return all results or only up to a given limit"
  },
  {
    "displayName": "Limit",
    "name": "limit",
    "type": "number",
    "default": 50,
    "typeOptions": {
      "minValue": 1
    },
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "list"
        ],
        "returnAll": [
          false
        ]
      }
    },
    "description": "Max number of results to return"
  },
  {
    "displayName": "Filters",
    "name": "filters",
    "type": "collection",
    "placeholder": "Add Filter",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "list"
        ]
      }
    },
    "options": [
      {
        "displayName": "Channel ID",
        "name": "channelId",
        "type": "number",
        "default": 0,
        "description": "The channel"
      },
      {
        "displayName": "Contact ID",
        "name": "contactId",
        "type": "number",
        "default": 0,
        "description": "The contact"
      },
      {
        "displayName": "Created From",
        "name": "createdFrom",
        "type": "dateTime",
        "default": "",
        "description": "created at or after this time"
      },
      {
        "displayName": "Created To",
        "name": "createdTo",
        "type": "dateTime",
        "default": "",
        "description": "created at or before this time"
      },
      {
        "displayName": "Direction",
        "name": "direction",
        "type": "options",
        "options": [
          {
            "name": "Inbound",
            "value": "inbound"
          },
          {
            "name": "Internal",
            "value": "internal"
          },
          {
            "name": "Outbound",
            "value": "outbound"
          }
        ],
        "default": "inbound",
        "description": "Inbound, outbound or internal (notes)"
      },
      {
        "displayName": "Order",
        "name": "order",
        "type": "options",
        "options": [
          {
            "name": "Asc",
            "value": "asc"
          },
          {
            "name": "Desc",
            "value": "desc"
          }
        ],
        "default": "asc",
        "description": "Sort order: asc or desc"
      },
      {
        "displayName": "Status",
        "name": "status",
        "type": "options",
        "options": [
          {
            "name": "Delivered",
            "value": "delivered"
          },
          {
            "name": "Failed",
            "value": "failed"
          },
          {
            "name": "Queued",
            "value": "queued"
          },
          {
            "name": "Read",
            "value": "read"
          },
          {
            "name": "Received",
            "value": "received"
          },
          {
            "name": "Sent",
            "value": "sent"
          }
        ],
        "default": "delivered",
        "description": "The status"
      },
      {
        "displayName": "Ticket ID",
        "name": "ticketId",
        "type": "number",
        "default": 0,
        "description": "The ticket"
      },
      {
        "displayName": "Type",
        "name": "type",
        "type": "options",
        "options": [
          {
            "name": "Interactive",
            "value": "interactive"
          },
          {
            "name": "Media",
            "value": "media"
          },
          {
            "name": "Note",
            "value": "note"
          },
          {
            "name": "System",
            "value": "system"
          },
          {
            "name": "Template",
            "value": "template"
          },
          {
            "name": "Text",
            "value": "text"
          }
        ],
        "default": "text",
        "description": "The type"
      },
      {
        "displayName": "Updated From",
        "name": "updatedFrom",
        "type": "dateTime",
        "default": "",
        "description": "updated at or after this time"
      },
      {
        "displayName": "Updated To",
        "name": "updatedTo",
        "type": "dateTime",
        "default": "",
        "description": "updated at or before this time"
      }
    ]
  },
  {
    "displayName": "Type",
    "name": "type",
    "type": "options",
    "options": [
      {
        "name": "Interactive",
        "value": "interactive"
      },
      {
        "name": "Media",
        "value": "media"
      },
      {
        "name": "Template",
        "value": "template"
      },
      {
        "name": "Text",
        "value": "text"
      }
    ],
    "required": true,
    "default": "text",
    "description": "text requires body; media requires a form with files in medias; template and interactive require the field of the same name",
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "send"
        ]
      }
    }
  },
  {
    "displayName": "Body",
    "name": "body",
    "type": "string",
    "default": "",
    "typeOptions": {
      "rows": 4
    },
    "description": "The text, or a file's caption. Variables such as {{firstName}} are filled in.",
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "send"
        ]
      }
    }
  },
  {
    "displayName": "Ticket ID",
    "name": "ticketId",
    "type": "number",
    "default": "",
    "description": "The ticket to send in; takes precedence over contactId and number",
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "send"
        ]
      }
    }
  },
  {
    "displayName": "Input Binary Fields",
    "name": "binaryFields",
    "type": "string",
    "default": "data",
    "hint": "Names of the input's binary fields with the files, separated by commas",
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "send"
        ],
        "type": [
          "media"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "send"
        ]
      }
    },
    "options": [
      {
        "displayName": "Channel ID",
        "name": "channelId",
        "type": "number",
        "default": 0,
        "description": "The channel to send on; optional with ticketId"
      },
      {
        "displayName": "Close Ticket",
        "name": "closeTicket",
        "type": "boolean",
        "default": false,
        "description": "Whether it closes the ticket once the message is handed to the channel"
      },
      {
        "displayName": "Contact ID",
        "name": "contactId",
        "type": "number",
        "default": 0,
        "description": "The recipient, on any channel; takes precedence over number"
      },
      {
        "displayName": "Contact Name",
        "name": "contactName",
        "type": "string",
        "default": "",
        "description": "The contact's name, if number creates one"
      },
      {
        "displayName": "Interactive",
        "name": "interactive",
        "type": "json",
        "default": "{}",
        "description": "An interactive object in the format of the official cloud API, at most 65,536 bytes. A webchat supports button, list, cta_url, location_request_message and carousel."
      },
      {
        "displayName": "Number",
        "name": "number",
        "type": "string",
        "default": "",
        "description": "8 to 15 digits; + ( ) - . and spaces are removed"
      },
      {
        "displayName": "Queue ID",
        "name": "queueId",
        "type": "number",
        "default": 0,
        "description": "Moves the ticket to this queue once the message is handed to the channel"
      },
      {
        "displayName": "Reopen Ticket",
        "name": "reopenTicket",
        "type": "boolean",
        "default": false,
        "description": "Whether it reopens the contact's latest ticket on the channel if it is closed"
      },
      {
        "displayName": "Template",
        "name": "template",
        "type": "json",
        "default": "{}",
        "description": "An approved template: its name with parameters, or complete components"
      },
      {
        "displayName": "User ID",
        "name": "userId",
        "type": "number",
        "default": 0,
        "description": "The user, as GET /users lists them"
      },
      {
        "displayName": "Voice",
        "name": "voice",
        "type": "boolean",
        "default": false,
        "description": "Whether it sends the files as voice messages: audio files, on WhatsApp of the type audio/ogg. Only with the type media."
      },
      {
        "displayName": "Wrapup Note",
        "name": "wrapupNote",
        "type": "string",
        "default": "",
        "description": "Note about the wrap-up, with closeTicket"
      },
      {
        "displayName": "Wrapup Type ID",
        "name": "wrapupTypeId",
        "type": "number",
        "default": 0,
        "description": "The wrap-up type, with closeTicket"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "send"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Job ID",
    "name": "jobId",
    "type": "string",
    "required": true,
    "default": "",
    "description": "The job's id, as returned by the send",
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "getJob"
        ]
      }
    }
  },
  {
    "displayName": "Message ID",
    "name": "messageId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The message",
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "get"
        ]
      }
    }
  },
  {
    "displayName": "Message ID",
    "name": "messageId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The message",
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "withdrawReaction"
        ]
      }
    }
  },
  {
    "displayName": "Message ID",
    "name": "messageId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The message",
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "reactTo"
        ]
      }
    }
  },
  {
    "displayName": "Emoji",
    "name": "emoji",
    "type": "string",
    "required": true,
    "default": "",
    "description": "One emoji",
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "reactTo"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "message"
        ],
        "operation": [
          "reactTo"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Return All",
    "name": "returnAll",
    "type": "boolean",
    "default": false,
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "list"
        ]
      }
    },
    "description": "Whether to return all results or only up to a given limit"
  },
  {
    "displayName": "Limit",
    "name": "limit",
    "type": "number",
    "default": 50,
    "typeOptions": {
      "minValue": 1
    },
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "list"
        ],
        "returnAll": [
          false
        ]
      }
    },
    "description": "Max number of results to return"
  },
  {
    "displayName": "Filters",
    "name": "filters",
    "type": "collection",
    "placeholder": "Add Filter",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "list"
        ]
      }
    },
    "options": [
      {
        "displayName": "Channel ID",
        "name": "channelId",
        "type": "number",
        "default": 0,
        "description": "The channel"
      },
      {
        "displayName": "Closed From",
        "name": "closedFrom",
        "type": "dateTime",
        "default": "",
        "description": "closed at or after this time"
      },
      {
        "displayName": "Closed To",
        "name": "closedTo",
        "type": "dateTime",
        "default": "",
        "description": "closed at or before this time"
      },
      {
        "displayName": "Contact ID",
        "name": "contactId",
        "type": "number",
        "default": 0,
        "description": "The contact"
      },
      {
        "displayName": "Created From",
        "name": "createdFrom",
        "type": "dateTime",
        "default": "",
        "description": "created at or after this time"
      },
      {
        "displayName": "Created To",
        "name": "createdTo",
        "type": "dateTime",
        "default": "",
        "description": "created at or before this time"
      },
      {
        "displayName": "Opened From",
        "name": "openedFrom",
        "type": "dateTime",
        "default": "",
        "description": "opened at or after this time"
      },
      {
        "displayName": "Opened To",
        "name": "openedTo",
        "type": "dateTime",
        "default": "",
        "description": "opened at or before this time"
      },
      {
        "displayName": "Order",
        "name": "order",
        "type": "options",
        "options": [
          {
            "name": "Asc",
            "value": "asc"
          },
          {
            "name": "Desc",
            "value": "desc"
          }
        ],
        "default": "asc",
        "description": "The default is asc, unless sort has another"
      },
      {
        "displayName": "Queue ID",
        "name": "queueId",
        "type": "number",
        "default": 0,
        "description": "The queue"
      },
      {
        "displayName": "Search",
        "name": "search",
        "type": "string",
        "default": "",
        "description": "Matches tickets whose contact's name or number contains every word; numbers in any format"
      },
      {
        "displayName": "Sort",
        "name": "sort",
        "type": "options",
        "options": [
          {
            "name": "Activity",
            "value": "activity"
          },
          {
            "name": "ID",
            "value": "id"
          },
          {
            "name": "Waiting",
            "value": "waiting"
          }
        ],
        "default": "activity",
        "description": "With status=open. activity: by lastActivityAt, the latest first unless order is given. waiting: by waitingSince, the longest wait first; tickets in which no one waits come last in either order. Tickets of the same time are ordered by id."
      },
      {
        "displayName": "Status",
        "name": "status",
        "type": "options",
        "options": [
          {
            "name": "Closed",
            "value": "closed"
          },
          {
            "name": "Open",
            "value": "open"
          }
        ],
        "default": "closed",
        "description": "The status"
      },
      {
        "displayName": "Unassigned",
        "name": "unassigned",
        "type": "boolean",
        "default": false,
        "description": "Whether it only unassigned tickets"
      },
      {
        "displayName": "Updated From",
        "name": "updatedFrom",
        "type": "dateTime",
        "default": "",
        "description": "updated at or after this time"
      },
      {
        "displayName": "Updated To",
        "name": "updatedTo",
        "type": "dateTime",
        "default": "",
        "description": "updated at or before this time"
      },
      {
        "displayName": "User ID",
        "name": "userId",
        "type": "number",
        "default": 0,
        "description": "The user"
      },
      {
        "displayName": "Wrapup Type ID",
        "name": "wrapupTypeId",
        "type": "number",
        "default": 0,
        "description": "The wrap-up type"
      }
    ]
  },
  {
    "displayName": "Channel ID",
    "name": "channelId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The channel, as GET /channels lists it",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "open"
        ]
      }
    }
  },
  {
    "displayName": "Contact ID",
    "name": "contactId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The contact",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "open"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "open"
        ]
      }
    },
    "options": [
      {
        "displayName": "Queue ID",
        "name": "queueId",
        "type": "number",
        "default": 0,
        "description": "The queue, as GET /queues lists it"
      },
      {
        "displayName": "User ID",
        "name": "userId",
        "type": "number",
        "default": 0,
        "description": "The assigned agent, as GET /users lists them"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "open"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Ticket ID",
    "name": "ticketId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The ticket",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "get"
        ]
      }
    }
  },
  {
    "displayName": "Ticket ID",
    "name": "ticketId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The ticket",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "close"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "close"
        ]
      }
    },
    "options": [
      {
        "displayName": "Wrapup Note",
        "name": "wrapupNote",
        "type": "string",
        "default": "",
        "description": "Note about the wrap-up"
      },
      {
        "displayName": "Wrapup Type ID",
        "name": "wrapupTypeId",
        "type": "number",
        "default": 0,
        "description": "The wrap-up type"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "close"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Ticket ID",
    "name": "ticketId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The ticket",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "listEvents"
        ]
      }
    }
  },
  {
    "displayName": "Return All",
    "name": "returnAll",
    "type": "boolean",
    "default": false,
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "listEvents"
        ]
      }
    },
    "description": "Whether to return all results or only up to a given limit"
  },
  {
    "displayName": "Limit",
    "name": "limit",
    "type": "number",
    "default": 50,
    "typeOptions": {
      "minValue": 1
    },
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "listEvents"
        ],
        "returnAll": [
          false
        ]
      }
    },
    "description": "Max number of results to return"
  },
  {
    "displayName": "Filters",
    "name": "filters",
    "type": "collection",
    "placeholder": "Add Filter",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "listEvents"
        ]
      }
    },
    "options": [
      {
        "displayName": "Created From",
        "name": "createdFrom",
        "type": "dateTime",
        "default": "",
        "description": "created at or after this time"
      },
      {
        "displayName": "Created To",
        "name": "createdTo",
        "type": "dateTime",
        "default": "",
        "description": "created at or before this time"
      },
      {
        "displayName": "Order",
        "name": "order",
        "type": "options",
        "options": [
          {
            "name": "Asc",
            "value": "asc"
          },
          {
            "name": "Desc",
            "value": "desc"
          }
        ],
        "default": "asc",
        "description": "Sort order: asc or desc"
      }
    ]
  },
  {
    "displayName": "Ticket ID",
    "name": "ticketId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The ticket",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "merge"
        ]
      }
    }
  },
  {
    "displayName": "From Ticket ID",
    "name": "fromTicketId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The ticket that goes",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "merge"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "merge"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Ticket ID",
    "name": "ticketId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The ticket",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "listMessages"
        ]
      }
    }
  },
  {
    "displayName": "Return All",
    "name": "returnAll",
    "type": "boolean",
    "default": false,
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "listMessages"
        ]
      }
    },
    "description": "Whether to return all results or only up to a given limit"
  },
  {
    "displayName": "Limit",
    "name": "limit",
    "type": "number",
    "default": 50,
    "typeOptions": {
      "minValue": 1
    },
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "listMessages"
        ],
        "returnAll": [
          false
        ]
      }
    },
    "description": "Max number of results to return"
  },
  {
    "displayName": "Filters",
    "name": "filters",
    "type": "collection",
    "placeholder": "Add Filter",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "listMessages"
        ]
      }
    },
    "options": [
      {
        "displayName": "Created From",
        "name": "createdFrom",
        "type": "dateTime",
        "default": "",
        "description": "created at or after this time"
      },
      {
        "displayName": "Created To",
        "name": "createdTo",
        "type": "dateTime",
        "default": "",
        "description": "created at or before this time"
      },
      {
        "displayName": "Order",
        "name": "order",
        "type": "options",
        "options": [
          {
            "name": "Asc",
            "value": "asc"
          },
          {
            "name": "Desc",
            "value": "desc"
          }
        ],
        "default": "asc",
        "description": "Sort order: asc or desc"
      },
      {
        "displayName": "Updated From",
        "name": "updatedFrom",
        "type": "dateTime",
        "default": "",
        "description": "updated at or after this time"
      },
      {
        "displayName": "Updated To",
        "name": "updatedTo",
        "type": "dateTime",
        "default": "",
        "description": "updated at or before this time"
      }
    ]
  },
  {
    "displayName": "Ticket ID",
    "name": "ticketId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The ticket",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "addNote"
        ]
      }
    }
  },
  {
    "displayName": "Body",
    "name": "body",
    "type": "string",
    "required": true,
    "default": "",
    "typeOptions": {
      "rows": 4
    },
    "description": "At most 65,536 bytes",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "addNote"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "addNote"
        ]
      }
    },
    "options": [
      {
        "displayName": "User ID",
        "name": "userId",
        "type": "number",
        "default": 0,
        "description": "The user, as GET /users lists them"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "addNote"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Ticket ID",
    "name": "ticketId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The ticket",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "markRead"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "markRead"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Ticket ID",
    "name": "ticketId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The ticket",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "reopen"
        ]
      }
    }
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "reopen"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Ticket ID",
    "name": "ticketId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The ticket",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "transfer"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "transfer"
        ]
      }
    },
    "options": [
      {
        "displayName": "Queue ID",
        "name": "queueId",
        "type": "number",
        "default": 0,
        "description": "The new queue"
      },
      {
        "displayName": "User ID",
        "name": "userId",
        "type": "number",
        "default": 0,
        "description": "The new agent; null unassigns the ticket"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "transfer"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  },
  {
    "displayName": "Ticket ID",
    "name": "ticketId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The ticket",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "setWrapup"
        ]
      }
    }
  },
  {
    "displayName": "Wrapup Type ID",
    "name": "wrapupTypeId",
    "type": "number",
    "required": true,
    "default": 0,
    "description": "The wrap-up type",
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "setWrapup"
        ]
      }
    }
  },
  {
    "displayName": "Additional Fields",
    "name": "fields",
    "type": "collection",
    "placeholder": "Add Field",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "setWrapup"
        ]
      }
    },
    "options": [
      {
        "displayName": "Wrapup Note",
        "name": "wrapupNote",
        "type": "string",
        "default": "",
        "description": "Note about the wrap-up"
      }
    ]
  },
  {
    "displayName": "Options",
    "name": "options",
    "type": "collection",
    "placeholder": "Add Option",
    "default": {},
    "displayOptions": {
      "show": {
        "resource": [
          "ticket"
        ],
        "operation": [
          "setWrapup"
        ]
      }
    },
    "options": [
      {
        "displayName": "Idempotency Key",
        "name": "idempotencyKey",
        "type": "string",
        "default": "",
        "description": "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: another attempt of the node repeats nothing."
      }
    ]
  }
];
