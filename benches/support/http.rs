//! Shared by benches of whole requests: a service on a database of the bench, called without a socket.

use std::time::Duration;

use actix_web::Error;
use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::header::AUTHORIZATION;
use actix_web::test::TestRequest;
use hotline::service::{Settings, StartOptions, StopSettings};
use hotline::web::connections::Limits;
use hotline_actors::EngineOptions;
use hotline_persistence::{Durability, journal};
use sqlx::postgres::PgConnectOptions;

use super::Postgres;

/// The settings of a service on this database, without a cluster.
pub fn settings(postgres: &Postgres, database: PgConnectOptions) -> Settings {
    let data_dir = postgres.journal_dir(database.get_database().expect("a database is named"));
    Settings {
        cluster: None,
        listen: ([127, 0, 0, 1], 0).into(),
        database: Some(database),
        key_file: postgres.keys().path().to_owned(),
        pg_bin: None,
        postgres_memory: None,
        postgres_disk: None,
        durability: Durability::Journal,
        on_premise: false,
        journal: journal::Options::default(),
        // The default permits sends to numbers that have never written.
        engine: EngineOptions::default(),
        workers: 1,
        trusted_proxies: Vec::new(),
        limits: Limits { per_address: 0, ..Limits::default() },
        rate_per_minute: 0,
        per_page_max: 100,
        wrong_tokens_per_minute: 0,
        visitors: hotline::visitors::VisitorOptions::default(),
        events: hotline::service::EventOptions::default(),
        metrics_listen: None,
        templates: hotline::templates::Options::default(),
        provider: hotline::providers::ProviderOptions::default(),
        webhooks: Default::default(),
        panel: Default::default(),
        stop: StopSettings { notice: Duration::ZERO, quiet: Duration::ZERO },
        start: StartOptions::default(),
        outbound: hotline::outbound::OutboundOptions::default(),
        media: hotline::media::Options::in_folder(data_dir.join("media")),
        data_dir,
    }
}

/// The request with a company's token.
pub fn authorized(request: TestRequest, key: &str) -> TestRequest {
    let peer = ([127, 0, 0, 1], 4711).into();
    request.peer_addr(peer).insert_header((AUTHORIZATION, format!("Bearer {key}")))
}

/// Sends a request, which must succeed, and reads its body.
pub async fn ask<S, R, B>(service: &S, request: R)
where
    S: Service<R, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    let response = service.call(request).await.expect("an answer");
    assert_eq!(response.status(), 200);
    let Ok(body) = to_bytes(response.into_body()).await else { panic!("the body cannot be read") };
    assert!(body.len() > 50, "the body is too short to contain a record");
}

pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
