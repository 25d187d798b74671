//! A life that looks dead is ended by another, unless it sends a heartbeat after all.

use chrono::{DateTime, Utc};
use hotline_persistence::cluster::LifeId;
use hotline_persistence::cluster::lives::{self, NewLife};
use sqlx::PgPool;

use crate::support::TestDatabase;

async fn begin_life(db: &PgPool, node: &str) -> LifeId {
    let new = NewLife { node: node.to_owned(), address: format!("{node}:7400"), cores: 1 };
    lives::begin(db, &new).await.expect("a life begins")
}

/// The time of a life's last heartbeat, unless the life is over.
async fn beat_of(db: &PgPool, id: LifeId) -> Option<DateTime<Utc>> {
    let lives = lives::all(db).await.expect("the lives");
    lives.into_iter().find(|life| life.life == id).map(|life| life.beat_at)
}

#[actix_web::test]
async fn a_life_that_sends_another_heartbeat_is_not_ended() {
    let database = TestDatabase::migrated().await;
    let db = &database.db;
    let (heir, suspect, other) =
        (begin_life(db, "one").await, begin_life(db, "two").await, begin_life(db, "three").await);
    let suspected_beat = beat_of(db, suspect).await.expect("it is alive");
    lives::beat(db, suspect, 0).await.expect("a heartbeat");
    let last_beat = beat_of(db, suspect).await.expect("it is alive");
    let seal = async |life, beat| lives::seal(db, life, suspect, beat).await.expect("an answer");

    assert!(!seal(heir, suspected_beat).await, "a life with a newer heartbeat was ended");
    assert_eq!(beat_of(db, suspect).await, Some(last_beat));
    lives::beat(db, suspect, 0).await.expect("the life continues");

    let last_beat = beat_of(db, suspect).await.expect("it is alive");
    assert!(seal(heir, last_beat).await);
    assert_eq!(beat_of(db, suspect).await, None);
    assert!(seal(heir, last_beat).await, "its heir does not learn of it if the first answer is lost");
    assert!(!seal(other, last_beat).await, "another life has ended it as well");
    assert!(lives::beat(db, suspect, 0).await.is_err(), "an ended life sends heartbeats");
    database.drop().await;
}
