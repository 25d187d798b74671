//! The names in one file of Rust, as far as its tokens show.

use std::collections::HashMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The names in one file.
#[derive(Default)]
pub struct File {
    /// Every path as it is written, in a `use` or elsewhere.
    pub paths: Vec<Vec<String>>,
    /// The names that imports bind in this file, and their paths.
    pub imports: HashMap<String, Vec<String>>,
    /// Modules that are only for tests.
    pub tests: Vec<String>,
    /// The other modules that have a file of their own.
    pub declared: Vec<String>,
    /// The types it defines, without enums that have no variants: these only mark what an id identifies.
    pub types: Vec<String>,
}

/// A word or a sign; `::` is one token.
type Token = String;

impl File {
    pub fn read(name: &str, text: &str) -> Self {
        let stream: TokenStream = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut file = Self::default();
        let tokens = file.without_tests(&tokens);
        let (mut at, mut depth) = (0, 0);
        // The depths at which modules without a file of their own begin: their content belongs to this file.
        let mut inline: Vec<usize> = Vec::new();
        while at < tokens.len() {
            match tokens[at].as_str() {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inline.pop_if(|begun| *begun == depth);
                }
                "mod" if tokens.get(at + 2).is_some_and(|token| token == "{") => inline.push(depth),
                "mod" if inline.is_empty() && tokens.get(at + 2).is_some_and(|token| token == ";") => {
                    file.declared.push(tokens[at + 1].clone());
                }
                "struct" | "enum" | "trait" | "type" => {
                    // Deeper than the modules, a `type` is an associated type.
                    let is_own = tokens[at] != "type" || depth == inline.len();
                    file.types.extend(type_at(&tokens, at).filter(|_| is_own));
                }
                _ => {}
            }
            if tokens[at] == "use" {
                let mut tree = Tree { tokens: &tokens, at: at + 1, file: &mut file, inline_depth: inline.len() };
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

    /// The tokens without the items after `#[cfg(test)]`.
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

/// The name of the type that is defined here; `None` for an enum without variants.
fn type_at(tokens: &[Token], at: usize) -> Option<String> {
    let is_marker =
        tokens[at] == "enum" && tokens.get(at + 2..).is_some_and(|rest| rest.starts_with(&["{".into(), "}".into()]));
    tokens.get(at + 1).filter(|name| is_word(name) && !is_marker).cloned()
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

/// A path in nested inline modules, as the file outside them would write it.
fn outward(mut path: Vec<String>, inline_depth: usize) -> Vec<String> {
    let ups = path.iter().take(inline_depth).take_while(|word| *word == "super").count();
    path[..ups].fill("self".to_owned());
    path
}

/// Reads the paths that one `use` names.
struct Tree<'a> {
    tokens: &'a [Token],
    at: usize,
    file: &'a mut File,
    inline_depth: usize,
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
        let path = outward(path, self.inline_depth);
        // What a `*` imports is unknown.
        if name != "*" {
            self.file.imports.insert(name, path.clone());
        }
        self.file.paths.push(path);
    }
}
