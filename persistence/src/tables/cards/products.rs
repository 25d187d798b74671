//! The lines of a card. Every writer holds the card's lock, so the card's total is always the sum of its lines.

use serde::{Deserialize, Serialize};
use sqlx::{FromRow, PgConnection};
use utoipa::ToSchema;

use super::{CardId, ProductId};
use crate::error::with_timeout;
use crate::table::map_constraint;
use crate::{Amount, CompanyId, Error, Id, Result};

/// The id of a line of a card.
pub type CardProductId = Id<CardProduct>;

/// A line of a card: a product, its quantity and its price.
#[derive(Clone, Debug, PartialEq, Eq, FromRow, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CardProduct {
    pub id: CardProductId,
    /// The product of the catalogue; `None` for a line without one, or if the product was deleted.
    pub product_id: Option<ProductId>,
    #[schema(example = "Solar panel")]
    pub name: String,
    #[schema(example = "SP-400")]
    pub sku: Option<String>,
    pub quantity: Amount,
    /// The price per unit on this card.
    pub unit_price: Amount,
    /// `quantity` x `unitPrice`, rounded half away from zero to four decimals.
    pub total_price: Amount,
}

/// A line to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub product_id: Option<ProductId>,
    pub name: String,
    pub sku: Option<String>,
    pub quantity: Amount,
    pub unit_price: Amount,
}

/// A product of the catalogue, as copied to lines.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct CatalogueProduct {
    pub id: ProductId,
    pub name: String,
    pub sku: Option<String>,
    pub price: Amount,
}

/// Locks products against deletion until the transaction ends, and returns those that exist.
pub async fn lock_catalogue_products(
    db: &mut PgConnection,
    company: CompanyId,
    ids: &[ProductId],
) -> Result<Vec<CatalogueProduct>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let query = sqlx::query_as(
        "select id, name, sku, price from products where company_id = $1 and id = any ($2) order by id for key share",
    );
    with_timeout(query.bind(company).bind(ids).fetch_all(db)).await
}

/// Replaces the lines of a locked card. If all lines are the same, they stay, with their ids.
pub async fn set_lines(db: &mut PgConnection, company: CompanyId, card: CardId, lines: &[Line]) -> Result<()> {
    type LineRow = (Option<ProductId>, String, Option<String>, Amount, Amount);
    let query = sqlx::query_as(
        "select product_id, name, sku, quantity, unit_price from card_products
         where company_id = $1 and card_id = $2 order by id",
    );
    let existing: Vec<LineRow> = with_timeout(query.bind(company).bind(card).fetch_all(&mut *db)).await?;
    let is_same = |((product_id, name, sku, quantity, unit_price), line): (&LineRow, &Line)| {
        (*product_id, name, sku) == (line.product_id, &line.name, &line.sku)
            && (*quantity, *unit_price) == (line.quantity, line.unit_price)
    };
    if existing.len() == lines.len() && existing.iter().zip(lines).all(is_same) {
        return Ok(());
    }
    with_timeout(async {
        sqlx::query("delete from card_products where company_id = $1 and card_id = $2")
            .bind(company)
            .bind(card)
            .execute(&mut *db)
            .await?;
        insert_lines(&mut *db, company, card, lines).await
    })
    .await
    .map_err(map_constraint(&[]))?;
    update_total(db, company, card).await
}

/// Inserts lines, with ids in their order.
async fn insert_lines(db: &mut PgConnection, company: CompanyId, card: CardId, lines: &[Line]) -> sqlx::Result<()> {
    sqlx::query(
        "insert into card_products (company_id, card_id, product_id, name, sku, quantity, unit_price)
         select $1, $2, product, name, sku, quantity, price
         from unnest($3::bigint[], $4::text[], $5::text[], $6::numeric[], $7::numeric[]) with ordinality
             as x (product, name, sku, quantity, price, nth)
         order by nth",
    )
    .bind(company)
    .bind(card)
    .bind(lines.iter().map(|line| line.product_id).collect::<Vec<_>>())
    .bind(lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>())
    .bind(lines.iter().map(|line| line.sku.as_deref()).collect::<Vec<_>>())
    .bind(lines.iter().map(|line| line.quantity.decimal()).collect::<Vec<_>>())
    .bind(lines.iter().map(|line| line.unit_price.decimal()).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}

/// Adds a line to a locked card.
pub async fn add_line(db: &mut PgConnection, company: CompanyId, card: CardId, line: &Line) -> Result<CardProduct> {
    let add = sqlx::query_as(
        "insert into card_products (company_id, card_id, product_id, name, sku, quantity, unit_price)
         values ($1, $2, $3, $4, $5, $6, $7) returning id, product_id, name, sku, quantity, unit_price, total_price",
    );
    let add = add.bind(company).bind(card).bind(line.product_id).bind(&line.name).bind(line.sku.as_deref());
    let add = add.bind(line.quantity).bind(line.unit_price);
    let added = with_timeout(add.fetch_one(&mut *db)).await.map_err(map_constraint(&[]))?;
    update_total(db, company, card).await?;
    Ok(added)
}

/// A line of a card, or `None`.
pub async fn find_line(
    db: &mut PgConnection,
    company: CompanyId,
    card: CardId,
    id: CardProductId,
) -> Result<Option<CardProduct>> {
    let find = sqlx::query_as(
        "select id, (select q.id from products q where q.company_id = $1 and q.id = product_id) as product_id, name, sku,
             quantity, unit_price, total_price
         from card_products where company_id = $1 and card_id = $2 and id = $3",
    );
    with_timeout(find.bind(company).bind(card).bind(id).fetch_optional(db)).await
}

/// Number of a card's lines.
pub async fn count_lines(db: &mut PgConnection, company: CompanyId, card: CardId) -> Result<i64> {
    let count = sqlx::query_scalar("select count(*) from card_products where company_id = $1 and card_id = $2");
    with_timeout(count.bind(company).bind(card).fetch_one(db)).await
}

/// Updates a line of a locked card.
///
/// # Errors
/// [`Error::NotFound`] when the card does not have the line.
pub async fn change_line(
    db: &mut PgConnection,
    company: CompanyId,
    card: CardId,
    id: CardProductId,
    line: &Line,
) -> Result<CardProduct> {
    let change = sqlx::query_as(
        "update card_products set product_id = $4, name = $5, sku = $6, quantity = $7, unit_price = $8, updated_at = now()
         where company_id = $1 and card_id = $2 and id = $3
         returning id, product_id, name, sku, quantity, unit_price, total_price",
    );
    let change = change.bind(company).bind(card).bind(id).bind(line.product_id).bind(&line.name);
    let change = change.bind(line.sku.as_deref()).bind(line.quantity).bind(line.unit_price);
    let changed = with_timeout(change.fetch_optional(&mut *db)).await.map_err(map_constraint(&[]))?;
    update_total(db, company, card).await?;
    changed.ok_or(Error::NotFound("card product"))
}

/// Deletes a line of a locked card.
///
/// # Errors
/// [`Error::NotFound`] when the card does not have the line.
pub async fn remove_line(db: &mut PgConnection, company: CompanyId, card: CardId, id: CardProductId) -> Result<()> {
    let remove = sqlx::query("delete from card_products where company_id = $1 and card_id = $2 and id = $3");
    let removed = with_timeout(remove.bind(company).bind(card).bind(id).execute(&mut *db)).await?;
    if removed.rows_affected() == 0 {
        return Err(Error::NotFound("card product"));
    }
    update_total(db, company, card).await
}

/// Updates a card's total to the sum of its lines. The writer of the card's event sets `updated_at`.
async fn update_total(db: &mut PgConnection, company: CompanyId, card: CardId) -> Result<()> {
    let update = sqlx::query(
        "update cards set products_total = (
             select coalesce(sum(total_price), 0) from card_products where company_id = $1 and card_id = $2)
         where company_id = $1 and id = $2",
    );
    with_timeout(update.bind(company).bind(card).execute(db)).await?;
    Ok(())
}
