//! Hotline's storage: journal, persister and tables.
//!
//! The path of a change to a live row: an actor takes a [`Reservation`] in the log, decides, and appends the decided
//! changes as one entry. The journal writes and syncs the entry; only then is the caller answered. The persister writes
//! synced entries to PostgreSQL in batches, in a transaction that also moves the watermark. Journal segments below the
//! watermark are deleted. After a crash, entries above the watermark are replayed before anything is served.
//!
//! This crate does not depend on actors or HTTP.

#![warn(missing_docs)]

#[macro_use]
mod fail_point;
pub mod amount;
#[allow(missing_docs, reason = "the messages describe the errors")]
pub mod archive;
pub mod backup;
mod begin;
pub mod change;
pub mod change_log;
pub mod clock;
pub mod cluster;
pub mod controls;
mod copy;
pub mod db;
pub mod directory_events;
mod document;
pub mod durable;
pub mod error;
pub mod event_news;
mod fence;
pub mod histogram;
pub mod id_blocks;
pub mod ids;
pub mod journal;
pub mod key;
pub mod large;
pub mod limits;
pub mod lock_holder;
pub mod migration;
#[allow(missing_docs, reason = "`ids` describes them")]
pub mod noun;
pub mod ownership;
pub mod page;
pub mod partitions;
pub mod password;
pub mod period;
pub mod persister;
pub mod phone_numbers;
pub mod pool;
pub mod probe;
pub mod readers;
pub mod recovery;
pub mod rejected;
pub mod requirements;
pub mod scheduler;
pub mod schema;
#[allow(missing_docs, reason = "the messages describe the errors")]
pub mod sealed;
pub mod select;
mod session;
pub mod start_wait;
pub mod stop_words;
pub mod store;
#[allow(missing_docs, reason = "fields of rows are columns, which docs/schema.md describes")]
pub mod table;
#[allow(missing_docs, reason = "fields of rows are columns, which docs/schema.md describes")]
pub mod tables;
pub mod timestamp;
pub mod totp;
mod unanswered;
pub mod unsuitable;
pub mod visible_text;
pub mod webhook_news;
pub mod writer_lock;

pub use amount::Amount;
pub use change::Change;
pub use change_log::{ChangeLog, Durability, Reservation};
pub use cluster::{LifeId, Membership, Role, Slot};
pub use db::{Database, Db, Housekeeper, PlainTransaction};
pub use durable::Durable;
pub use error::{Error, Result};
pub use event_news::{EventListener, EventNews};
#[cfg(feature = "failpoints")]
pub use fail;
pub use ids::{
    AdminId, BoardId, BoardListId, CampaignId, CardId, ChannelId, CompanyId, ContactId, EventId, Id, LoggedEventId,
    MessageId, ProductId, ProfileId, QueueId, ScheduleId, SessionId, TicketId, TokenId, UserId, WrapupTypeId,
};
pub use ownership::{Closed, Ownership, Presence};
pub use period::Period;
pub use readers::Readers;
pub use sqlx::migrate::MigrateError;
pub use sqlx::{PgConnection, PgPool};
pub use store::{Store, StoreOptions};
pub use timestamp::Timestamp;
pub use webhook_news::WebhookNews;
