//! The files of a crate, and which of them knows which.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::file::File;
use super::root;

/// The path of a module, from the root of its crate.
pub type Module = Vec<String>;

/// A crate's files, and what each knows.
pub struct Sources {
    /// Where each file is below the crate's folder.
    files: Vec<String>,
    modules: Vec<Module>,
    /// Which other files each knows, and by which path.
    known: Vec<BTreeMap<usize, String>>,
    /// Which modules each imports as a whole, to name items through them.
    named: Vec<BTreeMap<usize, String>>,
    /// All paths that each names, of this crate or not.
    paths: Vec<Vec<Vec<String>>>,
    /// The types that each defines.
    types: Vec<Vec<String>>,
    /// Files that no module declares: no compiler sees them.
    undeclared: Vec<String>,
}

impl Sources {
    pub fn read(folder: &str) -> Self {
        let folder = root().join(folder);
        let mut texts = BTreeMap::new();
        collect(&folder, &folder, &mut texts);
        let is_crate = ROOTS.iter().any(|root| texts.contains_key(*root));
        assert!(is_crate, "there are no sources in {}", folder.display());
        Self::of(texts.iter().map(|(file, text)| (file.as_str(), text.as_str())))
    }

    pub fn of<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let texts: Vec<(&str, &str)> = texts.collect();
        let root = ROOTS.iter().find(|root| texts.iter().any(|(file, _)| file == *root)).copied().unwrap_or_default();
        let read = |(file, text): (&str, &str)| {
            let module = if file == root { Module::new() } else { module_of(file) };
            (file.to_owned(), module, File::read(file, text))
        };
        let mut parsed: Vec<(String, Module, File)> = texts.into_iter().map(read).collect();
        let declared: BTreeSet<Module> = parsed
            .iter()
            .flat_map(|(_, module, file)| file.declared.iter().chain(&file.tests).map(move |name| below(module, name)))
            .collect();
        let is_root = |module: &Module| module.is_empty() || *module == ["main"];
        let undeclared = parsed.iter().filter(|(_, module, _)| !is_root(module) && !declared.contains(module));
        let undeclared = undeclared.map(|(file, ..)| file.clone()).collect();
        let tests: Vec<Module> = parsed
            .iter()
            .flat_map(|(_, module, file)| file.tests.iter().map(move |name| below(module, name)))
            .collect();
        // Code of tests does not count.
        parsed.retain(|(_, module, _)| !tests.iter().any(|test| module.starts_with(test)));
        let index: HashMap<Module, usize> =
            parsed.iter().enumerate().map(|(at, (_, module, _))| (module.clone(), at)).collect();
        let names = Names {
            is_library: root == "lib.rs",
            files: parsed.iter().map(|(_, module, file)| (module.clone(), file)).collect(),
        };
        let mut known = vec![BTreeMap::new(); parsed.len()];
        let mut named = known.clone();
        for (at, (_, module, file)) in parsed.iter().enumerate() {
            for path in &file.paths {
                let Some((target, is_module)) = names.resolve(module, path, &mut BTreeSet::new()) else { continue };
                let Some(&to) = index.get(&target).filter(|to| **to != at) else { continue };
                // An imported module counts by what is named through it.
                let kept = if is_module { &mut named[at] } else { &mut known[at] };
                kept.entry(to).or_insert_with(|| path.join("::"));
            }
        }
        let paths = parsed.iter().map(|(_, _, file)| file.paths.clone()).collect();
        let types = parsed.iter().map(|(_, _, file)| file.types.clone()).collect();
        let (files, modules) = parsed.into_iter().map(|(file, module, _)| (file, module)).unzip();
        Self { files, modules, known, named, paths, types, undeclared }
    }

    /// The files that name this path as it is written here.
    pub fn files_naming(&self, path: &[&str]) -> Vec<&str> {
        let names = |paths: &[Vec<String>]| paths.iter().any(|named| named == path);
        let files = self.files.iter().zip(&self.paths).filter(|(_, paths)| names(paths));
        files.map(|(file, _)| file.as_str()).collect()
    }

    /// Files that no other declares as its module.
    pub fn undeclared(&self) -> &[String] {
        &self.undeclared
    }

    pub fn name(&self, file: usize) -> &str {
        &self.files[file]
    }

    /// The files that define each type.
    pub fn types(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut types: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (file, names) in self.files.iter().zip(&self.types) {
            names.iter().for_each(|name| types.entry(name).or_default().push(file));
        }
        types
    }

    /// What is wrong within the module `top`: files that know a file of another module on their own floor or a higher
    /// one, and files on no floor. Floors are counted from the top, so a higher one has a smaller number.
    pub fn upward_imports(&self, top: &[&str], floors: &HashMap<String, usize>) -> Vec<String> {
        let below_top =
            |module: &[String]| module.iter().zip(top).take_while(|(one, other)| one == other).count() == top.len();
        let mut wrong = Vec::new();
        for (at, module) in self.modules.iter().enumerate().filter(|(_, module)| below_top(module)) {
            // The top only declares the modules.
            let Some(own) = module.get(top.len()) else { continue };
            let Some(floor) = floors.get(own) else {
                wrong.push(format!("{} is on no floor", self.files[at]));
                continue;
            };
            for (to, path) in self.known[at].iter().chain(&self.named[at]) {
                let other = Some(&self.modules[*to]).filter(|other| below_top(other));
                let Some(other) = other.and_then(|other| other.get(top.len())).filter(|other| *other != own) else {
                    continue;
                };
                if floors.get(other).is_none_or(|other| other <= floor) {
                    wrong.push(format!("{} knows {} ({path})", self.files[at], self.files[*to]));
                }
            }
        }
        wrong
    }

    /// Cycles, found as if a folder's `mod.rs` and the modules directly in it did not know each other.
    pub fn cycles(&self) -> Vec<Vec<usize>> {
        cycles(self.files.len(), |from, to| self.known[from].contains_key(&to) && !self.are_mod_and_file(from, to))
    }

    /// Cycles that are not wholly within a folder whose `mod.rs` is one of them. The crate's root counts as such a
    /// folder only if the crate has no other.
    pub fn cycles_beyond_a_folder(&self) -> Vec<Vec<usize>> {
        let mut found = cycles(self.files.len(), |from, to| self.known[from].contains_key(&to));
        let is_one_folder = self.modules.iter().all(|module| module.len() <= 1);
        found.retain(|files| {
            let modules: Vec<&Module> = files.iter().map(|file| &self.modules[*file]).collect();
            let is_folder = |top: &Module| is_one_folder || !top.is_empty();
            !modules.iter().any(|top| is_folder(top) && modules.iter().all(|module| module.starts_with(top)))
        });
        found
    }

    /// Whether one is the `mod.rs` of the folder that the other lies in.
    fn are_mod_and_file(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.modules[one], &self.modules[other]);
        one.split_last().is_some_and(|(_, folder)| folder == *other)
            || other.split_last().is_some_and(|(_, folder)| folder == *one)
    }

    pub fn explained(&self, cycles: &[Vec<usize>]) -> String {
        let mut text = String::new();
        for files in cycles {
            let _ = writeln!(text, "a cycle of {}:", files.len());
            for from in files {
                for (to, path) in self.known[*from].iter().filter(|(to, _)| files.contains(to)) {
                    let _ = writeln!(text, "  {} knows {} ({path})", self.files[*from], self.files[*to]);
                }
            }
        }
        text
    }
}

/// The file that declares the modules of a crate, or of a folder that several crates have as a module. If there are
/// several, the first in this list.
const ROOTS: [&str; 3] = ["lib.rs", "main.rs", "mod.rs"];

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

/// Groups of files that reach each other. Files in no cycle are left out.
pub fn cycles(count: usize, knows: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
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

/// Finds the module that a path names.
struct Names<'a> {
    /// Whether `hotline` names this crate: the binary in `src` calls its library that. Elsewhere it is a dependency.
    is_library: bool,
    files: HashMap<Module, &'a File>,
}

impl Names<'_> {
    /// The module that a path names, or that has the item it names; `true` if the path names the module itself. `None`
    /// if neither is in this crate.
    fn resolve(&self, module: &Module, path: &[String], seen: &mut BTreeSet<Module>) -> Option<(Module, bool)> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "hotline" if !self.is_library => return None,
            "crate" | "hotline" => return (!rest.is_empty()).then(|| self.down(Vec::new(), rest, seen)).flatten(),
            "super" | "self" => {
                let prefix = path.iter().take_while(|word| matches!(word.as_str(), "super" | "self"));
                let ups = prefix.clone().filter(|word| *word == "super").count();
                let kept = module.len().checked_sub(ups)?;
                return self.down(module[..kept].to_vec(), &path[prefix.count()..], seen);
            }
            _ => {}
        }
        if self.files.contains_key(&below(module, first)) {
            return self.down(module.clone(), path, seen);
        }
        let import = self.files.get(module)?.imports.get(first)?;
        // A name bound to a path that begins with that name (`use sqlx::{self, …}`) is of another crate. A name that
        // was already followed would lead in a cycle.
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
        // What the module re-exports is followed; anything else is the module's own item.
        match self.files.get(&module)?.imports.get(first) {
            Some(import) if seen.insert(below(&module, first)) => {
                let whole: Vec<String> = import.iter().chain(rest).cloned().collect();
                self.resolve(&module, &whole, seen)
            }
            _ => Some((module, false)),
        }
    }
}
