//! The sales data of the demo's company: products, and a board with cards in its stages.

use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::boards::{self, NewStage};
use hotline_persistence::tables::businesses::Business;
use hotline_persistence::tables::card_origins::CardOrigin;
use hotline_persistence::tables::card_statuses::CardStatus;
use hotline_persistence::tables::cards::{self, CardOutcome, CardRef, CardSource, Line, Target};
use hotline_persistence::tables::product_categories::ProductCategory;
use hotline_persistence::tables::products::Product;
use hotline_persistence::{Amount, BoardId, CompanyId, ContactId, PgConnection, PgPool, QueueId, UserId};

use super::name_column;
use crate::cli::Failure;

/// The stages of the board; won cards go to the last one.
const STAGES: [&str; 4] = ["New", "Offer sent", "Negotiation", "Done"];

/// The products: name, number and price.
const PRODUCTS: [(&str, &str, &str); 3] =
    [("Panel 400 W", "SP-400", "129.9"), ("Inverter 5 kW", "IN-5", "899"), ("Installation, per hour", "HOUR", "64.5")];

/// A card: its name, its stage, its outcome, and the quantities by product.
type SampleCard = (&'static str, usize, Option<CardOutcome>, &'static [(usize, i64)]);

const CARDS: [SampleCard; 6] = [
    ("School roof", 0, None, &[(0, 40), (1, 4), (2, 60)]),
    ("Carport", 0, None, &[(0, 8)]),
    ("House by the lake", 1, None, &[(0, 14), (1, 1), (2, 16)]),
    ("Bakery", 2, None, &[(0, 24), (1, 2), (2, 30)]),
    ("Mill", 2, Some(CardOutcome::Lost), &[(0, 90), (1, 9)]),
    ("Farm shop", 3, Some(CardOutcome::Won), &[(0, 32), (1, 3), (2, 40)]),
];

/// Creates all sales data in one transaction. The board is visible to the members of `queue`. Its cards are assigned to
/// `agent`, and each refers to the next of `contacts`, cyclically.
pub async fn seed(
    pool: &PgPool,
    company: CompanyId,
    queue: QueueId,
    agent: UserId,
    contacts: &[ContactId],
) -> Result<(), Failure> {
    let mut transaction = pool.begin().await?;
    let db = &mut *transaction;
    let products = insert_products(db, company).await?;
    let status = [("name", "Waiting for an offer".into()), ("color", "#f59e0b".into())];
    let mut common_columns = Columns::from([
        ("assignedUserId", agent.into()),
        ("statusId", table::insert::<CardStatus>(&mut *db, company, &Columns::from(status)).await?.id.into()),
        ("businessId", table::insert::<Business>(&mut *db, company, &name_column("Solar panels")).await?.id.into()),
        ("originId", table::insert::<CardOrigin>(&mut *db, company, &name_column("Trade fair")).await?.id.into()),
    ]);
    common_columns.set("creationSource", CardSource::User);
    let board = [("name", "Solar".into()), ("monthlyGoal", "25000".into()), ("yearlyGoal", "250000".into())];
    let stages = STAGES.map(|label| NewStage { label: label.to_owned(), position: None, is_done: label == "Done" });
    let board = boards::insert(db, company, &Columns::from(board), &[queue], &stages).await?.id;
    let stages = table::all_of::<boards::Stage>(&mut *db, company, board).await?;
    let mut contacts = contacts.iter().cycle();
    for (name, stage_index, outcome, quantities) in CARDS {
        let stage = stages.get(stage_index).ok_or("the board has no such stage")?.id;
        let lines = quantities.iter().filter_map(|(product, count)| Some(card_line(products.get(*product)?, *count)));
        let mut columns = common_columns.clone();
        columns.set("name", name);
        let id = insert_card(db, (company, board), Target::Stage(stage), columns, &lines.collect::<Vec<_>>()).await?;
        if let Some(contact) = contacts.next() {
            cards::CONTACTS.set(&mut *db, company, id, &[*contact]).await?;
        }
        if let Some(outcome) = outcome {
            cards::conclude(db, company, id, outcome, Some("Price")).await?;
        }
    }
    transaction.commit().await?;
    Ok(())
}

/// Creates the products, in a category of their own.
async fn insert_products(db: &mut PgConnection, company: CompanyId) -> Result<Vec<Product>, Failure> {
    let category = table::insert::<ProductCategory>(&mut *db, company, &name_column("Solar")).await?.id;
    let mut products = Vec::with_capacity(PRODUCTS.len());
    for (name, sku, price) in PRODUCTS {
        let columns = [("name", name.into()), ("sku", sku.into()), ("price", price.into())];
        let mut columns = Columns::from(columns);
        columns.set("categoryId", category);
        products.push(table::insert::<Product>(&mut *db, company, &columns).await?);
    }
    Ok(products)
}

fn card_line(product: &Product, count: i64) -> Line {
    Line {
        product_id: Some(product.id),
        name: product.name.clone(),
        sku: product.sku.clone(),
        quantity: Amount::of(count),
        unit_price: product.price,
    }
}

async fn insert_card(
    db: &mut PgConnection,
    (company, board): (CompanyId, BoardId),
    target: Target,
    mut columns: Columns,
    lines: &[Line],
) -> Result<hotline_persistence::CardId, Failure> {
    let stage = cards::lock_stage(db, company, board, target).await?.ok_or("the board has no such stage")?;
    let position = cards::place(db, company, stage, None, None).await?;
    columns.set("boardId", board);
    columns.set("listId", stage.id);
    columns.set("position", position.0);
    let id = table::insert::<CardRef>(&mut *db, company, &columns).await?.id;
    cards::set_lines(db, company, id, lines).await?;
    Ok(id)
}
