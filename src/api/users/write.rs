//! Creating and changing users.

use std::borrow::Cow;
use std::cell::Cell;

use actix_web::web::Data;
use hotline_actors::{FieldError, Removal};
use hotline_persistence::password::Password;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::people::PersonId;
use hotline_persistence::tables::profiles::{self, ProfileRow};
use hotline_persistence::tables::queues::Queue;
use hotline_persistence::tables::users::{self, User, WORKS_IN_QUEUE};
use hotline_persistence::{CompanyId, Db, ProfileId, QueueId, UserId};
use sqlx::{PgConnection, PgExecutor};

use super::privileges::UserChange;
use super::{administrators, privileges};
use crate::api::directory::{check_links, refresh_after};
use crate::api::plain::{BodyColumns, Filters, Plain, check_count};
use crate::api::references::LINKS_MAX;
use crate::app::App;
use crate::web::admission::passwords;
use crate::web::request::values::{Name, SignInEmail};
use crate::web::{ApiError, ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, Patch, PathId};

/// How often a change of a user's queues is attempted while other requests add the user to further ones.
const ATTEMPTS_MAX: usize = 8;

impl Plain for User {
    const IS_IN_DIRECTORY: bool = true;
    const IN_DIRECTORY_MAX: i64 = 20_000;

    fn filters(list: &mut Filters<'_>) {
        list.equals::<bool>("active");
        list.related::<Queue>("queueId", WORKS_IN_QUEUE);
        list.refers::<ProfileRow>("profileId");
    }
}

/// The fields of a user in a body: columns, and changes of the password and the queues.
struct UserInput {
    columns: Columns,
    password: Patch<Password>,
    queues: Option<Vec<QueueId>>,
}

impl UserInput {
    fn read<'a>(
        mut body: BodyColumns<'_, 'a>,
        read_queues: impl FnOnce(&mut Fields<'a>) -> Option<Vec<QueueId>>,
    ) -> Self {
        body.required::<Name>("name");
        body.required::<SignInEmail>("email");
        let password = body.fields().patch("password");
        body.nullable::<ProfileId>("profileId");
        let queues = read_queues(body.fields());
        body.defaulted::<bool>("active");
        Self { columns: body.finish(), password, queues }
    }

    /// The columns, including the password's hash, and the queues. The password must not contain its owner's e-mail or
    /// name: those in the body, or else those of `current`.
    async fn with_hash(self, company: CompanyId, current: Option<&User>) -> ApiResult<(Columns, Option<Vec<QueueId>>)> {
        let Self { mut columns, password, queues } = self;
        if let Patch::Value(password) = &password {
            let (email, name) = current.map_or(("", ""), |user| (user.email.as_str(), user.name.as_str()));
            let (email, name) = (columns.text("email").unwrap_or(email), columns.text("name").unwrap_or(name));
            passwords::check_owner(password, "password", email, name)?;
        }
        if let Some(hash) = hash_of(company, password).await? {
            columns.set("passwordHash", hash);
        }
        Ok((columns, queues))
    }
}

/// The change of the stored hash: `None` leaves it, `Some(None)` removes it.
async fn hash_of(company: CompanyId, password: Patch<Password>) -> ApiResult<Option<Option<String>>> {
    let password = match password {
        Patch::Absent => return Ok(None),
        Patch::Null => return Ok(Some(None)),
        Patch::Value(password) => password,
    };
    Ok(Some(Some(passwords::hash(company, password).await?)))
}

/// The body of `POST /users`.
pub struct NewUser(UserInput);

impl Input for NewUser {
    fn name() -> Cow<'static, str> {
        "UserCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let body = BodyColumns::new(fields);
        Some(Self(UserInput::read(body, |fields| fields.list("queueIds", LINKS_MAX))))
    }
}

/// `POST /users`. E-mails are unique within a company, ignoring case.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewUser>,
    idempotency: Idempotency,
) -> ApiResult<Created<User>> {
    let company = caller.company;
    let is_new = true;
    privileges::check_assigned_profile(&caller, &app, &body.0.0.columns, is_new).await?;
    let (columns, queues) = body.0.0.with_hash(caller.company, None).await?;
    let insert = idempotency.transaction(app.db(company), async |db| {
        check_count::<User>(&mut *db, company).await?;
        let user = users::insert(&mut *db, company, columns).await?;
        users::QUEUES.set(&mut *db, company, user.id, &queues.unwrap_or_default()).await?;
        check_links(&mut *db, company, &users::QUEUES).await?;
        Ok(Created::of(find(db, company, user.id).await?))
    });
    refresh_after(&app, company, insert).await
}

/// The body of `PUT /users/{userId}`.
pub struct ChangedUser(UserInput);

impl Input for ChangedUser {
    fn name() -> Cow<'static, str> {
        "UserUpdate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let body = BodyColumns::change(fields);
        Some(Self(UserInput::read(body, |fields| fields.changed_list("queueIds", LINKS_MAX))))
    }
}

/// `PUT /users/{userId}`. A user whose password is removed cannot sign in until they set one with a link. A changed
/// password or e-mail, or `active: false`, ends all sessions of the user. Their open tickets in queues they leave stay
/// there, without an assignee.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<UserId>,
    body: Body<ChangedUser>,
    idempotency: Idempotency,
) -> ApiResult<Json<User>> {
    let company = caller.company;
    check_own_sign_in(&caller, &app, id.0, &body.0.0).await?;
    privileges::check(&caller, &app, id.0).await?;
    let is_new = false;
    privileges::check_assigned_profile(&caller, &app, &body.0.0.columns, is_new).await?;
    let current: Option<User> = match &body.0.0.password {
        Patch::Value(_) => table::find(app.db(company), company, id.0).await?,
        Patch::Absent | Patch::Null => None,
    };
    let (columns, queues) = body.0.0.with_hash(caller.company, current.as_ref()).await?;
    let update = UserUpdate { caller: &caller, id: id.0, columns, queues, is_outdated: Cell::new(false) };
    for _ in 0..ATTEMPTS_MAX {
        let outcome = update.attempt(&app, &idempotency).await;
        if !update.is_outdated.take() {
            return outcome;
        }
    }
    Err(ApiError::unavailable())
}

/// A change of a user, to be written in a transaction.
struct UserUpdate<'a> {
    caller: &'a Caller,
    id: UserId,
    columns: Columns,
    queues: Option<Vec<QueueId>>,
    /// Whether the last attempt was given up because the user was meanwhile added to another queue, which the change
    /// also removes.
    is_outdated: Cell<bool>,
}

impl UserUpdate<'_> {
    /// Makes the change, after the user's open tickets in the queues that they leave were released.
    async fn attempt(&self, app: &App, idempotency: &Idempotency) -> ApiResult<Json<User>> {
        let (company, id) = (self.caller.company, self.id);
        let queues_to_leave = match &self.queues {
            Some(queues) => find_queues_to_leave(app.db(company), company, id, queues).await?,
            None => Vec::new(),
        };
        let to_leave = &queues_to_leave[..];
        if to_leave.is_empty() {
            let transaction = idempotency.transaction(app.db(company), async |db| self.write(db, to_leave).await);
            return refresh_after(app, company, transaction).await;
        }
        let removals: Vec<Removal> = to_leave.iter().map(|queue| Removal::Member(*queue, id)).collect();
        // As in a deletion, tickets are released before the user is changed, and outside of the transaction, which must
        // not wait for their actors. An interrupted change leaves the user in the queues, and can be repeated.
        let leave_and_write = async |db: Db<'_>| {
            // Before any ticket is released, this finds out whether the change is refused.
            idempotency.dry_run(db, async |db| self.write(db, to_leave).await).await?;
            for queue in to_leave {
                app.engine.tickets.release(company, id, Some(*queue), self.caller.author()).await?;
            }
            hotline_persistence::fail_point!("leaver_released", |_| Err(ApiError::unavailable()));
            idempotency.transaction(db, async |db| self.write(db, to_leave).await).await
        };
        app.engine.assignment.delete_all_guarded(company, removals, leave_and_write).await
    }

    /// Writes the change, after checks in the same transaction that the caller may make it, and that the user leaves no
    /// queues but `to_leave`.
    async fn write(&self, db: &mut PgConnection, to_leave: &[QueueId]) -> ApiResult<Json<User>> {
        let Self { caller, id, columns, queues, is_outdated: _ } = self;
        let (company, id) = (caller.company, *id);
        if caller.token().is_some() {
            privileges::check_integration(&mut *db, company, id, UserChange::Update(columns)).await?;
        } else {
            privileges::check_in_transaction(caller, &mut *db, id).await?;
        }
        let must_keep_administrator =
            administrators::must_keep_last(caller) && (columns.has("profileId") || columns.is_false("active"));
        if must_keep_administrator {
            // The lock of the profiles serializes two requests that each remove one of the last two administrators. The
            // user is locked first, as in a deletion.
            users::lock(&mut *db, company, id).await?;
            profiles::lock(&mut *db, company).await?;
        }
        users::update(&mut *db, company, id, columns.clone()).await?;
        if must_keep_administrator {
            administrators::check_remaining(&mut *db, company, None).await?;
        }
        if let Some(queues) = queues {
            self.write_queues(&mut *db, queues, to_leave).await?;
        }
        Ok(Json::of(find(db, company, id).await?))
    }

    /// Replaces the queues of the user, who must be locked: they then join no queue until the transaction ends.
    async fn write_queues(&self, db: &mut PgConnection, queues: &[QueueId], to_leave: &[QueueId]) -> ApiResult<()> {
        let (company, id) = (self.caller.company, self.id);
        let queues_to_leave = find_queues_to_leave(&mut *db, company, id, queues).await?;
        if queues_to_leave.iter().any(|queue| !to_leave.contains(queue)) {
            // Tickets of a queue that they joined since may already be assigned to them.
            self.is_outdated.set(true);
            return Err(ApiError::unavailable());
        }
        if users::QUEUES.set(&mut *db, company, id, queues).await? {
            check_links(&mut *db, company, &users::QUEUES).await?;
            table::touch::<User>(db, company, id).await?;
        }
        Ok(())
    }
}

/// Refuses changes of the caller's own sign-in: an unlocked screen must not be enough to take over the account. Such
/// changes are made in the account settings, which require the current password, or by another person.
async fn check_own_sign_in(caller: &Caller, app: &App, id: UserId, input: &UserInput) -> ApiResult<()> {
    let company = caller.company;
    if caller.signed_in().is_none_or(|signed_in| signed_in.person() != PersonId::User(company, id)) {
        return Ok(());
    }
    let changes_email = users::changes_email(app.db(company), company, id, &input.columns).await?;
    let changes = [
        ("password", !matches!(input.password, Patch::Absent), "must be changed in your own account"),
        ("email", changes_email, "must be changed by another administrator"),
        ("active", input.columns.is_false("active"), "must be changed by another administrator"),
    ];
    let errors = changes.into_iter().filter(|(_, is_changed, _)| *is_changed);
    let errors = errors.map(|(field, _, reason)| FieldError { field: field.to_owned(), reason: reason.to_owned() });
    let errors: Vec<FieldError> = errors.collect();
    if errors.is_empty() { Ok(()) } else { Err(ApiError::validation(&errors)) }
}

/// The user's current queues that are not among the new ones, `queues`.
async fn find_queues_to_leave(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    id: UserId,
    queues: &[QueueId],
) -> ApiResult<Vec<QueueId>> {
    let row: Option<User> = table::find(db, company, id).await?;
    let row = row.ok_or_else(ApiError::not_found)?;
    Ok(row.queues.into_iter().map(|queue| queue.id).filter(|queue| !queues.contains(queue)).collect())
}

async fn find(db: &mut PgConnection, company: CompanyId, id: UserId) -> ApiResult<User> {
    table::find(db, company, id).await?.ok_or_else(ApiError::not_found)
}
