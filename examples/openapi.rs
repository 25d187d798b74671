//! Prints the API document, which `make openapi` stores as `openapi.json`. With the argument `panel`, prints that of the
//! panel's API, from which the types of the panel's pages are generated.

fn main() {
    let is_panel = std::env::args().nth(1).is_some_and(|argument| argument == "panel");
    let document = if is_panel { hotline::routes::panel_document() } else { hotline::routes::document() };
    println!("{document:#}");
}
