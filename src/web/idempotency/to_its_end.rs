//! Runs a request to its end, even if its caller disconnects: a retry must not start while the first attempt is half done.

use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::Instrument;

/// A future that is completed whatever happens to the one that waits for it. It runs as part of the waiting one; only when
/// that is dropped, the rest becomes a task of its own. A task for every request would cost two changes of task each.
pub(super) struct ToItsEnd<F: Future + 'static>(Option<Pin<Box<F>>>);

impl<F: Future + 'static> ToItsEnd<F> {
    pub(super) fn new(work: F) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<F: Future + 'static> Future for ToItsEnd<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // A completed future is not polled again.
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let outcome = std::task::ready!(work.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(outcome)
    }
}

impl<F: Future + 'static> Drop for ToItsEnd<F> {
    fn drop(&mut self) {
        if let Some(rest) = self.0.take() {
            actix_web::rt::spawn(rest.in_current_span());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[actix_web::test]
    async fn what_nobody_waits_for_any_more_is_completed() {
        let (begun, ended) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        let (go_on, goes_on) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let (begins, ends) = (begun.clone(), ended.clone());
        let mut work = ToItsEnd::new(async move {
            begins.set(true);
            let _ = goes_on.await;
            ends.set(true);
            let _ = tell.send(());
        });
        assert!((&mut work).now_or_never().is_none());
        assert!(begun.get(), "it begins without a task of its own");
        drop(work);
        go_on.send(()).expect("it waits");
        told.await.expect("it is completed");
        assert!(ended.get());
    }

    #[actix_web::test]
    async fn what_is_waited_for_is_run_once() {
        let runs = Rc::new(Cell::new(0));
        let counted = runs.clone();
        let answer = ToItsEnd::new(async move {
            actix_web::rt::task::yield_now().await;
            counted.set(counted.get() + 1);
            7
        });
        assert_eq!((answer.await, runs.get()), (7, 1));
    }
}
