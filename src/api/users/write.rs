//! Users are made and changed.

use actix_web::web::Data;
use hotline_actors::Leaving;
use hotline_persistence::password::Password;
use hotline_persistence::tables::users::{self, UserFields, UserRow};
use hotline_persistence::{CompanyId, ProfileId, QueueId, UserId, table};
use sqlx::PgConnection;
use tokio::sync::Semaphore;

use super::User;
use crate::api::directory::changed;
use crate::api::named::LINKS_MAX;
use crate::app::App;
use crate::web::values::{Email, Name};
use crate::web::{Answer, ApiError, Body, Caller, Created, Fields, Input, Once, Patch, PathId, Shown};

/// Passwords that are hashed at once: each takes 19 MiB and a core for tens of milliseconds, and conversations need
/// the cores more.
static HASHING: Semaphore = Semaphore::const_new(2);

/// What is stored of a password.
async fn hashed(password: Patch<Password>) -> Answer<Option<Option<String>>> {
    let password = match password {
        Patch::Absent => return Ok(None),
        Patch::Null => return Ok(Some(None)),
        Patch::Value(password) => password,
    };
    let _turn = HASHING.acquire().await.map_err(ApiError::internal)?;
    let hash = tokio::task::spawn_blocking(move || password.hash()).await.map_err(ApiError::internal)?;
    Ok(Some(Some(hash.map_err(ApiError::internal)?)))
}

/// The body of `POST /users`.
pub struct NewUser {
    name: Name,
    email: Email,
    password: Patch<Password>,
    profile: Option<ProfileId>,
    queues: Vec<QueueId>,
    active: Option<bool>,
}

impl Input for NewUser {
    const NAME: &'static str = "UserCreate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let name = fields.required("name");
        let email = fields.required("email");
        let password = fields.patch("password");
        let profile = fields.optional("profileId");
        let queues = fields.list("queueIds", LINKS_MAX).unwrap_or_default();
        let active = fields.optional("active");
        Some(Self { name: name?, email: email?, password, profile, queues, active })
    }
}

/// `POST /users`. E-mails are unique within a company, whatever their case.
pub async fn create(caller: Caller, app: Data<App>, body: Body<NewUser>, once: Once) -> Answer<Created<User>> {
    let NewUser { name, email, password, profile, queues, active } = body.0;
    let company = caller.company;
    let hash = hashed(password).await?;
    let insert = once.plain(app.db(company), async |db| {
        let fields =
            UserFields { password_hash: hash.as_ref().map(Option::as_deref), profile_id: Some(profile), active };
        let id = users::insert(&mut *db, company, &name.0, &email.0, fields).await?;
        users::set_queues(&mut *db, company, id, &queues).await?;
        Ok(Created::of(find(db, company, id).await?))
    });
    changed(&app, company, insert).await
}

/// The body of `PUT /users/{userId}`.
pub struct ChangedUser {
    name: Option<Name>,
    email: Option<Email>,
    password: Patch<Password>,
    profile: Patch<ProfileId>,
    queues: Option<Vec<QueueId>>,
    active: Option<bool>,
}

impl Input for ChangedUser {
    const NAME: &'static str = "UserUpdate";

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            name: fields.changed("name"),
            email: fields.changed("email"),
            password: fields.patch("password"),
            profile: fields.patch("profileId"),
            queues: fields.changed_list("queueIds", LINKS_MAX),
            active: fields.changed("active"),
        })
    }
}

/// `PUT /users/{userId}`. Without a password nobody can sign in as this user. Queues they leave keep their open tickets,
/// which are nobody's then.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<UserId>,
    body: Body<ChangedUser>,
    once: Once,
) -> Answer<Shown<User>> {
    let ChangedUser { name, email, password, profile, queues, active } = body.0;
    let company = caller.company;
    let hash = hashed(password).await?;
    let author = caller.author();
    let left = match &queues {
        Some(kept) => left(&app, company, id.0, kept).await?,
        None => Vec::new(),
    };
    let update = once.plain(app.db(company), async |db| {
        let fields = UserFields {
            password_hash: hash.as_ref().map(Option::as_deref),
            profile_id: profile.into_option(),
            active,
        };
        let name = name.as_ref().map(|name| name.0.as_str());
        let email = email.as_ref().map(|email| email.0.as_str());
        users::update(&mut *db, company, id.0, name, email, fields).await?;
        if let Some(queues) = &queues {
            users::set_queues(&mut *db, company, id.0, queues).await?;
        }
        // Once nothing can be refused any more; should this stop half way, they are in the queues as before.
        for queue in &left {
            app.engine.release(company, id.0, Some(*queue), author.clone()).await?;
        }
        Ok(Shown::of(find(db, company, id.0).await?))
    });
    if left.is_empty() {
        return changed(&app, company, update).await;
    }
    let leaving: Vec<Leaving> = left.iter().map(|queue| Leaving::Member(*queue, id.0)).collect();
    app.engine.leave_all(company, leaving, async |_| update.await).await
}

/// The queues a user works in and is to leave.
async fn left(app: &App, company: CompanyId, id: UserId, kept: &[QueueId]) -> Answer<Vec<QueueId>> {
    let row: Option<UserRow> = table::find(app.db(company), company, id).await?;
    let row = row.ok_or_else(ApiError::not_found)?;
    Ok(row.queues.0.into_iter().map(|queue| queue.id).filter(|queue| !kept.contains(queue)).collect())
}

async fn find(db: &mut PgConnection, company: CompanyId, id: UserId) -> Answer<UserRow> {
    table::find(db, company, id).await?.ok_or_else(ApiError::not_found)
}
