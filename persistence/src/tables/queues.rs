//! Queues: where tickets wait. Plain: changed by transactions, not by actors.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use super::text_enum;
use crate::QueueId;
use crate::table::{Stamps, Table, Unique};

text_enum! {
    /// How a queue's new tickets are assigned to its active users: not automatically, in turn, or to the one with the
    /// fewest open tickets.
    Distribution { Manual = "manual", RoundRobin = "round_robin", LeastBusy = "least_busy" }
}

/// A queue of tickets.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    pub id: QueueId,
    #[schema(example = "Support")]
    pub name: String,
    #[schema(example = "#64748b")]
    pub color: String,
    /// Sent when a contact opens a ticket in the queue.
    #[schema(example = "Hello, we are with you in a moment.")]
    pub greeting: Option<String>,
    /// How new tickets find an agent.
    pub distribution: Distribution,
    /// Whether a ticket is closed only with a wrap-up type.
    #[schema(example = true)]
    pub wrapup_required: bool,
    #[schema(example = true)]
    pub active: bool,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for Queue {
    const NAME: &'static str = "queues";
    const NOUN: &'static str = "queue";
    const UNIQUE: &'static [Unique] =
        &[Unique::new("queues_company_id_name_key", "name"), Unique::by_appearance("queues_looks", "name")];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = QueueId;
}
