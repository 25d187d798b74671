//! Question: does a board with 100,000 cards answer as fast as one with 1,000, and what does the service add to the SQL
//! behind it?
//!
//! `cargo bench --bench boards`
//!
//! Two companies, each with a board of ten stages: one with 100,000 cards (`HOTLINE_BENCH_CARDS`), one with 1,000. A card
//! has a contact and a product; some are won, some are lost. Each call is made to both boards in turn, in two ways: its
//! statements alone, through a pool and into the same rows; and the whole request (token, statements, JSON) in this
//! process, without a socket. It prints medians and their ratios. Aims: the service adds at most 30 % to the
//! statements; 100,000 cards take at most 3 times as long as 1,000; indicators take less than 20 ms.

#![allow(clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use actix_web::App;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service};
use chrono::{TimeDelta, Utc};
use hotline::cli::everything;
use hotline::routes;
use hotline::service::Service;
use hotline_persistence::Period;
use hotline_persistence::select::PageRequest;
use hotline_persistence::tables::boards::{self, Board, Stage};
use hotline_persistence::tables::cards::{self, CardFilter, CardRef, FirstCardsLimits, Target};
use hotline_persistence::tables::companies;
use hotline_persistence::tables::tokens::{self, NewToken};
use hotline_persistence::{BoardId, BoardListId, CardId, CompanyId, PgPool, pool, table};
use serde_json::json;
use support::http::{ask, authorized, median, settings};

mod support;

/// Cards of the small board.
const FEW_CARDS: usize = 1_000;

/// Stages of a board.
const STAGES: i32 = 10;

/// How many times each call is measured: enough for a steady median.
const ROUNDS: usize = 40;

/// Rounds before the measurement, for connections, caches and plans.
const WARM_UP: usize = 8;

/// Cards in a page: of each stage in a read of a board, and of the list of one stage.
const PAGE: i64 = 100;

/// The limits of the cards that a read of a board with few stages includes.
const FIRST_CARDS: FirstCardsLimits =
    FirstCardsLimits { per_stage: PAGE, per_board: 1000, contacts: 10_000, assigned_to: None };

/// A company with one board.
struct Owner {
    company: CompanyId,
    key: String,
    board: BoardId,
    stages: Vec<BoardListId>,
    cards: Vec<CardId>,
}

/// A measured call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    SingleRead,
    PageOfAStage,
    Move,
    Indicators,
}

impl Call {
    const ALL: [Self; 4] = [Self::SingleRead, Self::PageOfAStage, Self::Move, Self::Indicators];

    const fn name(self) -> &'static str {
        match self {
            Self::SingleRead => "single read",
            Self::PageOfAStage => "page of a stage",
            Self::Move => "move",
            Self::Indicators => "indicators",
        }
    }

    /// Runs only the statements of the call.
    async fn run_statements(self, db: &PgPool, owner: &Owner, round: usize) {
        let Owner { company, board, .. } = owner;
        let (company, board) = (*company, *board);
        match self {
            Self::SingleRead => {
                let found: Option<Board> = table::find(db, company, board).await.expect("the board");
                let stages: Vec<Stage> = table::all_of(db, company, board).await.expect("its stages");
                let counts = boards::count_cards(db, company, board, None).await.expect("counts");
                let first = cards::first_of_stages(db, company, board, stages.len(), FIRST_CARDS).await.expect("cards");
                assert!(found.is_some() && stages.len() == counts.len() && stages.len() == first.len());
            }
            Self::PageOfAStage => {
                let filter =
                    CardFilter { board_id: Some(board), list_id: Some(owner.stages[0]), ..CardFilter::default() };
                let page = PageRequest::first(PAGE);
                let page = cards::list(db, company, &filter, page).await.expect("a page").expect("short contacts");
                assert!(!page.rows.is_empty());
            }
            Self::Move => {
                let (card, stage, rank) = owner.next_move(round);
                let mut transaction = db.begin().await.expect("a transaction");
                let db = &mut *transaction;
                table::find::<CardRef>(&mut *db, company, card).await.expect("a card");
                let target = Target::Stage(stage);
                let stage = cards::lock_stage(db, company, board, target).await.expect("a stage").expect("the stage");
                let place = cards::place(db, company, stage, Some(card), Some(rank)).await.expect("a place");
                cards::lock(db, company, card).await.expect("a card");
                cards::move_card(db, company, card, stage.id, &place).await.expect("moved");
                cards::find_in(db, company, card).await.expect("a card");
                transaction.commit().await.expect("committed");
            }
            Self::Indicators => {
                let now = Utc::now();
                let month = Period { from: now - TimeDelta::days(15), to: now + TimeDelta::days(15) };
                let year = Period { from: now - TimeDelta::days(180), to: now + TimeDelta::days(180) };
                cards::goals(db, company, board).await.expect("goals").expect("the board");
                let sums = cards::indicators(db, company, board, (None, None), month, year).await.expect("indicators");
                assert!(sums.open.cards > 0);
            }
        }
    }

    fn request(self, owner: &Owner, round: usize) -> TestRequest {
        let board = format!("/api/v1/crm/boards/{}", owner.board);
        let get = |path: String| TestRequest::get().uri(&path);
        let request = match self {
            Self::SingleRead => get(board),
            Self::PageOfAStage => get(format!("{board}/cards?crmBoardListId={}", owner.stages[0])),
            Self::Indicators => get(format!("{board}/indicators")),
            Self::Move => {
                let (card, stage, rank) = owner.next_move(round);
                let body = json!({"crmBoardListId": stage, "position": rank});
                TestRequest::post().uri(&format!("/api/v1/crm/cards/{card}/move")).set_json(body)
            }
        };
        authorized(request, &owner.key)
    }
}

impl Owner {
    /// The card to move, its next stage and its place there: over all cards, to the first page of any open stage.
    fn next_move(&self, round: usize) -> (CardId, BoardListId, i64) {
        let card = self.cards[round * 7919 % self.cards.len()];
        // The last stage is only for won cards.
        let stage = self.stages[round % (self.stages.len() - 1)];
        (card, stage, i64::try_from(round * 37 % 90).expect("a place"))
    }
}

fn main() {
    if !support::is_bench() {
        return;
    }
    actix_rt::System::new().block_on(run());
}

async fn run() {
    let rows = support::size("HOTLINE_BENCH_CARDS", 100_000);
    let postgres = support::Postgres::start().await;
    let database = postgres.database("boards").await;
    let db = pool::connect(database.clone());
    pool::migrate(&db).await.expect("migrate");
    let started = Instant::now();
    let many = seed(&db, rows).await;
    let few = seed(&db, FEW_CARDS).await;
    sqlx::query("vacuum analyze").execute(&db).await.expect("analyze");
    println!("seeded {rows} and {FEW_CARDS} cards in {:?}", started.elapsed());

    let service = Service::start(settings(&postgres, database)).await.expect("the service starts");
    let http = init_service(
        App::new().wrap(from_fn(routes::assign_request_id)).configure(routes::configure(service.handles.clone())),
    )
    .await;
    println!("{:<16} {:>9} {:>11} {:>11} {:>7}", "call", "cards", "SQL", "service", "ratio");
    for call in Call::ALL {
        let mut medians = Vec::new();
        for owner in [&many, &few] {
            let (mut sql, mut whole) = (Vec::new(), Vec::new());
            for round in 0..WARM_UP + ROUNDS {
                let started = Instant::now();
                call.run_statements(&db, owner, round * 2).await;
                let statement_time = started.elapsed();
                let request = call.request(owner, round * 2 + 1).to_request();
                let started = Instant::now();
                ask(&http, request).await;
                if round >= WARM_UP {
                    sql.push(statement_time);
                    whole.push(started.elapsed());
                }
            }
            let (sql, whole) = (median(sql), median(whole));
            let (count, ratio) = (owner.cards.len(), whole.as_secs_f64() / sql.as_secs_f64());
            println!("{:<16} {count:>9} {sql:>11.1?} {whole:>11.1?} {ratio:>7.2}", call.name());
            medians.push(whole);
        }
        let growth = medians[0].as_secs_f64() / medians[1].as_secs_f64();
        println!("{:<16} growth {growth:.2} (aim: at most 3)", call.name());
        if call == Call::Indicators {
            let limit = Duration::from_millis(20);
            println!("{:<16} {:.1?} (aim: less than {limit:?})", call.name(), medians[0]);
        }
    }
    db.close().await;
    service.stop().await.expect("the service stops");
}

/// A company with a board of this many cards.
async fn seed(db: &PgPool, rows: usize) -> Owner {
    let company = companies::insert(db, &format!("With {rows} cards")).await.expect("company").id;
    let new = NewToken { name: "bench", permissions: everything(), ..NewToken::default() };
    let key = tokens::insert(db, company, new).await.expect("token").1;
    let board: BoardId = sqlx::query_scalar(
        "insert into boards (company_id, name, monthly_goal) values ($1, 'Solar', 100000) returning id",
    )
    .bind(company)
    .fetch_one(db)
    .await
    .expect("a board");
    let count = i32::try_from(rows).expect("few enough");
    for statement in [
        "insert into board_lists (company_id, board_id, label, position, done_list)
         select $1, $2, 'Stage ' || n, n, n = $3 from generate_series(1, $3) n where $4 > 0",
        "insert into contacts (company_id, name, number)
         select $1, 'Maria ' || md5(n::text), '55119' || lpad(n::text, 8, '0') from generate_series(1, 1000) n
         where $2 > 0 and $3 > 0 and $4 > 0",
        // Of every ten cards, two are won and in the last stage, and one is lost.
        "insert into cards (company_id, board_id, list_id, position, name, description, won_at, lost_at, creation_source,
             products_total)
         select $1, $2, s.id, n, 'Roof ' || md5(n::text), 'Some panels for roof ' || n,
             case when s.done_list then now() - n * interval '1 minute' end,
             case when n % 10 = 5 then now() - n * interval '1 minute' end, 'api', 19.9
         from generate_series(1, $4) n join board_lists s on s.company_id = $1 and s.board_id = $2
             and s.position = case when n % 10 in (3, 8) then $3 else n % ($3 - 1) + 1 end",
        "insert into card_contacts (company_id, card_id, contact_id)
         select $1, k.id, c.first + k.id % 1000 from cards k, (select min(id) as first from contacts where company_id = $1) c
         where k.company_id = $1 and k.board_id = $2 and $3 > 0 and $4 > 0",
        "insert into card_products (company_id, card_id, name, quantity, unit_price)
         select $1, k.id, 'Panel', 1, 19.9 from cards k
         where k.company_id = $1 and k.board_id = $2 and $3 > 0 and $4 > 0",
    ] {
        sqlx::query(statement).bind(company).bind(board).bind(STAGES).bind(count).execute(db).await.expect("seeded");
    }
    let stages = sqlx::query_scalar("select id from board_lists where company_id = $1 order by position");
    let stages = stages.bind(company).fetch_all(db).await.expect("stages");
    // Won cards are not moved.
    let open = sqlx::query_scalar("select id from cards where company_id = $1 and not won order by id");
    let cards: Vec<CardId> = open.bind(company).fetch_all(db).await.expect("cards");
    Owner { company, key, board, stages, cards }
}
