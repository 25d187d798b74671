//! Who is there to answer visitors: users who use the panel, and integrations that answer. In memory only: after a
//! start nobody is there until they show it.

use std::time::Duration;

use hotline_persistence::{ChannelId, CompanyId, UserId};

use crate::directory::Organization;
use crate::ttl_cache::TtlCache;

/// How long somebody counts as there after their last sign: a person reads or writes for some minutes without a request.
const THERE_FOR: Duration = Duration::from_secs(600);

/// Signs that are kept: all users and channels of a large installation. Of an entry that had to go, its user or channel
/// counts as away until the next sign.
const SIGNS_MAX: usize = 100_000;

/// Of whom, or of what, a sign was seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Of {
    /// A user has used the panel.
    User(UserId),
    /// An integration has answered on a channel.
    Channel(ChannelId),
}

/// The signs of the last minutes.
pub struct Attendance {
    signs: TtlCache<(CompanyId, Of), ()>,
}

impl Default for Attendance {
    fn default() -> Self {
        Self { signs: TtlCache::new(SIGNS_MAX, THERE_FOR) }
    }
}

impl Attendance {
    /// Notes that a user uses the panel.
    pub fn note_user(&self, company: CompanyId, user: UserId) {
        self.signs.insert((company, Of::User(user)), ());
    }

    /// Notes that an integration has answered on a channel.
    pub fn note_answer(&self, company: CompanyId, channel: ChannelId) {
        self.signs.insert((company, Of::Channel(channel)), ());
    }

    /// Whether somebody is there to answer on a channel: an active user of its queue, or of the company if it has no
    /// queue, or an integration.
    pub fn is_there(&self, organization: &Organization, channel: ChannelId) -> bool {
        let company = organization.company.id;
        if self.signs.get(&(company, Of::Channel(channel))).is_some() {
            return true;
        }
        let is_active = |id: &UserId| organization.users.get(id).is_some_and(|user| user.active);
        let is_there = |id: &UserId| is_active(id) && self.signs.get(&(company, Of::User(*id))).is_some();
        match organization.channels.get(&channel).and_then(|channel| channel.queue_id) {
            Some(queue) => organization.queues.get(&queue).is_some_and(|queue| queue.users.iter().any(is_there)),
            None => organization.users.keys().any(is_there),
        }
    }

    /// Drops what is known of a company.
    pub fn forget_company(&self, company: CompanyId) {
        self.signs.remove_where(|(of, _)| *of == company);
    }
}
