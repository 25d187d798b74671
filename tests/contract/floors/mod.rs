//! Imports lead down only: a module imports only modules on the floors below its own, which ARCHITECTURE.md lists. The
//! files of a crate, of a benchmark or of the pages do not import each other in a cycle, except a `mod.rs` and the
//! files in its folder.
//!
//! A file knows another one if it names it or one of its items: in a `use`, or by a path in its code (`crate::…`,
//! `super::…`, or a module that it has declared or imported). An item that a file only re-exports (`pub use`) counts
//! for the file that defines it. Code of tests (`#[cfg(test)]`) does not count.

mod file;
mod pages;
mod sources;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use pages::Pages;
pub use sources::Sources;

/// The folders of the crates.
pub const CRATES: [&str; 4] = ["src", "actors/src", "persistence/src", "persistence/postgres/src"];

/// The folders of the pages' sources, checked as one: the panel imports from the widget, to show a preview of it.
const PAGES: [&str; 2] = ["src/panel/pages", "src/visitors/assets"];

#[test]
fn a_module_knows_only_the_floors_below_its_own() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for folder in ["src", "src/web", "actors/src"] {
        let (sources, top) = match folder.split_once('/') {
            Some(("src", module)) => (Sources::read("src"), vec![module]),
            _ => (Sources::read(folder), Vec::new()),
        };
        let wrong = sources.upward_imports(&top, &floors(&architecture, folder));
        assert!(wrong.is_empty(), "\n{folder}:\n{}", wrong.join("\n"));
    }
}

#[test]
fn no_files_import_each_other_in_a_cycle() {
    for folder in folders() {
        let sources = Sources::read(&folder);
        // Between files of any folders. A `mod.rs` and the files in its folder may import each other.
        let found = sources.cycles();
        assert!(found.is_empty(), "\n{folder}:\n{}", sources.explained(&found));
        // Through a `mod.rs`, to files outside of its folder.
        let found = sources.cycles_beyond_a_folder();
        assert!(found.is_empty(), "\n{folder}:\n{}", sources.explained(&found));
    }
}

#[test]
fn no_pages_import_each_other_in_a_cycle() {
    let pages = Pages::read(&PAGES);
    assert_eq!(pages.cycles(), [""; 0]);
    // The sources of the panel, of the widget, and what one imports of the other.
    for (from, to) in [
        ("src/panel/pages/ui/fields.tsx", "src/panel/pages/ui/picker.tsx"),
        ("src/panel/pages/ui/picker.tsx", "src/panel/pages/core/shapes.ts"),
        ("src/panel/pages/views/preview.tsx", "src/visitors/assets/widget/source/color.js"),
        ("src/visitors/assets/widget/source/main.js", "src/visitors/assets/widget/source/chat.js"),
    ] {
        assert!(pages.knows(from, to), "{from} imports {to}");
    }
}

#[test]
fn a_cycle_of_pages_is_found() {
    let cycles = |files: &[(&str, &str)]| Pages::of(files.iter().copied()).cycles();
    let two = ["p/a.ts p/ui/b.tsx"];
    let b = ("p/ui/b.tsx", "export * from '../a';");
    assert_eq!(cycles(&[("p/a.ts", "import { B } from \"./ui/b\";"), b]), two);
    assert_eq!(cycles(&[("p/a.ts", "import type {\n  A,\n  B,\n} from \"./ui/b\";"), b]), two);
    assert_eq!(cycles(&[("p/a.ts", "const b = () => import(\"./ui/b\");"), b]), two);
    assert_eq!(cycles(&[("p/a.ts", "import \"./ui/b.tsx\";"), b]), two);
    let three = [("p/a.js", "import './b.js'"), ("p/b.js", "import './c.js'"), ("p/c.js", "import './a.js'")];
    assert_eq!(cycles(&three), ["p/a.js p/b.js p/c.js"]);
    assert_eq!(cycles(&[("p/a.ts", "const b = \"./ui/b\";"), b]), [""; 0]);
    assert_eq!(cycles(&[("p/a.ts", "import { c } from \"./c\";"), ("p/c.ts", ""), b]), [""; 0]);
}

/// Code that depends on the current time uses the clock that tests can set (`clock.rs`), not `Utc::now`. Only code that
/// compares the machine's clock with the database's calls it. Not looked for: `chrono::Utc::now` and `SystemTime::now`,
/// which give a line of output, a metric and a `Date` header the machine's time.
#[test]
fn utc_now_is_called_in_two_files_only() {
    let callers = |folder: &str| {
        let sources = Sources::read(folder);
        sources.files_naming(&["Utc", "now"]).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(["src", "actors/src"].map(callers), [[""; 0], [""; 0]]);
    assert_eq!(callers("persistence/src"), ["clock.rs", "cluster/lives.rs"]);
    let sources = Sources::of(
        [("lib.rs", "fn f() { Utc::now() }\n#[cfg(test)]\nmod tests { fn g() { Utc::now() } }")].into_iter(),
    );
    assert_eq!(sources.files_naming(&["Utc", "now"]), ["lib.rs"]);
}

#[test]
fn every_file_is_a_module() {
    for folder in folders() {
        assert_eq!(Sources::read(&folder).undeclared(), [""; 0], "in {folder}");
    }
    let found = |files: &[(&str, &str)]| Sources::of(files.iter().copied()).undeclared().to_vec();
    let a = ("a/mod.rs", "mod x; #[cfg(test)] mod tests;");
    assert_eq!(found(&[("lib.rs", "pub mod a;"), a, ("a/x.rs", ""), ("a/tests.rs", "")]), [""; 0]);
    assert_eq!(found(&[("lib.rs", "mod a; mod x { }"), a, ("a/y.rs", ""), ("x.rs", "")]), ["a/y.rs", "x.rs"]);
}

#[test]
fn an_import_of_a_higher_floor_is_found() {
    let text = "## Floors\n\n```\nsrc: main → top → side, low\n     → deep\n```\n\n```\nsrc/low: one → other\n```\n";
    let of_folder = floors(text, "src/low");
    assert_eq!((of_folder.len(), of_folder["one"], of_folder["other"]), (2, 0, 1));
    let floors = floors(text, "src");
    assert_eq!(floors["main"], 0);
    assert_eq!((floors["side"], floors["low"], floors["deep"]), (2, 2, 3));
    let upward_imports = |files: &[(&str, &str)]| Sources::of(files.iter().copied()).upward_imports(&[], &floors);
    let deep = ("deep.rs", "pub struct Deep;");
    let downward = [("lib.rs", "pub mod low; pub mod deep;"), deep, ("low.rs", "use crate::deep::Deep;")];
    assert!(upward_imports(&downward).is_empty());
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
        let found = upward_imports(&files);
        assert_eq!(found.len(), 1, "{wrong}: {found:?}");
        assert!(found[0].starts_with("low.rs knows "), "{found:?}");
        let inline = format!("mod inline {{ {} }}", wrong.replace("super::", "super::super::"));
        assert_eq!(upward_imports(&[files[0], files[1], files[2], deep, ("low.rs", &inline)]).len(), 1, "{inline}");
        let tested = format!("#[cfg(test)]\nmod tests {{ {wrong} }}");
        assert!(upward_imports(&[files[0], files[1], files[2], deep, ("low.rs", &tested)]).is_empty(), "{wrong}");
    }
    assert_eq!(upward_imports(&[("lib.rs", "pub mod other;"), ("other.rs", "")]), ["other.rs is on no floor"]);
    // The same between the modules of a folder. Its `mod.rs` is on no floor: it only declares and re-exports them.
    let within = |one: &str, other: &str| {
        let files = [
            ("lib.rs", "pub mod deep; pub mod low;"),
            deep,
            ("low/mod.rs", "pub mod one; pub mod other; pub use one::One;"),
            ("low/one.rs", one),
            ("low/other.rs", other),
        ];
        Sources::of(files.into_iter()).upward_imports(&["low"], &of_folder)
    };
    let (one, other) = ("use super::other::Other; pub struct One;", "use crate::deep::Deep; pub struct Other;");
    assert_eq!(within(one, other), [""; 0]);
    for wrong in ["use super::one::One;", "use crate::low::One;", "fn f(_: super::One) {}"] {
        let found = within("pub struct One;", wrong);
        assert!(found.len() == 1 && found[0].starts_with("low/other.rs knows low/one.rs"), "{wrong}: {found:?}");
    }
}

#[test]
fn a_cycle_is_found_through_reexports_and_folders() {
    let found = |files: &[(&str, &str)]| {
        let sources = Sources::of(files.iter().copied());
        let file_names = |cycles: Vec<Vec<usize>>| -> Vec<String> {
            cycles
                .iter()
                .map(|files| files.iter().map(|file| sources.name(*file)).collect::<Vec<_>>().join(" "))
                .collect()
        };
        (file_names(sources.cycles()), file_names(sources.cycles_beyond_a_folder()))
    };
    let two = ["a.rs b.rs".to_owned()];
    let lib = ("lib.rs", "pub mod a; pub mod b;");
    let of_two = found(&[lib, ("a.rs", "use crate::b::B; pub struct A;"), ("b.rs", "use super::a::A; pub struct B;")]);
    assert_eq!((&of_two.0[..], &of_two.1[..]), (&two[..], &two[..]));
    // A re-exported item counts for the file that defines it.
    let reexported = found(&[
        ("lib.rs", "pub mod a; pub mod b; pub use b::B;"),
        ("a.rs", "fn f(_: crate::B) {} pub struct A;"),
        ("b.rs", "use crate::a; pub struct B(a::A);"),
    ]);
    assert_eq!(reexported.0, two);
    // A folder's `mod.rs` and a file in the folder may import each other; two files in it may not.
    let folder = [lib, ("a/mod.rs", "mod x; mod y; pub use x::X; pub struct A;"), ("b.rs", "use crate::a::X;")];
    let with = |x, y| found(&[folder[0], folder[1], folder[2], ("a/x.rs", x), ("a/y.rs", y)]);
    let with_mod_rs = with("use super::A; pub struct X;", "use super::{A, X};");
    assert_eq!(with_mod_rs, (vec![], vec![]));
    let siblings = with("use super::y::Y; pub struct X;", "use super::X; pub struct Y;");
    assert_eq!(siblings.0, ["a/x.rs a/y.rs"]);
    // A crate without folders counts as one folder; a program's `main.rs` counts as its `mod.rs`.
    let program = [("main.rs", "mod a; mod b; pub const A: u8 = 1; fn f() { a::f() }"), ("b.rs", "")];
    assert_eq!(found(&[program[0], program[1], ("a.rs", "use crate::A; pub fn f() {}")]), (vec![], vec![]));
    // A cycle that leaves a folder through its `mod.rs` is not a cycle within that folder.
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

/// The folders of the crates, and of the benchmarks that have several files.
fn folders() -> Vec<String> {
    let benches = fs::read_dir(root().join("benches")).expect("the benchmarks").map(|entry| entry.expect("an entry"));
    // `benches/peers` contains no Rust.
    let benches = benches.filter(|entry| entry.path().is_dir() && entry.file_name() != "peers");
    let benches = benches.map(|entry| format!("benches/{}", entry.file_name().to_string_lossy()));
    CRATES.iter().map(|folder| (*folder).to_owned()).chain(benches).collect()
}

/// The floor of each module of a folder, as ARCHITECTURE.md lists them; the top one is 0.
fn floors(architecture: &str, folder: &str) -> HashMap<String, usize> {
    let (_, text) = architecture.split_once("## Floors").expect("the floors");
    let start = format!("\n{folder}: ");
    let text = text.split("```").find_map(|block| block.strip_prefix(&start)).expect("a block begins with the folder");
    let floors = text.split('→').enumerate();
    let modules = floors.flat_map(|(floor, names)| names.split(',').map(move |name| (name.trim().to_owned(), floor)));
    modules.collect()
}
