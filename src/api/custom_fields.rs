//! Custom fields: fields that a company adds to its contacts and cards.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::table::{self, Columns, Table};
use hotline_persistence::tables::boards;
use hotline_persistence::tables::cascades::Cascade;
use hotline_persistence::tables::custom_fields::{
    self, Application, BlockingRecords, CustomField, CustomFieldId, CustomFieldType, FIELDS_MAX,
};
use hotline_persistence::tables::visible_cards::VisibleCards;
use sqlx::PgConnection;

use super::plain::{BodyColumns, Change, Filters, Plain, check_fixed};
use crate::app::App;
use crate::web::request::values::{Name, Options, OrderedIds, Position};
use crate::web::{ApiError, ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, Page, PathId};

impl Plain for CustomField {
    fn cascade(id: Self::Id) -> Option<Cascade> {
        Some(Cascade::CustomField(id))
    }

    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
        body.derived::<Name>("key");
        body.fixed::<Application>("application");
        body.required::<CustomFieldType>("type");
        body.defaulted::<Options>("options");
        body.defaulted::<bool>("required");
        body.defaulted::<Position>("position");
    }

    fn filters(list: &mut Filters<'_>) {
        list.equals::<Application>("application");
        list.equals::<CustomFieldType>("type");
    }
}

/// The body of `POST /custom-fields`.
pub struct NewField {
    application: Application,
    columns: Columns,
}

impl Input for NewField {
    fn name() -> Cow<'static, str> {
        "CustomFieldCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let columns = BodyColumns::of_new::<CustomField>(fields);
        let application = columns.text("application").and_then(|word| word.parse().ok());
        let kind = columns.text("type").and_then(|word| word.parse().ok());
        // Invalid options were already reported.
        if columns.has("options") || !fields.has("options") {
            let options = columns.texts("options");
            if let Some(reason) = kind.and_then(|kind| options_error(kind, options.as_deref())) {
                fields.refuse("options", reason);
            }
        }
        Some(Self { application: application?, columns })
    }
}

/// Why a field of this type cannot have these options; `None` if it can.
fn options_error(kind: CustomFieldType, options: Option<&[String]>) -> Option<&'static str> {
    match (kind.has_options(), options) {
        (true, None) => Some("is required for select and multiselect"),
        (true, Some([])) => Some("must not be empty for select and multiselect"),
        (false, Some([_, ..])) => Some("is accepted only for select and multiselect"),
        _ => None,
    }
}

/// `POST /custom-fields`.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewField>,
    idempotency: Idempotency,
) -> ApiResult<Created<CustomField>> {
    let NewField { application, columns } = body.0;
    idempotency
        .transaction(app.db(caller.company), async |db| {
            let field = custom_fields::insert(db, caller.company, application, columns).await?;
            Ok(Created::of(field.ok_or_else(too_many_fields)?))
        })
        .await
}

fn too_many_fields() -> ApiError {
    let count = i64::try_from(FIELDS_MAX).unwrap_or(i64::MAX);
    let state = "the company has reached its maximum number of custom fields of this application";
    Refusal::Conflict(Conflict::used_by(state, "limit", [(CustomField::NOUN, count)])).into()
}

/// `PUT /custom-fields/{customFieldId}`. While values exist, the type and the options in use cannot change.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<CustomFieldId>,
    body: Body<Change<CustomField>>,
    idempotency: Idempotency,
) -> ApiResult<Json<CustomField>> {
    let Change { mut columns, fixed, .. } = body.0;
    let kind = columns.text("type").and_then(|word| word.parse().ok());
    idempotency
        .transaction(app.db(caller.company), async |db| {
            let field = custom_fields::lock(db, caller.company, id.0).await?.ok_or_else(ApiError::not_found)?;
            check_fixed::<CustomField>(&mut *db, caller.company, id.0, &fixed).await?;
            let options = next_options(&field, kind, columns.texts("options"))?;
            check_values(db, &caller, &field, kind, options.as_deref()).await?;
            if let Some(options) = options {
                columns.set("options", options);
            }
            Ok(Json::of(table::update::<CustomField>(db, caller.company, id.0, &columns).await?))
        })
        .await
}

/// The options to store; `None` when they do not change. A type without options clears them.
fn next_options(
    field: &CustomField,
    kind: Option<CustomFieldType>,
    new_options: Option<Vec<String>>,
) -> ApiResult<Option<Vec<String>>> {
    let kind = kind.unwrap_or(field.kind);
    let current = Some(field.options.as_slice()).filter(|options| kind.has_options() && !options.is_empty());
    if let Some(reason) = options_error(kind, new_options.as_deref().or(current)) {
        return Err(Refusal::invalid("options", reason).into());
    }
    Ok(if kind.has_options() { new_options } else { Some(Vec::new()) })
}

/// Checks that all existing values remain valid after the change.
async fn check_values(
    db: &mut PgConnection,
    caller: &Caller,
    field: &CustomField,
    kind: Option<CustomFieldType>,
    options: Option<&[String]>,
) -> ApiResult<()> {
    let company = caller.company;
    if kind.is_some_and(|kind| kind != field.kind) {
        let visible = visible_cards(db, caller).await?;
        let records = custom_fields::records_with_value(db, company, field, &visible).await?;
        refuse_if_blocked("the custom field has values, so its type cannot change", "has_values", records)?;
    } else if let Some(options) = options
        && field.kind.has_options()
    {
        let visible = visible_cards(db, caller).await?;
        let records = custom_fields::records_with_other_value(db, company, field, options, &visible).await?;
        refuse_if_blocked("the custom field has values that are not among these options", "options_in_use", records)?;
    }
    Ok(())
}

/// The cards that the caller sees.
async fn visible_cards(db: &mut PgConnection, caller: &Caller) -> ApiResult<VisibleCards> {
    if let Some(only_assignee) = caller.cards_limited_to() {
        return Ok(VisibleCards { assigned_to: Some(only_assignee), boards: Vec::new() });
    }
    let Some(user) = caller.boards_limited_to() else {
        // The default is every card.
        return Ok(VisibleCards::default());
    };
    let boards = boards::visible_to(db, caller.company, user).await?;
    Ok(VisibleCards { assigned_to: Some(user), boards })
}

/// Refuses the change if any record prevents it, even one that is not visible to the caller. The error counts only
/// visible records.
fn refuse_if_blocked(state: &'static str, reason: &'static str, blocking: Vec<BlockingRecords>) -> ApiResult<()> {
    if blocking.iter().all(|records| !records.exist) {
        return Ok(());
    }
    let counts = blocking.into_iter().map(|records| (records.noun, records.visible));
    Err(Refusal::Conflict(Conflict::used_by(state, reason, counts)).into())
}

/// The body of `PUT /custom-fields/order`.
pub struct FieldOrder {
    application: Application,
    ids: OrderedIds<CustomFieldId>,
}

impl Input for FieldOrder {
    fn name() -> Cow<'static, str> {
        "CustomFieldOrder".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let application = fields.required("application");
        let ids = fields.required("orderedIds");
        Some(Self { application: application?, ids: ids? })
    }
}

/// `PUT /custom-fields/order`: returns all fields in the new order.
pub async fn reorder(
    caller: Caller,
    app: Data<App>,
    body: Body<FieldOrder>,
    idempotency: Idempotency,
) -> ApiResult<Page<CustomField>> {
    let FieldOrder { application, ids } = body.0;
    idempotency
        .transaction(app.db(caller.company), async |db| {
            let rows = table::reorder(db, caller.company, application, &ids.0).await?.ok_or_else(|| {
                Refusal::invalid("orderedIds", "must be the ids of all custom fields of the application, each once")
            })?;
            Ok(Page::whole(rows))
        })
        .await
}
