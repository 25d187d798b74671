//! Messages of a company that is to move to another process.

use std::time::Duration;

use hotline_actors::EngineOptions;
use hotline_persistence::cluster::Owner;

use super::{Office, fast, number, patient};
use crate::members::{owner_of, start_second_service};
use crate::support::eventually;
use crate::support::provider::Answer;
use crate::support::service::TestOptions;
use crate::webhooks::moved::move_company;

/// Slots that are to move together with the company's.
const OTHER_SLOTS: i64 = 10;

#[actix_web::test]
async fn a_company_that_cannot_move_delays_no_other_and_keeps_sending() {
    let options = TestOptions { member: true, ..TestOptions::default() };
    let options = TestOptions { engine: EngineOptions { sending: fast(), ..options.engine.clone() }, ..options };
    let office = Office::open_as(options.clone(), fast(), patient()).await;
    let channel = office.phone("1901").await;
    let (second, _folder) = start_second_service(&office.app, &options).await;
    let (company, db) = (office.app.company.id, &office.app.db);
    let services = [&office.app.service, &second];
    let owner = owner_of(company, services);
    let membership = owner.app.engine.store().membership().expect("a member").clone();
    let slot = owner.app.engine.directory().slot(company).expect("a slot");
    office.provider.always("1901", Answer::Hang);
    let first = office.text(channel, &number(1), "first").await;
    office.provider.called_times("1901", 1).await;

    let count_slots = async |life: i64| -> i64 {
        let count = "select count(*) from slots where life = $1";
        sqlx::query_scalar(count).bind(life).fetch_one(db).await.expect("a count")
    };
    let before = count_slots(membership.life.get()).await;
    let to_move = "update slots set next = (select life from lives where life <> $1)
        where slot = $2 or slot in (select slot from slots where life = $1 and slot <> $2 order by slot limit $3)";
    let to_move = sqlx::query(to_move).bind(membership.life).bind(slot.column()).bind(OTHER_SLOTS);
    to_move.execute(db).await.expect("the slots are to move");
    // The move waits for the provider's answer, which does not come in time.
    eventually("the other slots have moved", || async {
        count_slots(membership.life.get()).await == before - OTHER_SLOTS
    })
    .await;
    eventually("the company's slot stays", || async { membership.placement.owner(slot) == Owner::Local }).await;
    let next = "select count(*) from slots where life = $1 and slot = $2 and next is null";
    let next = sqlx::query_scalar::<_, i64>(next).bind(membership.life).bind(slot.column());
    assert_eq!(next.fetch_one(db).await.expect("a count"), 1);

    office.provider.always("1901", Answer::Accept);
    office.provider.release();
    office.wait_for_status(&first, "sent").await;
    let second_job = office.text(channel, &number(2), "second").await;
    office.wait_for_status(&second_job, "sent").await;
    assert_eq!(office.provider.accepted_count("1901"), 2, "not each message was sent once");
    second.stop().await.expect("a clean stop");
    office.close().await;
}

#[actix_web::test]
async fn a_company_that_moves_has_each_message_sent_once() {
    const MESSAGES: usize = 40;
    let options = TestOptions { member: true, ..TestOptions::default() };
    let options = TestOptions { engine: EngineOptions { sending: fast(), ..options.engine.clone() }, ..options };
    let office = Office::open_as(options.clone(), fast(), patient()).await;
    let channel = office.phone("1902").await;
    let (second, _folder) = start_second_service(&office.app, &options).await;
    let owner = owner_of(office.app.company.id, [&office.app.service, &second]);
    office.provider.always("1902", Answer::Late(Duration::from_millis(300), Box::new(Answer::Accept)));
    let mut jobs = Vec::new();
    for contact in 0..MESSAGES {
        jobs.push(office.text(channel, &number(contact), "hello").await);
    }
    // Of the last messages, some are under way and others wait.
    move_company(&office.app, owner).await;
    for job in &jobs {
        office.wait_for_status(job, "sent").await;
    }
    assert_eq!(office.provider.accepted_count("1902"), MESSAGES, "not each message was sent once");
    second.stop().await.expect("a clean stop");
    office.close().await;
}
