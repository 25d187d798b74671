//! What goes on behind the requests for as long as the process lives.

use crate::routes::Handles;

/// Starts all of it.
pub(super) fn start(handles: &Handles) {
    let engine = &handles.app.engine;
    let visitors = handles.visitors.clone();
    engine.spawn(async move { visitors.keep_forgetting().await });
    let retries = handles.front.retries.clone();
    engine.spawn(async move { retries.keys.keep_swept(&retries.engine.store().housekeeping).await });
    let downloads = handles.hooks.downloads.clone();
    engine.spawn(async move { downloads.keep_looking().await });
    let pending = engine.inbound.clone();
    engine.spawn(async move { pending.keep_pending().await });
    let app = handles.app.clone();
    engine.spawn(async move { app.media.keep_swept(&app.engine).await });
}
