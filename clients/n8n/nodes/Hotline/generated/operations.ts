// Generated from openapi.json by `make clients-generate`. Do not edit.

import type { Operation } from "../operation";

/** The request of each operation, by resource and operation. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  "campaign.list": {
    "id": "listCampaigns",
    "method": "GET",
    "path": "/api/v1/campaigns",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {
      "order": "options",
      "channelId": "number",
      "search": "string",
      "status": "options",
      "contactListId": "number",
      "createdFrom": "dateTime",
      "createdTo": "dateTime",
      "updatedFrom": "dateTime",
      "updatedTo": "dateTime"
    },
    "result": "page",
    "isKeyed": false
  },
  "campaign.create": {
    "id": "createCampaign",
    "method": "POST",
    "path": "/api/v1/campaigns",
    "required": [
      "channelId",
      "contactListId",
      "name",
      "scheduledAt"
    ],
    "prominent": [],
    "body": {
      "channelId": "number",
      "contactListId": "number",
      "keepClosed": "boolean",
      "message": "string",
      "name": "string",
      "ratePerMinute": "number",
      "scheduledAt": "dateTime",
      "template": "json"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "campaign.delete": {
    "id": "deleteCampaign",
    "method": "DELETE",
    "path": "/api/v1/campaigns/{campaignId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "none",
    "isKeyed": false
  },
  "campaign.get": {
    "id": "getCampaign",
    "method": "GET",
    "path": "/api/v1/campaigns/{campaignId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": false
  },
  "campaign.update": {
    "id": "updateCampaign",
    "method": "PUT",
    "path": "/api/v1/campaigns/{campaignId}",
    "required": [],
    "prominent": [],
    "body": {
      "channelId": "number",
      "contactListId": "number",
      "keepClosed": "boolean",
      "message": "string",
      "name": "string",
      "ratePerMinute": "number",
      "scheduledAt": "dateTime",
      "template": "json"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "campaign.cancel": {
    "id": "cancelCampaign",
    "method": "POST",
    "path": "/api/v1/campaigns/{campaignId}/cancel",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "campaign.pause": {
    "id": "pauseCampaign",
    "method": "POST",
    "path": "/api/v1/campaigns/{campaignId}/pause",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "campaign.listRecipients": {
    "id": "listCampaignRecipients",
    "method": "GET",
    "path": "/api/v1/campaigns/{campaignId}/recipients",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {
      "order": "options",
      "status": "options",
      "updatedFrom": "dateTime",
      "updatedTo": "dateTime"
    },
    "result": "page",
    "isKeyed": false
  },
  "campaign.resume": {
    "id": "resumeCampaign",
    "method": "POST",
    "path": "/api/v1/campaigns/{campaignId}/resume",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "campaign.start": {
    "id": "startCampaign",
    "method": "POST",
    "path": "/api/v1/campaigns/{campaignId}/start",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "card.list": {
    "id": "listCards",
    "method": "GET",
    "path": "/api/v1/crm/cards",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {
      "order": "options",
      "boardId": "number",
      "crmBoardListId": "number",
      "assignedToUserId": "number",
      "contactId": "number",
      "statusId": "number",
      "businessId": "number",
      "originId": "number",
      "ticketId": "number",
      "won": "boolean",
      "lost": "boolean",
      "search": "string",
      "dueFrom": "dateTime",
      "dueTo": "dateTime",
      "createdFrom": "dateTime",
      "createdTo": "dateTime",
      "updatedFrom": "dateTime",
      "updatedTo": "dateTime"
    },
    "result": "page",
    "isKeyed": false
  },
  "card.create": {
    "id": "createCard",
    "method": "POST",
    "path": "/api/v1/crm/cards",
    "required": [
      "boardId",
      "name"
    ],
    "prominent": [],
    "body": {
      "assignedToUserId": "number",
      "boardId": "number",
      "businessId": "number",
      "contactIds": "list",
      "crmBoardListId": "number",
      "customFields": "json",
      "description": "string",
      "due": "dateTime",
      "name": "string",
      "originId": "number",
      "products": "json",
      "statusId": "number",
      "ticketId": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "card.delete": {
    "id": "deleteCard",
    "method": "DELETE",
    "path": "/api/v1/crm/cards/{cardId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "none",
    "isKeyed": false
  },
  "card.get": {
    "id": "getCard",
    "method": "GET",
    "path": "/api/v1/crm/cards/{cardId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": false
  },
  "card.update": {
    "id": "updateCard",
    "method": "PUT",
    "path": "/api/v1/crm/cards/{cardId}",
    "required": [],
    "prominent": [],
    "body": {
      "assignedToUserId": "number",
      "boardId": "number",
      "businessId": "number",
      "contactIds": "list",
      "crmBoardListId": "number",
      "customFields": "json",
      "description": "string",
      "due": "dateTime",
      "name": "string",
      "originId": "number",
      "products": "json",
      "statusId": "number",
      "ticketId": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "card.lose": {
    "id": "loseCard",
    "method": "POST",
    "path": "/api/v1/crm/cards/{cardId}/lose",
    "required": [
      "statusReason"
    ],
    "prominent": [],
    "body": {
      "statusReason": "string"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "card.move": {
    "id": "moveCard",
    "method": "POST",
    "path": "/api/v1/crm/cards/{cardId}/move",
    "required": [
      "crmBoardListId"
    ],
    "prominent": [],
    "body": {
      "crmBoardListId": "number",
      "position": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "card.addProduct": {
    "id": "addCardProduct",
    "method": "POST",
    "path": "/api/v1/crm/cards/{cardId}/products",
    "required": [],
    "prominent": [],
    "body": {
      "name": "string",
      "productId": "number",
      "quantity": "number",
      "sku": "string",
      "unitPrice": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "card.removeProduct": {
    "id": "removeCardProduct",
    "method": "DELETE",
    "path": "/api/v1/crm/cards/{cardId}/products/{cardProductId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "none",
    "isKeyed": false
  },
  "card.updateProduct": {
    "id": "updateCardProduct",
    "method": "PUT",
    "path": "/api/v1/crm/cards/{cardId}/products/{cardProductId}",
    "required": [],
    "prominent": [],
    "body": {
      "name": "string",
      "productId": "number",
      "quantity": "number",
      "sku": "string",
      "unitPrice": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "card.reopen": {
    "id": "reopenCard",
    "method": "POST",
    "path": "/api/v1/crm/cards/{cardId}/reopen",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "card.win": {
    "id": "winCard",
    "method": "POST",
    "path": "/api/v1/crm/cards/{cardId}/win",
    "required": [],
    "prominent": [],
    "body": {
      "statusReason": "string"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "contact.list": {
    "id": "listContacts",
    "method": "GET",
    "path": "/api/v1/contacts",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {
      "order": "options",
      "search": "string",
      "number": "string",
      "email": "string",
      "code": "string",
      "tagId": "number",
      "channelId": "number",
      "origin": "string",
      "isGroup": "boolean",
      "createdFrom": "dateTime",
      "createdTo": "dateTime",
      "updatedFrom": "dateTime",
      "updatedTo": "dateTime"
    },
    "result": "page",
    "isKeyed": false
  },
  "contact.create": {
    "id": "createContact",
    "method": "POST",
    "path": "/api/v1/contacts",
    "required": [],
    "prominent": [],
    "body": {
      "code": "string",
      "cpfCnpj": "string",
      "ctwaClid": "string",
      "customFields": "json",
      "email": "string",
      "fbclid": "string",
      "gclid": "string",
      "headline": "string",
      "isGroup": "boolean",
      "lid": "string",
      "marketingOptOut": "boolean",
      "mediaType": "string",
      "mediaUrl": "string",
      "name": "string",
      "number": "string",
      "origin": "string",
      "profilePicUrl": "string",
      "socialUsername": "string",
      "sourceId": "string",
      "sourceUrl": "string",
      "tagIds": "list",
      "utmCampaign": "string",
      "utmId": "string",
      "utmMedium": "string",
      "utmSource": "string"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "contact.import": {
    "id": "importContacts",
    "method": "POST",
    "path": "/api/v1/contacts/import",
    "required": [
      "contacts"
    ],
    "prominent": [],
    "body": {
      "contacts": "json",
      "onConflict": "options"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "contact.delete": {
    "id": "deleteContact",
    "method": "DELETE",
    "path": "/api/v1/contacts/{contactId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "none",
    "isKeyed": false
  },
  "contact.get": {
    "id": "getContact",
    "method": "GET",
    "path": "/api/v1/contacts/{contactId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": false
  },
  "contact.update": {
    "id": "updateContact",
    "method": "PUT",
    "path": "/api/v1/contacts/{contactId}",
    "required": [],
    "prominent": [],
    "body": {
      "code": "string",
      "cpfCnpj": "string",
      "ctwaClid": "string",
      "customFields": "json",
      "email": "string",
      "fbclid": "string",
      "gclid": "string",
      "headline": "string",
      "isGroup": "boolean",
      "lid": "string",
      "marketingOptOut": "boolean",
      "mediaType": "string",
      "mediaUrl": "string",
      "name": "string",
      "number": "string",
      "origin": "string",
      "profilePicUrl": "string",
      "socialUsername": "string",
      "sourceId": "string",
      "sourceUrl": "string",
      "tagIds": "list",
      "utmCampaign": "string",
      "utmId": "string",
      "utmMedium": "string",
      "utmSource": "string"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "contact.merge": {
    "id": "mergeContacts",
    "method": "POST",
    "path": "/api/v1/contacts/{contactId}/merge",
    "required": [
      "fromContactId"
    ],
    "prominent": [],
    "body": {
      "fromContactId": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "contact.removeTag": {
    "id": "removeContactTag",
    "method": "DELETE",
    "path": "/api/v1/contacts/{contactId}/tags/{tagId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "none",
    "isKeyed": false
  },
  "contact.addTag": {
    "id": "addContactTag",
    "method": "PUT",
    "path": "/api/v1/contacts/{contactId}/tags/{tagId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "none",
    "isKeyed": true
  },
  "message.list": {
    "id": "listMessages",
    "method": "GET",
    "path": "/api/v1/messages",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {
      "order": "options",
      "ticketId": "number",
      "contactId": "number",
      "channelId": "number",
      "direction": "options",
      "type": "options",
      "status": "options",
      "createdFrom": "dateTime",
      "createdTo": "dateTime",
      "updatedFrom": "dateTime",
      "updatedTo": "dateTime"
    },
    "result": "page",
    "isKeyed": false
  },
  "message.send": {
    "id": "sendMessage",
    "method": "POST",
    "path": "/api/v1/messages",
    "required": [
      "type"
    ],
    "prominent": [
      "body",
      "ticketId"
    ],
    "body": {
      "body": "string",
      "channelId": "number",
      "closeTicket": "boolean",
      "contactId": "number",
      "contactName": "string",
      "interactive": "json",
      "number": "string",
      "queueId": "number",
      "reopenTicket": "boolean",
      "template": "json",
      "ticketId": "number",
      "type": "options",
      "userId": "number",
      "voice": "boolean",
      "wrapupNote": "string",
      "wrapupTypeId": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "message.getJob": {
    "id": "getMessageJob",
    "method": "GET",
    "path": "/api/v1/messages/jobs/{jobId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": false
  },
  "message.get": {
    "id": "getMessage",
    "method": "GET",
    "path": "/api/v1/messages/{messageId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": false
  },
  "message.withdrawReaction": {
    "id": "withdrawReaction",
    "method": "DELETE",
    "path": "/api/v1/messages/{messageId}/reaction",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "none",
    "isKeyed": false
  },
  "message.reactTo": {
    "id": "reactToMessage",
    "method": "PUT",
    "path": "/api/v1/messages/{messageId}/reaction",
    "required": [
      "emoji"
    ],
    "prominent": [],
    "body": {
      "emoji": "string"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "ticket.list": {
    "id": "listTickets",
    "method": "GET",
    "path": "/api/v1/tickets",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {
      "order": "options",
      "status": "options",
      "queueId": "number",
      "userId": "number",
      "contactId": "number",
      "channelId": "number",
      "wrapupTypeId": "number",
      "unassigned": "boolean",
      "search": "string",
      "openedFrom": "dateTime",
      "openedTo": "dateTime",
      "closedFrom": "dateTime",
      "closedTo": "dateTime",
      "createdFrom": "dateTime",
      "createdTo": "dateTime",
      "updatedFrom": "dateTime",
      "updatedTo": "dateTime",
      "sort": "options"
    },
    "result": "page",
    "isKeyed": false
  },
  "ticket.open": {
    "id": "openTicket",
    "method": "POST",
    "path": "/api/v1/tickets",
    "required": [
      "channelId",
      "contactId"
    ],
    "prominent": [],
    "body": {
      "channelId": "number",
      "contactId": "number",
      "queueId": "number",
      "userId": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "ticket.get": {
    "id": "getTicket",
    "method": "GET",
    "path": "/api/v1/tickets/{ticketId}",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": false
  },
  "ticket.close": {
    "id": "closeTicket",
    "method": "POST",
    "path": "/api/v1/tickets/{ticketId}/close",
    "required": [],
    "prominent": [],
    "body": {
      "wrapupNote": "string",
      "wrapupTypeId": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "ticket.listEvents": {
    "id": "listTicketEvents",
    "method": "GET",
    "path": "/api/v1/tickets/{ticketId}/events",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {
      "order": "options",
      "createdFrom": "dateTime",
      "createdTo": "dateTime"
    },
    "result": "page",
    "isKeyed": false
  },
  "ticket.merge": {
    "id": "mergeTickets",
    "method": "POST",
    "path": "/api/v1/tickets/{ticketId}/merge",
    "required": [
      "fromTicketId"
    ],
    "prominent": [],
    "body": {
      "fromTicketId": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "ticket.listMessages": {
    "id": "listTicketMessages",
    "method": "GET",
    "path": "/api/v1/tickets/{ticketId}/messages",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {
      "order": "options",
      "createdFrom": "dateTime",
      "createdTo": "dateTime",
      "updatedFrom": "dateTime",
      "updatedTo": "dateTime"
    },
    "result": "page",
    "isKeyed": false
  },
  "ticket.addNote": {
    "id": "addTicketNote",
    "method": "POST",
    "path": "/api/v1/tickets/{ticketId}/notes",
    "required": [
      "body"
    ],
    "prominent": [],
    "body": {
      "body": "string",
      "userId": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "ticket.markRead": {
    "id": "markTicketRead",
    "method": "POST",
    "path": "/api/v1/tickets/{ticketId}/read",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "ticket.reopen": {
    "id": "reopenTicket",
    "method": "POST",
    "path": "/api/v1/tickets/{ticketId}/reopen",
    "required": [],
    "prominent": [],
    "body": {},
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "ticket.transfer": {
    "id": "transferTicket",
    "method": "POST",
    "path": "/api/v1/tickets/{ticketId}/transfer",
    "required": [],
    "prominent": [],
    "body": {
      "queueId": "number",
      "userId": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  },
  "ticket.setWrapup": {
    "id": "setTicketWrapup",
    "method": "PUT",
    "path": "/api/v1/tickets/{ticketId}/wrapup",
    "required": [
      "wrapupTypeId"
    ],
    "prominent": [],
    "body": {
      "wrapupNote": "string",
      "wrapupTypeId": "number"
    },
    "query": {},
    "result": "data",
    "isKeyed": true
  }
};
