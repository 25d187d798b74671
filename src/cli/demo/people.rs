//! The people who sign in to the demo's panel: an administrator of the installation and an agent. Their passwords are
//! generated at each start.

use hotline_persistence::password::Password;
use hotline_persistence::tables::people::{self, PersonId};
use hotline_persistence::tables::{admins, users};
use hotline_persistence::{CompanyId, Error, PgPool};

use crate::app::App;
use crate::cli::Failure;

/// The administrator's e-mail.
const ADMIN: &str = "admin@demo.example";

/// The agent's e-mail; the seed creates this user.
pub(super) const AGENT: &str = "ana@demo.example";

/// The e-mail and the password of both people.
pub(super) struct People {
    pub(super) admin: (&'static str, String),
    pub(super) agent: (&'static str, String),
}

/// Creates the administrator if it is missing, and gives both people new passwords.
pub(super) async fn prepare(app: &App, company: CompanyId) -> Result<People, Failure> {
    let db = &app.engine.store().housekeeping;
    let (password, hash) = random_password()?;
    match admins::insert(db, ADMIN, &hash).await {
        Err(Error::Taken(_)) => reset_admin(db, &hash).await?,
        result => drop(result?),
    }
    let admin = (ADMIN, password);
    let (password, hash) = random_password()?;
    let agent = users::find_by_email(db, company, AGENT)
        .await?
        .ok_or("the demo company no longer has its agent; use a new --data-dir")?;
    let mut transaction = db.begin().await?;
    people::set_password(&mut transaction, PersonId::User(company, agent), &hash).await?;
    transaction.commit().await?;
    Ok(People { admin, agent: (AGENT, password) })
}

async fn reset_admin(db: &PgPool, hash: &str) -> Result<(), Failure> {
    let mut transaction = db.begin().await?;
    let remove_second_factor = false;
    admins::reset_password(&mut transaction, ADMIN, hash, remove_second_factor).await?;
    Ok(transaction.commit().await?)
}

/// A password and its hash.
fn random_password() -> Result<(String, String), Failure> {
    let password = Password::random();
    let hash = password.hash().map_err(|error| format!("a password cannot be hashed: {error}"))?;
    Ok((password.as_str().to_owned(), hash))
}
