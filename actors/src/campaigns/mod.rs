//! Campaigns. One actor for each running or scheduled campaign, [`CampaignRunner`], decides which recipient is next and
//! when. `recipient_queue.rs` has the recipients in memory, and `pace.rs` decides when the next one may be written to.

mod pace;
mod recipient_queue;
mod runner;
mod templates;

pub(crate) use runner::{CampaignChanged, CampaignScope, Hold};
pub use runner::{CampaignGauges, CampaignRunner};
pub use templates::TemplateStates;
