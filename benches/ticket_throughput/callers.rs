//! The callers, and their threads.

use actix::Arbiter;
use tokio::sync::oneshot;

/// The threads of the callers, as many as the service has HTTP workers.
pub struct Callers {
    arbiters: Vec<Arbiter>,
}

impl Callers {
    pub fn start(count: usize) -> Self {
        Self { arbiters: (0..count).map(|_| Arbiter::new()).collect() }
    }

    /// Runs all callers concurrently, each through its lane (its tickets); returns the lanes when the last one has
    /// finished.
    pub async fn walk<L, F>(
        &self,
        lanes: Vec<L>,
        walk: impl FnOnce(L) -> F + Clone + std::marker::Send + 'static,
    ) -> Vec<L>
    where
        L: std::marker::Send + 'static,
        F: Future<Output = L> + 'static,
    {
        let mut walking = Vec::with_capacity(lanes.len());
        for (lane, arbiter) in lanes.into_iter().zip(self.arbiters.iter().cycle()) {
            let (done, walked) = oneshot::channel();
            let walk = walk.clone();
            arbiter.spawn_fn(move || {
                actix::spawn(async move {
                    let lane = walk(lane).await;
                    assert!(done.send(lane).is_ok(), "the receiver of the lane is alive");
                });
            });
            walking.push(walked);
        }
        let mut lanes = Vec::with_capacity(walking.len());
        for walked in walking {
            lanes.push(walked.await.expect("a caller finished"));
        }
        lanes
    }
}
