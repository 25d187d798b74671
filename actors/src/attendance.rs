//! Who is present to answer visitors: users who use the panel, and integrations that answer. In memory only: after a
//! restart, everyone counts as absent until their next activity.

use std::time::Duration;

use hotline_persistence::{ChannelId, CompanyId, UserId};

use crate::directory::Organization;
use crate::ttl_cache::TtlCache;

/// How long a user counts as present after their last activity: people may read or write for minutes without making a
/// request.
const PRESENT_FOR: Duration = Duration::from_secs(600);

/// Maximum entries: all users and channels of a large installation. A user or channel whose entry was evicted counts as
/// absent until its next activity.
const ENTRIES_MAX: usize = 100_000;

/// Whose activity was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    /// A user has used the panel.
    User(UserId),
    /// An integration has answered on a channel.
    Channel(ChannelId),
}

/// The users and channels with recent activity.
pub struct Attendance {
    recently_active: TtlCache<(CompanyId, Subject), ()>,
}

impl Default for Attendance {
    fn default() -> Self {
        Self { recently_active: TtlCache::new(ENTRIES_MAX, PRESENT_FOR) }
    }
}

impl Attendance {
    /// Records that a user uses the panel.
    pub fn record_user(&self, company: CompanyId, user: UserId) {
        self.recently_active.insert((company, Subject::User(user)), ());
    }

    /// Records that an integration has answered on a channel.
    pub fn record_answer(&self, company: CompanyId, channel: ChannelId) {
        self.recently_active.insert((company, Subject::Channel(channel)), ());
    }

    /// Whether a channel is attended: by an integration, or by a present user of its queue or, if it has none, of the
    /// company.
    pub fn is_attended(&self, organization: &Organization, channel: ChannelId) -> bool {
        let company = organization.company.id;
        if self.recently_active.get(&(company, Subject::Channel(channel))).is_some() {
            return true;
        }
        let is_active = |id: &UserId| organization.users.get(id).is_some_and(|user| user.active);
        let is_present =
            |id: &UserId| is_active(id) && self.recently_active.get(&(company, Subject::User(*id))).is_some();
        match organization.channels.get(&channel).and_then(|channel| channel.queue_id) {
            Some(queue) => organization.queues.get(&queue).is_some_and(|queue| queue.users.iter().any(is_present)),
            None => organization.users.keys().any(is_present),
        }
    }

    /// Drops a company's activity.
    pub fn forget_company(&self, company: CompanyId) {
        self.recently_active.remove_where(|(owner, _)| *owner == company);
    }
}
