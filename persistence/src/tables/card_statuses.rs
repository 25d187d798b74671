//! Statuses that cards are labelled with. Plain: changed by transactions, not by actors.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use crate::Id;
use crate::table::{Stamps, Table, Unique};

/// The id of a status.
pub type CardStatusId = Id<CardStatus>;

/// A status of cards, defined by the company.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CardStatus {
    pub id: CardStatusId,
    #[schema(example = "Waiting for an offer")]
    pub name: String,
    #[schema(example = "#64748b")]
    pub color: Option<String>,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for CardStatus {
    const NAME: &'static str = "card_statuses";
    const NOUN: &'static str = "card status";
    const UNIQUE: &'static [Unique] = &[
        Unique::new("card_statuses_company_id_name_key", "name"),
        Unique::by_appearance("card_statuses_looks", "name"),
    ];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = CardStatusId;
}
