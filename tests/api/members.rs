//! A service as a member of a cluster: its scans, its metrics, its slots and its life.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use hotline::service::Service;
use hotline_actors::EngineOptions;
use hotline_persistence::cluster::{NewLife, SlotFilter, lives};
use hotline_persistence::migration::MigrationPolicy;
use hotline_persistence::pool::request_shares;
use hotline_persistence::tables::early_statuses::{self, EarlyStatus};
use hotline_persistence::tables::messages::{self, DeliveryStatus};
use hotline_persistence::tables::removals::{self, Removal, RemovedNoun};
use hotline_persistence::tables::{
    audit_log, campaigns, cascades, events, idempotency_keys, media, retentions, schedules, tokens, webchat_sessions,
};
use hotline_persistence::{CompanyId, Durability, Error, MessageId, Role, Slot, Store, StoreOptions, TokenId, journal};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::steps::id;
use crate::support::metrics::ScrapedMetrics;
use crate::support::service::{TestOptions, wait_for_slots};
use crate::support::{Api, Company, OwnApp, Reply, TestDatabase, empty_folder, eventually, keys};

/// Starts another service on the same database, and waits until each serves half of the slots.
pub async fn start_second_service(app: &OwnApp, options: &TestOptions) -> (Service, TempDir) {
    let folder = empty_folder();
    let settings = options.settings(&folder, app.database.options.clone());
    let second = Service::start(settings).await.expect("the service starts");
    let serves = |service: &Service| {
        service.app.engine.store().membership().map_or(0, |membership| membership.placement.count_here())
    };
    eventually("each serves half", || async { [&app.service, &second].map(serves) == [512, 512] }).await;
    (second, folder)
}

/// The one of these services that serves a company.
pub fn owner_of(company: CompanyId, services: [&Service; 2]) -> &Service {
    let owner = services.into_iter().find(|service| service.app.engine.owns(company));
    owner.expect("one of them serves the company")
}

#[actix_web::test]
async fn a_scan_finds_what_the_slots_of_its_process_have_and_nothing_else() {
    let app = OwnApp::start().await;
    let (other, other_api) = app.another_company().await;
    let db = &app.db;
    for (company, api) in [(&app.company, &app.api), (&other, &other_api)] {
        let visitor = json!({"channelId": company.webchat, "visitor": {"externalId": "v-1"}});
        api.post("/webchat/sessions", visitor).await.data(201);
        let contact = api.post("/contacts", json!({"number": "5511900000001"})).await.data(201)["id"].clone();
        let later = json!({"contactId": contact, "channelId": company.phone, "body": "hello",
            "sendAt": (Utc::now() + TimeDelta::days(1)).to_rfc3339()});
        api.post("/schedules", later).await.data(201);
        retentions::set(db, company.id, Some(365)).await.expect("a rule");
        let early = EarlyStatus {
            company_id: company.id,
            channel_id: company.phone,
            provider_message_id: "wamid.1".to_owned(),
            delivery_status: DeliveryStatus::Sent,
            at: Utc::now(),
            names: None,
        };
        early_statuses::store(db, &early, false).await.expect("an early status");
    }
    let log = &app.service.app.engine.store().log;
    log.wait_until_flushed(log.appended()).await.expect("the tables have all of it");

    let slots = [app.company.id, other.id].map(Slot::of_new);
    assert_ne!(slots[0], slots[1]);
    let none = BTreeSet::new();
    let both = BTreeSet::from([app.company.id, other.id]);
    for (filter, expected) in [
        (SlotFilter::all(), both),
        (SlotFilter::only([slots[0]]), BTreeSet::from([app.company.id])),
        (SlotFilter::only([slots[1]]), BTreeSet::from([other.id])),
        (SlotFilter::only([]), none),
    ] {
        let companies = |found: Vec<CompanyId>| found.into_iter().collect::<BTreeSet<_>>();
        let before = Utc::now() + TimeDelta::days(1);
        let idle = webchat_sessions::idle(db, &filter, before, 10).await.expect("sessions");
        assert_eq!(companies(idle.into_iter().map(|(company, _)| company).collect()), expected, "{filter:?}");
        let later = schedules::companies_with_pending(db, &filter).await.expect("companies");
        assert_eq!(companies(later), expected, "{filter:?}");
        let rules = retentions::rules(db, &filter).await.expect("rules");
        assert_eq!(companies(rules.into_iter().map(|rule| rule.company_id).collect()), expected, "{filter:?}");
        // The service itself has not removed the early statuses, which belong to no message.
        let early = early_statuses::channels(db, &filter).await.expect("channels");
        assert_eq!(companies(early.into_iter().map(|(company, _)| company).collect()), expected, "{filter:?}");
        // The following tables have no rows.
        assert!(removals::unfinished(db, &filter, 10).await.expect("removals").is_empty());
        assert!(cascades::companies(db, &filter, CompanyId::new(0), 10).await.expect("companies").is_empty());
        assert!(messages::outboxes(db, &filter).await.expect("outboxes").is_empty());
        assert!(messages::awaiting_media(db, &filter, MessageId::new(0), 10).await.expect("files").is_empty());
        assert!(campaigns::unfinished(db, &filter).await.expect("campaigns").is_empty());
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_process_does_not_start_beside_a_living_one_with_an_unknown_protocol() {
    let database = TestDatabase::migrated().await;
    let options = TestOptions { member: true, ..TestOptions::default() };
    let folder = empty_folder();
    let start = async || Service::start(options.settings(&folder, database.options.clone())).await;
    let other =
        "insert into lives (node, address, speaks, draining) values ('other', 'other:1', $1, true) returning life";
    let other: i64 = sqlx::query_scalar(other)
        .bind(lives::PROTOCOL_VERSION + 2)
        .fetch_one(&database.db)
        .await
        .expect("another life");
    // Its heartbeat is in the future: the life counts as alive for longer than a start takes.
    let beats = "insert into beats (life, at, cores) values ($1, now() + interval '1 hour', 1)";
    sqlx::query(beats).bind(other).execute(&database.db).await.expect("a beat");
    let refused = start().await.err().expect("the start is refused").to_string();
    let versions = [lives::PROTOCOL_VERSION + 2, lives::PROTOCOL_VERSION].map(|version| format!("version {version}"));
    for part in ["the process other", &versions[0], &versions[1]] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let count_lives = async || -> i64 {
        sqlx::query_scalar("select count(*) from lives").fetch_one(&database.db).await.expect("a count")
    };
    assert_eq!(count_lives().await, 1, "the refused process has begun a life");

    // A process understands the version after its own.
    let set_version = "update lives set speaks = $1";
    sqlx::query(set_version)
        .bind(lives::PROTOCOL_VERSION + 1)
        .execute(&database.db)
        .await
        .expect("it speaks another version");
    start().await.expect("it starts").stop().await.expect("a clean stop");

    // A process that was killed has not ended its life.
    sqlx::query(set_version)
        .bind(lives::PROTOCOL_VERSION + 2)
        .execute(&database.db)
        .await
        .expect("it speaks another version");
    let age_beat = "update beats set at = now() - interval '6 seconds'";
    sqlx::query(age_beat).execute(&database.db).await.expect("an old beat");
    let service = start().await.expect("it starts");
    eventually("the life of the killed process is ended", || async { count_lives().await == 1 }).await;
    wait_for_slots(&service).await;
    service.stop().await.expect("a clean stop");
    database.drop().await;
}

#[actix_web::test]
async fn a_member_shows_its_slots_its_lease_and_its_forwarded_requests() {
    let database = TestDatabase::migrated().await;
    let company = Company::create(&database.db, "Acme").await;
    let options = TestOptions { member: true, metrics: true, ..TestOptions::default() };
    let folders = [empty_folder(), empty_folder()];
    let start = async |folder| {
        let settings = options.settings(folder, database.options.clone());
        Service::start(settings).await.expect("the service starts")
    };
    let metrics =
        async |service: &Service| ScrapedMetrics::of(service.metrics_listener.as_ref().expect("metrics").address).await;
    let first = start(&folders[0]).await;
    wait_for_slots(&first).await;
    eventually("it serves all", || async { metrics(&first).await.value("hotline_cluster_slots") == 1024.0 }).await;
    let alone = metrics(&first).await;
    assert_eq!(alone.value("hotline_cluster_peers"), 0.0);
    assert_eq!(alone.value("hotline_cluster_slot_moves_total{end=\"opened\"}"), 1024.0);

    let second = start(&folders[1]).await;
    eventually("each serves half", || async {
        metrics(&first).await.value("hotline_cluster_slots") == 512.0
            && metrics(&second).await.value("hotline_cluster_slots") == 512.0
    })
    .await;
    for service in [&first, &second] {
        let api = Api::new(service.address, &company.key);
        Reply::of(api.request(Method::GET, "/tags")).await.data(200);
    }
    let (of_first, of_second) = (metrics(&first).await, metrics(&second).await);
    assert_eq!(of_first.value("hotline_cluster_slot_moves_total{end=\"handed_over\"}"), 512.0);
    assert_eq!(of_second.value("hotline_cluster_slot_moves_total{end=\"opened\"}"), 512.0);
    let both = |name: &str| of_first.value(name) + of_second.value(name);
    assert_eq!(both("hotline_cluster_forwarded_total"), 1.0, "not exactly one was forwarded");
    assert_eq!(both("hotline_cluster_taken_total"), 1.0);
    assert_eq!(both("hotline_cluster_forward_duration_seconds_count"), 1.0);
    assert!(both("hotline_cluster_forward_duration_seconds_sum") > 0.0);
    let manual = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md")).expect("the manual");
    for shown in [&of_first, &of_second] {
        let lease = shown.value("hotline_cluster_lease_left_seconds");
        assert!(lease > 0.0 && lease <= 2.0, "{lease}");
        assert_eq!(shown.value("hotline_cluster_peers"), 1.0);
        assert_eq!(shown.value("hotline_cluster_seals_total"), 0.0);
        assert_eq!(shown.value("hotline_cluster_takeover_seconds"), 0.0);
        for (sample, _) in shown.with("hotline_cluster_") {
            let name = sample.split('{').next().unwrap_or_default();
            let name =
                ["_bucket", "_sum", "_count"].iter().fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
            assert!(manual.contains(&format!("`{name}")), "{name} is not explained");
        }
    }
    first.stop().await.expect("a clean stop");
    eventually("the other one serves all", || async {
        metrics(&second).await.value("hotline_cluster_slots") == 1024.0
    })
    .await;
    second.stop().await.expect("a clean stop");
    database.drop().await;
}

#[actix_web::test]
async fn a_slot_is_opened_from_the_tables_even_after_a_missed_notification() {
    let defaults = TestOptions::default();
    // No process reads all companies again meanwhile, as it otherwise does every minute.
    let engine = EngineOptions { reload_every: Duration::from_secs(24 * 3600), ..defaults.engine.clone() };
    let options = TestOptions { member: true, engine, ..defaults };
    let app = OwnApp::start_with(options.clone()).await;
    let (second, _folder) = start_second_service(&app, &options).await;
    let (company, db) = (app.company.id, &app.db);
    // Without triggers, no process is notified of this change.
    let mut silent = db.begin().await.expect("a transaction");
    sqlx::query("set local session_replication_role = replica").execute(&mut *silent).await.expect("no triggers");
    let rename = sqlx::query("update companies set name = 'Renamed' where id = $1").bind(company);
    rename.execute(&mut *silent).await.expect("a change");
    silent.commit().await.expect("committed");
    let owner = owner_of(company, [&app.service, &second]);
    let other = if std::ptr::eq(owner, &second) { &app.service } else { &second };
    let name = |service: &Service| {
        let known = service.app.engine.directory().company(company).expect("the company");
        known.company.name.clone()
    };
    assert_eq!(name(other), "Acme", "the change was notified");
    let membership = owner.app.engine.store().membership().expect("a member");
    lives::drain(db, membership.life).await.expect("it is drained");
    eventually("the other one serves it", || async { other.app.engine.owns(company) }).await;
    assert_eq!(name(other), "Renamed");
    second.stop().await.expect("a clean stop");
    app.stop().await;
}

#[actix_web::test]
async fn a_commit_that_is_not_answered_keeps_a_connection_of_its_company() {
    // Only in a process of a cluster is the commit of a single statement a step of its own.
    let app = OwnApp::start_with(TestOptions { member: true, ..TestOptions::default() }).await;
    let mut ids = Vec::new();
    for number in 0..request_shares().company {
        let body = json!({"shortcut": format!("/{number}"), "message": "hello"});
        ids.push(id(app.api.post("/quick-messages", body).await.data(201)));
    }
    // A commit waits for the lock of this test, also beyond the time limit of statements.
    sqlx::raw_sql(
        "create function wait_for_test() returns trigger language plpgsql as $$
         begin
             loop
                 begin
                     perform pg_advisory_xact_lock_shared(7001);
                     return null;
                 exception when query_canceled then null;
                 end;
             end loop;
         end $$;
         create constraint trigger commit_waits after delete on quick_messages
             deferrable initially deferred for each row execute function wait_for_test()",
    )
    .execute(&app.db)
    .await
    .expect("a trigger");
    let mut lock = app.db.begin().await.expect("a transaction");
    sqlx::query("select pg_advisory_xact_lock(7001)").execute(&mut *lock).await.expect("a lock");
    let delete = |id: &i64| Reply::try_of(app.api.request(Method::DELETE, &format!("/quick-messages/{id}")));
    let replies = join_all(ids.iter().map(delete)).await;
    assert!(replies.iter().all(Option::is_none), "a deletion was answered before its commit");
    // The connections are in use until PostgreSQL has answered: the company has no other.
    app.api.get("/quick-messages").await.error(503, "ERR_API_UNAVAILABLE");
    lock.rollback().await.expect("the lock is released");
    let are_deleted = || async {
        let listed = app.api.get("/quick-messages").await;
        listed.status == 200 && listed.body["data"] == json!([])
    };
    eventually("the company has its connections again, and the deletions are committed", are_deleted).await;
    app.stop().await;
}

#[tokio::test]
async fn another_life_inherits_what_a_stopped_heir_has_not_given_away() {
    let database = TestDatabase::migrated().await;
    let db = &database.db;
    let begin = async |node: &str| {
        let new = NewLife { node: node.to_owned(), address: format!("{node}:7400"), cores: 1 };
        let life = lives::begin(db, &new).await.expect("a life");
        lives::join(db, life).await.expect("it takes slots");
        life
    };
    let (dead, heir) = (begin("dead").await, begin("heir").await);
    let give = "update slots set life = $1 where slot < 10";
    sqlx::query(give).bind(dead).execute(db).await.expect("it has slots");
    let beat = sqlx::query_scalar("select at from beats where life = $1").bind(dead).fetch_one(db);
    let beat_at = beat.await.expect("a heartbeat");
    assert!(lives::seal(db, heir, dead, beat_at).await.expect("sealed"));
    let heirs = async || {
        let seals = lives::seals(db).await.expect("seals");
        seals.into_iter().filter(|seal| !seal.done).map(|seal| (seal.life, seal.heir)).collect::<Vec<_>>()
    };
    // When the heir leaves, another life that has joined becomes the heir at once.
    let other = begin("other").await;
    assert_eq!(lives::adopt(db, other).await.expect("an answer"), 0, "it has adopted a life that has an heir");
    lives::leave(db, heir).await.expect("it leaves");
    assert_eq!(heirs().await, [(dead, other)]);
    // When the last life leaves, the next one to begin adopts it.
    lives::leave(db, other).await.expect("it leaves");
    let (last, late) = (begin("last").await, begin("late").await);
    let adopted = [lives::adopt(db, last).await.expect("an answer"), lives::adopt(db, late).await.expect("an answer")];
    assert_eq!(adopted, [1, 0], "it was not adopted by the first life only");
    assert_eq!(heirs().await, [(dead, last)]);
    assert!(!lives::release_slots(db, late, dead).await.expect("an answer"), "a life that is not heir released slots");
    assert!(lives::release_slots(db, last, dead).await.expect("an answer"));
    let left = "select count(*) from slots where life is not null";
    let left: i64 = sqlx::query_scalar(left).fetch_one(db).await.expect("a count");
    assert_eq!(left, 0, "slots of the dead life are left");
    database.drop().await;
}

#[tokio::test]
async fn housekeeping_writes_nothing_once_the_life_of_its_process_is_over() {
    let database = TestDatabase::migrated().await;
    let company = Company::create(&database.db, "Acme").await;
    let folder = empty_folder();
    let new = NewLife { node: "one".to_owned(), address: "127.0.0.1:7400".to_owned(), cores: 1 };
    let options = StoreOptions {
        database: database.options.clone(),
        journal_dir: folder.path().join("journal"),
        journal: journal::Options::default(),
        durability: Durability::Database,
        keys: keys(),
        events: true,
        role: Role::Member(new),
        migration: MigrationPolicy::default(),
    };
    let (failed, failure) = watch::channel(String::new());
    let store = Store::open(options, move |reason| drop(failed.send_replace(reason))).await.expect("the store opens");
    let now = Utc::now();
    let removal = Removal { company_id: company.id, noun: RemovedNoun::Webhook, id: 1 };
    let housekeeping = async |later: TimeDelta| {
        let (own, uses) = (store.housekeeper(), [(TokenId::new(1), now)]);
        let outcomes: [(&str, hotline_persistence::Result<()>); 9] = [
            ("ids", store.ids.renew(own).await),
            ("keys", idempotency_keys::sweep(own, now, now - TimeDelta::days(1)).await),
            ("months", audit_log::rotate_partitions(own, now).await),
            ("days", events::create_partitions(own, now + TimeDelta::days(30) + later).await),
            ("old days", events::drop_expired(own, now - TimeDelta::days(30) + later).await),
            ("files", media::set_swept_hour(own, media::hour_of(now)).await),
            ("uses", tokens::record_uses(own, &uses).await),
            ("removals", removals::delete_rows(own, &removal, 10).await.map(drop)),
            ("statuses", early_statuses::sweep(own, now, 10).await.map(drop)),
        ];
        outcomes
    };
    for (what, outcome) in housekeeping(TimeDelta::zero()).await {
        assert!(outcome.is_ok(), "{what}: {outcome:?}");
    }
    let unfenced = media::set_swept_hour(&store.housekeeping, media::hour_of(now) + 1).await;
    let refused = unfenced.expect_err("PostgreSQL accepted a write without the fence").to_string();
    assert!(refused.contains("read-only transaction"), "{refused}");

    // A process that takes over ends the life like this.
    let ended = sqlx::query("delete from lives").execute(&database.db).await.expect("it is ended");
    assert_eq!(ended.rows_affected(), 1);
    let blocks = "select sum(next)::bigint from id_blocks";
    let before: i64 = sqlx::query_scalar(blocks).fetch_one(&database.db).await.expect("a number");
    assert!(matches!(store.ids.renew(store.housekeeper()).await, Err(Error::NotOwner)));
    // Later, when there are partitions to create and drop again.
    for (what, outcome) in housekeeping(TimeDelta::days(60)).await {
        assert!(outcome.is_err(), "{what} are written");
    }
    let after: i64 = sqlx::query_scalar(blocks).fetch_one(&database.db).await.expect("a number");
    assert_eq!((media::swept_hour(&database.db).await.expect("an hour"), after), (media::hour_of(now), before));
    eventually("the process is asked to end", || async { failure.borrow().contains("fenced this process") }).await;
    drop(store);
    database.drop().await;
}

/// How often a caller gives up while a transaction begins, each time a little later.
const GIVE_UPS: u64 = 80;

#[tokio::test]
async fn a_caller_that_gives_up_while_a_transaction_begins_leaves_none_open() {
    let database = TestDatabase::migrated().await;
    let company = Company::create(&database.db, "Acme").await;
    let open_transactions = async || {
        let select = "select count(*) from pg_stat_activity
            where datname = current_database() and state like 'idle in transaction%'";
        sqlx::query_scalar::<_, i64>(select).fetch_one(&database.db).await.expect("a count")
    };
    // Without the fence, which refuses writes once the life is over, and with it.
    for role in [
        Role::Standalone,
        Role::Member(NewLife { node: "one".to_owned(), address: "127.0.0.1:7400".to_owned(), cores: 1 }),
    ] {
        let folder = empty_folder();
        let options = StoreOptions {
            database: database.options.clone(),
            journal_dir: folder.path().join("journal"),
            journal: journal::Options::default(),
            durability: Durability::Database,
            keys: keys(),
            events: true,
            role: role.clone(),
            migration: MigrationPolicy::default(),
        };
        let store = Store::open(options, |reason| panic!("{reason}")).await.expect("the store opens");
        for number in 0..GIVE_UPS {
            let give_up_after = Duration::from_micros(number * 25);
            let _ = tokio::time::timeout(give_up_after, store.db(company.id).begin()).await;
            let hour = media::set_swept_hour(store.housekeeper(), media::hour_of(Utc::now()));
            let _ = tokio::time::timeout(give_up_after, hour).await;
            let rows = sqlx::query("update tags set name = name where company_id = $1").bind(company.id);
            let _ = tokio::time::timeout(give_up_after, rows.execute(store.db(company.id))).await;
        }
        eventually("no transaction is open", || async { open_transactions().await == 0 }).await;
        store.close().await.expect("it closes");
    }
    database.drop().await;
}
