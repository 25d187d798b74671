//! Cards as the API returns them.

use std::sync::Arc;

use hotline_persistence::table::Named;
use hotline_persistence::tables::businesses::BusinessId;
use hotline_persistence::tables::card_origins::CardOriginId;
use hotline_persistence::tables::cards::{
    BoardId, BoardListId, CardId, CardProduct, CardSource, LoadedCard, NamedStatus,
};
use hotline_persistence::tables::contacts::{ContactRow, CustomFieldValue};
use hotline_persistence::{Amount, TicketId, Timestamp, UserId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::web::response::reply::Versioned;

use crate::api::contacts::Contact;

/// A possible sale, in a stage of a board.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    pub id: CardId,
    #[schema(example = "Roof of the school")]
    pub name: String,
    #[schema(example = "Forty panels, before the summer.")]
    pub description: Option<String>,
    #[schema(example = false)]
    pub won: bool,
    /// When it was won.
    pub won_date: Option<Timestamp>,
    #[schema(example = false)]
    pub lost: bool,
    /// When it was lost.
    pub lost_date: Option<Timestamp>,
    /// Why it was won or lost.
    #[schema(example = "Best price")]
    pub status_reason: Option<String>,
    pub board_id: BoardId,
    /// The stage.
    pub list: Option<Named<BoardListId>>,
    pub status: Option<NamedStatus>,
    pub business: Option<Named<BusinessId>>,
    pub origin: Option<Named<CardOriginId>>,
    /// The responsible user.
    pub assigned_to: Option<Named<UserId>>,
    // They are serialized as `Contact`, and shared with the other cards of a page, because they may be long.
    #[schema(value_type = Vec<Contact>)]
    pub contacts: Vec<Arc<ContactRow>>,
    pub products: Vec<CardProduct>,
    /// The sum of its products' `totalPrice`.
    pub products_total: Amount,
    pub custom_fields: Vec<CustomFieldValue>,
    pub creation_source: CardSource,
    pub due: Option<Timestamp>,
    /// The ticket the card was created from.
    pub ticket_id: Option<TicketId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl From<LoadedCard> for Card {
    fn from(LoadedCard { card, contacts }: LoadedCard) -> Self {
        Self {
            id: card.id,
            name: card.name,
            description: card.description,
            won: card.won,
            won_date: card.won_at.map(Timestamp),
            lost: card.lost,
            lost_date: card.lost_at.map(Timestamp),
            status_reason: card.status_reason,
            board_id: card.board_id,
            list: card.list.map(|list| list.0),
            status: card.status.map(|status| status.0),
            business: card.business.map(|business| business.0),
            origin: card.origin.map(|origin| origin.0),
            assigned_to: card.assigned_to.map(|user| user.0),
            contacts,
            products: card.products.0,
            products_total: card.products_total,
            custom_fields: card.custom_fields.0,
            creation_source: card.creation_source,
            due: card.due.map(Timestamp),
            ticket_id: card.ticket_id,
            created_at: card.created_at.into(),
            updated_at: card.updated_at.into(),
        }
    }
}

impl Versioned for Card {
    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }
}
