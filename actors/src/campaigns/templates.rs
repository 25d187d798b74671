//! The interface to the states of channels' templates, as providers report them.

use futures_util::future::LocalBoxFuture;
use hotline_persistence::tables::campaigns::PausedReason;
use hotline_persistence::tables::channels::ChannelRow;

/// Knows the states of templates.
pub trait TemplateStates: Send + Sync + 'static {
    /// Why a channel's template in a language can no longer be sent; `None` if it can, or its state is not known. The
    /// future has a time limit of its own.
    fn paused_reason<'a>(
        &'a self,
        channel: &'a ChannelRow,
        name: &'a str,
        language: &'a str,
    ) -> LocalBoxFuture<'a, Option<PausedReason>>;
}
