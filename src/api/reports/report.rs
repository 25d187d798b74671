//! The rows of a report, as JSON or as CSV (RFC 4180) for spreadsheets.

use std::collections::BTreeMap;

use actix_web::body::BoxBody;
use actix_web::http::header::{ACCEPT, Accept, Header, HeaderValue, VARY};
use actix_web::{HttpRequest, HttpResponse, Responder};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::web::response::reply::{Reply, respond};
use crate::web::response::schema::{self, Schemas};
use crate::web::{ApiError, ApiResult};

/// A row of a report.
pub trait Row: Serialize + ToSchema + 'static {
    /// The names of its fields, in the order of the CSV columns.
    const COLUMNS: &'static [&'static str];
}

/// `200` with the rows of a report.
pub struct Report<T> {
    rows: Vec<T>,
}

impl<T> From<Vec<T>> for Report<T> {
    fn from(rows: Vec<T>) -> Self {
        Self { rows }
    }
}

#[derive(Serialize)]
struct ReportBody<'a, T> {
    data: &'a [T],
}

impl<T: Row> Reply for Report<T> {
    const STATUS: u16 = 200;
    const IS_TABLE: bool = true;

    fn body(&self) -> ApiResult<Vec<u8>> {
        serde_json::to_vec(&ReportBody { data: &self.rows }).map_err(ApiError::internal)
    }

    fn schema(schemas: &mut Schemas) -> Option<Value> {
        let row = schema::of::<T>(schemas);
        let properties = json!({"data": {"type": "array", "items": row}});
        Some(schema::envelope::<T>(schemas, "Report", &properties, "The rows of a report."))
    }
}

impl<T: Row> Responder for Report<T> {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        let is_csv = wants_csv(request);
        let body = if is_csv { csv(&self.rows) } else { self.body() };
        let mut response = match body {
            Ok(body) if is_csv => HttpResponse::Ok().content_type("text/csv; charset=utf-8").body(body),
            Ok(body) => respond(Self::STATUS, body),
            Err(error) => actix_web::ResponseError::error_response(&error),
        };
        response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
        response
    }
}

/// Whether the caller prefers CSV to JSON.
fn wants_csv(request: &HttpRequest) -> bool {
    if !request.headers().contains_key(ACCEPT) {
        return false;
    }
    let Ok(accept) = Accept::parse(request) else { return false };
    let ranked = accept.ranked();
    let rank_of = |essence: &str| ranked.iter().position(|media| media.essence_str() == essence);
    match (rank_of("text/csv"), rank_of("application/json")) {
        (Some(csv), Some(json)) => csv < json,
        (csv, _) => csv.is_some(),
    }
}

/// A header line, and a line for each row.
fn csv<T: Row>(rows: &[T]) -> ApiResult<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(T::COLUMNS).map_err(ApiError::internal)?;
    for row in rows {
        let json = serde_json::to_string(row).map_err(ApiError::internal)?;
        // Numbers keep their digits, because they are not parsed.
        let fields: BTreeMap<&str, &RawValue> = serde_json::from_str(&json).map_err(ApiError::internal)?;
        let cells = T::COLUMNS.iter().map(|column| fields.get(column).map_or_else(String::new, |value| cell(value)));
        writer.write_record(cells).map_err(ApiError::internal)?;
    }
    writer.into_inner().map_err(ApiError::internal)
}

/// A value as a CSV cell.
fn cell(value: &RawValue) -> String {
    match serde_json::from_str(value.get()) {
        Ok(Value::Null) => String::new(),
        Ok(Value::String(text)) => escape_formulas(&text),
        _ => value.get().to_owned(),
    }
}

/// The characters that begin a formula: in ASCII, in the wide and small forms that East Asian spreadsheets accept, and
/// the Unicode minus sign.
const FORMULA_SIGNS: [char; 13] = [
    '=', '+', '-', '@', '\u{FF1D}', '\u{FF0B}', '\u{FF0D}', '\u{FF20}', '\u{FE66}', '\u{FE62}', '\u{FE63}', '\u{FE6B}',
    '\u{2212}',
];

/// The characters that end a line, or separate cells by the CSV conventions of some country.
const SEPARATORS: [char; 5] = [';', ',', '\t', '\n', '\r'];

/// Whether this character may precede a formula: a blank, a quote, or an invisible character.
fn is_ignored(character: char) -> bool {
    character.is_whitespace() || matches!(character, '"' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}')
}

/// The text with an apostrophe wherever a spreadsheet could begin to read a formula: at the beginning, where a tab or
/// line break also gets one, and after every possible cell separator
/// (<https://owasp.org/www-community/attacks/CSV_Injection>).
fn escape_formulas(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 1);
    if text.starts_with(['\t', '\r', '\n']) {
        safe.push('\'');
    }
    let mut may_begin_formula = safe.is_empty();
    for character in text.chars() {
        if may_begin_formula && FORMULA_SIGNS.contains(&character) {
            safe.push('\'');
        }
        may_begin_formula = SEPARATORS.contains(&character) || may_begin_formula && is_ignored(character);
        safe.push(character);
    }
    safe
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn formulas_are_escaped_after_every_cell_separator() {
        for (text, safe) in [
            ("x;=cmd|' /C calc'!A0", "x;'=cmd|' /C calc'!A0"),
            ("x; =1", "x; '=1"),
            ("x,+1;-1\t@1", "x,'+1;'-1\t'@1"),
            ("x\n=1", "x\n'=1"),
            ("\u{FF1D}1+1", "'\u{FF1D}1+1"),
            ("\u{FF0B}1", "'\u{FF0B}1"),
            ("\u{FF0D}1", "'\u{FF0D}1"),
            ("\u{FF20}SUM(A1)", "'\u{FF20}SUM(A1)"),
            ("\u{FE66}1", "'\u{FE66}1"),
            ("\u{2212}1", "'\u{2212}1"),
            (" =1", " '=1"),
            ("\u{A0}\u{FEFF}\u{200B}=1", "\u{A0}\u{FEFF}\u{200B}'=1"),
            ("\"=1", "\"'=1"),
            ("x;\"=1", "x;\"'=1"),
            ("a-b, c@d", "a-b, c@d"),
            ("Ana; Ben = two", "Ana; Ben = two"),
        ] {
            assert_eq!(escape_formulas(text), safe, "{text:?}");
        }
    }

    #[test]
    fn every_sign_is_escaped_at_the_beginning_of_every_possible_cell() {
        for sign in FORMULA_SIGNS {
            for previous_cell in SEPARATORS.iter().map(|separator| format!("x{separator}")).chain([String::new()]) {
                for ignored in ["", " ", "\"", "\u{200B} "] {
                    let safe = escape_formulas(&format!("{previous_cell}{ignored}{sign}1"));
                    assert!(safe.contains(&format!("'{sign}")), "{safe:?}");
                }
            }
        }
    }

    #[derive(Serialize, ToSchema)]
    struct Sale {
        label: Option<String>,
        value: f64,
    }

    impl Row for Sale {
        const COLUMNS: &'static [&'static str] = &["label", "value"];
    }

    #[test]
    fn csv_escapes_formulas_in_texts_and_keeps_numbers() {
        let labels = ["Ana, \"the\" agent", "=1+1", "+1", "-1", "@sum", "\t=1", "plain"];
        let mut rows: Vec<Sale> =
            labels.into_iter().map(|label| Sale { label: Some(label.to_owned()), value: -1.5 }).collect();
        rows.push(Sale { label: None, value: 0.25 });
        let text = String::from_utf8(csv(&rows).expect("CSV")).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "label,value",
                "\"Ana, \"\"the\"\" agent\",-1.5",
                "'=1+1,-1.5",
                "'+1,-1.5",
                "'-1,-1.5",
                "'@sum,-1.5",
                "'\t'=1,-1.5",
                "plain,-1.5",
                ",0.25",
            ]
        );
    }

    #[test]
    fn csv_is_returned_only_if_the_accept_header_prefers_it() {
        for (accept, is_csv) in [
            ("text/csv", true),
            ("text/csv;q=0.9, application/json;q=0.5", true),
            ("application/json, text/csv", false),
            ("text/csv;q=0.2, application/json", false),
            ("*/*", false),
            ("text/html, */*", false),
            ("nonsense", false),
        ] {
            let request = TestRequest::default().insert_header(("accept", accept)).to_http_request();
            assert_eq!(wants_csv(&request), is_csv, "{accept}");
        }
        assert!(!wants_csv(&TestRequest::default().to_http_request()));
    }
}
