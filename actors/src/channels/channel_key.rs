//! The key of a channel.

use hotline_persistence::{ChannelId, CompanyId};

/// A channel of a company.
pub(crate) type ChannelKey = (CompanyId, ChannelId);
