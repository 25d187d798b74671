//! Tickets: the answer of every call, the events that it adds to the history, and what the lists find.

mod closing;
mod lists;
mod marks;
mod opening;
mod search;
mod sorted;

use serde_json::Value;

/// An event's `type`, `from` and `to`, as `history` returns them.
fn event(kind: &str, from: Value, to: Value) -> (String, Value, Value) {
    (kind.to_owned(), from, to)
}
