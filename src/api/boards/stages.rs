//! Stages of a board; the API calls them lists.

use std::borrow::Cow;

use actix_web::web::Data;
use hotline_actors::{Conflict, Refusal};
use hotline_persistence::table;
use hotline_persistence::tables::boards::{self, Board, STAGES_MAX, Stage};
use hotline_persistence::{BoardId, BoardListId};

use crate::api::plain::{BodyColumns, Change, DeletionBlocker, New, Plain};
use crate::app::App;
use crate::web::request::values::{Name, OrderedIds, Position};
use crate::web::{
    ApiError, ApiResult, Body, Caller, Created, Fields, Idempotency, Input, Json, NoContent, Page, PathId,
};

impl Plain for Stage {
    fn fields(body: &mut BodyColumns<'_, '_>) {
        body.required::<Name>("label");
        body.defaulted::<bool>("doneList");
        body.defaulted::<Position>("position");
    }
}

/// `POST /crm/boards/{boardId}/lists`: appends the stage unless it has a position.
pub async fn add(
    caller: Caller,
    app: Data<App>,
    board: PathId<BoardId>,
    body: Body<New<Stage>>,
    idempotency: Idempotency,
) -> ApiResult<Created<Stage>> {
    let columns = body.0.columns;
    idempotency
        .transaction(app.db(caller.company), async |db| {
            let stage = boards::insert_stage(db, caller.company, board.0, columns).await?;
            Ok(Created::of(stage.ok_or_else(too_many_stages)?))
        })
        .await
}

fn too_many_stages() -> ApiError {
    let count = i64::try_from(STAGES_MAX).unwrap_or(i64::MAX);
    let state = "the board has reached its maximum number of stages";
    Refusal::Conflict(Conflict::used_by(state, "too_many", [("crmBoardList", count)])).into()
}

/// `PUT /crm/boards/{boardId}/lists/{listId}`. A stage with won cards stays the board's `doneList`.
pub async fn update(
    caller: Caller,
    app: Data<App>,
    ids: PathId<(BoardId, BoardListId)>,
    body: Body<Change<Stage>>,
    idempotency: Idempotency,
) -> ApiResult<Json<Stage>> {
    let (board, stage) = ids.0;
    let columns = body.0.columns;
    idempotency
        .transaction(app.db(caller.company), async |db| {
            let updated = boards::update_stage(&mut *db, caller.company, board, stage, &columns).await?;
            if columns.is_false("doneList") && boards::count_won_cards(&mut *db, caller.company, stage, None).await? > 0
            {
                let state = "the stage contains won cards";
                let visible_cards =
                    boards::count_won_cards(db, caller.company, stage, caller.cards_limited_to()).await?;
                return Err(Refusal::Conflict(Conflict::used_by(state, "in_use", [("card", visible_cards)])).into());
            }
            Ok(Json::of(updated))
        })
        .await
}

const CARDS: DeletionBlocker =
    DeletionBlocker { state: "the stage has cards", noun: "card", column: ("cards", "list_id") };

/// `DELETE /crm/boards/{boardId}/lists/{listId}`: refused while the stage has cards.
pub async fn remove(caller: Caller, app: Data<App>, ids: PathId<(BoardId, BoardListId)>) -> ApiResult<NoContent> {
    let (board, stage) = ids.0;
    let db = app.db(caller.company);
    let removed = boards::remove_stage(db, caller.company, board, stage).await;
    CARDS.respond_for_cards(removed, db, &caller, stage).await
}

/// The body of `PUT /crm/boards/{boardId}/lists/order`.
pub struct StageOrder(OrderedIds<BoardListId>);

impl Input for StageOrder {
    fn name() -> Cow<'static, str> {
        "StageOrder".into()
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        fields.required("orderedIds").map(Self)
    }
}

/// `PUT /crm/boards/{boardId}/lists/order`: returns all stages in the new order.
pub async fn reorder(
    caller: Caller,
    app: Data<App>,
    board: PathId<BoardId>,
    body: Body<StageOrder>,
    idempotency: Idempotency,
) -> ApiResult<Page<Stage>> {
    let StageOrder(ids) = body.0;
    idempotency
        .transaction(app.db(caller.company), async |db| {
            if !table::exists::<Board>(&mut *db, caller.company, board.0).await? {
                return Err(ApiError::not_found());
            }
            let rows = table::reorder(db, caller.company, board.0, &ids.0).await?;
            let rows = rows.ok_or_else(|| {
                Refusal::invalid("orderedIds", "must be the ids of all stages of the board, each once")
            })?;
            Ok(Page::whole(rows))
        })
        .await
}
