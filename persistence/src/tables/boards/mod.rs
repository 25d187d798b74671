//! Boards: sales pipelines with their goals, and the queues whose users see them. Plain: changed by
//! transactions, not by actors.

mod stages;

use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor};
use utoipa::ToSchema;

pub use stages::{
    NewStage, STAGES_MAX, Stage, count_cards, count_won_cards, insert as insert_stage, remove as remove_stage,
    update as update_stage,
};

use crate::error::with_timeout;
use crate::table::{self, Columns, Links, Named, Stamps, Table};
use crate::timestamp::Timestamp;
use crate::{Amount, BoardId, CompanyId, Error, QueueId, Result, UserId, noun};

/// A board: stages, and the cards that move between them.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Board {
    pub id: BoardId,
    #[schema(example = "Solar panels")]
    pub name: String,
    #[schema(example = "What we sell to households")]
    pub description: Option<String>,
    /// Monthly sales goal in the company's currency; `null` for none.
    pub monthly_goal: Option<Amount>,
    /// Yearly sales goal; `null` for none.
    pub yearly_goal: Option<Amount>,
    /// The user who created it; `null` if a token did, or if the user has left the company.
    pub created_by_user_id: Option<UserId>,
    /// Whether it is hidden from the list of boards; it can still be used.
    #[schema(example = false)]
    pub archived: bool,
    /// When it was archived; `null` if it is not.
    pub archived_at: Option<Timestamp>,
    /// The queues whose users see the board.
    #[sqlx(json)]
    pub queues: Vec<Named<QueueId>>,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for Board {
    const NAME: &'static str = "boards";
    const NOUN: &'static str = "board";
    const COLUMNS: &'static str = "boards.*,
        coalesce((select jsonb_agg(jsonb_build_object('id', q.id, 'name', q.name) order by q.id)
            from board_queues l join queues q on q.company_id = l.company_id and q.id = l.queue_id
            where l.company_id = boards.company_id and l.board_id = boards.id), '[]') as queues";
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = BoardId;
}

/// Subquery for `exists (… = <the user's id>)`: the board has a queue of the user.
pub const VISIBLE_BY_QUEUE: &str =
    "select from board_queues q join queue_users m on m.company_id = q.company_id and m.queue_id = q.queue_id
    where q.company_id = boards.company_id and q.board_id = boards.id and m.user_id";

/// As [`VISIBLE_BY_QUEUE`], but also selects the boards without any queue.
pub const VISIBLE_BY_QUEUE_OR_UNASSIGNED: &str = "select from users u
    where u.company_id = boards.company_id and (
        not exists (select from board_queues q where q.company_id = boards.company_id and q.board_id = boards.id)
        or exists (
            select from board_queues q join queue_users m on m.company_id = q.company_id and m.queue_id = q.queue_id
            where q.company_id = boards.company_id and q.board_id = boards.id and m.user_id = u.id))
    and u.id";

/// Whether a user sees a board through one of their queues, or, with `with_unassigned`, because it has no queue.
pub async fn is_visible(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    id: BoardId,
    user: UserId,
    with_unassigned: bool,
) -> Result<bool> {
    let condition = if with_unassigned { VISIBLE_BY_QUEUE_OR_UNASSIGNED } else { VISIBLE_BY_QUEUE };
    let query =
        format!("select exists (select from boards where company_id = $1 and id = $2 and exists ({condition} = $3))");
    with_timeout(sqlx::query_scalar(AssertSqlSafe(query)).bind(company).bind(id).bind(user).fetch_one(db)).await
}

/// The boards that a user sees through their queues, and those without any queue.
pub async fn visible_to(db: impl PgExecutor<'_>, company: CompanyId, user: UserId) -> Result<Vec<BoardId>> {
    let query = format!(
        "select id from boards where company_id = $1 and exists ({VISIBLE_BY_QUEUE_OR_UNASSIGNED} = $2) order by id"
    );
    with_timeout(sqlx::query_scalar(AssertSqlSafe(query)).bind(company).bind(user).fetch_all(db)).await
}

/// The queues whose users see a board.
const QUEUES: Links<noun::Board, noun::Queue> = Links::new("board_queues", "board_id", "queue_id");

/// Creates a board with its queues and stages, in the given order.
///
/// # Errors
/// [`Error::NotFound`] when the company does not have one of the queues.
pub async fn insert(
    db: &mut PgConnection,
    company: CompanyId,
    columns: &Columns,
    queues: &[QueueId],
    stages: &[NewStage],
) -> Result<Board> {
    let board: Board = table::insert(&mut *db, company, columns).await?;
    QUEUES.set(&mut *db, company, board.id, queues).await?;
    stages::insert_all(&mut *db, company, board.id, stages).await?;
    find_existing(db, company, board.id).await
}

/// Updates the given columns, archived flag and queues.
///
/// # Errors
/// [`Error::NotFound`] when the board does not exist, or the company does not have one of the queues.
pub async fn update(
    db: &mut PgConnection,
    company: CompanyId,
    id: BoardId,
    columns: &Columns,
    archived: Option<bool>,
    queues: Option<&[QueueId]>,
) -> Result<Board> {
    table::update::<Board>(&mut *db, company, id, columns).await?;
    if let Some(archived) = archived {
        // A board that is archived already keeps its `archived_at`.
        let archive = sqlx::query(
            "update boards set archived_at = case when $3 then now() end,
                 updated_at = greatest(now(), updated_at + interval '1 millisecond')
             where company_id = $1 and id = $2 and archived <> $3",
        );
        with_timeout(archive.bind(company).bind(id).bind(archived).execute(&mut *db)).await?;
    }
    if let Some(queues) = queues
        && QUEUES.set(&mut *db, company, id, queues).await?
    {
        table::touch::<Board>(&mut *db, company, id).await?;
    }
    find_existing(db, company, id).await
}

async fn find_existing(db: &mut PgConnection, company: CompanyId, id: BoardId) -> Result<Board> {
    table::find(db, company, id).await?.ok_or(Error::NotFound(Board::NOUN))
}
