//! One file or folder per noun of the API. A noun is plain (changed by one SQL transaction), unless its first lines
//! say otherwise: live means changed only by its actor.

pub mod boards;
pub mod businesses;
pub mod campaigns;
pub mod card_origins;
pub mod card_statuses;
pub mod cards;
pub mod channels;
pub mod contact_lists;
pub mod contacts;
pub mod custom_fields;
pub mod custom_values;
pub mod directory;
pub mod events;
pub mod global_variables;
pub mod health;
pub mod media;
pub mod merges;
pub mod messages;
pub mod plain;
pub mod product_categories;
pub mod products;
pub mod profiles;
pub mod queues;
pub mod quick_messages;
pub mod references;
pub mod reports;
pub mod schedules;
pub mod tags;
pub mod templates;
pub mod tickets;
pub mod users;
pub mod webchat;
pub mod webhooks;
pub mod wrapup_categories;
pub mod wrapup_types;
