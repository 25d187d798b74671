//! Commands to a campaign's actor: [`Hold`] pauses it while the campaign is changed, and [`CampaignChanged`] makes it
//! read the campaign again.

use std::sync::Weak;

use actix::{Handler, Message};

use super::{CampaignRunner, CampaignState};
use crate::Refusal;
use crate::base::due_work::DueWork;
use crate::registry::{Dismiss, Envelope};

/// Pauses the campaign until the holder is dropped. Answered once every pending send has an outcome.
#[derive(Clone, Message)]
#[rtype(result = "Result<(), Refusal>")]
pub(crate) struct Hold(pub(crate) Weak<()>);

/// The campaign may have changed, or its hold may have been released.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(crate) struct CampaignChanged;

impl Handler<Envelope<Hold>> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, hold: Envelope<Hold>, cx: &mut Self::Context) {
        let Some((Hold(holder), reply_to)) = hold.accept() else { return };
        if self.work_state.is_retired() {
            return reply_to.send(Err(Refusal::Retired));
        }
        self.unused_since = None;
        self.supervise(cx, |this, _| {
            this.holders.push(holder);
            this.hold_replies.push(reply_to);
            // Ends the pause after a failed read: if the retry fails too, the hold is refused at once.
            if matches!(this.state, CampaignState::Unread) {
                this.paused_until = None;
            }
        });
    }
}

impl Handler<CampaignChanged> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, _: CampaignChanged, cx: &mut Self::Context) {
        self.unused_since = None;
        self.supervise(cx, |this, _| {
            this.start_retry_at = None;
            this.mark_stale();
        });
    }
}

impl Handler<Dismiss> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, dismiss: Dismiss, cx: &mut Self::Context) {
        self.dismiss(dismiss, cx);
    }
}
