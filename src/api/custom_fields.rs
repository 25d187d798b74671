//! Custom fields: what a company notes of its contacts and cards besides the fields they all have. Plain.

use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::select::{self, Page};
use hotline_persistence::tables::custom_fields::{
    self, Application, CustomFieldChange, CustomFieldFilter, CustomFieldRow, CustomFieldType, NewCustomField,
    is_named_as_built_in,
};
use hotline_persistence::{CompanyId, CustomFieldId, table};
use serde::Serialize;
use sqlx::PgConnection;
use utoipa::ToSchema;

use crate::app::App;
use crate::web::params::PER_PAGE;
use crate::web::values::{Name, Options, OrderedIds, Position, Search};
use crate::web::{
    Answer, ApiError, Body, Caller, Created, Done, Fields, Filter, Input, Listed, Once, Params, PathId, Query, Shown,
    Timestamp,
};

/// A field that a company adds to its contacts or cards.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct CustomField {
    pub id: CustomFieldId,
    /// Made from the first name; names the field where values are written, and never changes.
    #[schema(example = "shoe_size")]
    pub key: String,
    #[schema(example = "Shoe size")]
    pub name: String,
    /// Fixed.
    pub application: Application,
    /// Cannot change while there are values.
    #[serde(rename = "type")]
    pub kind: CustomFieldType,
    /// What values of `select` and `multiselect` are chosen from; one that a value holds cannot be taken away.
    #[schema(example = json!(["Blue", "Red"]))]
    pub options: Vec<String>,
    #[schema(example = false)]
    pub required: bool,
    #[schema(example = 1)]
    pub position: i32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl From<CustomFieldRow> for CustomField {
    fn from(row: CustomFieldRow) -> Self {
        Self {
            id: row.id,
            key: row.key,
            name: row.name,
            application: row.application,
            kind: row.kind,
            options: row.options.0,
            required: row.required,
            position: row.position,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.into(),
        }
    }
}

/// Filters of the list: `search` looks into name and key.
pub struct Filters(CustomFieldFilter);

impl Filter for Filters {
    fn read(query: &mut Params) -> Self {
        Self(CustomFieldFilter {
            search: query.filter::<Search>("search").map(|text| text.0),
            application: query.filter("application"),
            kind: query.filter("type"),
            created: query.span("created"),
            updated: query.span("updated"),
        })
    }
}

/// `GET /custom-fields`, by position within their application.
pub async fn list(caller: Caller, app: Data<App>, query: Query<Filters>) -> Answer<Listed<CustomField>> {
    let rows = custom_fields::list(app.db(caller.company), caller.company, &query.filter.0, query.page).await?;
    Ok(Listed::of(query.page, rows, CustomField::from))
}

/// `GET /custom-fields/{customFieldId}`.
pub async fn show(caller: Caller, app: Data<App>, id: PathId<CustomFieldId>) -> Answer<Shown<CustomField>> {
    let row: Option<CustomFieldRow> = table::find(app.db(caller.company), caller.company, id.0).await?;
    Ok(Shown::of(row.ok_or_else(ApiError::not_found)?))
}

/// The body of `POST /custom-fields`.
pub struct NewField {
    name: Name,
    application: Application,
    kind: CustomFieldType,
    options: Vec<String>,
    required: bool,
    position: Option<Position>,
}

impl Input for NewField {
    const NAME: &'static str = "CustomFieldCreate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let name: Option<Name> = fields.required("name");
        let application = fields.required("application");
        let kind: Option<CustomFieldType> = fields.required("type");
        let options: Option<Options> = fields.optional("options");
        let required = fields.optional("required");
        let position = fields.optional("position");
        // A message would never take its value: what every message has comes first.
        if application == Some(Application::Contact)
            && name.as_ref().is_some_and(|name: &Name| is_named_as_built_in(&name.0))
        {
            fields.refuse("name", "is a name every message has");
        }
        // Options that are not accepted themselves have been refused already.
        if options.is_some() || !fields.has("options") {
            let given = options.as_ref().map(|options| options.0.as_slice());
            if let Some(reason) = kind.and_then(|kind| wrong_options(kind, given)) {
                fields.refuse("options", reason);
            }
        }
        Some(Self {
            name: name?,
            application: application?,
            kind: kind?,
            options: options.map(|options| options.0).unwrap_or_default(),
            required: required.unwrap_or(false),
            position,
        })
    }
}

/// Why a field of this type cannot have these options.
fn wrong_options(kind: CustomFieldType, options: Option<&[String]>) -> Option<&'static str> {
    match (kind.has_options(), options) {
        (true, None) => Some("is required for select and multiselect"),
        (true, Some([])) => Some("must not be empty for select and multiselect"),
        (false, Some([_, ..])) => Some("is accepted for select and multiselect only"),
        _ => None,
    }
}

/// `POST /custom-fields`.
pub async fn create(caller: Caller, app: Data<App>, body: Body<NewField>, once: Once) -> Answer<Created<CustomField>> {
    let NewField { name, application, kind, options, required, position } = body.0;
    let position = position.map(|position| position.0);
    let new = NewCustomField { name: &name.0, application, kind, options: &options, required, position };
    once.plain(app.db(caller.company), async |db| {
        Ok(Created::of(custom_fields::insert(db, caller.company, new).await?))
    })
    .await
}

/// The body of `PUT /custom-fields/{customFieldId}`.
pub struct ChangedField {
    name: Option<Name>,
    kind: Option<CustomFieldType>,
    options: Option<Options>,
    required: Option<bool>,
    position: Option<Position>,
}

impl Input for ChangedField {
    const NAME: &'static str = "CustomFieldUpdate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            name: fields.changed("name"),
            kind: fields.changed("type"),
            options: fields.changed("options"),
            required: fields.changed("required"),
            position: fields.changed("position"),
        })
    }
}

/// `PUT /custom-fields/{customFieldId}`. While there are values the type stays, and so do the options they hold.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<CustomFieldId>,
    body: Body<ChangedField>,
    once: Once,
) -> Answer<Shown<CustomField>> {
    let ChangedField { name, kind, options, required, position } = body.0;
    once.plain(app.db(caller.company), async |db| {
        let field = custom_fields::lock(db, caller.company, id.0).await?.ok_or_else(ApiError::not_found)?;
        let options = next_options(&field, kind, options.map(|options| options.0))?;
        check_values(db, caller.company, &field, kind, options.as_deref()).await?;
        let change = CustomFieldChange {
            name: name.as_ref().map(|name| name.0.as_str()),
            kind,
            options: options.as_deref(),
            required,
            position: position.map(|position| position.0),
        };
        Ok(Shown::of(custom_fields::update(db, caller.company, id.0, change).await?))
    })
    .await
}

/// The options a field gets; none when it keeps them. With a type that has none it loses them.
fn next_options(
    field: &CustomFieldRow,
    kind: Option<CustomFieldType>,
    given: Option<Vec<String>>,
) -> Answer<Option<Vec<String>>> {
    let kind = kind.unwrap_or(field.kind);
    let kept = Some(field.options.0.as_slice()).filter(|kept| kind.has_options() && !kept.is_empty());
    if let Some(reason) = wrong_options(kind, given.as_deref().or(kept)) {
        return Err(Refusal::invalid("options", reason).into());
    }
    Ok(if kind.has_options() { given } else { Some(Vec::new()) })
}

/// The values there are must be as good after the change as before.
async fn check_values(
    db: &mut PgConnection,
    company: CompanyId,
    field: &CustomFieldRow,
    kind: Option<CustomFieldType>,
    options: Option<&[String]>,
) -> Answer<()> {
    if kind.is_some_and(|kind| kind != field.kind) {
        let values = custom_fields::values(db, company, field.id).await?;
        refuse_used("the custom field has values, so its type stays", "has_values", values)?;
    } else if let Some(options) = options
        && field.kind.has_options()
    {
        let values = custom_fields::values_beside(db, company, field, options).await?;
        refuse_used("the custom field has values that are none of these options", "options_in_use", values)?;
    }
    Ok(())
}

fn refuse_used(state: &'static str, reason: &'static str, by: Vec<(&'static str, i64)>) -> Answer<()> {
    let conflict = Conflict::used_by(state, reason, by);
    if conflict.by.is_empty() { Ok(()) } else { Err(Refusal::Conflict(conflict).into()) }
}

/// `DELETE /custom-fields/{customFieldId}`: its values go with it.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<CustomFieldId>) -> Answer<Done> {
    table::remove::<CustomFieldRow>(app.db(caller.company), caller.company, id.0).await?;
    Ok(Done)
}

/// The body of `PUT /custom-fields/order`.
pub struct Order {
    application: Application,
    ids: OrderedIds<CustomFieldId>,
}

impl Input for Order {
    const NAME: &'static str = "CustomFieldOrder";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let application = fields.required("application");
        let ids = fields.required("orderedIds");
        Some(Self { application: application?, ids: ids? })
    }
}

/// `PUT /custom-fields/order`: answers all of them in the new order.
pub async fn reorder(caller: Caller, app: Data<App>, body: Body<Order>, once: Once) -> Answer<Listed<CustomField>> {
    let Order { application, ids } = body.0;
    once.plain(app.db(caller.company), async |db| {
        let rows = custom_fields::reorder(db, caller.company, application, &ids.0).await?.ok_or_else(|| {
            Refusal::invalid("orderedIds", "must be the ids of all custom fields of the application, each once")
        })?;
        // They are one page, however many there are.
        let size = PER_PAGE.max(i64::try_from(rows.len()).unwrap_or(i64::MAX));
        let page = Page { number: 1, size, descending: false };
        Ok(Listed::of(page, select::Listed { rows, has_more: false }, CustomField::from))
    })
    .await
}
