//! The name of a type means one thing in a crate.

use crate::floors::{CRATES, Sources};

/// Names of types that may be defined once in each module, because they mean the same in all. Keep them to ten.
const CONVENTIONAL: [&str; 6] = ["Command", "Create", "Filters", "Inner", "Options", "Row"];

/// The types that several files define, with their files.
fn collisions(sources: &Sources) -> Vec<String> {
    let several = sources.types().into_iter().filter(|(_, files)| files.len() > 1);
    let unexpected = several.filter(|(name, _)| !CONVENTIONAL.contains(name));
    unexpected.map(|(name, files)| format!("{name}: {}", files.join(" "))).collect()
}

#[test]
fn a_type_has_a_name_of_its_own_in_its_crate() {
    let found: Vec<String> = CRATES
        .iter()
        .flat_map(|folder| collisions(&Sources::read(folder)).into_iter().map(move |name| format!("{folder}: {name}")))
        .collect();
    assert!(found.is_empty(), "types with the same name in one crate:\n{}", found.join("\n"));
}

#[test]
fn a_conventional_name_is_in_use() {
    let crates: Vec<Sources> = CRATES.iter().map(|folder| Sources::read(folder)).collect();
    for name in CONVENTIONAL {
        let is_in_use = crates.iter().any(|sources| sources.types().get(name).is_some_and(|files| files.len() > 1));
        assert!(is_in_use, "{name} needs no exemption");
    }
}

#[test]
fn a_second_type_with_the_same_name_is_found() {
    let found = |a: &str, b: &str| {
        let files = [("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)];
        collisions(&Sources::of(files.into_iter()))
    };
    for other in [
        "struct Page;",
        "pub(crate) enum Page { One }",
        "trait Page {}",
        "pub type Page = u8;",
        "mod inline { pub type Page = u8; }",
        "fn f() { struct Page; }",
    ] {
        assert_eq!(found("pub struct Page<T>(T);", other), ["Page: a.rs b.rs"], "{other}");
    }
    for other in [
        "pub enum Page {}",
        "impl Iterator for Other { type Page = u8; }",
        "use crate::a::Page;",
        "fn page() -> Page {}",
        "#[cfg(test)]\nmod tests { struct Page; }",
        "const TEXT: &str = \"struct Page\";",
    ] {
        assert_eq!(found("pub struct Page;", other), [""; 0], "{other}");
    }
    assert_eq!(found("struct Row;", "struct Row;"), [""; 0]);
}
