//! A command on its way to a ticket's actor.

use std::sync::Arc;

use actix::Message;
use hotline_persistence::Change;

use super::Command;
use crate::Refusal;

/// Additional changes for the same log entry, built from the command's reply: the caller's own record of the answer.
pub type AttachedChanges<R> = Arc<dyn Fn(&R) -> Vec<Change> + Send + Sync>;

/// A condition that must still hold when a command is decided. It never waits.
pub type Precondition = Arc<dyn Fn() -> bool + Send + Sync>;

/// Asks a ticket's actor to execute a command and to reply once the entry is durable. The mailbox receives it inside an
/// [`crate::registry::Envelope`].
pub struct Execute<C: Command> {
    /// The command.
    pub command: C,
    /// Changes that become durable in the same entry.
    pub attached: Option<AttachedChanges<C::Reply>>,
    /// What the caller has checked before: if it no longer holds, the command is refused with [`Refusal::Outdated`].
    pub only_if: Option<Precondition>,
}

impl<C: Command> Execute<C> {
    /// Checks the caller's precondition. Nothing may await between this and the append.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match &self.only_if {
            Some(holds) if !holds() => Err(Refusal::Outdated),
            _ => Ok(()),
        }
    }
}

impl<C: Command> Clone for Execute<C> {
    fn clone(&self) -> Self {
        Self { command: self.command.clone(), attached: self.attached.clone(), only_if: self.only_if.clone() }
    }
}

impl<C: Command> From<C> for Execute<C> {
    fn from(command: C) -> Self {
        Self { command, attached: None, only_if: None }
    }
}

impl<C: Command> Message for Execute<C> {
    type Result = Result<C::Reply, Refusal>;
}
