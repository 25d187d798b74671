//! The cost of all that precedes a handler: the checks of token, company, rate and permission of one request, and the
//! request's id; compared with the handler alone.
//!
//! `cargo bench --bench front_door`. In this process and without sockets, so that the difference is these checks alone.

#![allow(clippy::expect_used, clippy::panic)]

use std::hint::black_box;
use std::time::Duration;

use actix_web::dev::{Service as _, ServiceResponse};
use actix_web::http::header::AUTHORIZATION;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service};
use actix_web::web;
use actix_web::{App, HttpResponse};
use criterion::{BatchSize, Criterion};
use futures_util::FutureExt;
use hotline::cli::everything;
use hotline::service::{Service, Settings};
use hotline::web::admission::auth::admit;
use hotline::web::admission::idempotency::execute_once;
use hotline::web::admission::request_id::assign_request_id;
use hotline_persistence::pool;
use hotline_persistence::tables::companies;
use hotline_persistence::tables::tokens::{self, NewToken};

mod support;

/// The handler behind the checks, which only answers.
async fn answer() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body("{\"data\":[]}")
}

const PATH: &str = "/api/v1/tickets";

fn request(key: &str) -> TestRequest {
    let peer = ([127, 0, 0, 1], 4711).into();
    TestRequest::get().uri(PATH).peer_addr(peer).insert_header((AUTHORIZATION, format!("Bearer {key}")))
}

fn main() {
    if !support::is_bench() {
        return;
    }
    actix_rt::System::new().block_on(run());
}

async fn run() {
    let postgres = support::Postgres::start().await;
    let (service, key) = serve(&postgres).await;
    // The state that the middleware needs, as in the service.
    let web_state = service.handles.web_state.clone();
    let add_state = || {
        let web_state = web_state.clone();
        move |services: &mut web::ServiceConfig| web_state.add(services)
    };
    let mut criterion = Criterion::default().configure_from_args().measurement_time(Duration::from_secs(5));
    let mut group = criterion.benchmark_group("front_door");

    let endpoint = || web::resource("/tickets").get(answer);
    let bare = init_service(App::new().configure(add_state()).service(web::scope("/api/v1").service(endpoint()))).await;
    let guarded = init_service(
        App::new()
            .configure(add_state())
            .service(web::scope("/api/v1").wrap(from_fn(execute_once)).wrap(from_fn(admit)).service(endpoint())),
    )
    .await;
    let with_request_id = init_service(
        App::new()
            .configure(add_state())
            .wrap(from_fn(assign_request_id))
            .service(web::scope("/api/v1").wrap(from_fn(execute_once)).wrap(from_fn(admit)).service(endpoint())),
    )
    .await;

    macro_rules! measure {
        ($name:literal, $service:expr) => {
            group.bench_function($name, |bencher| {
                bencher.iter_batched(
                    || request(&key).to_request(),
                    // Nothing here waits, so one poll completes the request.
                    |request| black_box(status($service.call(request).now_or_never().expect("nothing waits"))),
                    BatchSize::SmallInput,
                );
            });
        };
    }
    measure!("bare handler", bare);
    measure!("token, company, rate, permission", guarded);
    measure!("the same, and the request's id", with_request_id);
    group.finish();
    service.stop().await.expect("the service stops");
}

fn status<B>(response: Result<ServiceResponse<B>, actix_web::Error>) -> u16 {
    let status = response.expect("an answer").status().as_u16();
    assert_eq!(status, 200);
    status
}

/// The service with one company, and the company's token.
async fn serve(postgres: &support::Postgres) -> (Service, String) {
    let database = postgres.database("front_door").await;
    let db = pool::connect(database.clone());
    pool::migrate(&db).await.expect("migrate");
    let company = companies::insert(&db, "Acme").await.expect("company").id;
    let new = NewToken { name: "bench", permissions: everything(), ..NewToken::default() };
    let (_, key) = tokens::insert(&db, company, new).await.expect("token");
    db.close().await;
    // A rate limit, as in the service, but one that the bench cannot reach.
    let settings = Settings { rate_per_minute: u32::MAX, ..support::http::settings(postgres, database) };
    (Service::start(settings).await.expect("the service starts"), key)
}
