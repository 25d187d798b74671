//! How actors end: asked to retire when they are idle, or dismissed when their company is dropped from memory.

use std::hash::Hash;
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Handler, Message};
use tokio::sync::oneshot;

use super::{Registered, Registry};
use crate::Refusal;

/// How long actors may take to end. They have no work left, but the task of a socket may have to wake up first.
const DISMISS_TIME_MAX: Duration = Duration::from_secs(5);

/// Asks the actor to retire if it is still idle.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Retire {
    /// Seconds without use after which the actor counts as idle.
    pub idle_s: u64,
}

/// The actor's company is being dropped from memory: the actor retires at once.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Dismiss {
    /// Sent or dropped once the actor has ended.
    pub(crate) end_signal: oneshot::Sender<()>,
}

/// Removes actors from their registry, and waits until they have ended.
pub(crate) async fn dismiss<K, A>(registry: &Registry<K, A>, is_selected: impl Fn(&K) -> bool) -> Result<(), Refusal>
where
    K: Hash + Eq + Clone,
    A: Registered + Handler<Dismiss>,
    A::Context: ToEnvelope<A, Dismiss>,
{
    let removed = registry.remove_where(is_selected).await;
    let ends: Vec<oneshot::Receiver<()>> = removed
        .into_iter()
        .map(|actor| {
            let (end_signal, end) = oneshot::channel();
            actor.addr.do_send(Dismiss { end_signal });
            end
        })
        .collect();
    let all_ends = futures_util::future::join_all(ends);
    let ended = tokio::time::timeout(DISMISS_TIME_MAX, all_ends).await;
    ended.map(drop).map_err(|_| Refusal::Unavailable("an actor did not stop in time".to_owned()))
}
