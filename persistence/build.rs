//! Cargo compiles this crate again when a migration is added: `sqlx::migrate!` embeds the folder, which no source
//! names.

fn main() {
    println!("cargo::rerun-if-changed=migrations");
}
