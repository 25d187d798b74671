//! (b) The simplest send that compares fairly: token, ticket with its contact, and the message, in one transaction on
//! the same PostgreSQL, in a database with the same tables and indexes. Committed as PostgreSQL does by default,
//! synced.
//!
//! Every choice favours this side: two statements are combined, no connection is tested before it is used, statements
//! are prepared once, and the ticket itself is not changed (Hotline also records the last message, the first response
//! and the time, and orders the ticket's changes).

use actix_web::error::{ErrorInternalServerError, ErrorNotFound, ErrorUnauthorized, ErrorUnprocessableEntity};
use actix_web::http::header::AUTHORIZATION;
use actix_web::web::{self, Data, Json, ServiceConfig};
use actix_web::{Error, HttpRequest, HttpResponse};
use hotline_persistence::{PgPool, key, pool};
use serde_json::json;
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::bare::Message;
use crate::outcome::Outcome;
use crate::scenario::Server;
use crate::seed::Company;

/// Maximum connections: enough for waiting commits to share a sync.
const CONNECTIONS_MAX: u32 = 32;

/// The database of this handler.
pub struct Database(pub PgPool);

pub fn routes(services: &mut ServiceConfig) {
    services.service(web::scope(Server::Plain.prefix()).route("/messages", web::post().to(send)));
}

pub(super) fn connect(options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .test_before_acquire(false)
        .connect_lazy_with(options.disable_statement_logging())
}

async fn send(request: HttpRequest, db: Data<Database>, message: Json<Message>) -> Result<HttpResponse, Error> {
    let bearer = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let hash = key::hash(bearer.ok_or_else(|| ErrorUnauthorized("no token"))?);
    if message.kind != "text" || message.body.is_empty() {
        return Err(ErrorUnprocessableEntity("no text"));
    }
    let id = insert(&db.0, &hash, &message).await.map_err(ErrorInternalServerError)?;
    let id = id.ok_or_else(|| ErrorNotFound("no such ticket"))?;
    Ok(HttpResponse::Accepted().json(json!({"data": {"jobId": format!("job_{id}"), "status": "queued"}})))
}

async fn insert(db: &PgPool, hash: &[u8], message: &Message) -> Result<Option<i64>, sqlx::Error> {
    let mut transaction = db.begin().await?;
    let company: Option<i64> = sqlx::query_scalar(
        "select t.company_id from tokens t join companies c on c.id = t.company_id
         where t.hash = $1 and t.revoked_at is null and (t.expires_at is null or t.expires_at > now())
             and c.active and c.api_enabled and t.permissions -> 'messages' ? 'POST'",
    )
    .bind(hash)
    .fetch_optional(&mut *transaction)
    .await?;
    let found: Option<(i64, i64, String)> = sqlx::query_as(
        "select t.channel_id, t.contact_id, c.name from tickets t
         join contacts c on c.company_id = t.company_id and c.id = t.contact_id
         where t.company_id = $1 and t.id = $2 and t.status = 'open'",
    )
    .bind(company)
    .bind(message.ticket_id)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some((channel, contact, _)) = found else { return Ok(None) };
    let id = sqlx::query_scalar(
        "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, body, status,
             source, created_at, sent_at)
         values ($1, nextval('plain_message_ids'), $2, $3, $4, 'outbound', 'text', $5, 'sent', 'api', now(), now())
         returning id",
    )
    .bind(company)
    .bind(message.ticket_id)
    .bind(contact)
    .bind(channel)
    .bind(&message.body)
    .fetch_one(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(Some(id))
}

/// Creates the database: Hotline's own schema, and in it the same company, token, contacts and tickets with the same
/// ids.
pub async fn prepare(hotline: &PgPool, options: PgConnectOptions, company: &Company) -> Outcome<PgPool> {
    let name = options.get_database().ok_or("the database has no name")?;
    sqlx::query(sqlx::AssertSqlSafe(format!("create database {name}"))).execute(hotline).await?;
    let db = connect(options);
    pool::migrate(&db).await?;
    let permissions: serde_json::Value = sqlx::query_scalar("select permissions from tokens where company_id = $1")
        .bind(company.id)
        .fetch_one(hotline)
        .await?;
    let mut transaction = db.begin().await?;
    sqlx::query("insert into companies (id, name) overriding system value values ($1, 'Load')")
        .bind(company.id)
        .execute(&mut *transaction)
        .await?;
    sqlx::query("insert into tokens (company_id, name, prefix, hash, permissions) values ($1, 'load', '', $2, $3)")
        .bind(company.id)
        .bind(key::hash(&company.key))
        .bind(permissions)
        .execute(&mut *transaction)
        .await?;
    sqlx::query(
        "insert into channels (id, company_id, name, type, status, public_key) overriding system value
         values ($1, $2, 'Website', 'webchat', 'connected', 'load')",
    )
    .bind(company.channel)
    .bind(company.id)
    .execute(&mut *transaction)
    .await?;
    sqlx::query(
        "insert into contacts (id, company_id, name, number) overriding system value
         select id, $1, 'Maria Lima ' || n, '55119' || lpad(n::text, 8, '0')
         from unnest($2::bigint[]) with ordinality as x (id, n)",
    )
    .bind(company.id)
    .bind(&company.contacts)
    .execute(&mut *transaction)
    .await?;
    sqlx::query(
        "insert into tickets (company_id, id, channel_id, contact_id, status, creation_source, unread_count,
             reopen_count, opened_at, created_at, updated_at)
         select $1, id, $2, contact_id, 'open', 'api', 0, 0, now(), now(), now()
         from unnest($3::bigint[], $4::bigint[]) as x (id, contact_id)",
    )
    .bind(company.id)
    .bind(company.channel)
    .bind(&company.tickets)
    .bind(&company.contacts)
    .execute(&mut *transaction)
    .await?;
    sqlx::query("create sequence plain_message_ids cache 100").execute(&mut *transaction).await?;
    transaction.commit().await?;
    sqlx::query("analyze").execute(&db).await?;
    Ok(db)
}
