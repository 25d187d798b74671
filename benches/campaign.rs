//! Question: how many recipients a second does a campaign without a rate limit reach, from the decision to the
//! provider, and what fraction is that of the messages that the bare outbox hands over in the same time?
//!
//! `cargo bench --bench campaign`; `HOTLINE_BENCH_MESSAGES` makes a round smaller.
//!
//! A round of the outbox is the one of the bench `outbox`: as many messages as there are recipients wait in a channel,
//! and are handed over once it is connected. A round of a campaign begins with recipients in the table: each is read,
//! its send is decided by its conversation, journaled and handed over to the same provider, which accepts everything.
//! The two kinds of rounds alternate. A campaign has at most 64 messages under way, as many as its channel sends at
//! once. Pacing is off. The journal is in the temporary directory, so `TMPDIR` chooses the disk.
//!
//! Aim: at least 0.8 of the outbox.

// A bench whose setup fails cannot continue.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hotline_persistence::CampaignId;
use support::Postgres;
use support::provider::{BODY, Desk, serve};

/// Recipients of a round.
const RECIPIENTS: usize = 20_000;

/// Measured turns of each side.
const TURNS: usize = 3;

/// A rate per minute that is never reached.
const RATE_NEVER_REACHED: i32 = 2_000_000_000;

fn main() {
    if !support::is_bench() {
        return;
    }
    actix_rt::System::new().block_on(run());
}

async fn run() {
    let recipients = support::size("HOTLINE_BENCH_MESSAGES", RECIPIENTS);
    let taken = Arc::new(AtomicUsize::new(0));
    let address = serve(taken.clone());
    let postgres = Postgres::start().await;
    let desk = Desk::open(&postgres, address, 1, recipients, recipients).await;
    let (mut outbox, mut campaigns) = (Duration::ZERO, Duration::ZERO);
    for turn in 0..=TURNS {
        let ((_, drain_time), campaign_time) =
            (desk.fill_and_drain(&taken).await, campaign(&desk, recipients, &taken).await);
        // The first turn, which opens the connections and the contacts' tickets, does not count.
        if turn > 0 {
            outbox += drain_time;
            campaigns += campaign_time;
        }
    }
    desk.close().await;
    let rate = |time: Duration| (TURNS * recipients) as f64 / time.as_secs_f64();
    let (outbox, campaigns) = (rate(outbox), rate(campaigns));
    println!("{:>10} {:>14} {:>14} {:>7}", "recipients", "outbox", "campaign", "ratio");
    println!("{recipients:>10} {outbox:>12.0}/s {campaigns:>12.0}/s {:>7.2}", campaigns / outbox);
}

/// The time from the beginning of a campaign to its last message.
async fn campaign(desk: &Desk, recipients: usize, taken: &AtomicUsize) -> Duration {
    let (db, company) = (&desk.store.housekeeping, desk.company.id);
    let id: CampaignId = sqlx::query_scalar(
        "insert into campaigns (company_id, name, status, contact_list_id, channel_id, scheduled_at, message,
             rate_per_minute)
         values ($1, 'Campaign', 'processing', 0, $2, now(), $3, $4) returning id",
    )
    .bind(company)
    .bind(desk.channels[0])
    .bind(BODY)
    .bind(RATE_NEVER_REACHED)
    .fetch_one(db)
    .await
    .expect("a campaign");
    sqlx::query(
        "insert into campaign_recipients (company_id, campaign_id, contact_id)
         select company_id, $2, id from contacts where company_id = $1",
    )
    .bind(company)
    .bind(id)
    .execute(db)
    .await
    .expect("recipients");
    let due = taken.load(Ordering::Acquire) + recipients;
    let begin = Instant::now();
    desk.engine.campaigns.begin(company, id).await.expect("the campaign begins");
    while taken.load(Ordering::Acquire) < due {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let time = begin.elapsed();
    desk.settle().await;
    time
}
