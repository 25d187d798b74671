//! A company with everything conversations need.

use hotline::cli::everything;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, ChannelType, NewChannel, Secret};
use hotline_persistence::tables::queues::Queue;
use hotline_persistence::tables::tokens::{self, NewToken};
use hotline_persistence::tables::wrapup_categories::{WrapupCategory, WrapupCategoryId};
use hotline_persistence::tables::wrapup_types::{self, WrapupType};
use hotline_persistence::tables::{companies, users};
use hotline_persistence::{ChannelId, CompanyId, PgConnection, PgPool, QueueId, UserId, WrapupTypeId};
use serde::{Deserialize, Serialize};

/// A company, and the ids of what it has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Company {
    pub id: CompanyId,
    pub key: String,
    /// Phone channel without a queue.
    pub phone: ChannelId,
    /// Webchat whose tickets go to `support`.
    pub webchat: ChannelId,
    /// Requires a wrap-up; `ana` and `ben` work here.
    pub support: QueueId,
    /// Requires none; only `ben` works here.
    pub sales: QueueId,
    pub ana: UserId,
    pub ben: UserId,
    /// Linked to `support`.
    pub solved: WrapupTypeId,
    /// Linked to `sales`.
    pub sold: WrapupTypeId,
}

fn name_column(name: &str) -> Columns {
    Columns::from([("name", name.into())])
}

async fn user(db: &mut PgConnection, company: CompanyId, name: &str, email: &str) -> UserId {
    let columns = Columns::from([("name", name.into()), ("email", email.into())]);
    users::insert(db, company, columns).await.expect("user").id
}

async fn wrapup_type(
    db: &mut PgConnection,
    company: CompanyId,
    name: &str,
    category: WrapupCategoryId,
) -> WrapupTypeId {
    let columns = Columns::from([("name", name.into()), ("categoryId", category.into())]);
    table::insert::<WrapupType>(db, company, &columns).await.expect("type").id
}

impl Company {
    /// Creates everything in one transaction, so that a running service sees it at once, and reads it once.
    pub async fn create(db: &PgPool, name: &str) -> Self {
        let mut transaction = db.begin().await.expect("transaction");
        let db = &mut *transaction;
        let id = companies::insert_in(db, name).await.expect("company").id;
        let support_columns = Columns::from([("name", "Support".into()), ("wrapupRequired", true.into())]);
        let support = table::insert::<Queue>(&mut *db, id, &support_columns).await.expect("queue").id;
        let sales = table::insert::<Queue>(&mut *db, id, &name_column("Sales")).await.expect("queue").id;
        let ana = user(db, id, "Ana", "ana@example.com").await;
        let ben = user(db, id, "Ben", "ben@example.com").await;
        for (queue, user) in [(support, ana), (support, ben), (sales, ben)] {
            users::QUEUES.add(&mut *db, id, user, queue).await.expect("member");
        }
        let outcome =
            table::insert::<WrapupCategory>(&mut *db, id, &name_column("Outcome")).await.expect("category").id;
        let solved = wrapup_type(db, id, "Solved", outcome).await;
        let sold = wrapup_type(db, id, "Sold", outcome).await;
        for (wrapup_type, queue) in [(solved, support), (sold, sales)] {
            wrapup_types::QUEUES.set(&mut *db, id, wrapup_type, &[queue]).await.expect("link");
        }
        let phone = channel_in(db, id, "Phone", ChannelType::Whatsapp, None).await;
        let webchat = channel_in(db, id, "Website", ChannelType::Webchat, Some(support)).await;
        let new = NewToken { name: "test", permissions: everything(), ..NewToken::default() };
        let (_, key) = tokens::insert(&mut *db, id, new).await.expect("token");
        transaction.commit().await.expect("the company is there");
        Self { id, key, phone, webchat, support, sales, ana, ben, solved, sold }
    }
}

/// The secrets of channels of [`provided`]: for calls to the provider, for its signatures, and to verify the hook.
pub const ACCESS_TOKEN: &str = "access-token";
pub const APP_SECRET: &str = "app-secret";
pub const VERIFY_TOKEN: &str = "verify-token";

/// A connected channel whose provider knows it as `account`.
pub async fn provided(
    db: &PgPool,
    keys: &Keyring,
    company: CompanyId,
    kind: ChannelType,
    account: &str,
    provider_url: &str,
) -> ChannelRow {
    let settings = provided_settings(kind, account, provider_url);
    let new = NewChannel { name: account, kind, number: None, queue_id: None, settings };
    channels::insert(db, keys, company, new).await.expect("channel")
}

/// All that a channel needs to be connected.
pub fn provided_settings(kind: ChannelType, account: &str, provider_url: &str) -> ChannelSettings {
    let secret = |text: &str| Some(Secret(text.to_owned()));
    let id = Some(account.to_owned());
    let (phone_number_id, page_id) = if kind.has_phone() { (id, None) } else { (None, id) };
    ChannelSettings {
        phone_number_id,
        page_id,
        access_token: secret(ACCESS_TOKEN),
        app_secret: secret(APP_SECRET),
        verify_token: secret(VERIFY_TOKEN),
        provider_url: Some(provider_url.to_owned()),
        // As if the operator had set the address on the command line.
        is_provider_url_from_operator: true,
        ..ChannelSettings::default()
    }
}

pub async fn channel(
    db: &PgPool,
    company: CompanyId,
    name: &str,
    kind: ChannelType,
    queue_id: Option<QueueId>,
) -> ChannelId {
    let mut transaction = db.begin().await.expect("transaction");
    let id = channel_in(&mut transaction, company, name, kind, queue_id).await;
    transaction.commit().await.expect("the channel is there");
    id
}

async fn channel_in(
    db: &mut PgConnection,
    company: CompanyId,
    name: &str,
    kind: ChannelType,
    queue_id: Option<QueueId>,
) -> ChannelId {
    let new = NewChannel { name, kind, number: None, queue_id, settings: ChannelSettings::default() };
    // The channel has no secret to seal.
    channels::insert_in(db, &Keyring::default(), company, new).await.expect("channel").id
}
