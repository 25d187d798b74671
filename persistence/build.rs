//! Makes Cargo recompile this crate when a migration is added: it does not see that `sqlx::migrate!` embeds the folder.

fn main() {
    println!("cargo::rerun-if-changed=migrations");
}
