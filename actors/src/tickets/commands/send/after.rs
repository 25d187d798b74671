use hotline_persistence::{QueueId, WrapupTypeId};
use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::tickets::commands::{Close, Transfer};
use crate::tickets::{Author, Command, Context, Ticket};

/// What follows once the channel has taken a message: transfer, then close.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterSend {
    /// Moves the ticket to this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_id: Option<QueueId>,
    /// Closes the ticket.
    #[serde(default)]
    pub close_ticket: bool,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapup_type_id: Option<WrapupTypeId>,
    /// In the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapup_note: Option<String>,
}

impl AfterSend {
    /// Transfers, then closes.
    pub(crate) fn carry_out(self, ticket: &mut Ticket, cx: &mut Context<'_>, author: &Author) -> Result<(), Refusal> {
        if self.queue_id.is_some() {
            Transfer { queue: self.queue_id, user: None, author: author.clone() }.decide(ticket, cx)?;
        }
        if self.close_ticket {
            let close =
                Close { wrapup_type: self.wrapup_type_id, wrapup_note: self.wrapup_note, author: author.clone() };
            close.decide(ticket, cx)?;
        }
        Ok(())
    }

    /// Whether it could be carried out now; the ticket stays as it is.
    pub(super) fn check(&self, ticket: &Ticket, cx: &Context<'_>, author: &Author) -> Result<(), Refusal> {
        let ids = hotline_persistence::id_blocks::IdBlocks::unbacked();
        let mut trial = Context::new(cx.now, cx.organization, &ids);
        self.clone().carry_out(&mut ticket.clone(), &mut trial, author)
    }
}
