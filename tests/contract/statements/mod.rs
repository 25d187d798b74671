//! PostgreSQL accepts every statement of the sources (decision 52): each is prepared against a migrated database, and
//! none is executed. One that is built at run time is prepared in each form that the sources allow, or listed with the
//! reason why it is not. The columns of a statement must include those that its row's type reads.

mod bindings;
mod calls;
mod choices;
mod evaluator;
mod listed;
mod names;
mod rows;
mod sources;
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::{AssertSqlSafe, Column, Executor, PgConnection, SqlSafeStr, Statement};

use crate::support::TestDatabase;
use bindings::{Body, Call};
use evaluator::{Evaluator, Halt, Value};
use listed::{LISTED, built_statements};
use sources::{Function, Sources};

/// A statement with this many forms or more must be listed.
const FORMS_MAX: usize = 4096;

/// What the sources say about a statement.
struct Found {
    file: String,
    function: String,
    line: usize,
    /// Its texts, each with the type of its rows if that is known.
    forms: BTreeSet<(String, Option<String>)>,
    /// Whether its rows are read as a type.
    is_typed: bool,
    /// Why there may be further texts.
    unknown: BTreeSet<String>,
}

impl Found {
    fn at(function: &Function<'_>, call: &Call<'_>) -> Self {
        let is_typed = call.path.last().is_some_and(|name| name == "query_as");
        Self { is_typed, ..Self::of(function, call.position.line) }
    }

    fn of(function: &Function<'_>, line: usize) -> Self {
        let (file, function) = (function.file.to_owned(), function.signature.ident.to_string());
        Self { file, function, line, forms: BTreeSet::new(), is_typed: false, unknown: BTreeSet::new() }
    }

    /// A statement within a macro whose arguments are not read.
    fn unread(function: &Function<'_>, line: usize) -> Self {
        Self { unknown: BTreeSet::from(["in a macro".to_owned()]), ..Self::of(function, line) }
    }

    /// Adds the texts from the function that builds them.
    fn complete(&mut self, built: &[(&'static str, &'static str, Vec<String>)]) {
        let texts = built.iter().find(|(file, function, _)| *file == self.file && *function == self.function);
        if let Some((.., texts)) = texts {
            self.forms.extend(texts.iter().map(|text| (text.clone(), None)));
            self.unknown.clear();
        }
    }

    fn place(&self) -> String {
        format!("{}:{} ({})", self.file, self.line, self.function)
    }
}

#[actix_web::test]
async fn postgresql_accepts_every_statement() {
    let database = TestDatabase::migrated().await;
    let mut connection = database.db.acquire().await.expect("a connection");
    let files = sources::read_files();
    let sources = Sources::of(&files);
    let mut statements = find_statements(&sources);
    let built = built_statements();
    statements.iter_mut().for_each(|statement| statement.complete(&built));
    let mut check = Check::default();
    for statement in &statements {
        check.prepare_forms(&mut connection, &sources, statement).await;
    }
    let prepared = check.columns.values().filter(|result| result.is_ok()).count();
    println!("{prepared} texts of {} statements are prepared, {} functions listed", statements.len(), LISTED.len());
    println!(
        "the columns of {} texts are compared with the type of their rows, {} have a tuple or an unknown type",
        check.compared, check.skipped
    );
    let obsolete = LISTED.iter().filter(|entry| !check.listed.contains(*entry));
    check.wrong.extend(obsolete.map(|(file, function, _)| format!("{file} ({function}) is listed needlessly")));
    assert!(check.wrong.is_empty(), "\n{}", check.wrong.join("\n"));
    assert!(statements.len() > 300, "only {} statements are found", statements.len());
    drop(connection);
    database.drop().await;
}

/// The results of preparing the statements.
#[derive(Default)]
struct Check {
    /// The columns of each text, or why it is refused.
    columns: HashMap<String, Result<Vec<String>, String>>,
    wrong: Vec<String>,
    /// The entries of the list that are needed.
    listed: BTreeSet<(&'static str, &'static str, &'static str)>,
    compared: usize,
    skipped: usize,
}

impl Check {
    async fn prepare_forms(&mut self, connection: &mut PgConnection, sources: &Sources<'_>, statement: &Found) {
        let mut refusals: Vec<String> =
            statement.unknown.iter().map(|reason| format!("is not static: {reason}")).collect();
        let mut missing = Vec::new();
        for (text, row) in &statement.forms {
            let columns = match self.columns.get(text) {
                Some(columns) => columns.clone(),
                None => prepare(connection, text).await,
            };
            match &columns {
                Err(error) => refusals.push(format!("{error}\n    {text}")),
                Ok(columns) => match row.as_ref().and_then(|row| rows::columns_of(sources, row)) {
                    Some(read) => {
                        self.compared += 1;
                        missing.extend(read.into_iter().filter(|name| !columns.contains(name)));
                    }
                    None => self.skipped += usize::from(statement.is_typed),
                },
            }
            self.columns.insert(text.clone(), columns);
        }
        let entry = LISTED.iter().find(|entry| entry.0 == statement.file && entry.1 == statement.function);
        if let Some(entry) = entry.filter(|_| !refusals.is_empty()) {
            self.listed.insert(*entry);
            refusals.clear();
        }
        refusals.extend(missing.iter().map(|name| format!("has no column {name}, which its row reads")));
        self.wrong.extend(refusals.into_iter().map(|refusal| format!("{} {refusal}", statement.place())));
    }
}

/// The names of a statement's columns, or PostgreSQL's refusal.
async fn prepare(connection: &mut PgConnection, text: &str) -> Result<Vec<String>, String> {
    let statement = connection.prepare(AssertSqlSafe(text).into_sql_str()).await;
    let statement = statement.map_err(|error| error.to_string())?;
    Ok(statement.columns().iter().map(|column| column.name().to_owned()).collect())
}

/// Every statement outside tests.
fn find_statements<'a>(sources: &'a Sources<'a>) -> Vec<Found> {
    let mut evaluator = Evaluator::new(sources);
    let functions: BTreeMap<&String, &Function<'a>> = sources.functions.iter().collect();
    let mut found = Vec::new();
    for function in functions.into_values() {
        let body = evaluator.body(&function.path);
        for mac in body.unread.iter().filter(|mac| has_statement(mac)) {
            found.push(Found::unread(function, mac.bang_token.spans[0].start().line));
        }
        for call in &body.calls {
            let called = evaluator.called(&call.path, &function.module, function.owner.as_deref());
            let name = called.strip_prefix("sqlx::").unwrap_or_default();
            if !call.is_method && (name.starts_with("query") || name == "raw_sql" || name == "QueryBuilder::new") {
                found.push(find_forms(&mut evaluator, function, &body, call));
            }
        }
    }
    found
}

/// Whether the tokens of a macro contain a statement.
fn has_statement(mac: &syn::Macro) -> bool {
    let text = mac.tokens.to_string().replace(' ', "");
    ["sqlx::query", "sqlx::raw_sql"].iter().any(|word| text.contains(word))
}

fn find_forms<'a>(
    evaluator: &mut Evaluator<'a>,
    function: &'a Function<'a>,
    body: &Body<'a>,
    call: &Call<'a>,
) -> Found {
    let mut found = Found::at(function, call);
    let frame = evaluator.open_frame(function);
    let mut combinations = 0;
    loop {
        match call.arguments.first().map(|argument| evaluator.evaluate(argument, &frame)) {
            Some(Ok(Value::Text(text))) => {
                let kinds = row_kinds(function, body, call);
                let row = rows::row_type(evaluator, &kinds, &frame);
                found.forms.insert((text, row));
            }
            Some(Err(Halt::Impossible)) => {}
            Some(Err(Halt::Unknown(reason))) => {
                found.unknown.insert(reason);
            }
            Some(Ok(_)) | None => {
                found.unknown.insert("no text".to_owned());
            }
        }
        combinations += 1;
        if combinations == FORMS_MAX {
            found.unknown.insert("too many forms".to_owned());
        }
        if !evaluator.choices.advance() || combinations == FORMS_MAX {
            break;
        }
    }
    evaluator.choices = choices::Choices::default();
    if found.forms.is_empty() && found.unknown.is_empty() {
        found.unknown.insert("no combination is possible".to_owned());
    }
    found
}

/// The types that may name the type of a statement's rows: that of the call, that of the binding whose value it is part
/// of, or what the function returns if it has no other statement.
fn row_kinds<'a>(function: &'a Function<'a>, body: &Body<'a>, call: &Call<'a>) -> Vec<&'a syn::Type> {
    let is_read = |path: &[String]| path.len() == 2 && path[0] == "document" && path[1].starts_with("read");
    let name = call.path.last().map(String::as_str).unwrap_or_default();
    let is_row = match name {
        "query_as" => true,
        "query" => body.calls.iter().any(|call| is_read(&call.path)),
        _ => false,
    };
    let statements = body.calls.iter().filter(|call| !call.is_method && call.path.iter().any(|word| word == "sqlx"));
    if !is_row {
        return Vec::new();
    }
    let arguments = call.function.and_then(|path| path.segments.last()).map(|segment| &segment.arguments);
    if let Some(syn::PathArguments::AngleBracketed(arguments)) = arguments {
        let types = arguments.args.iter().filter_map(|argument| match argument {
            syn::GenericArgument::Type(kind) => Some(kind),
            _ => None,
        });
        return types.collect();
    }
    match body.declared_type(call.position) {
        Some(kind) => vec![kind],
        None if statements.filter(|call| call.path.last().is_some_and(|name| name.starts_with("query"))).count()
            == 1 =>
        {
            rows::returned_type(function).into_iter().collect()
        }
        None => Vec::new(),
    }
}
