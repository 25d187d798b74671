use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use actix::{Context, Handler};

use super::*;

/// Blocks at each command until the sender is dropped.
struct Stuck(std::sync::mpsc::Receiver<()>);

impl Actor for Stuck {
    type Context = Context<Self>;
}

impl Registered for Stuck {
    type Shared = ();
}

#[derive(Message)]
#[rtype(result = "Result<(), Refusal>")]
struct Block;

impl Handler<Envelope<Block>> for Stuck {
    type Result = ();

    fn handle(&mut self, block: Envelope<Block>, _: &mut Self::Context) {
        let Some((Block, reply_to)) = block.accept() else { return };
        let _ = self.0.recv();
        reply_to.send(Ok(()));
    }
}

#[actix::test]
async fn a_command_counts_as_waiting_until_it_is_accepted_or_dropped() {
    let registry = Registry::<u8, Stuck>::default();
    let (release, blocker) = std::sync::mpsc::channel();
    let arbiter = actix::Arbiter::new();
    let stuck = Stuck::start_in_arbiter(&arbiter.handle(), |cx| {
        cx.set_mailbox_capacity(1);
        Stuck(blocker)
    });
    let waiting = || registry.population().waiting;
    let wait_until_waiting = async |count: usize| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while waiting() != count {
            assert!(Instant::now() < deadline, "not in time: {count} commands wait, and not {}", waiting());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    // The actor accepts the first command and blocks. The others are sent, and two of their callers are canceled.
    let send = || {
        let (block, reply) = registry.wrap(Block);
        let sent = stuck.send(block);
        tokio::spawn(async move {
            sent.await.ok()?;
            reply.await.ok()
        })
    };
    let first = send();
    wait_until_waiting(0).await;
    let others: Vec<_> = (0..5).map(|_| send()).collect();
    assert_eq!(waiting(), 5);
    for canceled in &others[3..] {
        canceled.abort();
    }
    // Commands in the mailbox stay there until the actor accepts them.
    drop(release);
    wait_until_waiting(0).await;
    assert!(matches!(first.await, Ok(Some(Ok(())))));
    // A command to an actor that has ended is dropped, and does not count.
    arbiter.stop();
    assert!(arbiter.join().is_ok());
    drop(send().await);
    assert_eq!(waiting(), 0);
}

fn start_actor() -> ActorHandle<Stuck> {
    let (_, blocker) = std::sync::mpsc::channel();
    ActorHandle { addr: Stuck(blocker).start(), status: Arc::default() }
}

#[actix::test]
async fn concurrent_callers_share_one_load_and_a_failed_one_leaves_no_entry() {
    let registry = Registry::<u8, Stuck>::default();
    let (loads, release) = (AtomicU32::new(0), tokio::sync::Notify::new());
    let load = || async {
        loads.fetch_add(1, Ordering::Relaxed);
        release.notified().await;
        Ok(start_actor())
    };
    let ask = || registry.get_or_start(&7, load);
    let release_load = async {
        assert!(registry.read_status(&7, |_| Some(())).is_none(), "an actor is visible while it is loaded");
        release.notify_one();
    };
    let (first, second, ()) = tokio::join!(ask(), ask(), release_load);
    let (Ok(first), Ok(second)) = (first, second) else { panic!("the actor did not start") };
    assert!(Arc::ptr_eq(&first.status, &second.status) && loads.load(Ordering::Relaxed) == 1);
    assert!(registry.actors.get(&7).is_some_and(|entry| matches!(*entry, Registration::Hot(_))));
    // Removing an earlier actor does not remove its successor.
    registry.remove(&7, &start_actor().status);
    assert_eq!(registry.len(), 1);
    registry.remove(&7, &first.status);
    assert!(registry.is_empty());

    let refused = || async { Err(Refusal::NotFound) };
    let (first, second) = tokio::join!(registry.get_or_start(&8, refused), registry.get_or_start(&8, refused));
    assert!(first.is_err() && second.is_err());
    assert!(registry.is_empty());
}

#[actix::test]
async fn an_actor_that_is_removed_while_it_starts_is_replaced_by_the_next_one() {
    let registry = Registry::<u8, Stuck>::default();
    let (loads, release) = (AtomicU32::new(0), tokio::sync::Semaphore::new(0));
    let load = || async {
        loads.fetch_add(1, Ordering::Relaxed);
        if let Ok(permit) = release.acquire().await {
            permit.forget();
        }
        Ok(start_actor())
    };
    registry.insert(8, start_actor());
    let removal = async {
        assert_eq!(loads.load(Ordering::Relaxed), 1, "the actor is being started");
        release.add_permits(2);
        registry.remove_where(|key| *key == 7).await
    };
    let (started, removed) = tokio::join!(registry.get_or_start(&7, load), removal);
    let Ok(started) = started else { panic!("the actor did not start") };
    assert_eq!((removed.len(), loads.load(Ordering::Relaxed), registry.len()), (1, 2, 2));
    assert!(!Arc::ptr_eq(&started.status, &removed[0].status), "the removed actor was returned");
    assert!(registry.get(&7).is_some_and(|found| Arc::ptr_eq(&found.status, &started.status)));
    assert_eq!(registry.remove_where(|_| true).await.len(), 2);
    assert!(registry.is_empty());
}
