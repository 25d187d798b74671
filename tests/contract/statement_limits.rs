//! The wait for a statement's answer has a limit (`with_timeout`), or its function is named here with the reason why it
//! has none.
//!
//! Without a limit, a request waits for a server that is frozen or unreachable for as long as the operating system keeps
//! the connection: a quarter of an hour. A function that returns `sqlx`'s error leaves the limit to its caller.

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprAwait, ExprCall, ImplItemFn, ItemFn, ItemMod, Path, Signature};

use crate::fenced::sources;

/// The methods that run a statement.
const RUN_METHODS: [&str; 4] = ["execute", "fetch_all", "fetch_one", "fetch_optional"];

/// The functions that limit the wait for their argument.
const LIMITS: [&str; 4] = ["timeout", "timeout_at", "with_timeout", "with_timeout_of"];

const COMMAND: &str = "of the command line, which reads or writes all rows of a company or an installation";
const FLUSH: &str = "of a flush, which takes long; `unless_session_lost` ends the wait when its connection is lost";
const HTTP: &str = "an HTTP request, whose client has a limit";
const MIGRATION: &str = "waits for all older transactions, by design";
const START: &str = "before a process serves anything, or the companies that it takes over";

/// Functions that wait without a limit, by file, or all of a folder.
const UNLIMITED: [(&str, &[&str], &str); 17] = [
    ("persistence/src/archive/", &[], COMMAND),
    ("persistence/src/backup/", &[], COMMAND),
    ("persistence/src/cluster/lives.rs", &["fence"], FLUSH),
    ("persistence/src/id_blocks.rs", &["reserve"], START),
    ("persistence/src/migration/mod.rs", &["begin_without_transaction"], MIGRATION),
    ("persistence/src/persister/ahead.rs", &["begin", "end"], START),
    ("persistence/src/persister/writer.rs", &["move_watermark"], FLUSH),
    (
        "persistence/src/pool.rs",
        &["writer_pool"],
        "of a new connection, which the pool waits for no longer than its limit",
    ),
    ("persistence/src/recovery.rs", &["begin_direct", "find_watermark"], START),
    ("persistence/src/recovery.rs", &["refuse_older_database", "refuse_unreplayed"], START),
    ("persistence/src/recovery.rs", &["take_ownership"], START),
    ("persistence/src/tables/messages/outbox.rs", &["outboxes"], START),
    ("persistence/src/tables/reports/rebuild.rs", &["compare", "correct"], COMMAND),
    ("persistence/src/tables/reports/rebuild.rs", &["rebuild"], COMMAND),
    ("src/cli/restore.rs", &["restore"], COMMAND),
    ("src/media/response_limit.rs", &["call"], HTTP),
    ("src/telemetry/otlp.rs", &["send_bytes"], HTTP),
];

#[test]
fn a_wait_for_a_statement_has_a_limit() {
    let mut is_used = UNLIMITED.map(|_| false);
    let mut unlimited = Vec::new();
    for (file, text) in sources() {
        for function in functions_without_limit(&text).unwrap_or_else(|error| panic!("{file}: {error}")) {
            let entry = UNLIMITED.iter().position(|(path, functions, _)| match path.ends_with('/') {
                true => file.starts_with(path),
                false => file == *path && functions.contains(&function.as_str()),
            });
            match entry {
                Some(entry) => is_used[entry] = true,
                None => unlimited.push(format!("{file}: {function}")),
            }
        }
    }
    assert!(unlimited.is_empty(), "waits without a limit, in:\n{}", unlimited.join("\n"));
    let unused: Vec<_> = UNLIMITED.iter().zip(is_used).filter(|(_, is_used)| !is_used).collect();
    assert!(unused.is_empty(), "unused entries of this file: {unused:#?}");
}

#[test]
fn a_wait_without_a_limit_is_found() {
    let found = |text: &str| functions_without_limit(text).expect("a source");
    for body in [
        "query.bind(1).execute(db).await?;",
        "Ok(query.fetch_all(&mut *db).await?)",
        "let write = async { query.fetch_one(db).await }; write.await",
        "if query.fetch_optional(with_timeout(db)).await?.is_some() {}",
        "helper(query.execute(db).await)",
    ] {
        assert_eq!(found(&format!("async fn one() -> Result<()> {{ {body} }}")), ["one"], "{body}");
        assert_eq!(found(&format!("impl A {{ async fn one(&self) {{ {body} }} }}")), ["one"], "{body}");
        assert!(found(&format!("#[cfg(test)] mod tests {{ async fn one() {{ {body} }} }}")).is_empty(), "{body}");
        assert!(found(&format!("async fn one() -> sqlx::Result<()> {{ {body} }}")).is_empty(), "{body}");
        assert!(found(&format!("async fn one() -> Result<(), sqlx::Error> {{ {body} }}")).is_empty(), "{body}");
    }
    for body in [
        "with_timeout(query.execute(db)).await?;",
        "with_timeout(async { query.execute(db).await?; query.fetch_one(db).await }).await",
        "let select = query.fetch_all(db); with_timeout(select).await",
        "tokio::time::timeout(LIMIT, async { query.execute(db).await }).await",
    ] {
        assert!(found(&format!("async fn one() -> Result<()> {{ {body} }}")).is_empty(), "{body}");
    }
}

/// The functions of a file that wait for a statement without a limit. Those that return `sqlx`'s error, and those of
/// tests, are left out.
fn functions_without_limit(text: &str) -> syn::Result<Vec<String>> {
    let file = syn::parse_file(text)?;
    let mut waits = Waits::default();
    waits.visit_file(&file);
    waits.unlimited.dedup();
    Ok(waits.unlimited)
}

#[derive(Default)]
struct Waits {
    /// The names of the functions that enclose the visited node, the innermost last.
    enclosing: Vec<String>,
    unlimited: Vec<String>,
}

impl<'a> Visit<'a> for Waits {
    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a ItemFn) {
        if !is_test_only(&item.attrs) && !returns_sqlx_error(&item.sig) {
            self.enclosing.push(item.sig.ident.to_string());
            visit::visit_item_fn(self, item);
            self.enclosing.pop();
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a ImplItemFn) {
        if !is_test_only(&item.attrs) && !returns_sqlx_error(&item.sig) {
            self.enclosing.push(item.sig.ident.to_string());
            visit::visit_impl_item_fn(self, item);
            self.enclosing.pop();
        }
    }

    fn visit_expr_call(&mut self, call: &'a ExprCall) {
        let is_limited = matches!(&*call.func, Expr::Path(function)
            if function.path.segments.last().is_some_and(|name| LIMITS.iter().any(|limit| name.ident == limit)));
        if !is_limited {
            visit::visit_expr_call(self, call);
        }
    }

    fn visit_expr_await(&mut self, wait: &'a ExprAwait) {
        if let Expr::MethodCall(call) = &*wait.base
            && RUN_METHODS.iter().any(|method| call.method == method)
        {
            self.unlimited.extend(self.enclosing.last().cloned());
        }
        visit::visit_expr_await(self, wait);
    }
}

fn is_test_only(attributes: &[Attribute]) -> bool {
    let is_test = |path: Path| path.is_ident("test");
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && attribute.parse_args().is_ok_and(is_test))
}

fn returns_sqlx_error(signature: &Signature) -> bool {
    let mut types = ReturnedTypes::default();
    types.visit_return_type(&signature.output);
    types.has_sqlx_error
}

#[derive(Default)]
struct ReturnedTypes {
    has_sqlx_error: bool,
}

impl<'a> Visit<'a> for ReturnedTypes {
    fn visit_path(&mut self, path: &'a Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.has_sqlx_error |=
            matches!(&names[..], [first, .., last] if first == "sqlx" && ["Error", "Result"].contains(&last.as_str()));
        visit::visit_path(self, path);
    }
}
