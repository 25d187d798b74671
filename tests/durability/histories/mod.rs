//! Random histories of people who write, are answered, change their numbers, edit, delete and react, as a provider
//! reports them: twice, late, at once, and again after the service was killed. A plain model says which records each
//! must become.
//!
//! A history follows from its seed: `HISTORIES_SEED=1200` begins with the seed that a failure names. Its steps and
//! calls are the same then; only the interleaving of calls that come at once is up to the machine.

mod agreement;
mod caller;
mod calls;
mod history;
mod model;
mod person;

use std::time::{Duration, Instant};

use chrono::Utc;
use futures_util::future::join;
use futures_util::{StreamExt, stream};
use hotline_persistence::sealed::Keyring;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::agreement::{Agreement, Records};
use self::caller::Caller;
use self::history::{History, LONGEST_S};
use self::person::GROUP_SIZE;
use crate::process::keys_of;
use crate::stoppable_service::StoppableService;
use crate::support::{PATIENCE, check_events, check_plain_events, eventually, patience};

/// Histories of each company, with consecutive seeds: a group of people is never in two companies.
const HISTORIES_EACH: u64 = 60;

/// Histories at once: enough to interfere with each other, and with fewer calls at once than a channel takes.
const AT_ONCE: usize = 16;

/// Kills in the histories of one company.
const KILLS: usize = 2;

/// The longest wait before a kill, so that it may come at any moment between two answers.
const BETWEEN_ANSWERS: Duration = Duration::from_millis(30);

/// The pause between two reads of the records.
const READ_INTERVAL: Duration = Duration::from_millis(50);

/// How many differences a failure shows at most.
const SHOWN_MAX: usize = 5;

/// Companies without and with kills: ten thousand histories with KILLS_LONG, which `make kills` sets.
fn companies() -> (u64, u64) {
    if std::env::var_os("KILLS_LONG").is_some() { (134, 34) } else { (1, 1) }
}

/// The seed of the variable, or `default_seed`; in both cases the first one of its group.
fn first_seed(default_seed: u64) -> u64 {
    let seed = std::env::var("HISTORIES_SEED").ok();
    let parsed = seed.map(|seed| seed.parse().unwrap_or_else(|_| panic!("HISTORIES_SEED is not a number: {seed}")));
    let seed: u64 = parsed.unwrap_or(default_seed);
    seed - seed % GROUP_SIZE
}

#[actix_web::test]
async fn each_person_is_one_contact_with_one_open_ticket_as_a_plain_model_says() {
    let (without_kills, _) = companies();
    run(first_seed(0), without_kills, 0).await;
}

#[actix_web::test]
async fn each_person_is_one_contact_despite_kills_at_random_moments() {
    let (without_kills, with_kills) = companies();
    run(first_seed(without_kills * HISTORIES_EACH), with_kills, KILLS).await;
}

/// Runs the histories of this many companies, one after the other.
async fn run(first_seed: u64, companies: u64, kills: usize) {
    let (mut service, keys) =
        StoppableService::open(&["--rate-per-minute=0"], async |_, _, folder| keys_of(folder)).await;
    let begun = Instant::now();
    for company in 0..companies {
        run_company(&mut service, &keys, first_seed + company * HISTORIES_EACH, kills).await;
    }
    let histories = companies * HISTORIES_EACH;
    let took = begun.elapsed();
    println!("{histories} histories in {took:?}: {:.1} a second", histories as f64 / took.as_secs_f64());
    service.close().await;
}

/// Runs the histories of one company, and compares its records with their models.
async fn run_company(service: &mut StoppableService, keys: &Keyring, first_seed: u64, kills: usize) {
    let db = service.database();
    let caller = Caller::open(service.api(), &db, keys).await;
    let since_s = Utc::now().timestamp() - LONGEST_S;
    let histories: Vec<History> =
        (first_seed..first_seed + HISTORIES_EACH).map(|seed| History::of(seed, since_s)).collect();
    let agreement = Agreement::of(&histories);
    let calling = stream::iter(&histories).map(|history| caller.run(history)).buffer_unordered(AT_ONCE).collect::<()>();
    let calls = histories.iter().map(History::calls).sum();
    join(calling, kill_at_random(service, &caller, (calls, kills), first_seed)).await;
    if kills > 0 {
        restart(service, &caller);
    }
    caller.merge_all().await;
    let records = wait_for_agreement(&agreement, &caller, first_seed).await;
    if kills > 0 {
        // What was answered is restored from the tables and the log, and nothing else is there.
        restart(service, &caller);
        let again = wait_for_agreement(&agreement, &caller, first_seed).await;
        let changed = records.all().zip(again.all()).find(|(before, after)| before != after);
        assert_eq!(changed, None, "a restart changed the records of histories from {first_seed} on");
    }
    check_events(&db, caller.company.id).await;
    check_plain_events(&db, caller.company.id).await;
    db.close().await;
}

fn restart(service: &mut StoppableService, caller: &Caller) {
    service.kill();
    service.start();
    caller.move_to(&service.api());
}

/// Kills the service `kills` times while the provider calls, each time in another part of the calls.
async fn kill_at_random(service: &mut StoppableService, caller: &Caller, (calls, kills): (usize, usize), seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    for kill in 0..kills {
        let part = calls / kills;
        let answered = kill * part + random.random_range(0..part);
        let wait = BETWEEN_ANSWERS.mul_f64(random.random());
        while caller.answered() < answered {
            let before = caller.answered();
            eventually("another call is answered", || async { caller.answered() > before }).await;
        }
        tokio::time::sleep(wait).await;
        restart(service, caller);
    }
}

/// The records, once they agree with the models: a report that comes before its message may be applied after the report
/// was answered.
async fn wait_for_agreement(agreement: &Agreement, caller: &Caller, first_seed: u64) -> Records {
    let deadline = Instant::now() + patience(PATIENCE);
    loop {
        // Determined before the records are read, which may take long.
        let is_late = Instant::now() >= deadline;
        let api = caller.api();
        let records = Records::read(&api).await;
        let differences = agreement.differences(&api, &records).await;
        if differences.is_empty() {
            return records;
        }
        let (count, shown) = (differences.len(), differences[..differences.len().min(SHOWN_MAX)].join("\n"));
        assert!(!is_late, "histories from {first_seed} on, {count} differences:\n{shown}");
        tokio::time::sleep(READ_INTERVAL).await;
    }
}
