//! Imports run down: between the modules of `src`, whose floors ARCHITECTURE.md names, and between files.
//!
//! What a file knows is what it names: in a `use`, or by a path in its code (`crate::…`, `super::…`, or a module that it
//! has declared or imported). What another file only passes on (`pub use`) counts for the file that has it. Code of tests
//! (`#[cfg(test)]`) does not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

#[test]
fn a_module_knows_only_the_floors_below_its_own() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let floors = floors(&architecture);
    let wrong = Sources::read("src").above(&floors);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for folder in ["src", "actors/src", "persistence/src", "persistence/postgres/src"] {
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

/// A path, from the root of its crate.
type Module = Vec<String>;

/// A crate's files, and what each knows.
struct Sources {
    /// Where each file is below the crate's folder.
    files: Vec<String>,
    modules: Vec<Module>,
    /// Which other files each knows, and by which path.
    known: Vec<BTreeMap<usize, String>>,
    /// Which modules each names in a `use` only to go on from there.
    named: Vec<BTreeMap<usize, String>>,
}

impl Sources {
    fn read(folder: &str) -> Self {
        let folder = root().join(folder);
        let mut texts = BTreeMap::new();
        collect(&folder, &folder, &mut texts);
        assert!(texts.contains_key("lib.rs"), "there are no sources in {}", folder.display());
        Self::of(texts.iter().map(|(file, text)| (file.as_str(), text.as_str())))
    }

    fn of<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut parsed: Vec<(String, Module, File)> =
            texts.map(|(file, text)| (file.to_owned(), module_of(file), File::read(file, text))).collect();
        let tests: Vec<Module> = parsed
            .iter()
            .flat_map(|(_, module, file)| file.tests.iter().map(move |name| below(module, name)))
            .collect();
        parsed.retain(|(_, module, _)| !tests.iter().any(|test| module.starts_with(test)));
        let index: HashMap<Module, usize> =
            parsed.iter().enumerate().map(|(at, (_, module, _))| (module.clone(), at)).collect();
        let names = Names { files: parsed.iter().map(|(_, module, file)| (module.clone(), file)).collect() };
        let mut known = vec![BTreeMap::new(); parsed.len()];
        let mut named = known.clone();
        for (at, (_, module, file)) in parsed.iter().enumerate() {
            for path in &file.paths {
                let Some((target, is_module)) = names.resolve(module, path, &mut BTreeSet::new()) else { continue };
                let Some(&to) = index.get(&target).filter(|to| **to != at) else { continue };
                // An import of a module is told by what is named through it.
                let kept = if is_module { &mut named[at] } else { &mut known[at] };
                kept.entry(to).or_insert_with(|| path.join("::"));
            }
        }
        let (files, modules) = parsed.into_iter().map(|(file, module, _)| (file, module)).unzip();
        Self { files, modules, known, named }
    }

    fn name(&self, file: usize) -> &str {
        &self.files[file]
    }

    /// What does not run down from floor to floor.
    fn above(&self, floors: &HashMap<String, usize>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (at, module) in self.modules.iter().enumerate() {
            // The root only declares the modules.
            let Some(own) = module.first() else { continue };
            let Some(floor) = floors.get(own) else {
                wrong.push(format!("{} is on no floor", self.files[at]));
                continue;
            };
            for (to, path) in self.known[at].iter().chain(&self.named[at]) {
                let Some(other) = self.modules[*to].first().filter(|other| *other != own) else { continue };
                if floors.get(other).is_none_or(|other| other <= floor) {
                    wrong.push(format!("{} knows {} ({path})", self.files[at], self.files[*to]));
                }
            }
        }
        wrong
    }

    /// Circles in which no two files that follow each other are a folder's `mod.rs` and a file of that folder.
    fn circles(&self) -> Vec<Vec<usize>> {
        circles(self.files.len(), |from, to| self.known[from].contains_key(&to) && !self.is_one_piece(from, to))
    }

    /// Circles of which not every file lies in the folder of one of them.
    fn circles_beyond_a_folder(&self) -> Vec<Vec<usize>> {
        let mut found = circles(self.files.len(), |from, to| self.known[from].contains_key(&to));
        found.retain(|files| {
            let modules: Vec<&Module> = files.iter().map(|file| &self.modules[*file]).collect();
            !modules.iter().any(|top| !top.is_empty() && modules.iter().all(|module| module.starts_with(top)))
        });
        found
    }

    /// Whether one is the `mod.rs` of the folder that the other lies in.
    fn is_one_piece(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.modules[one], &self.modules[other]);
        one.split_last().is_some_and(|(_, folder)| folder == *other)
            || other.split_last().is_some_and(|(_, folder)| folder == *one)
    }

    fn explained(&self, circles: &[Vec<usize>]) -> String {
        let mut text = String::new();
        for files in circles {
            let _ = writeln!(text, "a circle of {}:", files.len());
            for from in files {
                for (to, path) in self.known[*from].iter().filter(|(to, _)| files.contains(to)) {
                    let _ = writeln!(text, "  {} knows {} ({path})", self.files[*from], self.files[*to]);
                }
            }
        }
        text
    }
}

fn collect(folder: &Path, root: &Path, texts: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, root, texts);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
            texts.insert(name, fs::read_to_string(&path).expect("a source"));
        }
    }
}

fn module_of(file: &str) -> Module {
    let mut module: Module = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod") || module == ["lib"] {
        module.pop();
    }
    module
}

fn below(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// Files that reach each other, sorted, where there are several.
fn circles(count: usize, knows: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..count)
        .map(|from| {
            let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(at) = open.pop() {
                open.extend((0..count).filter(|to| knows(at, *to) && reached.insert(*to)));
            }
            reached
        })
        .collect();
    let mut found: Vec<Vec<usize>> = (0..count)
        .filter(|from| reached[*from].contains(from))
        .map(|from| (0..count).filter(|to| reached[from].contains(to) && reached[*to].contains(&from)).collect())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// What one file says.
#[derive(Default)]
struct File {
    /// Every path as it is written, in a `use` or elsewhere.
    paths: Vec<Vec<String>>,
    /// What is called otherwise here, and what it is.
    imports: HashMap<String, Vec<String>>,
    /// Modules that are there for tests alone.
    tests: Vec<String>,
}

/// A word or a sign; `::` is one.
type Token = String;

impl File {
    fn read(name: &str, text: &str) -> Self {
        let stream: TokenStream = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut file = Self::default();
        let tokens = file.without_tests(&tokens);
        let (mut at, mut depth) = (0, 0);
        // How deep the modules begin that have no file of their own: what is in them is their file's.
        let mut inline: Vec<usize> = Vec::new();
        while at < tokens.len() {
            match tokens[at].as_str() {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inline.pop_if(|begun| *begun == depth);
                }
                "mod" if tokens.get(at + 2).is_some_and(|token| token == "{") => inline.push(depth),
                _ => {}
            }
            if tokens[at] == "use" {
                let mut tree = Tree { tokens: &tokens, at: at + 1, file: &mut file, inline: inline.len() };
                if tree.tokens[tree.at] == "::" {
                    tree.at += 1;
                }
                tree.read(Vec::new());
                at = tree.at;
            } else {
                let path = path_at(&tokens, at);
                at += (path.len() * 2).saturating_sub(1).max(1);
                if path.len() > 1 {
                    file.paths.push(outward(path, inline.len()));
                }
            }
        }
        file
    }

    /// The tokens without what stands behind `#[cfg(test)]`.
    fn without_tests(&mut self, tokens: &[Token]) -> Vec<Token> {
        const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
        let (mut kept, mut at) = (Vec::new(), 0);
        while at < tokens.len() {
            if !tokens[at..].starts_with(&MARK.map(str::to_owned)) {
                kept.push(tokens[at].clone());
                at += 1;
                continue;
            }
            at += MARK.len();
            let mut depth = 0;
            while at < tokens.len() {
                match tokens[at].as_str() {
                    "}" if depth == 0 => break,
                    "mod" if depth == 0 => self.tests.push(tokens[at + 1].clone()),
                    "(" | "[" | "{" => depth += 1,
                    ")" | "]" | "}" => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 && matches!(tokens[at - 1].as_str(), "}" | ";") {
                    break;
                }
            }
        }
        kept
    }
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(open.to_owned());
                flatten(group.stream(), tokens);
                tokens.push(close.to_owned());
            }
            TokenTree::Ident(ident) => tokens.push(ident.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == ':' && tokens.last().is_some_and(|last| last == ":") => {
                tokens.pop();
                tokens.push("::".to_owned());
            }
            TokenTree::Punct(punct) => tokens.push(punct.as_char().to_string()),
            TokenTree::Literal(_) => tokens.push("\"".to_owned()),
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The words of a path that begins here, if one does.
fn path_at(tokens: &[Token], at: usize) -> Vec<String> {
    let mut path = Vec::new();
    if at > 0 && tokens[at - 1] == "::" {
        return path;
    }
    let mut rest = &tokens[at..];
    while let Some(word) = rest.first().filter(|word| is_word(word)) {
        path.push(word.clone());
        match rest.get(1) {
            Some(colons) if colons == "::" => rest = &rest[2..],
            _ => break,
        }
    }
    path
}

/// A path in modules that have no file of their own, as their file would write it.
fn outward(mut path: Vec<String>, inline: usize) -> Vec<String> {
    let ups = path.iter().take(inline).take_while(|word| *word == "super").count();
    path[..ups].fill("self".to_owned());
    path
}

/// What a `use` names.
struct Tree<'a> {
    tokens: &'a [Token],
    at: usize,
    file: &'a mut File,
    inline: usize,
}

impl Tree<'_> {
    fn read(&mut self, mut path: Vec<String>) {
        loop {
            match self.tokens[self.at].as_str() {
                "{" => {
                    self.at += 1;
                    while self.tokens[self.at] != "}" {
                        self.read(path.clone());
                        if self.tokens[self.at] == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                word => path.push(word.to_owned()),
            }
            self.at += 1;
            if self.tokens[self.at] != "::" {
                break;
            }
            self.at += 1;
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if self.tokens[self.at] == "as" {
            name = self.tokens[self.at + 1].clone();
            self.at += 2;
        }
        let path = outward(path, self.inline);
        // Of a `*` nobody can say what it brings.
        if name != "*" {
            self.file.imports.insert(name, path.clone());
        }
        self.file.paths.push(path);
    }
}

/// Finds what a path means.
struct Names<'a> {
    files: HashMap<Module, &'a File>,
}

impl Names<'_> {
    /// The module that has what the path names, and whether it is that module itself. None: it is no file's of the crate.
    fn resolve(&self, module: &Module, path: &[String], seen: &mut BTreeSet<Module>) -> Option<(Module, bool)> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            // The crate's own library, as its binary names it.
            "crate" | "hotline" => return (!rest.is_empty()).then(|| self.down(Vec::new(), rest, seen)).flatten(),
            "super" | "self" => {
                let ups = path.iter().take_while(|word| matches!(word.as_str(), "super" | "self"));
                let up = ups.clone().filter(|word| *word == "super").count();
                let kept = module.len().checked_sub(up)?;
                return self.down(module[..kept].to_vec(), &path[ups.count()..], seen);
            }
            _ => {}
        }
        if self.files.contains_key(&below(module, first)) {
            return self.down(module.clone(), path, seen);
        }
        let import = self.files.get(module)?.imports.get(first)?;
        if import == path || import.first() == Some(first) || !seen.insert(below(module, first)) {
            return None;
        }
        let whole: Vec<String> = import.iter().chain(rest).cloned().collect();
        self.resolve(module, &whole, seen)
    }

    fn down(&self, mut module: Module, mut path: &[String], seen: &mut BTreeSet<Module>) -> Option<(Module, bool)> {
        while let Some((first, rest)) = path.split_first()
            && self.files.contains_key(&below(&module, first))
        {
            module.push(first.clone());
            path = rest;
        }
        let Some((first, rest)) = path.split_first() else { return Some((module, true)) };
        // Passed on from elsewhere, or its own.
        match self.files.get(&module)?.imports.get(first) {
            Some(import) if seen.insert(below(&module, first)) => {
                let whole: Vec<String> = import.iter().chain(rest).cloned().collect();
                self.resolve(&module, &whole, seen)
            }
            _ => Some((module, false)),
        }
    }
}
