//! Counts the bytes of a visitor's body.

use std::cell::RefCell;
use std::rc::Rc;

use crate::web::response::error::ApiError;

/// Counts the bytes of a body, and refuses more than the sender's remaining quota.
#[derive(Clone)]
pub struct Meter(Rc<RefCell<OnBytes>>);

type OnBytes = dyn FnMut(usize) -> Result<(), ApiError>;

impl Meter {
    /// `on_bytes` is called once with the size of a JSON body, and with the size of every chunk of a form.
    pub fn new(on_bytes: impl FnMut(usize) -> Result<(), ApiError> + 'static) -> Self {
        Self(Rc::new(RefCell::new(on_bytes)))
    }

    pub(super) fn count(&self, bytes: usize) -> Result<(), ApiError> {
        (self.0.borrow_mut())(bytes)
    }
}
