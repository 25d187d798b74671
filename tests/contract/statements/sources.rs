//! The items of all crates, without those of tests, by their absolute paths.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;
use syn::{Attribute, Expr, GenericParam, Generics, Item, ItemEnum, ItemStruct, Type, TypeParamBound, UseTree};

/// The folder of each crate, and its name in paths.
const CRATES: [(&str, &str); 4] = [
    ("src", "hotline"),
    ("actors/src", "hotline_actors"),
    ("persistence/src", "hotline_persistence"),
    ("persistence/postgres/src", "hotline_postgres"),
];

/// A re-export leads to an item through at most this many others.
const REEXPORTS_MAX: usize = 8;

/// A file and what it contains.
pub struct File {
    /// Its path within the repository.
    pub name: String,
    module: String,
    syntax: syn::File,
}

impl File {
    pub fn of(name: &str, module: &str, text: &str) -> Self {
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), module: module.to_owned(), syntax }
    }
}

/// A function or method.
pub struct Function<'a> {
    pub path: String,
    pub file: &'a str,
    pub module: String,
    /// The type whose method it is.
    pub owner: Option<String>,
    /// The generics of its `impl`, and its own.
    pub generics: Vec<&'a Generics>,
    pub signature: &'a syn::Signature,
    pub block: &'a syn::Block,
}

/// A constant or static.
pub struct Constant<'a> {
    pub file: &'a str,
    pub module: String,
    pub owner: Option<String>,
    pub kind: &'a Type,
    pub value: &'a Expr,
}

/// Every item by its absolute path: `crate::module::Type::name`.
#[derive(Default)]
pub struct Sources<'a> {
    pub functions: HashMap<String, Function<'a>>,
    pub constants: HashMap<String, Constant<'a>>,
    pub structs: HashMap<String, (String, &'a ItemStruct)>,
    pub enums: HashMap<String, &'a ItemEnum>,
    /// The types that implement a trait.
    pub implementors: HashMap<String, Vec<String>>,
    traits: HashSet<String>,
    modules: HashSet<String>,
    imports: HashMap<String, HashMap<String, Vec<String>>>,
    globs: HashMap<String, Vec<Vec<String>>>,
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file but those of tests.
pub fn read_files() -> Vec<File> {
    let (mut files, mut tests) = (Vec::new(), Vec::new());
    for (folder, name) in CRATES {
        read_folder(&root().join(folder), name, &mut files, &mut tests);
    }
    files.retain(|file| !tests.iter().any(|test| is_within(&file.module, test)));
    files
}

fn read_folder(folder: &Path, module: &str, files: &mut Vec<File>, tests: &mut Vec<String>) {
    let entries = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    for path in entries {
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            read_folder(&path, &format!("{module}::{stem}"), files, tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_root = ["mod", "lib", "main"].contains(&stem.as_str());
            let module = if is_root { module.to_owned() } else { format!("{module}::{stem}") };
            let text = fs::read_to_string(&path).expect("a source");
            let name = path.strip_prefix(root()).expect("a file of the repository").to_string_lossy().into_owned();
            let file = File::of(&name, &module, &text);
            let test_modules = file.syntax.items.iter().filter_map(|item| match item {
                Item::Mod(item) if is_test(&item.attrs) => Some(format!("{module}::{}", item.ident)),
                _ => None,
            });
            tests.extend(test_modules);
            files.push(file);
        }
    }
}

fn is_within(module: &str, parent: &str) -> bool {
    module.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Whether an item is compiled only for tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

impl<'a> Sources<'a> {
    pub fn of(files: &'a [File]) -> Self {
        let mut sources = Self::default();
        for file in files {
            sources.scan_names(&file.module, &file.syntax.items);
        }
        for file in files {
            sources.scan_items(&file.name, &file.module, &file.syntax.items);
        }
        sources
    }

    /// Collects the names with which paths are resolved.
    fn scan_names(&mut self, module: &str, items: &'a [Item]) {
        self.modules.insert(module.to_owned());
        for item in items {
            match item {
                Item::Use(item) => self.scan_import(module, Vec::new(), &item.tree),
                Item::Struct(item) => {
                    self.structs.insert(format!("{module}::{}", item.ident), (module.to_owned(), item));
                }
                Item::Enum(item) => {
                    self.enums.insert(format!("{module}::{}", item.ident), item);
                }
                Item::Trait(item) => {
                    self.traits.insert(format!("{module}::{}", item.ident));
                }
                Item::Mod(item) if !is_test(&item.attrs) => {
                    let module = format!("{module}::{}", item.ident);
                    if let Some((_, items)) = &item.content {
                        self.scan_names(&module, items);
                    }
                }
                _ => {}
            }
        }
    }

    fn scan_import(&mut self, module: &str, mut path: Vec<String>, tree: &UseTree) {
        let (alias, name) = match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                return self.scan_import(module, path, &tree.tree);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.scan_import(module, path.clone(), tree));
            }
            UseTree::Glob(_) => return self.globs.entry(module.to_owned()).or_default().push(path),
            UseTree::Name(tree) => (tree.ident.to_string(), tree.ident.to_string()),
            UseTree::Rename(tree) => (tree.rename.to_string(), tree.ident.to_string()),
        };
        if name == "self" {
            let Some(alias) = path.last().cloned() else { return };
            self.imports.entry(module.to_owned()).or_default().insert(alias, path);
        } else {
            path.push(name);
            self.imports.entry(module.to_owned()).or_default().insert(alias, path);
        }
    }

    fn scan_items(&mut self, file: &'a str, module: &str, items: &'a [Item]) {
        for item in items {
            match item {
                Item::Fn(item) if !is_test(&item.attrs) => {
                    self.add_function(file, module, None, Vec::new(), &item.sig, &item.block);
                }
                Item::Const(item) if !is_test(&item.attrs) => {
                    self.add_constant(file, module, None, &item.ident, (&item.ty, &item.expr));
                }
                Item::Static(item) if !is_test(&item.attrs) => {
                    self.add_constant(file, module, None, &item.ident, (&item.ty, &item.expr));
                }
                Item::Impl(item) if !is_test(&item.attrs) => self.scan_impl(file, module, item),
                Item::Trait(item) if !is_test(&item.attrs) => self.scan_trait(file, module, item),
                Item::Mod(item) if !is_test(&item.attrs) => {
                    if let Some((_, items)) = &item.content {
                        self.scan_items(file, &format!("{module}::{}", item.ident), items);
                    }
                }
                _ => {}
            }
        }
    }

    fn scan_impl(&mut self, file: &'a str, module: &str, item: &'a syn::ItemImpl) {
        let Some(owner) = self.type_path(module, None, &item.self_ty) else { return };
        if let Some((path, _)) = &item.trait_ {
            let implemented = self.resolve(module, &segments(path));
            self.implementors.entry(implemented).or_default().push(owner.clone());
        }
        for inner in &item.items {
            match inner {
                syn::ImplItem::Fn(inner) if !is_test(&inner.attrs) => {
                    let owner = Some(owner.clone());
                    self.add_function(file, module, owner, vec![&item.generics], &inner.sig, &inner.block);
                }
                syn::ImplItem::Const(inner) => {
                    self.add_constant(file, module, Some(owner.clone()), &inner.ident, (&inner.ty, &inner.expr));
                }
                _ => {}
            }
        }
    }

    fn scan_trait(&mut self, file: &'a str, module: &str, item: &'a syn::ItemTrait) {
        let owner = format!("{module}::{}", item.ident);
        for inner in &item.items {
            match inner {
                syn::TraitItem::Fn(inner) => {
                    let Some(block) = &inner.default else { continue };
                    self.add_function(file, module, Some(owner.clone()), vec![&item.generics], &inner.sig, block);
                }
                syn::TraitItem::Const(inner) => {
                    let Some((_, value)) = &inner.default else { continue };
                    self.add_constant(file, module, Some(owner.clone()), &inner.ident, (&inner.ty, value));
                }
                _ => {}
            }
        }
    }

    fn add_function(
        &mut self,
        file: &'a str,
        module: &str,
        owner: Option<String>,
        mut generics: Vec<&'a Generics>,
        signature: &'a syn::Signature,
        block: &'a syn::Block,
    ) {
        generics.push(&signature.generics);
        let path = format!("{}::{}", owner.as_deref().unwrap_or(module), signature.ident);
        let mut inner = InnerItems::default();
        inner.visit_block(block);
        for item in inner.constants {
            self.add_constant(file, &path, None, &item.ident, (&item.ty, &item.expr));
        }
        for item in inner.functions {
            self.add_function(file, module, None, Vec::new(), &item.sig, &item.block);
        }
        let module = module.to_owned();
        // A method of a trait and of the type itself may share their name.
        let key = if self.functions.contains_key(&path) { format!("{path}#{}", self.functions.len()) } else { path };
        let path = key.clone();
        self.functions.insert(key, Function { path, file, module, owner, generics, signature, block });
    }

    fn add_constant(
        &mut self,
        file: &'a str,
        module: &str,
        owner: Option<String>,
        name: &syn::Ident,
        (kind, value): (&'a Type, &'a Expr),
    ) {
        let path = format!("{}::{name}", owner.as_deref().unwrap_or(module));
        self.constants.insert(path, Constant { file, module: module.to_owned(), owner, kind, value });
    }

    /// The absolute path of what a path names in a module.
    pub fn resolve(&self, module: &str, path: &[String]) -> String {
        let mut rest = path;
        let mut base = module.to_owned();
        let first = path.first().map(String::as_str).unwrap_or_default();
        if first == "crate" {
            base = module.split("::").next().unwrap_or_default().to_owned();
            rest = &rest[1..];
        } else if first == "self" || first == "super" {
            while let Some(word) = rest.first().filter(|word| *word == "self" || *word == "super") {
                if word == "super" {
                    base = base.rsplit_once("::").map(|(parent, _)| parent.to_owned()).unwrap_or_default();
                }
                rest = &rest[1..];
            }
        } else if let Some(import) = self.imports.get(module).and_then(|imports| imports.get(first))
            && (import.first().map(String::as_str) != Some(first) || import.len() > 1 && import != path)
        {
            base = self.resolve(module, import);
            rest = &rest[1..];
        } else if first == "sqlx" || CRATES.iter().any(|(_, name)| *name == first) {
            base = first.to_owned();
            rest = &rest[1..];
        }
        let path = rest.iter().fold(base, |path, word| format!("{path}::{word}"));
        self.follow(path, REEXPORTS_MAX)
    }

    fn is_item(&self, path: &str) -> bool {
        self.structs.contains_key(path)
            || self.enums.contains_key(path)
            || self.traits.contains(path)
            || self.functions.contains_key(path)
            || self.constants.contains_key(path)
            || self.modules.contains(path)
    }

    /// Follows re-exports.
    fn follow(&self, path: String, depth: usize) -> String {
        if depth == 0 || self.is_item(&path) {
            return path;
        }
        let mut split = path.len();
        while let Some(end) = path[..split].rfind("::") {
            split = end;
            let module = &path[..end];
            if !self.modules.contains(module) {
                continue;
            }
            let rest: Vec<&str> = path[end + 2..].split("::").collect();
            let with_rest = |base: String| rest[1..].iter().fold(base, |path, word| format!("{path}::{word}"));
            if let Some(import) = self.imports.get(module).and_then(|imports| imports.get(rest[0])) {
                if import.len() == 1 && import[0] == rest[0] {
                    break;
                }
                return self.follow(with_rest(self.resolve(module, import)), depth - 1);
            }
            for glob in self.globs.get(module).into_iter().flatten() {
                let found = self.follow(with_rest(format!("{}::{}", self.resolve(module, glob), rest[0])), depth - 1);
                if self.is_item(&found) {
                    return found;
                }
            }
            break;
        }
        path
    }

    /// The absolute path of a type, without references, slices and generic arguments.
    pub fn type_path(&self, module: &str, owner: Option<&str>, kind: &Type) -> Option<String> {
        match kind {
            Type::Reference(kind) => self.type_path(module, owner, &kind.elem),
            Type::Slice(kind) => self.type_path(module, owner, &kind.elem),
            Type::Array(kind) => self.type_path(module, owner, &kind.elem),
            Type::Paren(kind) => self.type_path(module, owner, &kind.elem),
            Type::Tuple(kind) => self.type_path(module, owner, kind.elems.first()?),
            Type::Path(kind) => {
                let words = segments(&kind.path);
                match words.as_slice() {
                    [word] if word == "Self" => owner.map(str::to_owned),
                    [word] if word == "String" || word == "str" => Some("str".to_owned()),
                    [word] if word == "bool" => Some("bool".to_owned()),
                    _ => Some(self.resolve(module, &words)),
                }
            }
            _ => None,
        }
    }

    /// The types that a generic parameter of a function may be.
    pub fn types_of(&self, function: &Function<'_>, parameter: &str) -> Vec<&str> {
        let mut types: Vec<&str> = Vec::new();
        for bound in function.generics.iter().flat_map(|generics| bounds_of(generics, parameter)) {
            let found = self.implementors.get(&self.resolve(&function.module, &segments(&bound.path)));
            types.extend(found.into_iter().flatten().map(String::as_str));
        }
        types
    }

    /// A constant of a type, or the default of a trait.
    pub fn constant_of(&self, owner: &str, name: &str) -> Option<&Constant<'a>> {
        self.constants.get(&format!("{owner}::{name}")).or_else(|| {
            let traits = self.implementors.iter().filter(|(_, types)| types.iter().any(|one| one == owner));
            let mut defaults = traits.filter_map(|(path, _)| self.constants.get(&format!("{path}::{name}")));
            defaults.next()
        })
    }
}

fn bounds_of<'g>(generics: &'g Generics, parameter: &str) -> Vec<&'g syn::TraitBound> {
    let own = generics.params.iter().filter_map(|param| match param {
        GenericParam::Type(param) if param.ident == parameter => Some(&param.bounds),
        _ => None,
    });
    let conditions = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let in_where = conditions.filter_map(|predicate| match predicate {
        syn::WherePredicate::Type(predicate) => match &predicate.bounded_ty {
            Type::Path(kind) if kind.path.is_ident(parameter) => Some(&predicate.bounds),
            _ => None,
        },
        _ => None,
    });
    let bounds = own.chain(in_where).flatten();
    bounds.filter_map(|bound| if let TypeParamBound::Trait(bound) = bound { Some(bound) } else { None }).collect()
}

/// The words of a path, without generic arguments.
pub fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Constants and functions within a function.
#[derive(Default)]
struct InnerItems<'a> {
    constants: Vec<&'a syn::ItemConst>,
    functions: Vec<&'a syn::ItemFn>,
}

impl<'a> Visit<'a> for InnerItems<'a> {
    fn visit_item_const(&mut self, item: &'a syn::ItemConst) {
        self.constants.push(item);
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.functions.push(item);
    }
}
