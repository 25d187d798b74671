//! The bindings and the calls of a function: which binding a name refers to at a position, and which calls may be SQL
//! statements.

use proc_macro2::LineColumn;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Pat, Token, Type};

/// Where the value of a binding comes from.
#[derive(Clone, Copy)]
pub enum Origin<'a> {
    Value(&'a Expr),
    /// An element of what a loop runs over.
    Element(&'a Expr),
    /// A parameter of a closure, or declared without a value.
    Unknown,
}

/// A pattern and where its names can be used.
pub struct Binding<'a> {
    pub pattern: &'a Pat,
    pub origin: Origin<'a>,
    pub kind: Option<&'a Type>,
    from: LineColumn,
    until: LineColumn,
}

/// A call: it may begin a statement, as `sqlx::query` does, or pass the text of one to a function.
pub struct Call<'a> {
    /// The segments of the called path; of a method, only its name.
    pub path: Vec<String>,
    pub function: Option<&'a syn::Path>,
    pub is_method: bool,
    pub arguments: &'a Punctuated<Expr, Token![,]>,
    pub position: LineColumn,
}

/// All bindings and calls of a function.
#[derive(Default)]
pub struct Body<'a> {
    pub bindings: Vec<Binding<'a>>,
    pub calls: Vec<Call<'a>>,
    /// Whether it returns before its end.
    pub returns_early: bool,
    /// Macros, whose tokens are not parsed.
    pub unread: Vec<&'a syn::Macro>,
    /// The ends of the blocks that enclose the visited node, the innermost last.
    block_ends: Vec<LineColumn>,
}

impl<'a> Body<'a> {
    pub fn of(block: &'a Block) -> Self {
        let mut body = Self::default();
        body.visit_block(block);
        body
    }

    /// The binding that a name refers to at a position.
    pub fn binding(&self, name: &str, position: LineColumn) -> Option<&Binding<'a>> {
        let visible = self.bindings.iter().filter(|binding| binding.from <= position && position < binding.until);
        visible.filter(|binding| binds(binding.pattern, name)).max_by_key(|binding| binding.from)
    }

    /// The declared type of the innermost binding whose value contains a position.
    pub fn declared_type(&self, position: LineColumn) -> Option<&'a Type> {
        let enclosing = self.bindings.iter().filter(|binding| match binding.origin {
            Origin::Value(value) => value.span().start() <= position && position < value.span().end(),
            _ => false,
        });
        enclosing.max_by_key(|binding| binding.from).and_then(|binding| binding.kind)
    }

    fn add(&mut self, pattern: &'a Pat, origin: Origin<'a>, from: LineColumn, until: LineColumn) {
        let (pattern, kind) = match pattern {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            other => (other, None),
        };
        self.bindings.push(Binding { pattern, origin, kind, from, until });
    }
}

impl<'a> Visit<'a> for Body<'a> {
    fn visit_block(&mut self, block: &'a Block) {
        self.block_ends.push(block.brace_token.span.close().start());
        visit::visit_block(self, block);
        self.block_ends.pop();
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        let until = self.block_ends.last().copied().expect("a block");
        let origin = local.init.as_ref().map_or(Origin::Unknown, |init| Origin::Value(&init.expr));
        self.add(&local.pat, origin, local.span().end(), until);
        visit::visit_local(self, local);
    }

    fn visit_expr_for_loop(&mut self, expr: &'a syn::ExprForLoop) {
        let span = expr.body.brace_token.span;
        self.add(&expr.pat, Origin::Element(&expr.expr), span.open().end(), span.close().start());
        visit::visit_expr_for_loop(self, expr);
    }

    fn visit_expr_match(&mut self, expr: &'a syn::ExprMatch) {
        for arm in &expr.arms {
            self.add(&arm.pat, Origin::Value(&expr.expr), arm.pat.span().end(), arm.span().end());
        }
        visit::visit_expr_match(self, expr);
    }

    fn visit_expr_if(&mut self, expr: &'a syn::ExprIf) {
        // What a condition binds is visible up to the end of its branch.
        self.block_ends.push(expr.then_branch.brace_token.span.close().start());
        self.visit_expr(&expr.cond);
        self.block_ends.pop();
        self.visit_block(&expr.then_branch);
        if let Some((_, other)) = &expr.else_branch {
            self.visit_expr(other);
        }
    }

    fn visit_expr_closure(&mut self, expr: &'a syn::ExprClosure) {
        for input in &expr.inputs {
            self.add(input, Origin::Unknown, expr.span().start(), expr.span().end());
        }
        visit::visit_expr_closure(self, expr);
    }

    fn visit_expr_let(&mut self, expr: &'a syn::ExprLet) {
        let until = self.block_ends.last().copied().expect("a block");
        self.add(&expr.pat, Origin::Value(&expr.expr), expr.span().end(), until);
        visit::visit_expr_let(self, expr);
    }

    fn visit_expr_return(&mut self, expr: &'a syn::ExprReturn) {
        self.returns_early = true;
        visit::visit_expr_return(self, expr);
    }

    fn visit_expr_call(&mut self, expr: &'a syn::ExprCall) {
        if let Expr::Path(function) = &*expr.func {
            self.calls.push(Call {
                path: super::sources::segments(&function.path),
                function: Some(&function.path),
                is_method: false,
                arguments: &expr.args,
                position: expr.span().start(),
            });
        }
        visit::visit_expr_call(self, expr);
    }

    fn visit_expr_method_call(&mut self, expr: &'a syn::ExprMethodCall) {
        self.calls.push(Call {
            path: vec![expr.method.to_string()],
            function: None,
            is_method: true,
            arguments: &expr.args,
            position: expr.method.span().start(),
        });
        visit::visit_expr_method_call(self, expr);
    }

    fn visit_macro(&mut self, mac: &'a syn::Macro) {
        self.unread.push(mac);
    }

    /// Items within a function are not part of its body.
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// Whether a pattern binds a name.
pub fn binds(pattern: &Pat, name: &str) -> bool {
    match pattern {
        Pat::Ident(pattern) => pattern.ident == name,
        Pat::Tuple(pattern) => pattern.elems.iter().any(|pattern| binds(pattern, name)),
        Pat::TupleStruct(pattern) => pattern.elems.iter().any(|pattern| binds(pattern, name)),
        Pat::Struct(pattern) => pattern.fields.iter().any(|field| binds(&field.pat, name)),
        Pat::Reference(pattern) => binds(&pattern.pat, name),
        Pat::Paren(pattern) => binds(&pattern.pat, name),
        Pat::Type(pattern) => binds(&pattern.pat, name),
        Pat::Slice(pattern) => pattern.elems.iter().any(|pattern| binds(pattern, name)),
        Pat::Or(pattern) => pattern.cases.iter().any(|pattern| binds(pattern, name)),
        Pat::Guard(pattern) => binds(&pattern.pat, name),
        _ => false,
    }
}
