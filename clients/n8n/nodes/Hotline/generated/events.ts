// Generated from openapi.json by `make clients-generate`. Do not edit.

import type { INodePropertyOptions } from "n8n-workflow";

/** The types of events. */
export const EVENTS: INodePropertyOptions[] = [
  {
    "name": "Campaign Canceled",
    "value": "campaign.canceled"
  },
  {
    "name": "Campaign Completed",
    "value": "campaign.completed"
  },
  {
    "name": "Campaign Paused",
    "value": "campaign.paused"
  },
  {
    "name": "Campaign Resumed",
    "value": "campaign.resumed"
  },
  {
    "name": "Campaign Started",
    "value": "campaign.started"
  },
  {
    "name": "Card Created",
    "value": "card.created"
  },
  {
    "name": "Card Deleted",
    "value": "card.deleted"
  },
  {
    "name": "Card Lost",
    "value": "card.lost"
  },
  {
    "name": "Card Moved",
    "value": "card.moved"
  },
  {
    "name": "Card Reopened",
    "value": "card.reopened"
  },
  {
    "name": "Card Updated",
    "value": "card.updated"
  },
  {
    "name": "Card Won",
    "value": "card.won"
  },
  {
    "name": "Channel Connected",
    "value": "channel.connected"
  },
  {
    "name": "Channel Disconnected",
    "value": "channel.disconnected"
  },
  {
    "name": "Channel Error",
    "value": "channel.error"
  },
  {
    "name": "Channel Template Changed",
    "value": "channel.template_changed"
  },
  {
    "name": "Contact Created",
    "value": "contact.created"
  },
  {
    "name": "Contact Deleted",
    "value": "contact.deleted"
  },
  {
    "name": "Contact Identified",
    "value": "contact.identified"
  },
  {
    "name": "Contact Merged",
    "value": "contact.merged"
  },
  {
    "name": "Contact Tagged",
    "value": "contact.tagged"
  },
  {
    "name": "Contact Untagged",
    "value": "contact.untagged"
  },
  {
    "name": "Contact Updated",
    "value": "contact.updated"
  },
  {
    "name": "Message Created",
    "value": "message.created"
  },
  {
    "name": "Message Deleted",
    "value": "message.deleted"
  },
  {
    "name": "Message Delivered",
    "value": "message.delivered"
  },
  {
    "name": "Message Failed",
    "value": "message.failed"
  },
  {
    "name": "Message Reaction",
    "value": "message.reaction"
  },
  {
    "name": "Message Read",
    "value": "message.read"
  },
  {
    "name": "Message Received",
    "value": "message.received"
  },
  {
    "name": "Message Sent",
    "value": "message.sent"
  },
  {
    "name": "Message Updated",
    "value": "message.updated"
  },
  {
    "name": "Note Added",
    "value": "note.added"
  },
  {
    "name": "Schedule Canceled",
    "value": "schedule.canceled"
  },
  {
    "name": "Schedule Created",
    "value": "schedule.created"
  },
  {
    "name": "Schedule Failed",
    "value": "schedule.failed"
  },
  {
    "name": "Schedule Sent",
    "value": "schedule.sent"
  },
  {
    "name": "Schedule Updated",
    "value": "schedule.updated"
  },
  {
    "name": "Session Ended",
    "value": "session.ended"
  },
  {
    "name": "Session Started",
    "value": "session.started"
  },
  {
    "name": "Ticket Assigned",
    "value": "ticket.assigned"
  },
  {
    "name": "Ticket Closed",
    "value": "ticket.closed"
  },
  {
    "name": "Ticket Merged",
    "value": "ticket.merged"
  },
  {
    "name": "Ticket Opened",
    "value": "ticket.opened"
  },
  {
    "name": "Ticket Read",
    "value": "ticket.read"
  },
  {
    "name": "Ticket Reopened",
    "value": "ticket.reopened"
  },
  {
    "name": "Ticket Transferred",
    "value": "ticket.transferred"
  },
  {
    "name": "Ticket Wrapup Changed",
    "value": "ticket.wrapup_changed"
  }
];
