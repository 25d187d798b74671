//! Statements are found and read, and wrong ones are reported.

use std::collections::BTreeSet;

use super::rows::columns_of;
use super::sources::{File, Sources};
use super::{Found, find_statements, prepare};
use crate::support::TestDatabase;

fn find(source: &str) -> Vec<Found> {
    let files = [File::of("src/one.rs", "hotline::one", source)];
    find_statements(&Sources::of(&files))
}

/// Checks that the source has one statement and that it is static. Returns its possible texts.
#[track_caller]
fn sql_texts(source: &str) -> Vec<String> {
    let found = find(source);
    assert_eq!(found.len(), 1, "{source}");
    assert_eq!(found[0].unknown, BTreeSet::new(), "{source}");
    found[0].forms.iter().map(|(text, _)| text.clone()).collect()
}

#[test]
fn each_form_of_a_statement_is_found() {
    assert_eq!(sql_texts("fn f() { sqlx::query(\"select 1\") }"), ["select 1"]);
    assert_eq!(sql_texts("fn f() { let a = \"a\"; let a = sqlx::raw_sql(a); }"), ["a"]);
    assert_eq!(sql_texts("fn f() { let a = \"a\"; { let a = \"b\"; } sqlx::query(a) }"), ["a"]);
    assert_eq!(sql_texts("const A: &str = concat!(\"a\", 1); fn f() { sqlx::query_scalar(A) }"), ["a1"]);
    assert_eq!(
        sql_texts(
            "const A: i64 = 5; fn f(b: bool) { let c = if b { \" x\" } else { \"\" };
            sqlx::query(AssertSqlSafe(format!(\"{{a}} {A}{c}{c} {}\", \"d\"))) }"
        ),
        ["{a} 5 d", "{a} 5 x x d"]
    );
    assert_eq!(
        sql_texts(
            "enum E { A, B(i64) } impl E { fn t(&self) -> &str { match self { Self::A => \"a\", Self::B(_) => \"b\" } } }
            fn f(e: &E) { sqlx::query(AssertSqlSafe(format!(\"{} {}\", e.t(), e.t()))) }"
        ),
        ["a a", "b b"]
    );
    assert_eq!(
        sql_texts(
            "trait T { const A: &str; const B: &str = \"*\"; } struct X; struct Y;
            impl T for X { const A: &str = \"x\"; } impl T for Y { const A: &str = \"y\"; const B: &str = \"b\"; }
            fn t<V: T>() -> String { format!(\"{} {}\", V::A, V::B) }
            fn f<U: T>() { sqlx::query(AssertSqlSafe(t::<U>())) }"
        ),
        ["x *", "y b"]
    );
    assert_eq!(
        sql_texts(
            "struct S { t: &'static str } const A: S = S { t: \"a\" }; const B: S = S { t: \"b\" };
            impl S { fn f(&self) { let Self { t, .. } = self; sqlx::query(AssertSqlSafe(format!(\"{t}\"))) } }"
        ),
        ["a", "b"]
    );
    assert_eq!(
        sql_texts(
            "fn f(a: &str) { sqlx::query(a) } fn g() { f(\"g\") } #[cfg(test)] mod tests { fn h() { super::f(\"h\") } }"
        ),
        ["g"]
    );
}

#[test]
fn optional_texts_and_returned_types_are_followed() {
    let pairs = "[(1, Some(\"a\")), (2, None), (3, Some(\"b\"))]";
    let conditional = format!("fn f() {{ for (x, y) in {pairs} {{ if let Some(y) = y {{ sqlx::query(y) }} }} }}");
    assert_eq!(sql_texts(&conditional), ["a", "b"]);
    let matched =
        format!("fn f() {{ for (x, y) in {pairs} {{ match y {{ Some(y) => sqlx::query(y), None => 1 }} }} }}");
    assert_eq!(sql_texts(&matched), ["a", "b"]);
    assert_eq!(
        sql_texts(
            "enum E { A, B } impl E { fn t(&self) -> &str { match self { Self::A => \"a\", Self::B => \"b\" } } }
            async fn g() -> Result<Option<E>> { h() }
            async fn f() { let Some(e) = g().await? else { return }; sqlx::query(e.t()) }"
        ),
        ["a", "b"]
    );
    assert_eq!(
        sql_texts(
            "fn f(x: Option<i64>, y: Option<i64>) {
            let a = match (x, y) { (Some(_), _) => \"a\", (None, Some(_)) => \"b\", (None, None) => \"c\" };
            sqlx::query(a) }"
        ),
        ["a", "b", "c"]
    );
}

#[test]
fn what_cannot_be_determined_is_not_static() {
    for text in [
        "fn f(a: i64) { sqlx::query(AssertSqlSafe(format!(\"{a}\"))) }",
        "fn f(a: &str) { sqlx::query(a) }",
        "fn f() { sqlx::query(g()) }",
        "fn f() { join!(sqlx::query(\"a\")) }",
        "fn g(a: bool) -> String { if a { return h(); } \"a\".to_owned() } fn f(a: bool) { sqlx::query(g(a)) }",
    ] {
        let found = find(text);
        assert_eq!(found.len(), 1, "{text}");
        assert!(!found[0].unknown.is_empty(), "{text}");
        assert_eq!((found[0].file.as_str(), found[0].line), ("src/one.rs", 1));
    }
    assert!(find("#[test] fn f() { sqlx::query(\"a\") }").is_empty());
}

#[test]
fn the_columns_of_a_row_are_found() {
    let text = "#[derive(FromRow)] struct A { r#type: i64, #[sqlx(rename = \"x\")] b: i64, #[sqlx(default)] c: i64,
        #[sqlx(flatten)] d: B } #[derive(sqlx::FromRow)] struct B { #[sqlx(try_from = \"C\")] e: i64 }
        fn f() -> Result<Vec<A>> { sqlx::query_as(\"1\") }
        fn g() { let b: Option<B> = sqlx::query_as(\"2\").fetch(); }
        fn h() { sqlx::query_as::<_, B>(\"3\") }
        fn i() -> A { sqlx::query_as(\"4\"); sqlx::query_as(\"5\"); }";
    let files = [File::of("src/one.rs", "hotline::one", text)];
    let sources = Sources::of(&files);
    assert_eq!(columns_of(&sources, "hotline::one::A").expect("columns"), ["type", "x", "e"]);
    let found = find_statements(&sources);
    let rows: Vec<Option<&str>> = found.iter().flat_map(|found| &found.forms).map(|(_, row)| row.as_deref()).collect();
    let (a, b) = (Some("hotline::one::A"), Some("hotline::one::B"));
    assert_eq!(rows, [a, b, b, None, None]);
}

#[actix_web::test]
async fn postgresql_refuses_wrong_statements_and_executes_none() {
    let database = TestDatabase::migrated().await;
    let mut connection = database.db.acquire().await.expect("a connection");
    for wrong in [
        "select nme from tags",
        "select id from tag",
        "select id from tags where name = 5",
        "select $1 is null",
        "insert into tags (company_id) values ($1, $2)",
    ] {
        prepare(&mut connection, wrong).await.expect_err(wrong);
    }
    let columns = prepare(&mut connection, "insert into companies (name) values ('a') returning id, name").await;
    assert_eq!(columns.expect("columns"), ["id", "name"]);
    let count = sqlx::query_scalar::<_, i64>("select count(*) from companies").fetch_one(&mut *connection).await;
    assert_eq!(count.expect("a count"), 0);
    drop(connection);
    database.drop().await;
}
