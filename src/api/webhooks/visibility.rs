//! Who may manage which webhooks. An event shows its card as it was, regardless of its current assignee. So webhooks
//! that receive events of cards are only for callers who see every card, like the events of cards in the log.

use hotline_persistence::tables::events::EventKind;

use crate::web::{ApiError, ApiResult, Caller};

/// Checks that the caller may see all events of these types; empty: all types.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE` when events of cards are among them and the caller does not see every card.
pub(super) fn check_types<T: AsRef<str>>(caller: &Caller, types: &[T]) -> ApiResult<()> {
    if caller.sees_every_card() || !includes_card_events(types) { Ok(()) } else { Err(ApiError::hidden_cards()) }
}

fn includes_card_events<T: AsRef<str>>(types: &[T]) -> bool {
    let is_of_card = |word: &T| word.as_ref().parse::<EventKind>().is_ok_and(EventKind::is_of_card);
    types.is_empty() || types.iter().any(is_of_card)
}

/// The types of events that are hidden from the caller.
pub(super) fn hidden_types(caller: &Caller) -> Vec<&'static str> {
    if caller.sees_every_card() {
        return Vec::new();
    }
    EventKind::ALL.iter().filter(|kind| kind.is_of_card()).map(|kind| kind.as_str()).collect()
}
