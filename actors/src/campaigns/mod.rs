//! Campaigns. One actor for each running or scheduled campaign, [`CampaignRunner`], decides which recipient is next and
//! when. `line.rs` has the recipients in memory, and `pace.rs` decides when the next one may be written to.

mod line;
mod pace;
mod runner;

pub use runner::{CampaignFigures, CampaignRunner};
pub(crate) use runner::{CampaignScope, Changed, Hold};
