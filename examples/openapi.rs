//! Prints the API document; `make openapi` keeps it as `openapi.json`.

fn main() {
    println!("{:#}", hotline::routes::document());
}
