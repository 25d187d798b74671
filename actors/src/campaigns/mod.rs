//! Campaigns. One actor for each that is sent, or will be, [`CampaignRunner`], decides which recipient is next and when;
//! `line.rs` is the recipients it has at hand, `pace.rs` says when the next one may be written to.

mod line;
mod pace;
mod runner;

pub use runner::{CampaignFigures, CampaignRunner};
pub(crate) use runner::{CampaignScope, Changed, Hold, Withdraw};
