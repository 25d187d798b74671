//! (c) The list of tickets without the service around it. It runs Hotline's own statement, also planned once per
//! connection, and answers the same JSON. The connections are those of an ordinary pool, as many as Hotline may have.
//! There is no token and no filter but the status, and acknowledged changes are not waited for.

use std::sync::Arc;

use actix_web::error::ErrorInternalServerError;
use actix_web::web::{self, Data, Query, ServiceConfig};
use actix_web::{Error, HttpResponse};
use hotline::api::tickets::Ticket;
use hotline_actors::directory::RELOAD_EVERY;
use hotline_actors::{Directory, Organization, tickets as live};
use hotline_persistence::sealed::Keyring;
use hotline_persistence::select::PageRequest;
use hotline_persistence::tables::tickets::{self, TicketFilter, TicketStatus};
use hotline_persistence::{CompanyId, PgPool, pool};
use serde::{Deserialize, Serialize};
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::outcome::Outcome;
use crate::scenario::Server;

/// Hotline's tables, and the names that are shown with a ticket.
pub struct Tables {
    db: PgPool,
    company: CompanyId,
    organization: Arc<Organization>,
}

impl Tables {
    pub async fn open(options: PgConnectOptions, company: i64) -> Outcome<Self> {
        let pool_options = PgPoolOptions::new().max_connections(pool::MAIN_CONNECTIONS_MAX);
        let db = pool_options.connect_lazy_with(options.disable_statement_logging().options([pool::PLAN_ONCE]));
        let company = CompanyId::new(company);
        let organization =
            Directory::load(&db, &Keyring::default(), RELOAD_EVERY).await?.company(company).ok_or("no such company")?;
        Ok(Self { db, company, organization })
    }
}

pub fn routes(services: &mut ServiceConfig) {
    services.service(web::scope(Server::SameSql.prefix()).route("/tickets", web::get().to(list)));
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListParams {
    status: String,
    per_page: i64,
}

#[derive(Serialize)]
struct TicketPage {
    data: Vec<Ticket>,
    meta: Meta,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    page: i64,
    per_page: i64,
    has_more: bool,
}

async fn list(tables: Data<Tables>, params: Query<ListParams>) -> Result<HttpResponse, Error> {
    let status = if params.status == "open" { TicketStatus::Open } else { TicketStatus::Closed };
    let filter = TicketFilter { status: Some(status), ..TicketFilter::default() };
    let request = PageRequest::first(params.per_page);
    let page = tickets::list(&tables.db, tables.company, &filter, request).await.map_err(ErrorInternalServerError)?;
    let ticket_of = |row| Ticket::of(&tables.organization, live::Ticket::loaded(row, false).into());
    let meta = Meta { page: 1, per_page: request.size, has_more: page.has_more };
    Ok(HttpResponse::Ok().json(TicketPage { data: page.rows.into_iter().map(ticket_of).collect(), meta }))
}
