//! Which request is being served on this thread.
//!
//! A span of `tracing` would tell as well, but making, entering and closing one cost more than looking up the ticket a
//! request asks for; a pointer that is set while the request is polled costs nothing, and is read only when a line is
//! written.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;

use actix_web::http::Method;
use actix_web::http::header::HeaderValue;
use serde::Serialize;

/// A request, as log lines name it. Neither its query nor its body: both may hold names and numbers.
#[derive(Clone, Debug)]
pub struct RequestName(Rc<Parts>);

#[derive(Debug)]
struct Parts {
    id: HeaderValue,
    method: Method,
    path: String,
}

/// The same, as it is written.
#[derive(Serialize)]
pub(super) struct RequestFields<'a> {
    pub id: &'a str,
    pub method: &'a str,
    pub path: &'a str,
}

impl RequestName {
    /// A name. The id is plain ASCII.
    pub fn new(id: HeaderValue, method: Method, path: &str) -> Self {
        Self(Rc::new(Parts { id, method, path: path.to_owned() }))
    }

    /// The id, as answers carry it.
    pub fn id(&self) -> &HeaderValue {
        &self.0.id
    }

    /// The id as text.
    pub fn id_text(&self) -> &str {
        self.0.id.to_str().unwrap_or_default()
    }

    fn shown(&self) -> RequestFields<'_> {
        RequestFields { id: self.id_text(), method: self.0.method.as_str(), path: &self.0.path }
    }
}

thread_local! {
    static SERVED: RefCell<Option<RequestName>> = const { RefCell::new(None) };
}

/// What `show` makes of the request that is being served here; none between requests.
pub(super) fn served<T>(show: impl FnOnce(RequestFields<'_>) -> T) -> Option<T> {
    SERVED.with(|served| served.borrow().as_ref().map(|name| show(name.shown())))
}

/// `work`, in the name of a request: also for what goes on in a task of its own.
pub async fn during<F: Future>(name: RequestName, work: F) -> F::Output {
    let (mut name, mut work) = (Some(name), pin!(work));
    poll_fn(|cx| {
        let _turn = Served::of(&mut name);
        work.as_mut().poll(cx)
    })
    .await
}

/// While it lives, the name is the thread's. A panic ends it as well.
struct Served<'a>(&'a mut Option<RequestName>);

impl<'a> Served<'a> {
    fn of(name: &'a mut Option<RequestName>) -> Self {
        SERVED.with(|served| std::mem::swap(&mut *served.borrow_mut(), name));
        Self(name)
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        SERVED.with(|served| std::mem::swap(&mut *served.borrow_mut(), self.0));
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;

    use futures_util::FutureExt;

    use super::*;

    fn name(id: &'static str) -> RequestName {
        RequestName::new(HeaderValue::from_static(id), Method::GET, "/tickets")
    }

    fn here() -> Option<String> {
        served(|name| name.id.to_owned())
    }

    #[actix_web::test]
    async fn each_request_has_its_own_name_however_their_turns_mix() {
        let request = |id: &'static str| {
            during(name(id), async move {
                for _ in 0..3 {
                    assert_eq!(here().as_deref(), Some(id));
                    tokio::task::yield_now().await;
                }
                during(name("inner"), async { assert_eq!(here().as_deref(), Some("inner")) }).await;
                assert_eq!(here().as_deref(), Some(id));
            })
        };
        futures_util::join!(request("a"), request("b"));
        assert_eq!(here(), None);
        let panicked = AssertUnwindSafe(during(name("c"), async { panic!("on purpose") })).catch_unwind();
        assert!(panicked.await.is_err());
        assert_eq!(here(), None, "a panic leaves no name behind");
    }
}
