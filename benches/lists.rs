//! Question: does a list over a million contacts answer as fast as over a thousand, and what does the service add to
//! the SQL behind it?
//!
//! `cargo bench --bench lists`
//!
//! One of a hundred companies has 1,000,000 contacts (`HOTLINE_BENCH_CONTACTS`), the others 1,000 each. Every list of
//! the largest and of a small company is requested in turn, in two ways: the statement alone, through a pool and into
//! the same rows; and the whole request (token, filters, statement, JSON) in this process, without a socket. It
//! prints medians and their ratios. Aims: the service adds at most 30 % to the statement; a million rows take at most 3
//! times as long as a thousand, for indexed filters.

#![allow(clippy::expect_used, clippy::panic)]

use std::time::Instant;

use actix_web::App;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service};
use hotline::cli::everything;
use hotline::routes;
use hotline::service::Service;
use hotline_persistence::select::{PageRequest, Place};
use hotline_persistence::tables::companies;
use hotline_persistence::tables::contacts::{self, ContactFilter};
use hotline_persistence::tables::tokens::{self, NewToken};
use hotline_persistence::{CompanyId, PgPool, pool};
use support::http::{ask, authorized, median, settings};

mod support;

/// Companies in the tables, and contacts of each company but the largest.
const COMPANIES: usize = 100;
const FEW_CONTACTS: usize = 1_000;

/// How many times each list is measured: enough for a steady median, few enough for slow deep pages.
const ROUNDS: usize = 60;

/// Rounds before the measurement, for connections, caches and plans.
const WARM_UP: usize = 10;

/// A list: its name, its query, and the filter and page that the query means.
struct Case {
    name: &'static str,
    query: String,
    filter: ContactFilter,
    page: PageRequest,
    /// Whether an index finds its rows: its time must not grow with the table.
    is_indexed: bool,
}

fn cases(rows: usize) -> Vec<Case> {
    let page = |number: i64| PageRequest { place: Place::Number(number), ..PageRequest::first(100) };
    // The middle page, at most the thousandth.
    let deep = i64::try_from((rows / 100 / 2).clamp(1, 1_000)).expect("a page");
    let number = format!("55119{:08}", rows / 2);
    vec![
        Case {
            name: "page 1",
            query: String::new(),
            filter: ContactFilter::default(),
            page: page(1),
            is_indexed: true,
        },
        Case {
            name: "deep page",
            query: format!("page={deep}"),
            filter: ContactFilter::default(),
            page: page(deep),
            is_indexed: false,
        },
        Case {
            name: "rare fragment",
            query: "search=zquix".to_owned(),
            filter: ContactFilter { search: Some("zquix".to_owned()), ..ContactFilter::default() },
            page: page(1),
            is_indexed: true,
        },
        Case {
            name: "common fragment",
            query: "search=aria".to_owned(),
            filter: ContactFilter { search: Some("aria".to_owned()), ..ContactFilter::default() },
            page: page(1),
            is_indexed: true,
        },
        Case {
            name: "number",
            query: format!("number={number}"),
            filter: ContactFilter { number: Some(number), ..ContactFilter::default() },
            page: page(1),
            is_indexed: true,
        },
    ]
}

fn main() {
    if !support::is_bench() {
        return;
    }
    actix_rt::System::new().block_on(run());
}

async fn run() {
    let rows = support::size("HOTLINE_BENCH_CONTACTS", 1_000_000);
    let postgres = support::Postgres::start().await;
    let database = postgres.database("lists").await;
    let db = pool::connect(database.clone());
    pool::migrate(&db).await.expect("migrate");
    let started = Instant::now();
    let (many, few) = seed(&db, rows).await;
    println!("seeded {rows} and {} x {FEW_CONTACTS} contacts in {:?}", COMPANIES - 1, started.elapsed());

    let service = Service::start(settings(&postgres, database)).await.expect("the service starts");
    let http = init_service(
        App::new().wrap(from_fn(routes::assign_request_id)).configure(routes::configure(service.handles.clone())),
    )
    .await;
    println!("{:<16} {:>9} {:>11} {:>11} {:>7}", "list", "contacts", "SQL", "service", "ratio");
    for (large, small) in cases(rows).into_iter().zip(cases(FEW_CONTACTS)) {
        let mut medians = Vec::new();
        for (case, owner, count) in [(&large, &many, rows), (&small, &few, FEW_CONTACTS)] {
            let (mut sql, mut whole) = (Vec::new(), Vec::new());
            for round in 0..WARM_UP + ROUNDS {
                let started = Instant::now();
                contacts::list(&db, owner.0, &case.filter, case.page).await.expect("the statement");
                let statement_time = started.elapsed();
                let request = request(&owner.1, &case.query).to_request();
                let started = Instant::now();
                ask(&http, request).await;
                if round >= WARM_UP {
                    sql.push(statement_time);
                    whole.push(started.elapsed());
                }
            }
            let (sql, whole) = (median(sql), median(whole));
            let ratio = whole.as_secs_f64() / sql.as_secs_f64();
            println!("{:<16} {count:>9} {sql:>11.1?} {whole:>11.1?} {ratio:>7.2}", case.name);
            medians.push(whole);
        }
        let growth = medians[0].as_secs_f64() / medians[1].as_secs_f64();
        let aim = if large.is_indexed { "aim: at most 3" } else { "not indexed" };
        println!("{:<16} growth {growth:.2} ({aim})", large.name);
    }
    db.close().await;
    service.stop().await.expect("the service stops");
}

fn request(key: &str, query: &str) -> TestRequest {
    authorized(TestRequest::get().uri(&format!("/api/v1/contacts?{query}")), key)
}

/// The company with many contacts and one with few, with their tokens.
async fn seed(db: &PgPool, rows: usize) -> ((CompanyId, String), (CompanyId, String)) {
    let mut owners = Vec::new();
    for number in 0..COMPANIES {
        let company = companies::insert(db, &format!("Company {number}")).await.expect("company").id;
        let count = if number == COMPANIES / 2 { rows } else { FEW_CONTACTS };
        // One contact of each company has the rare name: what grows is what is searched, not what is found.
        sqlx::query(
            "insert into contacts (company_id, name, number, number_country, email, code)
             select $1, case when n = 500 then 'Zquixote ' else 'Maria ' end || md5(n::text),
                 '55119' || lpad(n::text, 8, '0'), 'BR', md5(n::text) || '@example.com', 'C' || n
             from generate_series(1, $2) n",
        )
        .bind(company)
        .bind(i32::try_from(count).expect("count"))
        .execute(db)
        .await
        .expect("contacts");
        if number == COMPANIES / 2 || number == 0 {
            let new = NewToken { name: "bench", permissions: everything(), ..NewToken::default() };
            owners.push((company, tokens::insert(db, company, new).await.expect("token").1));
        }
    }
    sqlx::query("vacuum analyze contacts").execute(db).await.expect("analyze");
    let many = owners.pop().expect("the largest");
    (many, owners.pop().expect("a small one"))
}
