//! The files of the pages, and which of them imports which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::root;
use super::sources::cycles;

const EXTENSIONS: [&str; 4] = ["ts", "tsx", "js", "mjs"];

/// Files by their path, and what each imports of the others.
pub struct Pages {
    files: Vec<String>,
    imports: Vec<BTreeSet<usize>>,
}

impl Pages {
    pub fn read(folders: &[&str]) -> Self {
        let mut texts = BTreeMap::new();
        folders.iter().for_each(|folder| collect(&root().join(folder), &mut texts));
        Self::of(texts.iter().map(|(file, text)| (file.as_str(), text.as_str())))
    }

    pub fn of<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let texts: Vec<(&str, &str)> = texts.collect();
        let find = |path: &str| {
            texts.iter().position(|(file, _)| {
                *file == path || EXTENSIONS.iter().any(|extension| *file == format!("{path}.{extension}"))
            })
        };
        let imports = texts.iter().map(|(file, text)| {
            // Any other path is a style sheet or a generated file.
            specifiers(text)
                .into_iter()
                .filter_map(|specifier| find(&resolve(file, specifier)))
                .collect::<BTreeSet<usize>>()
        });
        Self { imports: imports.collect(), files: texts.iter().map(|(file, _)| (*file).to_owned()).collect() }
    }

    /// Whether a file imports another one itself.
    pub fn knows(&self, from: &str, to: &str) -> bool {
        let at = |name: &str| self.files.iter().position(|file| file == name);
        at(from).zip(at(to)).is_some_and(|(from, to)| self.imports[from].contains(&to))
    }

    /// The files of each cycle.
    pub fn cycles(&self) -> Vec<String> {
        let found = cycles(self.files.len(), |from, to| self.imports[from].contains(&to));
        let name =
            |files: Vec<usize>| files.iter().map(|file| self.files[*file].as_str()).collect::<Vec<_>>().join(" ");
        found.into_iter().map(name).collect()
    }
}

fn collect(folder: &Path, texts: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder of pages") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_some_and(|own| EXTENSIONS.iter().any(|extension| own == *extension)) {
            let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
            texts.insert(name, fs::read_to_string(&path).expect("a page"));
        }
    }
}

/// The relative paths after `from`, `import` and `import(`.
fn specifiers(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, quote) in text.match_indices(['"', '\'']) {
        let Some((specifier, _)) = text[at + 1..].split_once(quote) else { continue };
        let before = text[..at].trim_end();
        let before = before.strip_suffix('(').unwrap_or(before);
        let is_import = ["from", "import"].iter().any(|word| before.ends_with(word));
        if is_import && specifier.starts_with('.') {
            found.push(specifier);
        }
    }
    found
}

/// The path that a relative one in this file leads to.
fn resolve(file: &str, specifier: &str) -> String {
    let mut path: Vec<&str> = file.split('/').collect();
    path.pop();
    for part in specifier.split('/') {
        match part {
            "." => {}
            ".." => {
                path.pop();
            }
            name => path.push(name),
        }
    }
    path.join("/")
}
