//! Quick messages: prepared answers of a company, each under a shortcut. Plain: changed by transactions, not by actors.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use crate::Id;
use crate::table::{Stamps, Table, Unique};

/// The id of a quick message.
pub type QuickMessageId = Id<QuickMessage>;

/// A text that agents insert by a shortcut.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuickMessage {
    pub id: QuickMessageId,
    #[schema(example = "/hours")]
    pub shortcut: String,
    #[schema(example = "We are open from 9 to 18.")]
    pub message: String,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for QuickMessage {
    const NAME: &'static str = "quick_messages";
    const NOUN: &'static str = "quick message";
    const UNIQUE: &'static [Unique] = &[
        Unique::new("quick_messages_company_id_shortcut_key", "shortcut"),
        Unique::by_appearance("quick_messages_looks", "shortcut"),
    ];
    const SEARCH: &'static [&'static str] = &["hotline_fold(shortcut)", "hotline_fold(message)"];
    type Id = QuickMessageId;
}
