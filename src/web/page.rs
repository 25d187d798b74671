//! Which page of a list. A bad page is no error: it is the first one.

use hotline_persistence::select::Page;

use super::Params;

/// Rows of a page, when the caller does not say, and the most there are.
pub const PER_PAGE_MAX: i64 = 100;

/// Reads `page`, `perPage` and `order`.
pub trait PageQuery {
    /// The page asked for.
    fn page(&mut self) -> Page;
}

impl PageQuery for Params {
    fn page(&mut self) -> Page {
        let number = self.text("page").and_then(|text| text.parse().ok()).filter(|number| *number >= 1).unwrap_or(1);
        let size = self.text("perPage").and_then(|text| text.parse().ok()).filter(|size| *size >= 1);
        let order = self.text("order").map(str::to_owned);
        if order.as_deref().is_some_and(|order| !matches!(order, "asc" | "desc")) {
            self.refuse("order", "must be one of asc, desc");
        }
        Page {
            number,
            size: size.unwrap_or(PER_PAGE_MAX).min(PER_PAGE_MAX),
            descending: order.as_deref() == Some("desc"),
        }
    }
}
