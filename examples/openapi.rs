//! Prints the API document, or with `panel` that of the panel's API; `make openapi` keeps them as `openapi.json` and
//! `panel-openapi.json`.

fn main() {
    let is_panel = std::env::args().nth(1).is_some_and(|argument| argument == "panel");
    let document = if is_panel { hotline::routes::panel_document() } else { hotline::routes::document() };
    println!("{document:#}");
}
