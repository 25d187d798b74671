//! The loop of an actor whose work becomes due: messages at a set time, the next recipient of a campaign.
//!
//! Such an actor does what is due in a *run*: after every message to it, and when its timer fires. A run ends by
//! setting the time of the next one ([`DueWork::schedule_tick`]); if it sets none, the next message starts the next
//! run. While something waits for a point in time, the actor sets the timer to a few seconds at most, so that a clock
//! change or a suspended machine is noticed soon.
//!
//! A panic is treated as a defect in the actor's state in memory: the state is dropped, and read again from the tables.
//! A panic in a task whose result the actor waits for becomes a refusal ([`catch_panic`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, SpawnHandle};
use futures_util::FutureExt;

use crate::Refusal;
use crate::registry::Dismiss;

/// Maximum time between two runs while something is due soon, and the pause after a panic.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Runs a task whose result an actor waits for. A panic becomes a refusal: without a result the actor would never
/// continue.
pub(crate) async fn catch_panic<T>(
    task: &'static str,
    work: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    outcome.unwrap_or_else(|_| Err(Refusal::Defect(format!("{task} panicked"))))
}

/// Whether an actor may work now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The actor may work.
    Ready,
    /// This process does not serve the company now, but may serve it later.
    Elsewhere,
    /// The service is stopping.
    Stopping,
}

/// The state of an actor's runs.
#[derive(Debug, Default)]
pub(crate) struct DueWorkState {
    timer: Option<SpawnHandle>,
    is_retired: bool,
    /// Whether the state in memory must still be dropped after a panic.
    needs_recovery: bool,
}

impl DueWorkState {
    /// Whether the actor has left its registry: it does nothing more.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired
    }
}

/// An actor whose work becomes due. It calls [`DueWork::supervise`] when it starts, and for every message.
pub(crate) trait DueWork: Actor<Context = Context<Self>> {
    /// The state of its runs.
    fn work_state(&mut self) -> &mut DueWorkState;

    /// Whether it may work now.
    fn readiness(&self) -> Readiness;

    /// Does what is due, and sets the time of the next run.
    fn run_due_work(&mut self, cx: &mut Context<Self>);

    /// Publishes its gauges; called after every message and after the timer has fired.
    fn publish_gauges(&mut self) {}

    /// Drops its state in memory after a panic. If this panics too, it is repeated before anything else is done.
    fn recover(&mut self);

    /// Leaves its registry, and refuses the requests that wait for it.
    fn leave(&mut self);

    /// Runs `work`, and then what is due. After a panic in either, drops the state and runs again after [`TICK`].
    fn supervise(&mut self, cx: &mut Context<Self>, work: impl FnOnce(&mut Self, &mut Context<Self>)) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.finish_recovery();
            work(self, cx);
            self.run_if_ready(cx);
            self.publish_gauges();
        }));
        if outcome.is_err() {
            self.work_state().needs_recovery = true;
            // Without `catch_unwind` a panic would end the actor, and its due work would wait for the next caller.
            let _ = catch_unwind(AssertUnwindSafe(|| self.finish_recovery()));
            self.schedule_tick(TICK, cx);
        }
    }

    /// Drops the state, if a panic requires it and this was not done yet.
    fn finish_recovery(&mut self) {
        if self.work_state().needs_recovery {
            self.recover();
            self.work_state().needs_recovery = false;
        }
    }

    /// Runs what is due if the actor may work now.
    fn run_if_ready(&mut self, cx: &mut Context<Self>) {
        if self.work_state().is_retired {
            return;
        }
        match self.readiness() {
            Readiness::Ready => self.run_due_work(cx),
            Readiness::Elsewhere => self.schedule_tick(TICK, cx),
            Readiness::Stopping => {}
        }
    }

    /// Sets the timer of the next run, and replaces an earlier one.
    fn schedule_tick(&mut self, delay: Duration, cx: &mut Context<Self>) {
        self.cancel_tick(cx);
        let fire =
            |this: &mut Self, cx: &mut Context<Self>| this.supervise(cx, |this, _| this.work_state().timer = None);
        self.work_state().timer = Some(cx.run_later(delay, fire));
    }

    /// Cancels the timer of the next run.
    fn cancel_tick(&mut self, cx: &mut Context<Self>) {
        if let Some(timer) = self.work_state().timer.take() {
            cx.cancel_future(timer);
        }
    }

    /// Ends the runs, and leaves the registry: later callers reach a successor.
    fn retire(&mut self, cx: &mut Context<Self>) {
        self.work_state().is_retired = true;
        self.leave();
        self.cancel_tick(cx);
    }

    /// Retires, because the company is dropped from memory, and signals the end.
    fn dismiss(&mut self, Dismiss { end_signal }: Dismiss, cx: &mut Context<Self>) {
        self.retire(cx);
        // The caller may have timed out.
        let _ = end_signal.send(());
    }
}

#[cfg(test)]
mod tests {
    use std::mem;

    use actix::{Addr, Handler, Message};
    use tokio::sync::oneshot;

    use super::*;

    /// A pause that does not end within a test.
    const NEVER: Duration = Duration::from_secs(3600);

    /// An actor that counts what happens to it.
    struct Counter {
        work_state: DueWorkState,
        readiness: Readiness,
        /// The pause until the next run; if `None`, the next message starts that run.
        pause: Option<Duration>,
        counts: Counts,
        /// Whether the next recovery panics.
        fails_to_recover: bool,
        /// Notified in the tenth run.
        tenth_run: Option<oneshot::Sender<()>>,
    }

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Counts {
        runs: u32,
        publications: u32,
        recoveries: u32,
        departures: u32,
    }

    impl Actor for Counter {
        type Context = Context<Self>;

        fn started(&mut self, cx: &mut Self::Context) {
            self.supervise(cx, |_, _| ());
        }
    }

    impl DueWork for Counter {
        fn work_state(&mut self) -> &mut DueWorkState {
            &mut self.work_state
        }

        fn readiness(&self) -> Readiness {
            self.readiness
        }

        fn run_due_work(&mut self, cx: &mut Context<Self>) {
            self.counts.runs += 1;
            if self.counts.runs == 10
                && let Some(reached) = self.tenth_run.take()
            {
                assert_eq!(reached.send(()), Ok(()));
            }
            if let Some(pause) = self.pause {
                self.schedule_tick(pause, cx);
            }
        }

        fn publish_gauges(&mut self) {
            self.counts.publications += 1;
        }

        fn recover(&mut self) {
            self.counts.recoveries += 1;
            assert!(!mem::take(&mut self.fails_to_recover), "a defect of the recovery");
        }

        fn leave(&mut self) {
            self.counts.departures += 1;
        }
    }

    type Work = Box<dyn FnOnce(&mut Counter, &mut Context<Counter>) + Send>;

    /// The counts, and whether the timer is set.
    type Answer = Result<(Counts, bool), ()>;

    /// Runs work as every message does, and answers with the counts right after it.
    #[derive(Message)]
    #[rtype(result = "Answer")]
    struct Run(Work);

    impl Handler<Run> for Counter {
        type Result = Answer;

        fn handle(&mut self, Run(work): Run, cx: &mut Self::Context) -> Answer {
            self.supervise(cx, work);
            Ok((self.counts, self.work_state.timer.is_some()))
        }
    }

    impl Handler<Dismiss> for Counter {
        type Result = ();

        fn handle(&mut self, dismiss: Dismiss, cx: &mut Self::Context) {
            self.dismiss(dismiss, cx);
        }
    }

    fn start(readiness: Readiness, pause: Option<Duration>) -> Addr<Counter> {
        let (work_state, counts) = (DueWorkState::default(), Counts::default());
        Counter { work_state, readiness, pause, counts, fails_to_recover: false, tenth_run: None }.start()
    }

    async fn run(
        counter: &Addr<Counter>,
        work: impl FnOnce(&mut Counter, &mut Context<Counter>) + Send + 'static,
    ) -> (Counts, bool) {
        counter.send(Run(Box::new(work))).await.expect("the actor is alive").expect("it answers")
    }

    fn counts(runs: u32, publications: u32) -> Counts {
        Counts { runs, publications, ..Counts::default() }
    }

    #[actix::test]
    async fn a_run_follows_the_start_each_message_and_the_timer() {
        let counter = start(Readiness::Ready, None);
        assert_eq!(run(&counter, |_, _| ()).await, (counts(2, 2), false));
        assert_eq!(run(&counter, |_, _| ()).await, (counts(3, 3), false));
        // From now on each run sets a timer that fires at once.
        let (reached, tenth_run) = oneshot::channel();
        let repeat = |this: &mut Counter, _: &mut Context<Counter>| {
            (this.pause, this.tenth_run) = (Some(Duration::ZERO), Some(reached));
        };
        run(&counter, repeat).await;
        assert_eq!(tenth_run.await, Ok(()), "runs follow each other without a message");
    }

    #[actix::test]
    async fn a_later_timer_replaces_an_earlier_one() {
        let counter = start(Readiness::Ready, Some(NEVER));
        let (sender, fired) = oneshot::channel();
        let work = |this: &mut Counter, cx: &mut Context<Counter>| {
            this.schedule_tick(Duration::ZERO, cx);
            // Fires after the timer above would have.
            cx.run_later(Duration::from_millis(1), |_, _| assert_eq!(sender.send(()), Ok(())));
        };
        assert_eq!(run(&counter, work).await, (counts(2, 2), true), "the run after the message sets the timer again");
        assert_eq!(fired.await, Ok(()));
        assert_eq!(run(&counter, |_, _| ()).await, (counts(3, 3), true));
    }

    #[actix::test]
    async fn after_a_panic_the_state_is_dropped_and_a_run_follows() {
        let counter = start(Readiness::Ready, None);
        let after_recovery = Counts { recoveries: 1, ..counts(1, 1) };
        assert_eq!(run(&counter, |_, _| panic!("a defect")).await, (after_recovery, true));
        let (later, _) = run(&counter, |_, _| ()).await;
        assert!(later.runs >= 2 && later.recoveries == 1, "{later:?}");
    }

    #[actix::test]
    async fn a_recovery_that_panics_is_repeated_and_does_not_end_the_actor() {
        let counter = start(Readiness::Ready, None);
        let work = run(&counter, |this, _| {
            this.fails_to_recover = true;
            panic!("a defect");
        });
        assert_eq!(work.await, (Counts { recoveries: 1, ..counts(1, 1) }, true));
        let (later, _) = run(&counter, |_, _| ()).await;
        assert!(later.runs >= 2 && later.recoveries == 2, "{later:?}");
    }

    #[actix::test]
    async fn an_actor_works_only_where_its_company_is_served() {
        let counter = start(Readiness::Elsewhere, None);
        let (before, is_timer_set) = run(&counter, |_, _| ()).await;
        assert_eq!((before.runs, is_timer_set), (0, true));
        assert_eq!(run(&counter, |this, _| this.readiness = Readiness::Ready).await.0.runs, 1);
        let counter = start(Readiness::Stopping, None);
        assert_eq!(run(&counter, |_, _| ()).await, (counts(0, 2), false));
    }

    #[actix::test]
    async fn a_dismissed_actor_leaves_its_registry_and_has_no_further_run() {
        let counter = start(Readiness::Ready, Some(NEVER));
        let (end_signal, end) = oneshot::channel();
        counter.do_send(Dismiss { end_signal });
        assert_eq!(end.await, Ok(()));
        let after = run(&counter, |this, _| assert!(this.work_state.is_retired())).await;
        assert_eq!(after, (Counts { departures: 1, ..counts(1, 2) }, false));
    }
}
