//! Question: how many commands a second do tickets carry out, compared with plain transactions and with bare actix
//! mailboxes?
//!
//! `cargo bench --bench ticket_throughput`
//!
//! Callers, on threads of their own as HTTP workers are, keep up to 256 commands in flight. In `cycle`, a ticket is
//! opened, sent to, transferred, closed with a wrap-up, sent to, which reopens it, and closed; the callers start at
//! different commands, so that all kinds are in flight at every moment. The other cases repeat one or two commands.
//! Three sides run each case in turn: the engine; as many bare actors, which answer a trivial message; and, for 10,000
//! tickets, transactions (`plain.rs`), in two tickets of each caller. After each of its rounds, the engine's persister
//! is given the time to write everything to PostgreSQL, so that no round is refused because the log is full. Every
//! ticket is hot: nothing timed waits for PostgreSQL.
//!
//! The journal and PostgreSQL, which syncs as it does for the service, are in the temporary directory, so `TMPDIR`
//! chooses the disk.
//!
//! Aim, for 10,000 tickets: `journal` 25 times the plain transactions.

// A bench whose setup fails cannot continue.
#![allow(clippy::expect_used, clippy::panic)]

mod bare;
mod callers;
mod case;
mod live;
mod plain;
mod side;
mod slot;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use actix::dev::SystemRunner;
use actix::{Arbiter, System};
use criterion::{Criterion, SamplingMode};

use crate::callers::Callers;
use crate::case::{CASES, Case, TICKETS_MAX};
use crate::live::Live;
use crate::plain::Plain;
use crate::side::{BARE, Executor, PLAIN, Side};
use crate::support::Postgres;

/// Turns in which each side runs one round, for the ratios.
const TURNS: u32 = 5;

/// What is printed first, because criterion prints only figures.
const INTRODUCTION: &str = "\
Commands a second that tickets carry out, from the caller to its answer, on this machine:
  journal             Hotline: each ticket is an actor, and each answer is durable in the journal before it is given
  plain_transactions  the same commands, each a transaction of PostgreSQL: a service that keeps nothing in memory
  bare_mailbox        as many actors that answer a trivial message: the most that actix does here
The last lines compare them in turns. `journal of plain_transactions 15.000` is fifteen times as many commands a second.
Compare figures within this run only; ratios also with those of another run on the same machine.
Plots are in criterion/report/index.html in cargo's target folder.
";

fn main() {
    if !support::is_bench() {
        return;
    }
    println!("{INTRODUCTION}");
    let system = System::new();
    let postgres = system.block_on(Postgres::synced());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let callers = Callers::start(threads);
    let arbiters: Vec<Arbiter> = (0..threads).map(|_| Arbiter::new()).collect();
    let live = Arc::new(system.block_on(Live::start(&postgres)));
    let plain = Arc::new(system.block_on(Plain::start(&postgres)));

    let mut criterion = Criterion::default()
        .sample_size(10)
        // A round is long enough to warm everything up.
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let mut compared = Vec::new();
    let mut contacts_used = 0;
    for case in &CASES {
        let contacts = contacts_used..contacts_used + case.tickets;
        contacts_used = contacts.end;
        let mut sides = vec![Side::bare(case, &arbiters)];
        let executor = Executor::Live(live.clone());
        sides.push(system.block_on(Side::prepared(case, executor, contacts.clone(), &callers)));
        // With few tickets, transactions would measure how long a row is locked.
        if case.tickets == TICKETS_MAX {
            let executor = Executor::Plain(plain.clone());
            sides.push(system.block_on(Side::prepared(case, executor, contacts.clone(), &callers)));
        }
        let mut group = criterion.benchmark_group(format!("ticket_throughput/{}", case.name));
        group.sampling_mode(SamplingMode::Flat);
        sides.iter_mut().for_each(|side| side.bench(&mut group, case, &system, &callers));
        group.finish();
        compared.push((case, compare(case, &mut sides, &system, &callers)));
    }
    criterion.final_summary();

    println!("commands a second, in turns");
    for (case, sides) in compared {
        print!("{:<24} {:>6} tickets, {:>3} in flight", case.name, case.tickets, case.in_flight);
        sides.iter().for_each(|(name, per_second)| print!(", {name} {per_second:.0}"));
        let rate_of = |name| sides.iter().find(|(side, _)| *side == name).map(|(_, per_second)| per_second);
        for other in [BARE, PLAIN] {
            if let (Some(live_rate), Some(other_rate)) = (rate_of(live::NAME), rate_of(other)) {
                print!("; {} of {other} {:.3}", live::NAME, live_rate / other_rate);
            }
        }
        println!();
    }
    system.block_on(live.stop());
    system.block_on(postgres.stop());
}

/// Commands a second of each side, in turns, so that a machine that is slower for a while is slower for all.
fn compare(case: &Case, sides: &mut [Side], system: &SystemRunner, callers: &Callers) -> Vec<(&'static str, f64)> {
    let mut times = vec![Duration::ZERO; sides.len()];
    for _ in 0..TURNS {
        for (side, time) in sides.iter_mut().zip(&mut times) {
            *time += system.block_on(side.round(case, callers));
        }
    }
    let per_second = |side: &Side, time: Duration| (u64::from(TURNS) * side.commands(case)) as f64 / time.as_secs_f64();
    sides.iter().zip(times).map(|(side, time)| (side.name(), per_second(side, time))).collect()
}
