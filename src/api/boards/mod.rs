//! Boards, with their stages.

mod show;
pub mod stages;
mod visibility;

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::boards::{self, Board, NewStage, STAGES_MAX};
use hotline_persistence::{BoardId, QueueId};

pub use show::show;
pub use visibility::{check_board, list, visible_boards};

use super::plain::{BodyColumns, DeletionBlocker, Filters, Plain};
use super::references::LINKS_MAX;
use crate::app::App;
use crate::web::request::amounts::Goal;
use crate::web::request::values::{Name, Position, Text};
use crate::web::{ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, NoContent, PathId};

impl Plain for Board {
    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("name");
        body.nullable::<Text>("description");
        body.nullable::<Goal>("monthlyGoal");
        body.nullable::<Goal>("yearlyGoal");
    }

    fn filters(list: &mut Filters<'_>) {
        list.equals_or("archived", false);
    }
}

/// The stages of a board that is created without stages: each label, and whether the stage is for won cards.
const DEFAULT_STAGES: [(&str, bool); 3] = [("To do", false), ("In progress", false), ("Done", true)];

/// The body of `POST /crm/boards`.
pub struct NewBoard {
    columns: Columns,
    stages: Vec<NewStage>,
    queues: Vec<QueueId>,
}

impl Input for NewBoard {
    fn name() -> Cow<'static, str> {
        "BoardCreate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let columns = BodyColumns::of_new::<Board>(fields);
        let mut has_done_stage = false;
        let stages = fields.objects("crmBoardLists", STAGES_MAX, |fields| {
            let label = fields.required::<Name>("label");
            let is_done = fields.optional("doneList").unwrap_or(false);
            let position = fields.optional::<Position>("position").map(|position| position.0);
            if is_done && has_done_stage {
                fields.refuse("doneList", "is already set on another stage");
            }
            has_done_stage |= is_done;
            Some(NewStage { label: label?.0, position, is_done })
        });
        let queues = fields.objects("crmBoardQueues", LINKS_MAX, read_queue).unwrap_or_default();
        let stages = stages.filter(|stages| !stages.is_empty()).unwrap_or_else(|| {
            let new_stage =
                |(label, is_done): (&str, bool)| NewStage { label: label.to_owned(), position: None, is_done };
            DEFAULT_STAGES.map(new_stage).into()
        });
        Some(Self { columns, stages, queues })
    }
}

/// Reads one of the queues whose members see the board.
fn read_queue(fields: &mut Fields<'_>) -> Option<QueueId> {
    fields.required("queueId")
}

/// `POST /crm/boards`: creates the board with its stages and queues, atomically.
pub async fn create(
    caller: Caller,
    app: Data<App>,
    body: Body<NewBoard>,
    idempotency: Idempotency,
) -> ApiResult<Created<Board>> {
    let NewBoard { mut columns, stages, queues } = body.0;
    if let Some((user, _)) = caller.user() {
        columns.set("createdByUserId", user);
    }
    idempotency
        .transaction(app.db(caller.company), async |db| {
            Ok(Created::of(boards::insert(db, caller.company, &columns, &queues, &stages).await?))
        })
        .await
}

/// The body of `PUT /crm/boards/{boardId}`.
pub struct ChangedBoard {
    columns: Columns,
    archived: Option<bool>,
    queues: Option<Vec<QueueId>>,
}

impl Input for ChangedBoard {
    fn name() -> Cow<'static, str> {
        "BoardUpdate".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let columns = BodyColumns::of_change::<Board>(fields);
        let archived = fields.non_null("archived");
        let queues = fields.changed_objects("crmBoardQueues", LINKS_MAX, read_queue);
        Some(Self { columns, archived, queues })
    }
}

/// `PUT /crm/boards/{boardId}`.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    id: PathId<BoardId>,
    body: Body<ChangedBoard>,
    idempotency: Idempotency,
) -> ApiResult<Json<Board>> {
    let ChangedBoard { columns, archived, queues } = body.0;
    idempotency
        .transaction(app.db(caller.company), async |db| {
            Ok(Json::of(boards::update(db, caller.company, id.0, &columns, archived, queues.as_deref()).await?))
        })
        .await
}

const CARDS: DeletionBlocker =
    DeletionBlocker { state: "the board has cards", noun: "card", column: ("cards", "board_id") };

/// `DELETE /crm/boards/{boardId}`: also deletes the board's stages; refused while the board has cards.
pub async fn remove(caller: Caller, app: Data<App>, id: PathId<BoardId>) -> ApiResult<NoContent> {
    let db = app.db(caller.company);
    let removed = table::remove::<Board>(db, caller.company, id.0).await;
    CARDS.respond_for_cards(removed, db, &caller, id.0).await
}
