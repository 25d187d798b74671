//! Creating and changing users.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::{FieldError, Removal};
use hotline_persistence::password::Password;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::people::PersonId;
use hotline_persistence::tables::profiles::{self, ProfileRow};
use hotline_persistence::tables::queues::Queue;
use hotline_persistence::tables::users::{self, User, WORK_IN};
use hotline_persistence::{CompanyId, ProfileId, QueueId, UserId};
use sqlx::PgConnection;

use super::rank::Wanted;
use super::{administered, rank};
use crate::api::directory::changed;
use crate::api::plain::{BodyColumns, Filters, Plain};
use crate::api::references::LINKS_MAX;
use crate::app::App;
use crate::web::values::{Name, SignInEmail};
use crate::web::{
    ApiError, ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, Patch, PathId, passwords,
};

impl Plain for User {
    const IS_IN_DIRECTORY: bool = true;

    fn filters(list: &mut Filters<'_>) {
        list.equals::<bool>("active");
        list.related::<Queue>("queueId", WORK_IN);
        list.refers::<ProfileRow>("profileId");
    }
}

/// The given fields of a user: columns, and changes of the password and the queues.
struct Written {
    columns: Columns,
    password: Patch<Password>,
    queues: Option<Vec<QueueId>>,
}

impl Written {
    fn read<'a>(mut body: BodyColumns<'_, 'a>, queues: impl FnOnce(&mut Fields<'a>) -> Option<Vec<QueueId>>) -> Self {
        body.required::<Name>("name");
        body.required::<SignInEmail>("email");
        let password = body.fields().patch("password");
        body.nullable::<ProfileId>("profileId");
        let queues = queues(body.fields());
        body.defaulted::<bool>("active");
        Self { columns: body.finish(), password, queues }
    }

    /// The columns, including the password's hash. A password is not made of its owner's e-mail and name, which are those
    /// of `before` as far as they do not change.
    async fn with_hash(self, before: Option<&User>) -> ApiResult<(Columns, Option<Vec<QueueId>>)> {
        let Self { mut columns, password, queues } = self;
        if let Patch::Value(password) = &password {
            let (email, name) = before.map_or(("", ""), |user| (user.email.as_str(), user.name.as_str()));
            let (email, name) = (columns.text("email").unwrap_or(email), columns.text("name").unwrap_or(name));
            passwords::check_owner(password, "password", email, name)?;
        }
        if let Some(hash) = hashed(password).await? {
            columns.set("passwordHash", hash);
        }
        Ok((columns, queues))
    }
}

/// The change of the stored hash.
async fn hashed(password: Patch<Password>) -> ApiResult<Option<Option<String>>> {
    let password = match password {
        Patch::Absent => return Ok(None),
        Patch::Null => return Ok(Some(None)),
        Patch::Value(password) => password,
    };
    Ok(Some(Some(passwords::hash(password).await?)))
}

/// The body of `POST /users`.
pub struct NewUser(Written);

impl Input for NewUser {
    fn name() -> Cow<'static, str> {
        "UserCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let body = BodyColumns::new(fields);
        Some(Self(Written::read(body, |fields| fields.list("queueIds", LINKS_MAX))))
    }
}

/// `POST /users`. E-mails are unique within a company, ignoring case.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewUser>,
    once: Idempotency,
) -> ApiResult<Created<User>> {
    let company = caller.company;
    rank::check_given(&caller, &app, &body.0.0.columns, true).await?;
    let (columns, queues) = body.0.0.with_hash(None).await?;
    let insert = once.transaction(app.db(company), async |db| {
        let made = users::insert(&mut *db, company, columns).await?;
        users::QUEUES.set(&mut *db, company, made.id, &queues.unwrap_or_default()).await?;
        Ok(Created::of(find(db, company, made.id).await?))
    });
    changed(&app, company, insert).await
}

/// The body of `PUT /users/{userId}`.
pub struct ChangedUser(Written);

impl Input for ChangedUser {
    fn name() -> Cow<'static, str> {
        "UserUpdate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let body = BodyColumns::change(fields);
        Some(Self(Written::read(body, |fields| fields.changed_list("queueIds", LINKS_MAX))))
    }
}

/// `PUT /users/{userId}`. Without a password nobody can sign in as this user; with another password or e-mail, or switched
/// off, they are signed in nowhere any more. Queues they leave keep their open tickets, which are nobody's then.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<UserId>,
    body: Body<ChangedUser>,
    once: Idempotency,
) -> ApiResult<Json<User>> {
    let company = caller.company;
    check_own(&caller, id.0, &body.0.0)?;
    rank::check(&caller, &app, id.0).await?;
    rank::check_given(&caller, &app, &body.0.0.columns, false).await?;
    let before: Option<User> = match &body.0.0.password {
        Patch::Value(_) => table::find(app.db(company), company, id.0).await?,
        Patch::Absent | Patch::Null => None,
    };
    let (columns, queues) = body.0.0.with_hash(before.as_ref()).await?;
    let is_token = caller.token().is_some();
    let author = caller.author();
    let is_bound = administered::binds(&caller) && (columns.has("profileId") || columns.is_false("active"));
    let left = match &queues {
        Some(kept) => left(&app, company, id.0, kept).await?,
        None => Vec::new(),
    };
    let update = once.transaction(app.db(company), async |db| {
        if is_token {
            rank::check_untouched(&mut *db, company, id.0, Wanted::Change(&columns)).await?;
        }
        if is_bound {
            // Of two who take the last two away, one comes second.
            profiles::lock(&mut *db, company).await?;
        }
        users::update(&mut *db, company, id.0, columns).await?;
        if is_bound {
            administered::check(&mut *db, company, None).await?;
        }
        if let Some(queues) = &queues
            && users::QUEUES.set(&mut *db, company, id.0, queues).await?
        {
            table::touch::<User>(&mut *db, company, id.0).await?;
        }
        // Released after the last possible refusal; a failure here leaves the user in the queues as before.
        for queue in &left {
            app.engine.tickets.release(company, id.0, Some(*queue), author.clone()).await?;
        }
        Ok(Json::of(find(db, company, id.0).await?))
    });
    if left.is_empty() {
        return changed(&app, company, update).await;
    }
    let leaving: Vec<Removal> = left.iter().map(|queue| Removal::Member(*queue, id.0)).collect();
    app.engine.assignment.leave_all(company, leaving, async |_| update.await).await
}

/// What lets a person in they change where their present password is asked for, or have somebody else change: who finds
/// their screen unlocked must not be able to keep it.
fn check_own(caller: &Caller, id: UserId, written: &Written) -> ApiResult<()> {
    let own = caller.signed().filter(|signed| signed.person() == PersonId::User(caller.company, id));
    let Some(own) = own else { return Ok(()) };
    let email = written.columns.text("email").map(str::to_lowercase);
    let given = [
        ("password", !matches!(written.password, Patch::Absent), "must be changed in your own account"),
        (
            "email",
            email.is_some_and(|email| email != own.email.to_lowercase()),
            "must be changed by another administrator",
        ),
        ("active", written.columns.is_false("active"), "must be changed by another administrator"),
    ];
    let refused = given.into_iter().filter(|(_, is_given, _)| *is_given);
    let refused = refused.map(|(field, _, reason)| FieldError { field: field.to_owned(), reason: reason.to_owned() });
    let refused: Vec<FieldError> = refused.collect();
    if refused.is_empty() { Ok(()) } else { Err(ApiError::validation(&refused)) }
}

/// The queues that a user is in and will leave.
async fn left(app: &App, company: CompanyId, id: UserId, kept: &[QueueId]) -> ApiResult<Vec<QueueId>> {
    let row: Option<User> = table::find(app.db(company), company, id).await?;
    let row = row.ok_or_else(ApiError::not_found)?;
    Ok(row.queues.into_iter().map(|queue| queue.id).filter(|queue| !kept.contains(queue)).collect())
}

async fn find(db: &mut PgConnection, company: CompanyId, id: UserId) -> ApiResult<User> {
    table::find(db, company, id).await?.ok_or_else(ApiError::not_found)
}
