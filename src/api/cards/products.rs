//! The lines of a card: adding, changing and removing products.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::amount::LIMIT;
use hotline_persistence::tables::cards::{self, CardId, CardProduct, CardProductId, CatalogueProduct, Line, ProductId};
use hotline_persistence::{Amount, CompanyId};
use sqlx::PgConnection;

use super::card_events;
use crate::app::App;
use crate::web::request::amounts::{Price, Quantity};
use crate::web::request::values::Name;
use crate::web::{
    ApiError, ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, NoContent, Patch, PathId,
};

/// Maximum number of products on a card: more than any offer has, and few enough to return with the card.
pub const PRODUCTS_MAX: usize = 100;

/// A line in a request. Omitted fields are taken from the product that the line names, or keep their values.
#[derive(Clone, Debug)]
pub struct LineInput {
    product: Patch<ProductId>,
    name: Option<Name>,
    sku: Patch<Name>,
    quantity: Option<Quantity>,
    price: Option<Price>,
}

impl LineInput {
    /// Reads a line to be added.
    pub fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let line = Self {
            product: fields.patch("productId"),
            name: fields.optional("name"),
            sku: fields.patch("sku"),
            quantity: fields.optional("quantity"),
            price: fields.optional("unitPrice"),
        };
        if !fields.has("productId") {
            for (name, is_missing) in [("name", !fields.has_text("name")), ("unitPrice", !fields.has("unitPrice"))] {
                if is_missing {
                    fields.refuse(name, "is required without productId");
                }
            }
        }
        Some(line)
    }

    /// The product that the line names.
    pub fn product(&self) -> Option<ProductId> {
        match self.product {
            Patch::Value(id) => Some(id),
            Patch::Absent | Patch::Null => None,
        }
    }

    /// The line to store. `previous` is the stored line that this changes; `None` for a new one. `404` when the product
    /// is not in `catalogue`.
    fn resolve(&self, catalogue: &[CatalogueProduct], previous: Option<&CardProduct>) -> ApiResult<Line> {
        let product = match self.product() {
            Some(id) => Some(catalogue.iter().find(|product| product.id == id).ok_or_else(ApiError::not_found)?),
            None => None,
        };
        let name = self.name.as_ref().map(|name| name.0.clone());
        let name = name.or_else(|| product.map(|product| product.name.clone()));
        let price = self.price.map(|price| price.0).or_else(|| product.map(|product| product.price));
        let sku = match &self.sku {
            Patch::Value(sku) => Some(sku.0.clone()),
            Patch::Null => None,
            Patch::Absent => match product {
                Some(product) => product.sku.clone(),
                None => previous.and_then(|line| line.sku.clone()),
            },
        };
        let product_id = match &self.product {
            Patch::Absent => previous.and_then(|line| line.product_id),
            Patch::Null | Patch::Value(_) => self.product(),
        };
        Ok(Line {
            product_id,
            name: name.or_else(|| previous.map(|line| line.name.clone())).unwrap_or_default(),
            sku,
            quantity: self
                .quantity
                .map(|quantity| quantity.0)
                .or(previous.map(|line| line.quantity))
                .unwrap_or(Amount::ONE),
            unit_price: price.or(previous.map(|line| line.unit_price)).unwrap_or(Amount::ZERO),
        })
    }
}

/// The lines to store for a card, each completed from its product. Locks the products until the transaction ends.
pub async fn resolve_lines(db: &mut PgConnection, company: CompanyId, inputs: &[LineInput]) -> ApiResult<Vec<Line>> {
    let product_ids: Vec<ProductId> = inputs.iter().filter_map(LineInput::product).collect();
    let catalogue = cards::lock_catalogue_products(db, company, &product_ids).await?;
    let mut total = Amount::ZERO;
    let mut lines = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.iter().enumerate() {
        let line = input.resolve(&catalogue, None)?;
        total = total_with_line(total, &line, &format!("products[{index}]."))?;
        lines.push(line);
    }
    Ok(lines)
}

/// The total of a card after adding a line; `422` if it is too large. `path` is the prefix of the fields in errors.
fn total_with_line(total: Amount, line: &Line, path: &str) -> ApiResult<Amount> {
    let cost = line.unit_price.times(line.quantity).ok_or_else(|| too_large(path, "totalPrice"))?;
    total.plus(cost).ok_or_else(|| too_large(path, "productsTotal"))
}

fn too_large(path: &str, total: &str) -> ApiError {
    Refusal::invalid(&format!("{path}quantity"), &format!("must keep {total} below {LIMIT}")).into()
}

/// The body of `POST /crm/cards/{cardId}/products`.
pub struct NewLine(LineInput);

impl Input for NewLine {
    fn name() -> Cow<'static, str> {
        "CardProductCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        LineInput::read(fields).map(Self)
    }
}

/// `POST /crm/cards/{cardId}/products`.
pub async fn add(
    caller: Caller,
    app: Data<App>,
    id: PathId<CardId>,
    body: Body<NewLine>,
    idempotency: Idempotency,
) -> ApiResult<Created<CardProduct>> {
    let (company, id, NewLine(input)) = (caller.company, id.0, body.0);
    idempotency
        .transaction(app.db(company), async |db| {
            // Every transaction locks the product before the card.
            let catalogue = lock_product(db, company, &input).await?;
            let card = cards::lock(db, company, id).await?.ok_or_else(ApiError::not_found)?;
            if cards::count_lines(db, company, id).await? >= PRODUCTS_MAX as i64 {
                let state = "the card has reached its maximum number of products";
                return Err(Refusal::Conflict(Conflict::of(state, "too_many_products", "cardId", id)).into());
            }
            let line = input.resolve(&catalogue, None)?;
            total_with_line(card.products_total, &line, "")?;
            let tracked = card_events::track_changes(db, company, id).await?;
            let added = cards::add_line(&mut *db, company, id, &line).await?;
            tracked.publish(db).await?;
            Ok(Created::of(added))
        })
        .await
}

/// The body of `PUT /crm/cards/{cardId}/products/{cardProductId}`.
pub struct ChangedLine(LineInput);

impl Input for ChangedLine {
    fn name() -> Cow<'static, str> {
        "CardProductUpdate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self(LineInput {
            product: fields.patch("productId"),
            name: fields.non_null("name"),
            sku: fields.patch("sku"),
            quantity: fields.non_null("quantity"),
            price: fields.non_null("unitPrice"),
        }))
    }
}

/// `PUT /crm/cards/{cardId}/products/{cardProductId}`: if the body names a product, the name, SKU and price that it
/// omits are taken from that product.
pub async fn change(
    caller: Caller,
    app: Data<App>,
    ids: PathId<(CardId, CardProductId)>,
    body: Body<ChangedLine>,
    idempotency: Idempotency,
) -> ApiResult<Json<CardProduct>> {
    let (company, (card, id), ChangedLine(input)) = (caller.company, ids.0, body.0);
    idempotency
        .transaction(app.db(company), async |db| {
            let catalogue = lock_product(db, company, &input).await?;
            let locked_card = cards::lock(db, company, card).await?.ok_or_else(ApiError::not_found)?;
            let previous = cards::find_line(db, company, card, id).await?.ok_or_else(ApiError::not_found)?;
            let line = input.resolve(&catalogue, Some(&previous))?;
            let other_lines_total = locked_card.products_total.minus(previous.total_price).unwrap_or_default();
            total_with_line(other_lines_total, &line, "")?;
            let tracked = card_events::track_changes(db, company, card).await?;
            let changed = cards::change_line(&mut *db, company, card, id, &line).await?;
            tracked.publish(db).await?;
            Ok(Json::of(changed))
        })
        .await
}

/// `DELETE /crm/cards/{cardId}/products/{cardProductId}`.
pub async fn remove(caller: Caller, app: Data<App>, ids: PathId<(CardId, CardProductId)>) -> ApiResult<NoContent> {
    let (company, (card, id)) = (caller.company, ids.0);
    let mut transaction = app.db(company).begin().await?;
    let db = transaction.connection()?;
    cards::lock(db, company, card).await?.ok_or_else(ApiError::not_found)?;
    let tracked = card_events::track_changes(db, company, card).await?;
    cards::remove_line(db, company, card, id).await?;
    tracked.publish(db).await?;
    transaction.commit().await?;
    Ok(NoContent)
}

/// Locks the product that the line names, if any, against deletion until the transaction ends. Returns the product.
async fn lock_product(
    db: &mut PgConnection,
    company: CompanyId,
    input: &LineInput,
) -> ApiResult<Vec<CatalogueProduct>> {
    Ok(cards::lock_catalogue_products(db, company, &input.product().into_iter().collect::<Vec<_>>()).await?)
}
