//! Prints the API document, which `make openapi` keeps as `openapi.json`, or with `panel` that of the panel's API, of which
//! the types of its pages are made.

fn main() {
    let is_panel = std::env::args().nth(1).is_some_and(|argument| argument == "panel");
    let document = if is_panel { hotline::routes::panel_document() } else { hotline::routes::document() };
    println!("{document:#}");
}
