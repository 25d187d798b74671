//! What is shown, and in what order.

use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::balancer::Rule;
use crate::load::Load;
use crate::rig::Rig;

/// The time between two kills: longer than the 30 s after a kill in which no slot moves by itself, so that the process
/// that was started again has companies again.
const BETWEEN_KILLS: Duration = Duration::from_secs(45);

/// The time before the first kill.
const BEFORE_THE_FIRST: Duration = Duration::from_secs(5);

/// How often the figures are shown.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

const MEMBERS: usize = 3;

/// What ends the demo: Ctrl-C, a signal, or a terminal that is closed.
struct EndSignals(Vec<Signal>);

impl EndSignals {
    fn listen() -> Self {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Self(kinds.map(|kind| signal(kind).expect("a signal's handler")).into())
    }

    /// Waits this long; returns true at once if the demo is to end.
    async fn within(&mut self, time: Duration) -> bool {
        let ends = futures_util::future::select_all(self.0.iter_mut().map(|signal| Box::pin(signal.recv())));
        tokio::time::timeout(time, ends).await.is_ok()
    }
}

/// Runs the demo until somebody ends it.
pub async fn run() {
    // From here on a signal no longer ends the process by itself.
    let mut ends = EndSignals::listen();
    println!("PostgreSQL, its synchronous standby, three processes of Hotline and a balancer are started ...");
    let mut rig = Rig::start(MEMBERS).await;
    rig.balance(Rule::OnePerCompany);
    let (primary, standby) = (rig.servers.primary.address, rig.servers.standby.address);
    println!("PostgreSQL is at {primary}, its synchronous standby at {standby}: a commit is on both.");
    for member in &rig.members {
        let slots = rig.slots_of(&member.name).await;
        println!("{} is at http://{}, and serves {slots} of 1024 slots.", member.name, member.address());
    }
    for (company, owner) in rig.companies.iter().zip(rig.owners().await) {
        println!("company {} is served by {}.", company.id, owner.as_deref().unwrap_or("nobody"));
    }
    let load = rig.load().await;
    println!("Callers of each company open, send, transfer, close, reopen, read and list, through the balancer.");
    println!("Every {} s one of the processes is killed. Ctrl-C ends all of it.", BETWEEN_KILLS.as_secs());
    let mut is_over = watch(&load, &mut ends, BEFORE_THE_FIRST).await;
    for victim in (0..MEMBERS).cycle() {
        if is_over {
            break;
        }
        kill(&mut rig, &load, victim).await;
        is_over = watch(&load, &mut ends, BETWEEN_KILLS).await;
    }
    end(rig, load).await;
}

/// Shows the figures until the time is over; returns true if somebody ends the demo before.
async fn watch(load: &Load, ends: &mut EndSignals, time: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < time {
        let before = load.counts();
        if ends.within(SHOWN_EVERY).await {
            return true;
        }
        let changes: u64 = load.counts().iter().zip(&before).map(|(now, before)| now.0 - before.0).sum();
        let failed: u64 = load.counts().iter().zip(&before).map(|(now, before)| now.1 - before.1).sum();
        println!("  {changes} changes acknowledged in the last second, {failed} calls failed");
    }
    false
}

/// Kills a process, shows who takes over, and starts it again.
async fn kill(rig: &mut Rig, load: &Load, victim: usize) {
    let owners = rig.owners().await;
    let name = rig.members[victim].name.clone();
    // The companies it serves, and those whose callers the balancer sends to it.
    let is_hit = |number: usize| owners[number].as_ref() == Some(&name) || number % MEMBERS == victim;
    let served: Vec<usize> = (0..owners.len()).filter(|number| owners[*number].as_ref() == Some(&name)).collect();
    let slots = rig.slots_of(&name).await;
    let before = load.counts();
    let fault = Instant::now();
    rig.members[victim].kill();
    let list: Vec<String> = served.iter().map(|number| rig.companies[*number].id.to_string()).collect();
    let list =
        if list.is_empty() { "none of the companies".to_owned() } else { format!("company {}", list.join(", ")) };
    println!("{name} is killed (kill -9). It served {slots} slots, and {list}.");
    let took = rig.first_changes(fault).await;
    for number in served {
        let (company, owner) = (&rig.companies[number], rig.owner_name(&rig.companies[number]).await);
        println!(
            "  company {} was changed again after {:.1} s: {} has taken over.",
            company.id,
            took.as_secs_f64(),
            owner.as_deref().unwrap_or("nobody")
        );
    }
    for (number, (now, before)) in load.counts().iter().zip(&before).enumerate() {
        let (changes, failed, company) = (now.0 - before.0, now.1 - before.1, rig.companies[number].id);
        let of_whom = if is_hit(number) { "company" } else { "unaffected company" };
        println!("  {of_whom} {company}: {changes} changes acknowledged meanwhile, {failed} calls failed.");
        assert!(
            is_hit(number) || failed == 0,
            "{failed} calls of company {company} failed, which {name} had nothing to do with"
        );
    }
    rig.serve(victim);
    println!("{name} is started again, and is given slots in half a minute.");
}

/// Ends the load and everything else, and compares.
async fn end(rig: Rig, load: Load) {
    println!("The callers end; what was answered is compared with what there is ...");
    let (verdict, reads) = rig.end(load).await;
    println!(
        "{} changes were acknowledged, and {} of them are lost; {} were refused, and are not there; of {} nobody knows, and \
         they are there once or not at all. {reads} reads, none of which went back.",
        verdict.acknowledged, verdict.lost, verdict.refused, verdict.unknown
    );
    let contradictions = &verdict.contradictions;
    assert!(
        contradictions.is_empty(),
        "{} contradictions, among them {:#?}",
        contradictions.len(),
        contradictions.first()
    );
    println!("All has ended, and nothing is left behind.");
}
