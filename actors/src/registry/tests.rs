use std::sync::atomic::{AtomicU32, Ordering};

use actix::{Context, Handler};

use super::*;

/// Blocks at the first command until released.
struct Stuck(std::sync::mpsc::Receiver<()>);

impl Actor for Stuck {
    type Context = Context<Self>;
}

impl Registered for Stuck {
    type Shared = ();
}

#[derive(Message)]
#[rtype(result = "Result<(), Refusal>")]
struct Work;

impl Handler<Envelope<Work>> for Stuck {
    type Result = ();

    fn handle(&mut self, work: Envelope<Work>, _: &mut Self::Context) {
        let Some((Work, answer)) = work.taken() else { return };
        let _ = self.0.recv();
        answer.give(Ok(()));
    }
}

#[actix::test]
async fn a_command_waits_until_it_is_taken_or_nobody_can_take_it() {
    let registry = Registry::<u8, Stuck>::default();
    let (go, told) = std::sync::mpsc::channel();
    let arbiter = actix::Arbiter::new();
    let stuck = Stuck::start_in_arbiter(&arbiter.handle(), |cx| {
        cx.set_mailbox_capacity(1);
        Stuck(told)
    });
    let waiting = || registry.population().waiting;
    let settle = async |count: usize| {
        while waiting() != count {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    // The first is taken; the others are sent, and two of their callers are cancelled.
    let send = || {
        let (work, answered) = registry.counted(Work);
        let sent = stuck.send(work);
        tokio::spawn(async move {
            sent.await.ok()?;
            answered.await.ok()
        })
    };
    let first = send();
    settle(0).await;
    let others: Vec<_> = (0..5).map(|_| send()).collect();
    assert_eq!(waiting(), 5);
    for gone in &others[3..] {
        gone.abort();
    }
    // Commands in the mailbox stay there until the actor takes them.
    drop(go);
    settle(0).await;
    assert!(matches!(first.await, Ok(Some(Ok(())))));
    // An actor that has ended leaves nothing behind.
    arbiter.stop();
    assert!(arbiter.join().is_ok());
    drop(send().await);
    assert_eq!(waiting(), 0);
}

fn hot() -> ActorHandle<Stuck> {
    let (_, told) = std::sync::mpsc::channel();
    ActorHandle { addr: Stuck(told).start(), status: Arc::default() }
}

#[actix::test]
async fn however_many_ask_one_load_runs_and_a_failed_one_leaves_nothing() {
    let registry = Registry::<u8, Stuck>::default();
    let (loads, go) = (AtomicU32::new(0), tokio::sync::Notify::new());
    let load = || async {
        loads.fetch_add(1, Ordering::Relaxed);
        go.notified().await;
        Ok(hot())
    };
    let ask = || registry.get_or_start(&7, load);
    let let_go = async {
        assert!(registry.look(&7, |_| Some(())).is_none(), "nobody sees it before it is there");
        go.notify_one();
    };
    let (first, second, ()) = tokio::join!(ask(), ask(), let_go);
    let (Ok(first), Ok(second)) = (first, second) else { panic!("it does not start") };
    assert!(Arc::ptr_eq(&first.status, &second.status) && loads.load(Ordering::Relaxed) == 1);
    assert!(registry.actors.get(&7).is_some_and(|place| matches!(*place, Registration::Hot(_))));
    // Removing an earlier actor does not remove its successor.
    registry.remove(&7, &hot().status);
    assert_eq!(registry.len(), 1);
    registry.remove(&7, &first.status);
    assert!(registry.is_empty());

    let refused = || async { Err(Refusal::NotFound) };
    let (first, second) = tokio::join!(registry.get_or_start(&8, refused), registry.get_or_start(&8, refused));
    assert!(first.is_err() && second.is_err());
    assert!(registry.is_empty());
}

#[actix::test]
async fn an_actor_that_is_taken_out_while_it_starts_is_nobodys_and_the_next_one_starts() {
    let registry = Registry::<u8, Stuck>::default();
    let (loads, go) = (AtomicU32::new(0), tokio::sync::Semaphore::new(0));
    let load = || async {
        loads.fetch_add(1, Ordering::Relaxed);
        if let Ok(turn) = go.acquire().await {
            turn.forget();
        }
        Ok(hot())
    };
    registry.insert(8, hot());
    let take_out = async {
        assert_eq!(loads.load(Ordering::Relaxed), 1, "it starts");
        go.add_permits(2);
        registry.take_out(|key| *key == 7).await
    };
    let (asked, taken) = tokio::join!(registry.get_or_start(&7, load), take_out);
    let Ok(asked) = asked else { panic!("it does not start") };
    assert_eq!((taken.len(), loads.load(Ordering::Relaxed), registry.len()), (1, 2, 2));
    assert!(!Arc::ptr_eq(&asked.status, &taken[0].status), "two would serve under one key");
    assert!(registry.get(&7).is_some_and(|found| Arc::ptr_eq(&found.status, &asked.status)));
    assert_eq!(registry.take_out(|_| true).await.len(), 2);
    assert!(registry.is_empty());
}
