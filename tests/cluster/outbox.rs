//! Messages on their way to a provider, while their company moves and while its owner is killed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hotline_persistence::ChannelId;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::channels::ChannelType;
use serde_json::json;
use tokio::sync::watch;

use crate::caller::Caller;
use crate::load::{random_pause, rounds};
use crate::rig::Rig;
use crate::summary::Row;
use crate::support::provider::Answer;
use crate::support::seed::provided;
use crate::support::{Company, Provider, eventually};

const ACCOUNT: &str = "5001";

/// Each recipient has one caller, who sends one message after the other, so that their order is known.
const RECIPIENTS: usize = 16;

/// How long the provider takes for a message: some are always on their way, at a move and at a kill.
const ANSWER_TIME: Duration = Duration::from_millis(50);

/// Calls under way at once.
const CALLS_MAX: usize = 64;

/// How many messages may be sent twice because of a kill: those of calls under way, and those whose acceptance is not
/// in the tables yet.
const DOUBLED_MAX: usize = CALLS_MAX + 256;

/// How many messages the provider takes between two faults: more than may be sent twice because of a kill, or
/// the bound would say nothing.
const ACCEPTED_BETWEEN_FAULTS: usize = 400;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a run of a cluster: make cluster"]
async fn what_was_accepted_reaches_the_provider_and_little_of_it_twice() {
    let row = Row::begin(
        15,
        "the owner of a company that sends to a provider drained under load; then its next owner killed (`kill -9`)",
        "every accepted message reaches the provider, in the order of its recipient; none twice for a move, and at most 320 of \
         the last ones for a kill",
    );
    let mut rig = Rig::start(3).await;
    let load = rig.load().await;
    let sender = SendingCompany::open(&rig).await;
    let (over, is_over) = watch::channel(false);
    let sending = (0..RECIPIENTS).map(|recipient| {
        let caller = rig.caller(&sender.company);
        tokio::spawn(send_until_over(caller, sender.channel, recipient, is_over.clone()))
    });
    let sending: Vec<_> = sending.collect();
    let (mut slowest, mut killed_at, mut stopped_members) = (Duration::ZERO, Vec::new(), Vec::new());
    for _ in rounds(1) {
        rig.serve_again(&stopped_members).await;
        sender.wait_for_accepted(ACCEPTED_BETWEEN_FAULTS).await;
        let before = sender.repeat_count();
        let drained = rig.owner_of(&sender.company).await;
        rig.drain(drained).await;
        sender.wait_for_accepted(ACCEPTED_BETWEEN_FAULTS).await;
        assert_eq!(sender.repeat_count(), before, "a move sent messages twice");
        random_pause().await;
        let owner = rig.owner_of(&sender.company).await;
        let fault = Instant::now();
        rig.members[owner].kill();
        killed_at.push(sender.provider.accepted_count(ACCOUNT));
        rig.open_doors();
        slowest = slowest.max(rig.first_changes(fault).await);
        sender.wait_for_accepted(ACCEPTED_BETWEEN_FAULTS).await;
        stopped_members = vec![drained, owner];
    }
    over.send_replace(true);
    let sent: Vec<usize> = join_all(sending).await.into_iter().map(|sent| sent.expect("a caller")).collect();
    let total: usize = sent.iter().sum();
    sender.wait_until_sent(&rig, total).await;
    let taken = sender.positions();
    let doubled = sender.check(&taken, &sent, &killed_at);
    let (verdict, reads) = rig.end(load).await;
    row.end(
        &verdict,
        &format!(
            "{total} messages reached the provider, {doubled} of them twice for {} kills and none for a move; every company \
             changed within {slowest:.1?}; {reads} reads",
            killed_at.len()
        ),
    );
}

/// A company of its own, whose messages are not in the record of the load.
struct SendingCompany {
    company: Company,
    channel: ChannelId,
    provider: Provider,
}

/// The positions of each message among all that the provider has accepted, by the text of the message.
type Positions = HashMap<String, Vec<usize>>;

impl SendingCompany {
    async fn open(rig: &Rig) -> Self {
        let company = rig.another_company_of(rig.owner().await).await;
        let provider = Provider::start().await;
        provider.always(ACCOUNT, Answer::Accept.after(ANSWER_TIME));
        let keys = Keyring::at(rig.shared().join("secrets.key"));
        let channel = provided(&rig.db, &keys, company.id, ChannelType::Whatsapp, ACCOUNT, &provider.url).await.id;
        for member in &rig.members {
            let (api, list) = (member.api(&company.key), format!("/messages?channelId={channel}"));
            eventually("the channel is known everywhere", || async { api.get(&list).await.status == 200 }).await;
        }
        Self { company, channel, provider }
    }

    /// Waits until the provider has accepted this many more messages.
    async fn wait_for_accepted(&self, more: usize) {
        let goal = self.provider.accepted_count(ACCOUNT) + more;
        eventually("the provider accepts messages", || async { self.provider.accepted_count(ACCOUNT) >= goal }).await;
    }

    fn positions(&self) -> Positions {
        let mut taken = Positions::new();
        for (place, call) in self.provider.accepted(ACCOUNT).iter().enumerate() {
            taken.entry(call.text().to_owned()).or_default().push(place);
        }
        taken
    }

    /// How many messages were accepted again after they had been accepted.
    fn repeat_count(&self) -> usize {
        self.positions().values().map(|places| places.len() - 1).sum()
    }

    /// Waits until the tables have so many messages, all of them sent.
    async fn wait_until_sent(&self, rig: &Rig, total: usize) {
        let statement = "select count(*) filter (where status = 'sent' and provider_message_id is not null), count(*)
            from messages where company_id = $1 and channel_id = $2";
        let total = i64::try_from(total).expect("few");
        eventually("all are sent", || async {
            let counts = sqlx::query_as(statement).bind(self.company.id).bind(self.channel);
            let (sent, all): (i64, i64) = counts.fetch_one(&rig.db).await.expect("counts");
            assert!(all <= total, "the tables have {all} messages, and {total} were accepted");
            (sent, all) == (total, total)
        })
        .await;
    }

    /// Fails unless each message reached the provider, in the order of its recipient, and twice only around a kill.
    /// Returns how many were accepted again.
    fn check(&self, taken: &Positions, sent: &[usize], killed_at: &[usize]) -> usize {
        assert_eq!(
            taken.len(),
            sent.iter().sum::<usize>(),
            "not every accepted message reached the provider, or others did"
        );
        for (recipient, count) in sent.iter().enumerate() {
            let first: Vec<usize> = (0..*count).map(|number| taken[&text(recipient, number)][0]).collect();
            assert!(first.is_sorted(), "out of order for recipient {recipient}: {first:?}");
        }
        for (text, places) in taken.iter().filter(|(_, places)| places.len() > 1) {
            let is_of_a_kill = |kill: &usize| (kill.saturating_sub(DOUBLED_MAX)..kill + CALLS_MAX).contains(&places[0]);
            assert!(
                killed_at.iter().any(is_of_a_kill),
                "{text} was taken at {places:?}, the kills were at {killed_at:?}"
            );
        }
        let doubled = self.repeat_count();
        assert!(doubled <= killed_at.len() * DOUBLED_MAX, "{doubled} messages were taken twice");
        doubled
    }
}

fn text(recipient: usize, number: usize) -> String {
    format!("{recipient}/{number}")
}

/// Sends messages to a recipient until the run is over. Returns how many were accepted.
async fn send_until_over(caller: Caller, channel: ChannelId, recipient: usize, over: watch::Receiver<bool>) -> usize {
    let mut sent = 0;
    while !*over.borrow() {
        let (number, text) = (format!("55119{recipient:08}"), text(recipient, sent));
        let message = json!({"channelId": channel, "number": number, "type": "text", "body": text});
        caller.send(recipient + sent, &text, &message).await;
        sent += 1;
    }
    sent
}
