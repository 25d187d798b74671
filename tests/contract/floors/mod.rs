//! Imports run down: between the modules of `src`, whose floors ARCHITECTURE.md names, and between files.
//!
//! What a file knows is what it names: in a `use`, or by a path in its code (`crate::…`, `super::…`, or a module that it
//! has declared or imported). What another file only passes on (`pub use`) counts for the file that has it. Code of tests
//! (`#[cfg(test)]`) does not count.

mod file;
mod sources;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use sources::Sources;

/// The folders of the crates.
const CRATES: [&str; 4] = ["src", "actors/src", "persistence/src", "persistence/postgres/src"];

#[test]
fn a_module_knows_only_the_floors_below_its_own() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let floors = floors(&architecture);
    let wrong = Sources::read("src").above(&floors);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for folder in CRATES {
        let sources = Sources::read(folder);
        let found = sources.circles();
        assert!(found.is_empty(), "\n{folder}:\n{}", sources.explained(&found));
        // All of the last is one folder.
        if ["src", "persistence/src"].contains(&folder) {
            let found = sources.circles_beyond_a_folder();
            assert!(found.is_empty(), "\n{folder}:\n{}", sources.explained(&found));
        }
    }
}

/// What decides by the time of day reads the clock that tests move. Only who compares the machine's clock with the database's
/// reads that.
#[test]
fn the_time_of_day_is_read_in_one_place() {
    let named = |folder: &str| {
        let sources = Sources::read(folder);
        sources.who_name(&["Utc", "now"]).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(["src", "actors/src"].map(named), [[""; 0], [""; 0]]);
    assert_eq!(named("persistence/src"), ["clock.rs", "cluster/lives.rs"]);
    let sources = Sources::of(
        [("lib.rs", "fn f() { Utc::now() }\n#[cfg(test)]\nmod tests { fn g() { Utc::now() } }")].into_iter(),
    );
    assert_eq!(sources.who_name(&["Utc", "now"]), ["lib.rs"]);
}

#[test]
fn every_file_is_a_module() {
    for folder in CRATES {
        assert_eq!(Sources::read(folder).undeclared(), [""; 0], "in {folder}");
    }
    let found = |files: &[(&str, &str)]| Sources::of(files.iter().copied()).undeclared().to_vec();
    let a = ("a/mod.rs", "mod x; #[cfg(test)] mod tests;");
    assert_eq!(found(&[("lib.rs", "pub mod a;"), a, ("a/x.rs", ""), ("a/tests.rs", "")]), [""; 0]);
    assert_eq!(found(&[("lib.rs", "mod a; mod x { }"), a, ("a/y.rs", ""), ("x.rs", "")]), ["a/y.rs", "x.rs"]);
}

#[test]
fn what_runs_up_is_found() {
    let floors = floors("## Floors\n\n```\nmain → top → side, low\n     → deep\n```\n");
    assert_eq!(floors["main"], 0);
    assert_eq!((floors["side"], floors["low"], floors["deep"]), (2, 2, 3));
    let above = |files: &[(&str, &str)]| Sources::of(files.iter().copied()).above(&floors);
    let deep = ("deep.rs", "pub struct Deep;");
    assert!(above(&[("lib.rs", "pub mod low; pub mod deep;"), deep, ("low.rs", "use crate::deep::Deep;")]).is_empty());
    for wrong in [
        "use crate::top::Top;",
        "use crate::{top::Top, deep::Deep};",
        "use crate::top;",
        "use super::top::Top as Other;",
        "fn f() { crate::top::g() }",
        "fn f() { println!(\"{}\", crate::top::G) }",
        "use crate::side::Side;",
    ] {
        let files = [
            ("lib.rs", "pub mod top; pub mod side; pub mod low; pub mod deep;"),
            ("top.rs", "pub struct Top; pub fn g() {} pub const G: u8 = 1;"),
            ("side.rs", "pub struct Side;"),
            ("low.rs", wrong),
            deep,
        ];
        let found = above(&files);
        assert_eq!(found.len(), 1, "{wrong}: {found:?}");
        assert!(found[0].starts_with("low.rs knows "), "{found:?}");
        let inline = format!("mod inline {{ {} }}", wrong.replace("super::", "super::super::"));
        assert_eq!(above(&[files[0], files[1], files[2], deep, ("low.rs", &inline)]).len(), 1, "{inline}");
        let tested = format!("#[cfg(test)]\nmod tests {{ {wrong} }}");
        assert!(above(&[files[0], files[1], files[2], deep, ("low.rs", &tested)]).is_empty(), "{wrong}");
    }
    assert_eq!(above(&[("lib.rs", "pub mod other;"), ("other.rs", "")]), ["other.rs is on no floor"]);
}

#[test]
fn a_circle_is_found_whatever_stands_between() {
    let found = |files: &[(&str, &str)]| {
        let sources = Sources::of(files.iter().copied());
        let name = |circles: Vec<Vec<usize>>| -> Vec<String> {
            circles
                .iter()
                .map(|files| files.iter().map(|file| sources.name(*file)).collect::<Vec<_>>().join(" "))
                .collect()
        };
        (name(sources.circles()), name(sources.circles_beyond_a_folder()))
    };
    let two = ["a.rs b.rs".to_owned()];
    let lib = ("lib.rs", "pub mod a; pub mod b;");
    let of_two = found(&[lib, ("a.rs", "use crate::b::B; pub struct A;"), ("b.rs", "use super::a::A; pub struct B;")]);
    assert_eq!((&of_two.0[..], &of_two.1[..]), (&two[..], &two[..]));
    // What is passed on is known where it is.
    let passed_on = found(&[
        ("lib.rs", "pub mod a; pub mod b; pub use b::B;"),
        ("a.rs", "fn f(_: crate::B) {} pub struct A;"),
        ("b.rs", "use crate::a; pub struct B(a::A);"),
    ]);
    assert_eq!(passed_on.0, two);
    // A folder's own files are one piece with its `mod.rs`, but not with each other.
    let folder = [lib, ("a/mod.rs", "mod x; mod y; pub use x::X; pub struct A;"), ("b.rs", "use crate::a::X;")];
    let with = |x, y| found(&[folder[0], folder[1], folder[2], ("a/x.rs", x), ("a/y.rs", y)]);
    let piece = with("use super::A; pub struct X;", "use super::{A, X};");
    assert_eq!(piece, (vec![], vec![]));
    let siblings = with("use super::y::Y; pub struct X;", "use super::X; pub struct Y;");
    assert_eq!(siblings.0, ["a/x.rs a/y.rs"]);
    // A circle that leaves a folder through its `mod.rs` is none of its own.
    let beyond = found(&[
        lib,
        ("a/mod.rs", "mod x; pub struct A; fn f() { x::g() }"),
        ("a/x.rs", "use crate::b::B; pub fn g() {}"),
        ("b.rs", "use crate::a::A; pub struct B;"),
    ]);
    assert_eq!(beyond, (vec![], vec!["a/mod.rs a/x.rs b.rs".to_owned()]));
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The floor of each module, counted from above, as ARCHITECTURE.md has them.
fn floors(architecture: &str) -> HashMap<String, usize> {
    let (_, text) = architecture.split_once("## Floors").expect("the floors");
    let text = text.split("```").nth(1).expect("the floors are in a block");
    let floors = text.split('→').enumerate();
    let modules = floors.flat_map(|(floor, names)| names.split(',').map(move |name| (name.trim().to_owned(), floor)));
    modules.collect()
}
