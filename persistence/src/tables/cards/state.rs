//! State changes of a card: it is moved, won, lost or reopened.

use sqlx::{FromRow, PgConnection};

use super::{BoardId, BoardListId, CardId, CardPosition};
use crate::error::with_timeout;
use crate::{Amount, CompanyId, Result};

/// The state of a locked card: no other transaction can change it until this one ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct LockedCard {
    pub id: CardId,
    pub board_id: BoardId,
    pub list_id: BoardListId,
    pub won: bool,
    pub lost: bool,
    pub products_total: Amount,
}

/// The outcome of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardOutcome {
    Won,
    Lost,
}

/// Locks a card; `None` if the company does not have it.
pub async fn lock(db: &mut PgConnection, company: CompanyId, id: CardId) -> Result<Option<LockedCard>> {
    let lock = sqlx::query_as(
        "select id, board_id, list_id, won, lost, products_total from cards where company_id = $1 and id = $2
         for no key update",
    );
    with_timeout(lock.bind(company).bind(id).fetch_optional(db)).await
}

/// Moves a locked card to a position in a locked stage.
pub async fn move_card(
    db: &mut PgConnection,
    company: CompanyId,
    id: CardId,
    stage: BoardListId,
    position: &CardPosition,
) -> Result<()> {
    let update = sqlx::query(
        "update cards set list_id = $3, position = $4::numeric, updated_at = greatest(now(), updated_at + interval '1 millisecond')
         where company_id = $1 and id = $2",
    );
    with_timeout(update.bind(company).bind(id).bind(stage).bind(&position.0).execute(db)).await?;
    Ok(())
}

/// Marks a locked, open card as won or lost.
pub async fn conclude(
    db: &mut PgConnection,
    company: CompanyId,
    id: CardId,
    outcome: CardOutcome,
    reason: Option<&str>,
) -> Result<()> {
    let conclude = match outcome {
        CardOutcome::Won => {
            "update cards set won_at = now(), status_reason = $3, updated_at = now() where company_id = $1 and id = $2"
        }
        CardOutcome::Lost => {
            "update cards set lost_at = now(), status_reason = $3, updated_at = now() where company_id = $1 and id = $2"
        }
    };
    with_timeout(sqlx::query(conclude).bind(company).bind(id).bind(reason).execute(db)).await?;
    Ok(())
}

/// Reopens a locked card. It stays in its stage.
pub async fn reopen(db: &mut PgConnection, company: CompanyId, id: CardId) -> Result<()> {
    let reopen = sqlx::query(
        "update cards set won_at = null, lost_at = null, status_reason = null, former_user_id = null, updated_at = now()
         where company_id = $1 and id = $2",
    );
    with_timeout(reopen.bind(company).bind(id).execute(db)).await?;
    Ok(())
}
