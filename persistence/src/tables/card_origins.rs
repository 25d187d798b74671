//! Origins: where cards come from. Plain: changed by transactions, not by actors.

use serde::Serialize;
use sqlx::FromRow;
use utoipa::ToSchema;

use crate::Id;
use crate::table::{Stamps, Table, Unique};

/// The id of an origin.
pub type CardOriginId = Id<CardOrigin>;

/// An origin of cards.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CardOrigin {
    pub id: CardOriginId,
    #[schema(example = "Trade fair")]
    pub name: String,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for CardOrigin {
    const NAME: &'static str = "card_origins";
    const NOUN: &'static str = "card origin";
    const UNIQUE: &'static [Unique] =
        &[Unique::new("card_origins_company_id_name_key", "name"), Unique::by_appearance("card_origins_looks", "name")];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = CardOriginId;
}
