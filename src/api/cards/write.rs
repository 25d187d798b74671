//! Creating and changing cards.

use std::borrow::Cow;

use actix_web::web::Data;
use chrono::{DateTime, Utc};
use hotline_actors::Refusal;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::businesses::BusinessId;
use hotline_persistence::tables::card_origins::CardOriginId;
use hotline_persistence::tables::card_statuses::CardStatusId;
use hotline_persistence::tables::cards::{self, BoardId, BoardListId, CardId, CardRef, CardSource, Line};
use hotline_persistence::tables::contacts;
use hotline_persistence::tables::custom_fields::{Application, CustomFieldId};
use hotline_persistence::tables::merges::MergedNoun;
use hotline_persistence::{CompanyId, ContactId, Db, TicketId, UserId};
use serde_json::Value;
use sqlx::PgConnection;

use super::products::{self, LineInput, PRODUCTS_MAX};
use super::stages::{check_won_card_stays, lock_first_stage, lock_stage};
use super::{Card, card_events};
use crate::api::boards::check_board;
use crate::api::custom_values::{self, BodyWithValues, CustomValueInput, HasCustomValues};
use crate::api::merges;
use crate::api::plain::FIXED;
use crate::app::App;
use crate::web::request::if_match::IfMatch;
use crate::web::request::values::{Name, Text};
use crate::web::{ApiError, ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, Patch, PathId};

/// Maximum number of contacts on a card.
const CONTACTS_MAX: usize = 100;

/// The fields of a card in a body.
pub struct CardInput {
    columns: Columns,
    /// Replaces all contacts of the card.
    contacts: Option<Vec<ContactId>>,
    /// Replaces all products of the card.
    products: Option<Vec<LineInput>>,
    values: Vec<CustomValueInput>,
    ticket: Option<TicketId>,
}

impl CardInput {
    /// Reads the fields that creations and changes share.
    fn read(fields: &mut Fields<'_>, name: Option<Name>, is_new: bool) -> Self {
        let mut columns = Columns::default();
        if let Some(name) = name {
            columns.set("name", name.0);
        }
        if let Some(text) = fields.patch::<Text>("description").into_option() {
            columns.set("description", text.map(|text| text.0));
        }
        let assignee = read_reference::<UserId>(fields, &mut columns, "assignedToUserId", "assignedUserId");
        if assignee.is_some() && !is_new {
            // The former user, to whom reports attribute a closed card, was removed; a new assignee replaces them.
            columns.set("formerUserId", Value::Null);
        }
        let contacts = read_contact_ids(fields, is_new);
        read_reference::<CardStatusId>(fields, &mut columns, "statusId", "statusId");
        read_reference::<BusinessId>(fields, &mut columns, "businessId", "businessId");
        read_reference::<CardOriginId>(fields, &mut columns, "originId", "originId");
        if let Some(due) = fields.patch::<DateTime<Utc>>("due").into_option() {
            columns.set("due", due.map(|due| due.to_rfc3339()));
        }
        let products = if is_new {
            fields.objects("products", PRODUCTS_MAX, LineInput::read)
        } else {
            fields.changed_objects("products", PRODUCTS_MAX, LineInput::read)
        };
        let values = custom_values::read(fields, is_new);
        let ticket = read_reference::<TicketId>(fields, &mut columns, "ticketId", "ticketId");
        Self { columns, contacts, products, values, ticket }
    }
}

fn read_contact_ids(fields: &mut Fields<'_>, is_new: bool) -> Option<Vec<ContactId>> {
    let name = "contactIds";
    if is_new { fields.list(name, CONTACTS_MAX) } else { fields.changed_list(name, CONTACTS_MAX) }
}

/// Reads a field that refers to another record, and sets its column; `null` clears the column. Returns the id, if any.
fn read_reference<I: crate::web::request::values::FromField + Into<Value> + Copy>(
    fields: &mut Fields<'_>,
    columns: &mut Columns,
    field: &str,
    column: &'static str,
) -> Option<I> {
    match fields.patch::<I>(field) {
        Patch::Absent => None,
        Patch::Null => {
            columns.set(column, Value::Null);
            None
        }
        Patch::Value(id) => {
            columns.set(column, id);
            Some(id)
        }
    }
}

/// The body of `POST /crm/cards`.
pub struct NewCard {
    board: BoardId,
    list: Option<BoardListId>,
    input: CardInput,
}

impl Input for NewCard {
    fn name() -> Cow<'static, str> {
        "CardCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let board = fields.required("boardId");
        let list = fields.optional("crmBoardListId");
        let name = fields.required::<Name>("name");
        let input = CardInput::read(fields, name, Self::IS_NEW);
        Some(Self { board: board?, list, input })
    }
}

impl HasCustomValues for NewCard {
    const APPLICATION: Application = Application::Card;
    const IS_NEW: bool = true;
}

/// `POST /crm/cards`: adds the card at the bottom of its stage.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<BodyWithValues<NewCard>>,
    idempotency: Idempotency,
) -> ApiResult<Created<Card>> {
    let company = caller.company;
    let NewCard { board, list, input } = body.0.check(app.db(company), company).await?;
    check_board(&caller, &app, board).await?;
    let source = if caller.signed_in().is_some() { CardSource::User } else { CardSource::Api };
    idempotency
        .transaction(database_for(&app, company, &input).await?, async |db| {
            let stage = match list {
                Some(list) => lock_stage(db, company, board, list).await?,
                None => lock_first_stage(db, company, board).await?,
            };
            let position = cards::place(db, company, stage, None, None).await?;
            let references = lock_references(db, company, &input, NewCard::IS_NEW).await?;
            let mut columns = input.columns;
            columns.set("boardId", board);
            columns.set("listId", stage.id);
            columns.set("position", position.0);
            columns.set("creationSource", source);
            if let Some((user, _)) = caller.user() {
                columns.set("createdByUserId", user);
            }
            // A person who sees only their own cards must still see the card they create.
            if let Some(only_assignee) = caller.cards_limited_to().filter(|_| columns.is_none("assignedUserId")) {
                columns.set("assignedUserId", only_assignee);
            }
            let id = table::insert::<CardRef>(&mut *db, company, &columns).await?.id;
            cards::CONTACTS.set(&mut *db, company, id, input.contacts.as_deref().unwrap_or_default()).await?;
            references.store(db, company, id).await?;
            Ok(Created::of(card_events::publish_created(db, company, id).await?))
        })
        .await
}

/// The body of `PUT /crm/cards/{cardId}`.
pub struct ChangedCard {
    /// The board cannot change: only its current id is accepted.
    board: Option<BoardId>,
    list: Option<BoardListId>,
    input: CardInput,
}

impl Input for ChangedCard {
    fn name() -> Cow<'static, str> {
        "CardUpdate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let board = fields.non_null("boardId");
        let list = fields.non_null("crmBoardListId");
        let name = fields.non_null::<Name>("name");
        Some(Self { board, list, input: CardInput::read(fields, name, Self::IS_NEW) })
    }
}

impl HasCustomValues for ChangedCard {
    const APPLICATION: Application = Application::Card;
    const IS_NEW: bool = false;
}

/// `PUT /crm/cards/{cardId}`. A change of stage puts the card at the bottom of the new one.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<CardId>,
    if_match: IfMatch,
    body: Body<BodyWithValues<ChangedCard>>,
    idempotency: Idempotency,
) -> ApiResult<Json<Card>> {
    let (company, id) = (caller.company, id.0);
    let ChangedCard { board, list, input } = body.0.check(app.db(company), company).await?;
    idempotency
        .transaction(database_for(&app, company, &input).await?, async |db| {
            // Every transaction takes locks in this order: the stage, the referenced records, the card.
            let board_id = find_board(db, company, id, board).await?;
            let target = match list {
                Some(list) => {
                    let stage = lock_stage(db, company, board_id, list).await?;
                    Some((stage, cards::place(db, company, stage, Some(id), None).await?))
                }
                None => None,
            };
            let references = lock_references(db, company, &input, ChangedCard::IS_NEW).await?;
            let locked_card = cards::lock(db, company, id).await?.ok_or_else(ApiError::not_found)?;
            if_match.0.lock_and_check::<CardRef>(db, company, id).await?;
            let tracked = card_events::track_changes(db, company, id).await?;
            if let Some((stage, position)) = target.filter(|(stage, _)| stage.id != locked_card.list_id) {
                check_won_card_stays(&locked_card, stage)?;
                cards::move_card(db, company, id, stage.id, &position).await?;
            }
            table::update::<CardRef>(&mut *db, company, id, &input.columns).await?;
            if let Some(contacts) = &input.contacts {
                cards::CONTACTS.set(&mut *db, company, id, contacts).await?;
            }
            references.store(db, company, id).await?;
            Ok(Json::of(tracked.publish(db).await?))
        })
        .await
}

/// Finds the board of a card, which must be the one that the body names, if any.
async fn find_board(
    db: &mut PgConnection,
    company: CompanyId,
    id: CardId,
    named_board: Option<BoardId>,
) -> ApiResult<BoardId> {
    let CardRef { board_id, .. } = table::find::<CardRef>(db, company, id).await?.ok_or_else(ApiError::not_found)?;
    if named_board.is_some_and(|board| board != board_id) {
        return Err(Refusal::invalid("boardId", FIXED).into());
    }
    Ok(board_id)
}

/// The database for writing a card. If the body names a ticket, first waits until the tables contain it.
async fn database_for<'a>(app: &'a App, company: CompanyId, input: &CardInput) -> ApiResult<Db<'a>> {
    Ok(if input.ticket.is_some() { app.engine.reads().tables(company).await? } else { app.db(company) })
}

/// The rows to store for the card's products and custom fields. Their records are locked until the transaction ends.
struct LockedReferences {
    lines: Option<Vec<Line>>,
    values: Vec<(CustomFieldId, Option<String>)>,
}

impl LockedReferences {
    /// Replaces the card's products, if the body has that field, and sets the values of its custom fields.
    async fn store(self, db: &mut PgConnection, company: CompanyId, card: CardId) -> ApiResult<()> {
        if let Some(lines) = self.lines {
            cards::set_lines(db, company, card, &lines).await?;
        }
        cards::set_custom_values(db, company, card, &self.values).await?;
        Ok(())
    }
}

/// Locks every record that the body refers to, and validates the custom fields.
async fn lock_references(
    db: &mut PgConnection,
    company: CompanyId,
    input: &CardInput,
    is_new: bool,
) -> ApiResult<LockedReferences> {
    // Locked before the card, as in every transaction. A deletion of a locked record waits until this transaction ends.
    if let Some(contacts) = &input.contacts
        && !contacts::lock_against_deletion(db, company, contacts).await?
    {
        let ids: Vec<i64> = contacts.iter().map(|id| id.0).collect();
        return Err(merges::not_found_error(&mut *db, company, MergedNoun::Contact, &ids).await);
    }
    if let Some(ticket) = input.ticket
        && !cards::lock_ticket(db, company, ticket).await?
    {
        return Err(merges::not_found_error(&mut *db, company, MergedNoun::Ticket, &[ticket.0]).await);
    }
    let values = custom_values::validate(db, company, Application::Card, &input.values, is_new).await?;
    let lines = match &input.products {
        Some(lines) => Some(products::resolve_lines(db, company, lines).await?),
        None => None,
    };
    Ok(LockedReferences { lines, values })
}
