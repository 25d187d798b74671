//! A campaign writes to each of its contacts once, although the service is killed repeatedly, the provider fails now
//! and then, and the database is away for a while.
//!
//! `make test` runs a short form; `make campaigns` (or `CAMPAIGNS_LONG=1`) runs twenty thousand recipients, and
//! measures the memory of a million.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join;
use hotline_persistence::tables::channels::ChannelType;
use rand::RngExt;
use serde_json::{Value, json};

use crate::process::keys_of;
use crate::stoppable_service::StoppableService;
use crate::support::provider::Answer;
use crate::support::seed::provided;
use crate::support::{Provider, eventually, patience, until_blocked};

/// No limits but a campaign's own rate. A call that the provider holds for a whole outage does not time out.
const FAST: &[&str] = &[
    "--provider-timeout=10m",
    "--rate-per-minute=0",
    "--sends-per-second=0",
    "--recipient-interval=0",
    "--send-retry-delay=5ms",
    "--send-retry-max-delay=20ms",
];

/// The most messages of a campaign in flight at once. A kill leaves the outcome of only these unknown.
const IN_FLIGHT_MAX: usize = 64;

/// Recipients per second.
const PER_SECOND: usize = 100;

/// How much earlier than its rate allows a message may be written: a tick of the clock, and a late check before it.
const JITTER: TimeDelta = TimeDelta::milliseconds(50);

/// How long the short form may take on a busy machine, and the long form.
const TIME_MAX: Duration = Duration::from_secs(120);
const LONG_TIME_MAX: Duration = Duration::from_secs(480);

/// The size of a run.
struct RunSize {
    recipients: usize,
    /// Kills, and as often pauses and errors of the provider.
    turns: usize,
    /// How long the database stays away after messages were seen to be sent.
    outage: Duration,
    /// Recipients of the campaign whose memory is measured.
    in_memory: usize,
    time_max: Duration,
}

fn is_long() -> bool {
    std::env::var_os("CAMPAIGNS_LONG").is_some()
}

fn run_size() -> RunSize {
    if is_long() {
        return RunSize {
            recipients: 20_000,
            turns: 10,
            outage: Duration::from_secs(20),
            in_memory: 1_000_000,
            time_max: LONG_TIME_MAX,
        };
    }
    RunSize { recipients: 300, turns: 3, outage: Duration::ZERO, in_memory: 2_000, time_max: TIME_MAX }
}

/// A service with a list of contacts, and a provider that outlives the service.
struct CampaignSetup {
    service: StoppableService,
    provider: Provider,
    channel: i64,
    list: i64,
}

const ACCOUNT: &str = "3001";

impl CampaignSetup {
    async fn open(recipients: usize) -> Self {
        let provider = Provider::start().await;
        let (service, (channel, list)) = StoppableService::open(FAST, async |db, company, folder| {
            let keys = keys_of(folder);
            let channel = provided(db, &keys, company.id, ChannelType::Whatsapp, ACCOUNT, &provider.url).await.id.0;
            let list: i64 =
                sqlx::query_scalar("insert into contact_lists (company_id, name) values ($1, 'Everybody') returning id")
                    .bind(company.id)
                    .fetch_one(db)
                    .await
                    .expect("a list");
            sqlx::query(
                "with made as (insert into contacts (company_id, name, number)
                     select $1, 'Contact ' || k, (5511900000000 + k)::text from generate_series(1, $3) k returning id)
                 insert into contact_list_contacts (company_id, contact_list_id, contact_id) select $1, $2, id from made",
            )
            .bind(company.id)
            .bind(list)
            .bind(i64::try_from(recipients).expect("few"))
            .execute(db)
            .await
            .expect("contacts");
            (channel, list)
        })
        .await;
        Self { service, provider, channel, list }
    }

    /// Starts a campaign for all contacts with a rate per minute; returns its id.
    async fn begin(&self, rate: usize) -> i64 {
        let campaign = self.create(rate).await;
        self.post_verb(campaign, "start").await;
        campaign
    }

    /// Creates such a campaign, which is due only in 2099; returns its id.
    async fn create(&self, rate: usize) -> i64 {
        let api = self.service.api();
        let body = json!({
            "name": "Sale", "contactListId": self.list, "channelId": self.channel, "message": "Hello {{name}}",
            "scheduledAt": "2099-01-01T00:00:00Z", "ratePerMinute": rate, "keepClosed": true,
        });
        let is_known = || async { api.get(&format!("/messages?channelId={}", self.channel)).await.status == 200 };
        eventually("the channel is known", is_known).await;
        api.post("/campaigns", body).await.data(201)["id"].as_i64().expect("id")
    }

    async fn post_verb(&self, campaign: i64, verb: &str) {
        self.service.api().post(&format!("/campaigns/{campaign}/{verb}"), json!({})).await.data(200);
    }

    async fn shown(&self, campaign: i64) -> Option<Value> {
        let reply = self.service.api().get(&format!("/campaigns/{campaign}")).await;
        (reply.status == 200).then(|| reply.data(200).clone())
    }

    /// Waits until the provider has taken this many messages.
    async fn wait_for_accepted(&self, taken: usize, time_max: Duration) {
        let deadline = Instant::now() + patience(time_max);
        while self.provider.accepted_count(ACCOUNT) < taken {
            assert!(Instant::now() < deadline, "{} of {taken}", self.provider.accepted_count(ACCOUNT));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn wait_for_completion(&self, campaign: i64, time_max: Duration) -> Value {
        self.until_shown(campaign, time_max, |shown| shown["status"] == "completed").await
    }

    /// Waits until the shown campaign meets a condition.
    async fn until_shown(&self, campaign: i64, time_max: Duration, is_met: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + patience(time_max);
        loop {
            let shown = self.shown(campaign).await;
            if let Some(shown) = shown.as_ref().filter(|shown| is_met(shown)) {
                return shown.clone();
            }
            assert!(Instant::now() < deadline, "the campaign does not meet the condition: {shown:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Checks that each contact was written to once, in order, no faster than the rate; that all messages arrived,
    /// except a few of unknown outcome after the kills; and that the campaign's counts are those of its recipients.
    async fn check(&self, campaign: &Value, recipients: usize, kills: usize) {
        let unknown = campaign["counts"]["unknown"].as_u64().expect("a count") as usize;
        let sent = recipients - unknown;
        let counts = json!({"pending": 0, "sent": sent, "delivered": 0, "read": 0, "failed": 0, "skipped": 0,
            "unknown": unknown});
        assert_eq!(campaign["counts"], counts);
        let db = self.service.database();
        let rows: Vec<(i64, i64, DateTime<Utc>, String)> = sqlx::query_as(
            "select m.contact_id, r.message_id, m.created_at, t.status from messages m
             join campaign_recipients r on r.company_id = m.company_id and r.contact_id = m.contact_id
                 and r.status = case m.status when 'queued' then 'unknown' else m.status end
             join tickets t on t.company_id = m.company_id and t.id = m.ticket_id
             where m.company_id = $1 and r.campaign_id = $2 and m.id = r.message_id order by m.id",
        )
        .bind(self.service.company.id)
        .bind(campaign["id"].as_i64())
        .fetch_all(&db)
        .await
        .expect("recipients");
        let messages: i64 = sqlx::query_scalar("select count(*) from messages").fetch_one(&db).await.expect("messages");
        db.close().await;
        assert_eq!((rows.len(), messages), (recipients, recipients as i64), "each has one message, and it is theirs");
        assert!(rows.is_sorted_by_key(|row| row.0), "the order of contacts is that of messages");
        assert!(rows.iter().all(|row| row.3 == "closed"));
        for window in rows.windows(PER_SECOND + 1) {
            let span = window[PER_SECOND].2 - window[0].2;
            assert!(span >= TimeDelta::seconds(1) - JITTER, "{} messages in {span}", PER_SECOND + 1);
        }
        let mut taken: HashMap<String, usize> = HashMap::new();
        for call in self.provider.accepted(ACCOUNT) {
            *taken.entry(call.to).or_default() += 1;
        }
        println!("{recipients} recipients, {} taken, {unknown} in doubt after {kills} kills", taken.len());
        assert!(taken.values().all(|times| *times == 1), "a contact was written to twice");
        assert!((sent..=recipients).contains(&taken.len()), "{} of {sent} sent ones arrived", taken.len());
        assert!(unknown <= kills * IN_FLIGHT_MAX, "{unknown} messages are in doubt");
    }
}

#[actix_web::test]
async fn each_contact_is_written_to_once_however_often_the_service_is_killed() {
    let size = run_size();
    let mut setup = CampaignSetup::open(size.recipients).await;
    let campaign = setup.begin(60 * PER_SECOND).await;
    let part = size.recipients / (size.turns + 1);
    for turn in 0..size.turns {
        setup.wait_for_accepted(turn * part + 1, size.time_max).await;
        // The provider refuses every other of the next attempts for now.
        let errors = (0..20).map(|number| if number % 2 == 0 { Answer::status(503) } else { Answer::Accept });
        setup.provider.next(ACCOUNT, errors);
        setup.post_verb(campaign, "pause").await;
        setup.post_verb(campaign, "resume").await;
        // The service is killed at a random moment on purpose.
        let wait = rand::rng().random_range(0..1000 * part / PER_SECOND / 2);
        tokio::time::sleep(Duration::from_millis(wait as u64)).await;
        setup.service.kill();
        setup.service.start();
    }
    let done = setup.wait_for_completion(campaign, size.time_max).await;
    setup.check(&done, size.recipients, size.turns).await;
    setup.service.close().await;
}

#[actix_web::test]
async fn a_campaign_outlasts_an_outage_of_the_database() {
    let size = run_size();
    let recipients = size.recipients.min(2000);
    let mut setup = CampaignSetup::open(recipients).await;
    // The provider takes some, and no more until the database is away.
    setup.provider.next(ACCOUNT, std::iter::repeat_n(Answer::Accept, recipients / 10));
    setup.provider.always(ACCOUNT, Answer::Accept.held());
    let campaign = setup.begin(60 * PER_SECOND).await;
    setup.wait_for_accepted(recipients / 10, size.time_max).await;
    let (api, path) = (setup.service.api(), format!("/campaigns/{campaign}"));
    setup.service.stop_database().await;
    let before = setup.provider.accepted_count(ACCOUNT);
    eventually("the outage is seen", || async { api.get(&path).await.status == 503 }).await;
    setup.provider.always(ACCOUNT, Answer::Accept);
    setup.provider.release();
    // More than were in flight: recipients that the service has in memory are written to as well.
    setup.wait_for_accepted(before + IN_FLIGHT_MAX + 1, size.time_max).await;
    tokio::time::sleep(size.outage).await;
    let meanwhile = setup.provider.accepted_count(ACCOUNT) - before;
    println!("{meanwhile} were written to while the database was away");
    setup.service.start_database().await;
    let done = setup.wait_for_completion(campaign, size.time_max).await;
    setup.check(&done, recipients, 0).await;
    setup.service.close().await;
}

/// Refuses recipients as PostgreSQL does when a statement reaches its time limit, and counts the attempts.
const TOO_SLOW: &str = "create sequence attempts;
    create function give_up() returns trigger language plpgsql as $$ begin
        perform nextval('attempts');
        raise exception 'canceling statement due to statement timeout' using errcode = 'query_canceled';
    end $$;
    create trigger give_up before insert on campaign_recipients for each statement execute function give_up()";

#[actix_web::test]
async fn a_campaign_that_is_due_and_too_large_to_start_is_logged_once_and_starts_after_a_change() {
    let setup = CampaignSetup::open(3).await;
    let campaign = setup.create(60 * PER_SECOND).await;
    let (db, api) = (setup.service.database(), setup.service.api());
    sqlx::raw_sql(TOO_SLOW).execute(&db).await.expect("a trigger");
    let mut due = db.begin().await.expect("a transaction");
    let update = sqlx::query("update campaigns set scheduled_at = now() where company_id = $1 and id = $2");
    update.bind(setup.service.company.id).bind(campaign).execute(&mut *due).await.expect("it is due");
    let change = async |name: &str| {
        api.put(&format!("/campaigns/{campaign}"), json!({"name": name})).await.data(200);
    };
    let lines = || setup.service.process().log().matches("a scheduled campaign does not start").count();
    // The campaign becomes due while the first change waits for its row, so that no attempt comes before that change.
    let commit = async {
        until_blocked(1, &mut due, &db).await;
        due.commit().await.expect("it is due");
    };
    join(change("Attempt 1"), commit).await;
    // An attempt follows each change, with a line in the log. Without a change, the next would be ten minutes later.
    for expected in 1..=3 {
        if expected > 1 {
            change(&format!("Attempt {expected}")).await;
        }
        eventually("the log says why it does not start", || async { lines() >= expected }).await;
        let attempts = sqlx::query_scalar::<_, i64>("select last_value from attempts").fetch_one(&db).await;
        assert_eq!(
            (attempts.expect("a count"), lines()),
            (expected as i64, expected),
            "not one attempt and one line for each change"
        );
        assert_eq!(setup.shown(campaign).await.expect("it is shown")["status"], "scheduled");
    }
    sqlx::query("drop trigger give_up on campaign_recipients").execute(&db).await.expect("the trigger is dropped");
    db.close().await;
    change("Started").await;
    let done = setup.wait_for_completion(campaign, run_size().time_max).await;
    assert_eq!(done["counts"]["sent"], 3, "{done}");
    setup.service.close().await;
}

/// Bytes of memory that a campaign may take, beyond those of the idle service.
const MEMORY_MAX: u64 = 30 << 20;

/// Recipients that are written to, in the short form, while memory is measured.
const WRITTEN_WHILE_MEASURED: usize = 200;

#[actix_web::test]
async fn a_campaign_of_many_takes_little_memory_measured() {
    let size = run_size();
    let setup = CampaignSetup::open(size.in_memory).await;
    let api = setup.service.api();
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    // The memory that the first requests and the first send take is not the campaign's.
    let send = json!({"channelId": setup.channel, "number": "5511800000001", "type": "text", "body": "hello"});
    api.post("/messages", send).await.data(202);
    setup.wait_for_accepted(1, size.time_max).await;
    let idle = setup.service.process().resident_bytes();
    setup.service.process().forget_peak();
    let campaign = setup.begin(60 * PER_SECOND).await;
    let written = if is_long() { 6000 } else { WRITTEN_WHILE_MEASURED };
    setup.wait_for_accepted(1 + written, size.time_max).await;
    let taken = setup.service.process().peak_bytes().saturating_sub(idle);
    println!("{} recipients, {written} written to: {} KiB above idle", size.in_memory, taken >> 10);
    assert!(taken <= MEMORY_MAX, "{} KiB above idle", taken >> 10);
    setup.post_verb(campaign, "cancel").await;
    // Recipients without a message are skipped, in steps.
    let canceled = Instant::now();
    let settled = setup.until_shown(campaign, size.time_max, |shown| shown["counts"]["pending"] == 0).await;
    println!("all were settled {:.1?} after it was canceled", canceled.elapsed());
    let counts = &settled["counts"];
    let total: i64 = counts.as_object().expect("counts").values().filter_map(Value::as_i64).sum();
    assert_eq!(total, size.in_memory as i64, "{counts}");
    setup.service.close().await;
}

/// Contacts that are put into a list by one call.
const TAGGED_CONTACTS: i64 = 40_000;

/// Bytes of memory that the call may take: enough for the ids, 320 KB, but not for the rows.
const TAGGED_MEMORY_MAX: u64 = 4 << 20;

#[actix_web::test]
async fn forty_thousand_contacts_are_put_into_a_list_in_little_memory_measured() {
    let (service, (list, few, many)) = StoppableService::open(FAST, async |db, company, _| {
        let list: i64 =
            sqlx::query_scalar("insert into contact_lists (company_id, name) values ($1, 'Everybody') returning id")
                .bind(company.id)
                .fetch_one(db)
                .await
                .expect("a list");
        let mut tags = Vec::new();
        for (name, contacts) in [("Few", 100), ("Many", TAGGED_CONTACTS)] {
            let tagged = "with tag as (insert into tags (company_id, name) values ($1, $2) returning id),
                 made as (insert into contacts (company_id, name)
                     select $1, 'Contact ' || k from generate_series(1, $3) k returning id),
                 tagged as (insert into contact_tags (company_id, contact_id, tag_id)
                     select $1, made.id, tag.id from made, tag)
                 select id from tag";
            let tag = sqlx::query_scalar(tagged).bind(company.id).bind(name).bind(contacts).fetch_one(db);
            tags.push(tag.await.expect("contacts with a tag"));
        }
        let [few, many]: [i64; 2] = tags.try_into().expect("two tags");
        (list, few, many)
    })
    .await;
    let api = service.api();
    let put = async |tag: i64| {
        let added = api.post(&format!("/contact-lists/{list}/contacts"), json!({"tagId": tag})).await;
        added.data(200)["added"].as_i64()
    };
    eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
    // The memory that the first call takes is not counted.
    assert_eq!(put(few).await, Some(100));
    let idle = service.process().resident_bytes();
    service.process().forget_peak();
    assert_eq!(put(many).await, Some(TAGGED_CONTACTS));
    let taken = service.process().peak_bytes().saturating_sub(idle);
    println!("{TAGGED_CONTACTS} contacts with a tag: {} KiB above idle", taken >> 10);
    assert!(taken <= TAGGED_MEMORY_MAX, "{} KiB above idle", taken >> 10);
    service.close().await;
}
