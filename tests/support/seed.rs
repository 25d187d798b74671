//! A company with everything conversations need.

use hotline::cli::everything;
use hotline_persistence::tables::channels::{self, ChannelSettings, ChannelType, NewChannel};
use hotline_persistence::tables::tokens::{self, NewToken};
use hotline_persistence::tables::{companies, queues, users, wrapup_types};
use hotline_persistence::{ChannelId, CompanyId, PgPool, QueueId, UserId, WrapupTypeId};

/// A company, and the ids of what it has.
#[derive(Clone, Debug)]
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

impl Company {
    pub async fn create(db: &PgPool, name: &str) -> Self {
        let id = companies::insert(db, name).await.expect("company").id;
        let support = queues::insert(db, id, "Support", true).await.expect("queue").id;
        let sales = queues::insert(db, id, "Sales", false).await.expect("queue").id;
        let ana = users::insert(db, id, "Ana", "ana@example.com").await.expect("user").id;
        let ben = users::insert(db, id, "Ben", "ben@example.com").await.expect("user").id;
        for (queue, user) in [(support, ana), (support, ben), (sales, ben)] {
            queues::add_user(db, id, queue, user).await.expect("member");
        }
        let solved = wrapup_types::insert(db, id, "Outcome", "Solved", &[support]).await.expect("type");
        let sold = wrapup_types::insert(db, id, "Outcome", "Sold", &[sales]).await.expect("type");
        let phone = channel(db, id, "Phone", ChannelType::Whatsapp, None).await;
        let webchat = channel(db, id, "Website", ChannelType::Webchat, Some(support)).await;
        let new = NewToken { name: "test", permissions: everything(), ..NewToken::default() };
        let (_, key) = tokens::insert(db, id, new).await.expect("token");
        Self { id, key, phone, webchat, support, sales, ana, ben, solved, sold }
    }
}

pub async fn channel(
    db: &PgPool,
    company: CompanyId,
    name: &str,
    kind: ChannelType,
    queue_id: Option<QueueId>,
) -> ChannelId {
    let new = NewChannel { name, kind, number: None, queue_id, settings: ChannelSettings::default() };
    channels::insert(db, company, new).await.expect("channel").id
}
