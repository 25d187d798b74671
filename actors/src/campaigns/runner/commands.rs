//! Commands of a campaign's actor: pause while the campaign is changed.

use std::sync::Weak;

use actix::{Handler, Message};

use super::{CampaignRunner, CampaignState};
use crate::Refusal;
use crate::base::due_work::DueWork;
use crate::registry::{Dismiss, Envelope};

/// Pauses the campaign for as long as the holder lives. Answered once every pending send has an outcome.
#[derive(Clone, Message)]
#[rtype(result = "Result<(), Refusal>")]
pub(crate) struct Hold(pub(crate) Weak<()>);

/// The campaign may have changed, or its hold may have been released.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(crate) struct Changed;

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
            // Reads at once, so that the holder soon learns if the campaign cannot be read.
            if matches!(this.state, CampaignState::Unread) {
                this.paused_until = None;
            }
        });
    }
}

impl Handler<Changed> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, _: Changed, cx: &mut Self::Context) {
        self.unused_since = None;
        self.supervise(cx, |this, _| this.mark_stale());
    }
}

impl Handler<Dismiss> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, dismiss: Dismiss, cx: &mut Self::Context) {
        self.dismiss(dismiss, cx);
    }
}
