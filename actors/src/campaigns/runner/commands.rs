//! What a campaign's actor is asked: to stand still while the campaign is changed, and to take back what waits.

use std::sync::Weak;

use actix::{Handler, Message};

use super::{CampaignRunner, Known};
use crate::Refusal;
use crate::registry::Envelope;
use crate::tickets::Dismiss;

/// Write to nobody for as long as the holder lives. Answered once it is known what became of all who were written to.
#[derive(Clone, Message)]
#[rtype(result = "Result<(), Refusal>")]
pub(crate) struct Hold(pub(crate) Weak<()>);

/// The campaign was canceled: what its provider does not have does not leave.
#[derive(Clone, Copy, Message)]
#[rtype(result = "Result<(), Refusal>")]
pub(crate) struct Withdraw;

/// The campaign may have changed, and may not be held any more.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(crate) struct Changed;

impl Handler<Envelope<Hold>> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, hold: Envelope<Hold>, cx: &mut Self::Context) {
        let Some((Hold(holder), answer)) = hold.taken() else { return };
        if self.retired {
            return answer.give(Err(Refusal::Gone));
        }
        self.is_new_since = None;
        self.guarded(cx, |this, _| {
            this.holders.push(holder);
            this.waiting.push(answer);
            // Who holds a campaign is told at once when it cannot be read.
            if matches!(this.known, Known::Nothing) {
                this.rests_until = None;
            }
        });
    }
}

impl Handler<Envelope<Withdraw>> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, withdraw: Envelope<Withdraw>, _: &mut Self::Context) {
        let Some((Withdraw, answer)) = withdraw.taken() else { return };
        self.withdraw();
        answer.give(Ok(()));
    }
}

impl Handler<Changed> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, _: Changed, cx: &mut Self::Context) {
        self.is_new_since = None;
        self.guarded(cx, |this, _| this.outdated());
    }
}

/// Writes to nobody more, and answers nobody: the company is dropped from memory.
impl Handler<Dismiss> for CampaignRunner {
    type Result = ();

    fn handle(&mut self, Dismiss { gone }: Dismiss, cx: &mut Self::Context) {
        self.retire();
        if let Some(alarm) = self.alarm.take() {
            actix::AsyncContext::cancel_future(cx, alarm);
        }
        // Whoever waited may have given up.
        let _ = gone.send(());
    }
}

impl CampaignRunner {
    /// Takes back what is on its way to its provider.
    pub(super) fn withdraw(&self) {
        for message in &self.in_transit {
            self.scope.in_transit.withdraw(self.company, *message);
        }
    }
}
