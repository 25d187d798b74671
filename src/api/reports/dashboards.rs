//! The current state of the service desk and of the sales funnel.

use std::collections::BTreeMap;

use actix_web::web::Data;
use hotline_actors::{Organization, clock};
use hotline_persistence::tables::reports::desk::OpenTicketCounts;
use hotline_persistence::tables::reports::{self, MessageFigures, TicketFigures, sales as funnel};
use hotline_persistence::{Amount, BoardId, QueueId, UserId};
use serde::Serialize;
use utoipa::ToSchema;

use super::average_seconds;
use crate::api::boards;
use crate::app::App;
use crate::web::request::calendar::Zone;
use crate::web::{ApiResult, Caller, Json};

/// The current state of the service desk.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceDashboard {
    #[schema(example = 40)]
    pub open_tickets: i64,
    /// Open tickets without an agent.
    #[schema(example = 3)]
    pub unassigned_tickets: i64,
    /// Open tickets that wait for the contact: the company replied last, or there are no messages yet.
    #[schema(example = 28)]
    pub waiting_contact: i64,
    /// Open tickets whose contact is waiting for a reply by a user, an integration or a chatbot.
    #[schema(example = 12)]
    pub waiting_agent: i64,
    /// The longest current wait for a reply, in seconds; `null` if no contact is waiting.
    #[schema(example = 420)]
    pub oldest_waiting_seconds: Option<i64>,
    /// All queues, ordered by id.
    pub queues: Vec<QueueDesk>,
    /// All users, ordered by id.
    pub users: Vec<UserDesk>,
    /// Activity since midnight in the company's time zone.
    pub today: ServiceDay,
}

/// Open tickets of a queue.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueueDesk {
    pub id: QueueId,
    #[schema(example = "Support")]
    pub name: String,
    #[schema(example = 12)]
    pub open: i64,
    #[schema(example = 3)]
    pub unassigned: i64,
}

/// A user's open tickets.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserDesk {
    pub id: UserId,
    #[schema(example = "Ana Souza")]
    pub name: String,
    #[schema(example = 9)]
    pub open: i64,
}

/// Today's activity.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceDay {
    #[schema(example = 31)]
    pub opened: i64,
    #[schema(example = 29)]
    pub closed: i64,
    #[schema(example = 410)]
    pub inbound: i64,
    #[schema(example = 432)]
    pub outbound: i64,
    /// As in the ticket report.
    #[schema(example = 93.5)]
    pub avg_first_response_seconds: Option<f64>,
}

/// `GET /dashboards/service`.
pub async fn service(caller: Caller, app: Data<App>) -> ApiResult<Json<ServiceDashboard>> {
    let (company, organization, now) = (caller.company, &caller.organization, clock::now());
    let zone = Zone::of_company(&organization.company.time_zone);
    let db = app.engine.reads().acknowledged_tables(company).await?;
    let open_counts = app.engine.assignment.open_tickets(company).await?;
    // Figures are counted per quarter of an hour.
    let today = reports::widen_to_quarter_hours(zone.start_of_day(zone.day_of(now)), now);
    let tickets: TicketFigures = reports::total(db, company, today).await?;
    let messages: MessageFigures = reports::total(db, company, today).await?;

    let open_tickets = open_counts.iter().map(|group| group.open).sum();
    let waiting_agent: i64 = open_counts.iter().map(|group| group.waiting).sum();
    let oldest_wait_since = open_counts.iter().filter_map(|group| group.waiting_since).min();
    Ok(Json::of(ServiceDashboard {
        open_tickets,
        unassigned_tickets: open_counts.iter().filter(|group| group.user_id.is_none()).map(|group| group.open).sum(),
        waiting_contact: open_tickets - waiting_agent,
        waiting_agent,
        oldest_waiting_seconds: oldest_wait_since.map(|since| (now - since).num_seconds().max(0)),
        queues: queue_desks(organization, &open_counts),
        users: user_desks(organization, &open_counts),
        today: ServiceDay {
            opened: tickets.opened,
            closed: tickets.closed,
            inbound: messages.inbound,
            outbound: messages.outbound,
            avg_first_response_seconds: average_seconds(tickets.answer_ms, tickets.answered),
        },
    }))
}

fn queue_desks(organization: &Organization, open_counts: &[OpenTicketCounts]) -> Vec<QueueDesk> {
    let mut queues: BTreeMap<QueueId, QueueDesk> = BTreeMap::new();
    for (id, queue) in &organization.queues {
        queues.insert(*id, QueueDesk { id: *id, name: queue.row.name.clone(), open: 0, unassigned: 0 });
    }
    for group in open_counts {
        if let Some(queue) = group.queue_id.and_then(|id| queues.get_mut(&id)) {
            queue.open += group.open;
            queue.unassigned += if group.user_id.is_none() { group.open } else { 0 };
        }
    }
    queues.into_values().collect()
}

fn user_desks(organization: &Organization, open_counts: &[OpenTicketCounts]) -> Vec<UserDesk> {
    let mut users: BTreeMap<UserId, UserDesk> = BTreeMap::new();
    for (id, user) in &organization.users {
        users.insert(*id, UserDesk { id: *id, name: user.name.clone(), open: 0 });
    }
    for group in open_counts {
        if let Some(user) = group.user_id.and_then(|id| users.get_mut(&id)) {
            user.open += group.open;
        }
    }
    users.into_values().collect()
}

/// The current sales funnel.
#[derive(Debug, Serialize, ToSchema)]
pub struct SalesDashboard {
    /// Boards that are not archived, ordered by id; for a user, those they may see.
    pub boards: Vec<BoardFunnel>,
    /// The total of all boards.
    pub total: FunnelTotal,
}

/// A board's open cards and sales.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoardFunnel {
    pub id: BoardId,
    #[schema(example = "New customers")]
    pub name: String,
    #[schema(example = 18)]
    pub open_cards: i64,
    pub open_value: Amount,
    /// The value won since the start of the month in the company's time zone.
    pub won_this_month: Amount,
    pub monthly_goal: Option<Amount>,
}

/// Open cards and sales of all boards.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunnelTotal {
    #[schema(example = 44)]
    pub open_cards: i64,
    pub open_value: Amount,
    pub won_this_month: Amount,
}

/// `GET /dashboards/sales`.
pub async fn sales(caller: Caller, app: Data<App>) -> ApiResult<Json<SalesDashboard>> {
    let company = caller.company;
    let month_start = Zone::of_company(&caller.organization.company.time_zone).month_of(clock::now()).from;
    let visible_boards = boards::visible_boards(&caller, &app, None).await?;
    let mut boards = funnel::boards(app.db(company), company, month_start).await?;
    boards.retain(|board| visible_boards.as_ref().is_none_or(|visible| visible.contains(&board.id)));
    let mut total = FunnelTotal::default();
    for board in &boards {
        total.open_cards += board.open_cards;
        total.open_value = total.open_value.saturating_add(board.open_value);
        total.won_this_month = total.won_this_month.saturating_add(board.won_value);
    }
    let boards = boards.into_iter().map(|board| BoardFunnel {
        id: board.id,
        name: board.name,
        open_cards: board.open_cards,
        open_value: board.open_value,
        won_this_month: board.won_value,
        monthly_goal: board.monthly_goal,
    });
    Ok(Json::of(SalesDashboard { boards: boards.collect(), total }))
}
