//! Which webhooks a person sets up: an event shows its card as it was, whosever it is now, so a webhook that is sent events
//! of cards is for who sees every card, as those events are in the log.

use hotline_persistence::tables::events::EventKind;

use crate::web::{ApiError, ApiResult, Caller};

/// Checks that the caller sees all that a webhook of these types is sent; none: of any type.
///
/// # Errors
/// `403 ERR_API_FORBIDDEN_SCOPE` when events of cards are among them and the caller does not see every card.
pub(super) fn check_types<T: AsRef<str>>(caller: &Caller, types: &[T]) -> ApiResult<()> {
    if caller.sees_every_card() || !tells_of_cards(types) { Ok(()) } else { Err(ApiError::hidden_cards()) }
}

fn tells_of_cards<T: AsRef<str>>(types: &[T]) -> bool {
    let is_of_card = |word: &T| word.as_ref().parse::<EventKind>().is_ok_and(EventKind::is_of_card);
    types.is_empty() || types.iter().any(is_of_card)
}

/// The types of events that are hidden from the caller.
pub(super) fn hidden(caller: &Caller) -> Vec<&'static str> {
    if caller.sees_every_card() {
        return Vec::new();
    }
    EventKind::ALL.iter().filter(|kind| kind.is_of_card()).map(|kind| kind.as_str()).collect()
}
