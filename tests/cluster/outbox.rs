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
use crate::load::{rounds, some_moment};
use crate::rig::Rig;
use crate::summary::Row;
use crate::support::provider::Answer;
use crate::support::seed::provided;
use crate::support::{Company, Provider, eventually};

const ACCOUNT: &str = "5001";

/// Each is written to by one caller, one message after the other, so that their order is known.
const RECIPIENTS: usize = 16;

/// How long the provider takes for a message: some are always on their way, at a move and at a kill.
const TAKES: Duration = Duration::from_millis(50);

/// Calls under way at once.
const CALLS_MAX: usize = 64;

/// How many messages a kill may double: those of calls under way, and those whose acceptance is not in the tables yet.
const DOUBLED_MAX: usize = CALLS_MAX + 256;

/// How many messages the provider takes between two faults: more than a kill may double, or the bound would say
/// nothing.
const PART: usize = 400;

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
    let office = Office::open(&rig).await;
    let (over, is_over) = watch::channel(false);
    let sending = (0..RECIPIENTS).map(|recipient| {
        let caller = rig.caller(&office.company);
        tokio::spawn(send_on(caller, office.channel, recipient, is_over.clone()))
    });
    let sending: Vec<_> = sending.collect();
    let (mut slowest, mut killed_at, mut away) = (Duration::ZERO, Vec::new(), Vec::new());
    for _ in rounds(1) {
        rig.serve_again(&away).await;
        office.takes(PART).await;
        let before = office.doubled();
        let drained = rig.server_of(&office.company).await;
        rig.drain(drained).await;
        office.takes(PART).await;
        assert_eq!(office.doubled(), before, "a move has doubled some");
        some_moment().await;
        let owner = rig.server_of(&office.company).await;
        let fault = Instant::now();
        rig.members[owner].kill();
        killed_at.push(office.provider.accepted_count(ACCOUNT));
        rig.open_doors();
        slowest = slowest.max(rig.first_changes(fault).await);
        office.takes(PART).await;
        away = vec![drained, owner];
    }
    over.send_replace(true);
    let sent: Vec<usize> = join_all(sending).await.into_iter().map(|sent| sent.expect("a caller")).collect();
    let total: usize = sent.iter().sum();
    office.settles(&rig, total).await;
    let taken = office.places();
    let doubled = office.check(&taken, &sent, &killed_at);
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
struct Office {
    company: Company,
    channel: ChannelId,
    provider: Provider,
}

/// The places of a message among all that were taken, by its text.
type Places = HashMap<String, Vec<usize>>;

impl Office {
    async fn open(rig: &Rig) -> Self {
        let company = rig.another_of(rig.owner().await).await;
        let provider = Provider::start().await;
        provider.always(ACCOUNT, Answer::Accept.after(TAKES));
        let keys = Keyring::at(rig.shared().join("secrets.key"));
        let channel = provided(&rig.db, &keys, company.id, ChannelType::Whatsapp, ACCOUNT, &provider.url).await.id;
        for member in &rig.members {
            let (api, list) = (member.api(&company.key), format!("/messages?channelId={channel}"));
            eventually("the channel is known everywhere", || async { api.get(&list).await.status == 200 }).await;
        }
        Self { company, channel, provider }
    }

    /// Waits until the provider has taken this many more.
    async fn takes(&self, more: usize) {
        let goal = self.provider.accepted_count(ACCOUNT) + more;
        eventually("messages are taken", || async { self.provider.accepted_count(ACCOUNT) >= goal }).await;
    }

    fn places(&self) -> Places {
        let mut taken = Places::new();
        for (place, call) in self.provider.accepted(ACCOUNT).iter().enumerate() {
            taken.entry(call.text().to_owned()).or_default().push(place);
        }
        taken
    }

    /// How often a message was taken that had been taken before.
    fn doubled(&self) -> usize {
        self.places().values().map(|places| places.len() - 1).sum()
    }

    /// Waits until the tables say of so many messages that they are sent, and of no others.
    async fn settles(&self, rig: &Rig, total: usize) {
        let statement = "select count(*) filter (where status = 'sent' and provider_message_id is not null), count(*)
            from messages where company_id = $1 and channel_id = $2";
        let total = i64::try_from(total).expect("few");
        eventually("all are sent", || async {
            let counts = sqlx::query_as(statement).bind(self.company.id).bind(self.channel);
            let (sent, all): (i64, i64) = counts.fetch_one(&rig.db).await.expect("counts");
            assert!(all <= total, "{all} messages of {total} that were accepted");
            (sent, all) == (total, total)
        })
        .await;
    }

    /// Fails unless each message was taken, in the order of its recipient, and twice only shortly before a kill; how
    /// many twice.
    fn check(&self, taken: &Places, sent: &[usize], killed_at: &[usize]) -> usize {
        assert_eq!(taken.len(), sent.iter().sum::<usize>(), "messages that were taken, of those that were accepted");
        for (recipient, count) in sent.iter().enumerate() {
            let first: Vec<usize> = (0..*count).map(|number| taken[&text(recipient, number)][0]).collect();
            assert!(first.is_sorted(), "of recipient {recipient}, as they were taken: {first:?}");
        }
        for (text, places) in taken.iter().filter(|(_, places)| places.len() > 1) {
            let is_of_a_kill = |kill: &usize| (kill.saturating_sub(DOUBLED_MAX)..kill + CALLS_MAX).contains(&places[0]);
            assert!(
                killed_at.iter().any(is_of_a_kill),
                "{text} was taken at {places:?}, the kills were at {killed_at:?}"
            );
        }
        let doubled = self.doubled();
        assert!(doubled <= killed_at.len() * DOUBLED_MAX, "{doubled} messages were taken twice");
        doubled
    }
}

fn text(recipient: usize, number: usize) -> String {
    format!("{recipient}/{number}")
}

/// Writes to a recipient until it is over; how many messages were accepted.
async fn send_on(caller: Caller, channel: ChannelId, recipient: usize, over: watch::Receiver<bool>) -> usize {
    let mut sent = 0;
    while !*over.borrow() {
        let (number, text) = (format!("55119{recipient:08}"), text(recipient, sent));
        let message = json!({"channelId": channel, "number": number, "type": "text", "body": text});
        caller.send(recipient + sent, &text, &message).await;
        sent += 1;
    }
    sent
}
