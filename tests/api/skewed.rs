//! No statement depends on how the statistics happen to be: what a call reads grows with what its own company has, and
//! never with what others have.
//!
//! The companies here are as unlike as they get: one with nearly everything, many with next to nothing, and one that
//! came after the statistics were taken. Every statement of the service tells what it did (`auto_explain`), so a
//! call is judged by the rows it looked at, which are the same on every machine, and not by its time. The lists come
//! from the API document: a new list, or a new filter, is judged without being named here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use hotline::service::Service;
use hotline_persistence::tables::retentions;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};
use tempfile::TempDir;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

use crate::front_door::world::noun;
use crate::support::service::TestOptions;
use crate::support::{Api, Company, Person, Reply, TestApp, TestDatabase, eventually};

/// Contacts, tickets and half the messages of the company that has nearly everything.
const HUGE: i64 = 12_000;

/// The same of the company that came after the statistics.
const GROWN: i64 = 600;

/// The same of each of the others.
const TINY: i64 = 4;

/// Rows a call of a tiny company may look at: a few times what it has, which the calls before it have made 200 contacts,
/// with what every request reads beside.
const TINY_READS_MAX: u64 = 650;

/// Rows a call of the grown company may look at: its contacts, tickets and messages a few times over, its directory as
/// often as it is loaded anew meanwhile, and less than the huge one has.
const GROWN_READS_MAX: u64 = 9_000;

/// What the directory of a company is loaded with (`tables/organization.rs`), as far as it has more than a few rows.
const DIRECTORY: [&str; 4] = [
    "select * from queues where company_id = $1",
    "select queue_id, user_id from queue_users where company_id = $1",
    "select id, name, active from users where company_id = $1",
    "from wrapup_types t where t.company_id = $1",
];

/// What the statements told, one plan each.
#[derive(Clone, Default)]
struct Plans(Arc<Mutex<Vec<Value>>>);

impl Plans {
    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: tracing::Subscriber> Layer<S> for Plans {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        struct Message(String);
        impl Visit for Message {
            fn record_str(&mut self, field: &Field, value: &str) {
                if field.name() == "message" {
                    self.0 = value.to_owned();
                }
            }

            fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
        }
        if event.metadata().target() != "sqlx::postgres::notice" {
            return;
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        if let Some(at) = message.0.find('{').filter(|_| message.0.starts_with("duration:")) {
            let plan = serde_json::from_str(&message.0[at..]).expect("a plan is JSON");
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(plan);
        }
    }
}

/// Rows that a plan's scans looked at, kept or not.
fn rows_read(plan: &Value) -> u64 {
    let figure = |name: &str| plan[name].as_u64().unwrap_or_default();
    let is_scan = plan["Relation Name"].is_string() || plan["Node Type"] == "Bitmap Index Scan";
    let read = figure("Actual Rows") + figure("Rows Removed by Filter") + figure("Rows Removed by Index Recheck");
    let own = if is_scan { read * figure("Actual Loops") } else { 0 };
    own + plan["Plans"].as_array().into_iter().flatten().map(rows_read).sum::<u64>()
}

/// Rows that statements read. What the directory loads counts once: how often it is loaded while a call is made depends on
/// when the news of the calls before it come.
fn rows_read_by(plans: &[Value]) -> u64 {
    let mut loaded: BTreeMap<&str, u64> = BTreeMap::new();
    let mut read = 0;
    for plan in plans {
        let (text, rows) = (plan["Query Text"].as_str().unwrap_or_default(), rows_read(&plan["Plan"]));
        match DIRECTORY.iter().find(|statement| text.contains(**statement)) {
            Some(statement) => {
                let known = loaded.entry(statement).or_default();
                *known = rows.max(*known);
            }
            None => read += rows,
        }
    }
    read + loaded.values().sum::<u64>()
}

struct World {
    app: TestApp,
    plans: Plans,
    /// What calls of which company read, where that was too much.
    too_much: Vec<String>,
    /// Calls that were judged, and those of them whose statements were seen.
    judged: usize,
    seen: usize,
}

/// A company, a client for it, and ids of what it has.
struct Asker {
    api: Api,
    company: Company,
    contact: i64,
    ticket: i64,
    tag: i64,
    list: i64,
    rows: i64,
    reads_max: u64,
}

impl World {
    async fn make() -> (Self, Vec<Asker>) {
        let plans = Plans::default();
        let subscriber = tracing_subscriber::registry().with(plans.clone());
        tracing::subscriber::set_global_default(subscriber).expect("each test has a process of its own");
        let database = TestDatabase::create().await;
        let db = &database.db;
        hotline_persistence::pool::migrate(db).await.expect("migrate");
        // The statistics stay as they are taken below.
        // What is partitioned holds no rows of its own.
        let tables: Vec<String> = sqlx::query_scalar(
            "select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'",
        )
        .fetch_all(db)
        .await
        .expect("tables");
        for table in tables {
            run(db, &format!("alter table {table} set (autovacuum_enabled = false)")).await;
        }
        let huge = Company::create(db, "Huge").await;
        seed(db, &huge, HUGE).await;
        let mut tiny = Vec::new();
        for number in 1..=12 {
            let company = Company::create(db, &format!("Tiny {number}")).await;
            seed(db, &company, TINY).await;
            tiny.push(company);
        }
        run(db, "analyze").await;
        let grown = Company::create(db, "Grown").await;
        seed(db, &grown, GROWN).await;

        let folder = TempDir::new().expect("folder");
        let options = database.options.clone().options([
            ("session_preload_libraries", "auto_explain"),
            ("auto_explain.log_min_duration", "0"),
            ("auto_explain.log_analyze", "on"),
            ("auto_explain.log_timing", "off"),
            ("auto_explain.log_nested_statements", "on"),
            ("auto_explain.log_format", "json"),
            ("auto_explain.log_level", "notice"),
        ]);
        // One of many asks by the clock as well.
        let alone = TestOptions { member: false, ..TestOptions::default() };
        let service = Service::start(alone.settings(&folder, options)).await.expect("the service starts");
        let first = Api::new(service.address, &grown.key);
        let company = tiny.pop().expect("a tiny one");
        let mut askers = Vec::new();
        for (company, rows, reads_max) in [(grown, GROWN, GROWN_READS_MAX), (company, TINY, TINY_READS_MAX)] {
            let api = first.with_key(&company.key);
            eventually("the directory is loaded", || async { api.get("/channels").await.status == 200 }).await;
            let one = async |table: &str| {
                let statement = format!("select max(id) from {table} where company_id = $1");
                sqlx::query_scalar(AssertSqlSafe(statement)).bind(company.id).fetch_one(db).await.expect("an id")
            };
            let (contact, ticket, tag) = (one("contacts").await, one("tickets").await, one("tags").await);
            let list = one("contact_lists").await;
            // Not before the start, which looks for the keys of sealed secrets.
            let webhooks = format!(
                "insert into webhooks (company_id, id, url, secret, active) overriding system value
                 select {}, {WEBHOOK} - k, 'https://x.example/' || k, 'sealed', false from generate_series(0, 14) k",
                company.id
            );
            run(db, &webhooks).await;
            askers.push(Asker { api, company, contact, ticket, tag, list, rows, reads_max });
        }
        let company = askers[0].company.clone();
        let app = TestApp { service, database, folder, company, api: first };
        (Self { app, plans, too_much: Vec::new(), judged: 0, seen: 0 }, askers)
    }

    /// Makes a call, and holds what its statements read against what they may.
    async fn judge(
        &mut self,
        asker: &Asker,
        method: Method,
        path: &str,
        body: Option<&Value>,
        reads_max: u64,
    ) -> Reply {
        let request = asker.api.request(method.clone(), path);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        self.judge_request(asker, (method, path), request, reads_max).await
    }

    /// The same of a request that somebody else makes in the company.
    async fn judge_request(
        &mut self,
        asker: &Asker,
        (method, path): (Method, &str),
        request: RequestBuilder,
        reads_max: u64,
    ) -> Reply {
        self.plans.take();
        let reply = Reply::of(request).await;
        assert!(reply.status.is_success(), "{method} {path}: {} {}", reply.status, reply.body);
        let plans = self.plans.take();
        self.judged += 1;
        self.seen += usize::from(!plans.is_empty());
        let read = rows_read_by(&plans);
        if read > reads_max {
            let worst = plans.iter().max_by_key(|plan| rows_read(&plan["Plan"])).expect("a statement");
            self.too_much.push(format!(
                "{method} {path} of {} read {read} rows, of which {} in: {worst:#}",
                asker.company.id,
                rows_read(&worst["Plan"])
            ));
        }
        reply
    }

    async fn end(self) {
        // What memory answers asks nothing.
        assert!(self.seen * 2 > self.judged, "of {} calls only {} were seen to ask anything", self.judged, self.seen);
        assert!(self.too_much.is_empty(), "{}\n{} calls", self.too_much.join("\n"), self.too_much.len());
        self.app.stop().await;
    }
}

/// A webhook with deliveries.
const WEBHOOK: i64 = 1_000;

async fn run(db: &PgPool, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(db).await.expect(statement);
}

/// Gives a company so many of everything.
async fn seed(db: &PgPool, company: &Company, rows: i64) {
    let id = company.id;
    let few = rows.min(500);
    // The directory holds them, and is loaded anew with many of the calls.
    let links = if rows == GROWN { 50 } else { few };
    let (phone, queue, user, wrapup) = (company.phone, company.support, company.ana, company.solved);
    // Live ids do not come from the database; each company has a range of its own here.
    let base = id.0 * 10_000_000;
    for statement in [
        format!("insert into tags (company_id, name) select {id}, 'Some ' || k from generate_series(1, {few}) k"),
        format!("insert into queues (company_id, name) select {id}, 'Some ' || k from generate_series(1, {few}) k"),
        format!(
            "insert into users (company_id, name, email) select {id}, 'Some ' || k, 'u' || k || '@x.example'
             from generate_series(1, {few}) k"
        ),
        format!("insert into profiles (company_id, name) select {id}, 'Some ' || k from generate_series(1, {few}) k"),
        format!(
            "insert into webhook_deliveries (company_id, webhook_id, event_id, type, lane, status, created_at)
             select {id}, {WEBHOOK}, k, 'ticket.opened', 'ticket:' || k,
                 (array['delivered', 'failed', 'pending'])[1 + k % 3], now()
             from generate_series(1, {rows}) k"
        ),
        format!("insert into wrapup_categories (company_id, name) select {id}, 'Some ' || k from generate_series(1, {few}) k"),
        format!(
            "insert into wrapup_types (company_id, name, category_id)
             select {id}, 'Some ' || k, (select min(id) from wrapup_categories where company_id = {id})
             from generate_series(1, {few}) k"
        ),
        format!(
            "insert into queue_users (company_id, queue_id, user_id) select {id}, q.id, u.id
             from (select id, row_number() over (order by id) as k from queues where company_id = {id}) q
             join (select id, row_number() over (order by id) as k from users where company_id = {id}) u using (k)
             where k <= {links} on conflict do nothing"
        ),
        format!(
            "insert into wrapup_type_queues (company_id, wrapup_type_id, queue_id) select {id}, t.id, q.id
             from (select id, row_number() over (order by id) as k from wrapup_types where company_id = {id}) t
             join (select id, row_number() over (order by id) as k from queues where company_id = {id}) q using (k)
             where k <= {links} on conflict do nothing"
        ),
        format!(
            "insert into quick_messages (company_id, shortcut, message)
             select {id}, 'some' || k, 'Some text' from generate_series(1, {few}) k"
        ),
        format!(
            "insert into custom_fields (company_id, key, name, application, type, position)
             select {id}, 'some' || k, 'Some ' || k, 'contact', 'text', k from generate_series(1, {few}) k"
        ),
        format!(
            "insert into global_variables (company_id, key, value)
             select {id}, 'some' || k, 'Some' from generate_series(1, {few}) k"
        ),
        format!("insert into product_categories (company_id, name) select {id}, 'Some ' || k from generate_series(1, {few}) k"),
        format!(
            "insert into products (company_id, name, sku, category_id)
             select {id}, 'Some ' || k, 'some ' || k, (select max(id) from product_categories where company_id = {id})
             from generate_series(1, {few}) k"
        ),
        format!("insert into boards (company_id, name) select {id}, 'Some ' || k from generate_series(1, {few}) k"),
        format!(
            "insert into board_lists (company_id, board_id, label, position, done_list)
             select {id}, b.id, 'Some ' || k, k, k = 3 from boards b, generate_series(1, 3) k where b.company_id = {id}"
        ),
        format!("insert into card_statuses (company_id, name) select {id}, 'Some ' || k from generate_series(1, {few}) k"),
        format!("insert into businesses (company_id, name) select {id}, 'Some ' || k from generate_series(1, {few}) k"),
        format!("insert into card_origins (company_id, name) select {id}, 'Some ' || k from generate_series(1, {few}) k"),
        format!(
            "insert into contacts (company_id, name, number, email, code, origin)
             select {id}, 'Some ' || k, ({base} + k)::text, 'c' || k || '@x.example', 'code ' || k, 'api'
             from generate_series(1, {rows}) k"
        ),
        format!(
            "insert into contact_last_channels (company_id, contact_id, channel_id, at)
             select {id}, id, {phone}, now() from contacts where company_id = {id}"
        ),
        format!(
            "insert into contact_tags (company_id, contact_id, tag_id)
             select {id}, c.id, (select max(id) from tags where company_id = {id}) from contacts c where c.company_id = {id}"
        ),
        format!(
            "insert into contact_custom_field_values (company_id, contact_id, custom_field_id, value)
             select {id}, c.id, (select max(id) from custom_fields where company_id = {id}), 'Some'
             from contacts c where c.company_id = {id}"
        ),
        format!(
            "insert into tickets (company_id, id, channel_id, contact_id, queue_id, user_id, status, creation_source,
                 unread_count, wrapup_type_id, reopen_count, opened_at, closed_at, created_at, updated_at)
             select {id}, {base} + c.k, {phone}, c.id, {queue}, {user}, case when c.k % 10 = 1 then 'open' else 'closed' end,
                 'api', 0, case when c.k % 10 = 1 then null else {wrapup} end, 0, now(), now(), now(), now()
             from (select id, row_number() over (order by id) as k from contacts where company_id = {id}) c"
        ),
        format!(
            "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, body, status, source,
                 created_at)
             select {id}, t.id * 2 + k, t.id, t.contact_id, {phone}, case k when 0 then 'inbound' else 'outbound' end, 'text',
                 'Some text', case k when 0 then 'received' else 'sent' end, 'api', now()
             from tickets t, generate_series(0, 1) k where t.company_id = {id}"
        ),
        format!("insert into contact_lists (company_id, name) select {id}, 'Some ' || k from generate_series(1, {few}) k"),
        format!(
            "insert into contact_list_contacts (company_id, contact_list_id, contact_id)
             select {id}, (select max(id) from contact_lists where company_id = {id}), c.id from contacts c where c.company_id = {id}"
        ),
        format!(
            "insert into schedules (company_id, id, contact_id, channel_id, body, send_at, status, created_at, updated_at)
             select {id}, {base} + c.k, c.id, {phone}, 'Some text', '2100-01-01'::timestamptz + c.k * interval '1 second',
                 case when c.k % 2 = 0 then 'pending' else 'sent' end, now(), now()
             from (select id, row_number() over (order by id) as k from contacts where company_id = {id}) c"
        ),
        format!(
            "insert into campaigns (company_id, name, status, contact_list_id, channel_id, scheduled_at, message)
             select {id}, 'Some ' || k, case when k % 2 = 0 then 'completed' else 'canceled' end,
                 (select min(id) from contact_lists where company_id = {id}) + k - 1, {phone}, now(), 'Some text'
             from generate_series(1, {few}) k"
        ),
        format!(
            "insert into campaign_recipients (company_id, campaign_id, contact_id, status, message_id)
             select {id}, (select max(id) from campaigns where company_id = {id}), c.id,
                 (array['sent', 'delivered', 'read', 'failed', 'skipped'])[1 + c.k % 5], ({base} + c.k) * 2 + 1
             from (select id, row_number() over (order by id) as k from contacts where company_id = {id}) c"
        ),
        format!(
            "insert into cards (company_id, board_id, list_id, position, name, creation_source, assigned_user_id, status_id,
                 business_id, origin_id, ticket_id, due, won_at, lost_at)
             select {id}, b.id, (select l.id from board_lists l where l.company_id = {id} and l.board_id = b.id
                     and l.position = 1 + c.k % 3), c.k, 'Some ' || c.k, 'api', {user},
                 (select max(id) from card_statuses where company_id = {id}),
                 (select max(id) from businesses where company_id = {id}),
                 (select max(id) from card_origins where company_id = {id}), {base} + c.k, now(),
                 case when c.k % 3 = 2 then now() end, case when c.k % 3 = 1 then now() end
             from (select max(id) as id from boards where company_id = {id}) b, generate_series(1, {rows}) as c (k)"
        ),
        format!(
            "insert into card_contacts (company_id, card_id, contact_id)
             select {id}, k.id, (select max(id) from contacts where company_id = {id}) from cards k where k.company_id = {id}"
        ),
        format!(
            "insert into card_products (company_id, card_id, product_id, name, unit_price)
             select {id}, k.id, (select max(id) from products where company_id = {id}), 'Some', 1
             from cards k where k.company_id = {id}"
        ),
        format!(
            "insert into ticket_events (company_id, id, ticket_id, type, source, created_at)
             select {id}, t.id, t.id, 'opened', 'api', now() from tickets t where t.company_id = {id}"
        ),
        // One of each message that came in, behind those of the company's channels.
        format!(
            "with told as (
                 insert into events (company_id, last_id, created_at, first_id, types, told)
                 select {id}, c.last_id + m.k, now(), c.last_id + m.k, -1,
                     jsonb_build_array(jsonb_build_object('k', 'message.received', 'a', 0, 'r',
                         jsonb_build_object('m', jsonb_build_object('i', m.id, 't', m.ticket_id, 's', 'received'))))
                 from event_counters c, (select id, ticket_id, row_number() over (order by id) as k from messages
                     where company_id = {id} and direction = 'inbound') m
                 where c.company_id = {id} returning last_id)
             update event_counters set last_id = (select max(last_id) from told) where company_id = {id}"
        ),
        format!("select hotline_fill_zones({id})"),
    ] {
        run(db, &statement).await;
    }
}

impl Asker {
    /// An id by the name of its parameter, as far as it says what it is the id of.
    fn id(&self, name: &str) -> Option<i64> {
        Some(match name {
            "contactId" => self.contact,
            "ticketId" => self.ticket,
            "tagId" => self.tag,
            "contactListId" => self.list,
            "queueId" => self.company.support.0,
            "userId" => self.company.ana.0,
            "channelId" => self.company.phone.0,
            "wrapupTypeId" => self.company.solved.0,
            _ => return None,
        })
    }

    /// What a filter is asked with: what the company has, and what it has not.
    fn values(&self, name: &str, schema: &Value) -> Vec<String> {
        if let Some(words) = schema["enum"].as_array() {
            return words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        let base = self.company.id.0 * 10_000_000;
        match (name, schema["type"].as_str(), schema["format"].as_str()) {
            (_, Some("boolean"), _) => vec!["true".to_owned(), "false".to_owned()],
            (_, _, Some("date-time")) => vec!["2000-01-01T00:00:00Z".to_owned(), "2100-01-01T00:00:00Z".to_owned()],
            ("search", ..) => ["some", "some 1", "nobody is called this"].map(str::to_owned).to_vec(),
            ("number", ..) => vec![(base + 1).to_string(), "5511900000000".to_owned()],
            ("email", ..) => vec!["c1@x.example".to_owned(), "nobody@x.example".to_owned()],
            ("origin", ..) => vec!["api".to_owned(), "elsewhere".to_owned()],
            ("action", ..) => vec!["createToken".to_owned(), "nothing".to_owned()],
            ("after", ..) => vec!["0".to_owned(), "1".to_owned()],
            _ => Vec::new(),
        }
    }
}

/// A list with each of its filters: its path, and every query to ask it with.
fn queries(asker: &Asker, path: &str, parameters: &[Value], ids: &[(&str, i64)]) -> Vec<String> {
    let mut queries = vec![String::new(), "&order=desc".to_owned(), "&page=3".to_owned()];
    for parameter in parameters.iter().filter(|parameter| parameter["in"] == "query") {
        let name = parameter["name"].as_str().expect("a name");
        if ["page", "perPage", "order"].contains(&name) {
            continue;
        }
        let noun = noun(path, name);
        let own = ids.iter().find(|(known, _)| *known == noun).map(|(_, id)| *id);
        let values = match asker.id(&noun).or(own) {
            Some(id) => vec![id.to_string()],
            None => asker.values(name, &parameter["schema"]),
        };
        assert!(!values.is_empty(), "{path} has a filter {name} that this test has no value for");
        queries.extend(values.into_iter().map(|value| {
            let mut query = form_urlencoded::Serializer::new(String::from("&"));
            query.append_pair(name, &value);
            query.finish()
        }));
    }
    queries
}

#[actix_web::test]
async fn a_list_reads_what_its_company_has_and_nothing_of_others() {
    let (mut world, askers) = World::make().await;
    let document = hotline::routes::document();
    let mut lists = 0;
    for asker in &askers {
        let db = &world.app.database.db;
        let one = async |statement: &'static str| -> i64 {
            sqlx::query_scalar(statement).bind(asker.company.id).fetch_one(db).await.expect("an id")
        };
        let ids = [
            ("profileId", one("select max(id) from profiles where company_id = $1").await),
            ("wrapupCategoryId", one("select max(id) from wrapup_categories where company_id = $1").await),
            ("productCategoryId", one("select max(id) from product_categories where company_id = $1").await),
            ("campaignId", one("select max(id) from campaigns where company_id = $1").await),
            ("webhookId", one("select max(id) from webhooks where company_id = $1").await),
            ("boardId", one("select max(id) from boards where company_id = $1").await),
            ("listId", one("select max(id) from board_lists where company_id = $1").await),
            ("statusId", one("select max(id) from card_statuses where company_id = $1").await),
            ("businessId", one("select max(id) from businesses where company_id = $1").await),
            ("originId", one("select max(id) from card_origins where company_id = $1").await),
        ];
        let body = json!({"channelId": asker.company.webchat, "visitor": {"name": "Visitor"}});
        let session = asker.api.post("/webchat/sessions", body).await.data(201)["id"].as_str().expect("id").to_owned();
        for (path, item) in document["paths"].as_object().expect("paths") {
            let Some(path) = path.strip_prefix("/api/v1") else { continue };
            let Some(parameters) = item["get"]["parameters"].as_array() else { continue };
            if !parameters.iter().any(|parameter| parameter["name"] == "page") {
                continue;
            }
            // What is asked of a provider.
            if path.ends_with("/templates") {
                continue;
            }
            let mut at = path.replace("{sessionId}", &session);
            for parameter in parameters.iter().filter(|parameter| parameter["in"] == "path") {
                let name = parameter["name"].as_str().expect("a name");
                let own = ids.iter().find(|(known, _)| *known == name).map(|(_, id)| *id);
                if let Some(id) = asker.id(name).or(own) {
                    at = at.replace(&format!("{{{name}}}"), &id.to_string());
                }
            }
            assert!(!at.contains('{'), "{at} has an id that this test does not know");
            lists += 1;
            for query in queries(asker, &at, parameters, &ids) {
                let path = format!("{at}?perPage=5{query}");
                world.judge(asker, Method::GET, &path, None, asker.reads_max).await;
            }
        }
    }
    assert!(lists >= 2 * 15, "the document has {lists} lists");
    // A log has no pages: it is read on from an event.
    for asker in &askers {
        for query in
            ["", "?after=3&limit=1", "?limit=1000", "?types=card.won", "?after=2&types=message.received,note.added"]
        {
            let reply = world.judge(asker, Method::GET, &format!("/events{query}"), None, asker.reads_max).await;
            let data = reply.data(200).as_array().expect("events");
            assert!(
                query.contains("card.won") || data.iter().any(|event| event["data"]["body"] == "Some text"),
                "{query}"
            );
        }
    }
    world.end().await;
}

#[actix_web::test]
async fn a_list_that_the_panel_alone_has_reads_what_its_company_has_and_nothing_of_others() {
    let (mut world, askers) = World::make().await;
    let db = world.app.database.db.clone();
    for statement in [
        "insert into audit_log (company_id, actor_kind, actor_id, actor_name, action)
             select company_id, 'user', 1, 'Some', case when k % 3 = 0 then 'createToken' else 'updateUser' end
             from (select company_id, row_number() over (partition by company_id order by id) as k from contacts) c",
        "insert into tokens (company_id, name, prefix, hash, permissions, revoked_at)
             select company_id, 'Some ' || k, 'sk_live_', sha256((company_id || ' ' || k)::bytea), '{}', now()
             from (select company_id, row_number() over (partition by company_id order by id) as k from contacts) c
             where k <= 600",
    ] {
        run(&db, statement).await;
    }
    let (admin, _) = Person::admin(&world.app, "root@example.com").await;
    let public = hotline::routes::document();
    let document = hotline::routes::panel_document();
    let mut lists = Vec::new();
    for asker in &askers {
        let person = admin.in_company(asker.company.id);
        for (whole, item) in document["paths"].as_object().expect("paths") {
            let Some(path) = whole.strip_prefix("/panel/api/v1") else { continue };
            let is_public = !public["paths"][format!("/api/v1{path}")]["get"].is_null();
            let Some(parameters) = item["get"]["parameters"].as_array().filter(|_| !is_public) else { continue };
            // Of the installation, which has as many rows as companies.
            if !parameters.iter().any(|parameter| parameter["name"] == "page") || path == "/companies" {
                continue;
            }
            lists.push(path.to_owned());
            for query in queries(asker, path, parameters, &[]) {
                let path = format!("{path}?perPage=5{query}");
                let request = person.request(Method::GET, &path);
                world.judge_request(asker, (Method::GET, &path), request, asker.reads_max).await;
            }
        }
    }
    lists.sort_unstable();
    lists.dedup();
    assert_eq!(lists, ["/audit-log", "/installation/audit-log", "/tokens"]);
    world.end().await;
}

#[actix_web::test]
async fn a_write_reads_what_it_writes_and_nothing_of_others() {
    let (mut world, askers) = World::make().await;
    let mut removed = BTreeSet::new();
    for asker in &askers {
        let base = asker.company.id.0 * 10_000_000;
        // An import finds each row by its key: new ones, known ones, and ones that give up a number.
        const ROWS: i64 = 200;
        let rows = |from: i64| -> Vec<Value> {
            let row = |k: i64| {
                json!({"name": "Imported", "number": format!("55{}", base + from + k), "email": format!("i{k}@x.example"),
                    "code": format!("import {k}"), "tagIds": [asker.tag]})
            };
            (0..ROWS).map(row).collect()
        };
        // A dozen look-ups a row: what it is found by, its row, its tags and those of its references.
        let import_max = 40 * ROWS as u64;
        for from in [1_000_000, 1_000_000, 2_000_000] {
            let body = json!({"contacts": rows(from)});
            let reply = world.judge(asker, Method::POST, "/contacts/import", Some(&body), import_max).await;
            assert_eq!(reply.data(200)["errors"], json!([]));
        }
        let plain = [
            (
                "/contacts",
                "contactId",
                json!({"name": "New", "number": format!("5599{base}"), "tagIds": [asker.tag]}),
                json!({"name": "Changed"}),
            ),
            ("/tags", "tagId", json!({"name": "New"}), json!({"name": "Changed"})),
            ("/queues", "queueId", json!({"name": "New"}), json!({"name": "Changed"})),
            ("/wrapup-categories", "categoryId", json!({"name": "New"}), json!({"name": "Changed"})),
            ("/users", "userId", json!({"name": "New", "email": "new@x.example"}), json!({"name": "Changed"})),
            (
                "/quick-messages",
                "quickMessageId",
                json!({"shortcut": "new", "message": "New"}),
                json!({"message": "Changed"}),
            ),
            (
                "/custom-fields",
                "customFieldId",
                json!({"name": "New", "application": "contact", "type": "text"}),
                json!({"name": "Changed"}),
            ),
            (
                "/schedules",
                "scheduleId",
                json!({"contactId": asker.contact, "channelId": asker.company.phone, "body": "New", "sendAt": "2099-01-01T00:00:00Z"}),
                json!({"body": "Changed"}),
            ),
            (
                "/campaigns",
                "campaignId",
                json!({"name": "New", "contactListId": asker.list, "channelId": asker.company.phone, "message": "New",
                    "scheduledAt": "2099-01-01T00:00:00Z"}),
                json!({"message": "Changed"}),
            ),
            ("/global-variables", "variableId", json!({"key": "fresh", "value": "New"}), json!({"value": "Changed"})),
            ("/product-categories", "categoryId", json!({"name": "New"}), json!({"name": "Changed"})),
            (
                "/products",
                "productId",
                json!({"name": "New", "sku": "new"}),
                json!({"name": "Changed", "sku": "newer"}),
            ),
            (
                "/crm/boards",
                "boardId",
                json!({"name": "New", "crmBoardQueues": [{"queueId": asker.company.sales}]}),
                json!({"archived": true, "crmBoardQueues": []}),
            ),
            ("/crm/statuses", "statusId", json!({"name": "New"}), json!({"name": "Changed"})),
            ("/crm/businesses", "businessId", json!({"name": "New"}), json!({"name": "Changed"})),
            ("/crm/origins", "originId", json!({"name": "New"}), json!({"name": "Changed"})),
            (
                "/webhooks",
                "webhookId",
                json!({"url": "https://x.example/new", "active": false}),
                json!({"description": "Changed"}),
            ),
        ];
        for (path, id_name, new, changed) in plain {
            let made = world.judge(asker, Method::POST, path, Some(&new), asker.reads_max).await;
            let one = format!("{path}/{}", made.data(201)["id"]);
            world.judge(asker, Method::PUT, &one, Some(&changed), asker.reads_max).await;
            world.judge(asker, Method::DELETE, &one, None, asker.reads_max).await;
            removed.insert(format!("{path}/{{{id_name}}}"));
        }
        let category = asker.api.post("/wrapup-categories", json!({"name": "Another"})).await.data(201)["id"].clone();
        let new = json!({"name": "New", "categoryId": category, "queueIds": [asker.company.sales]});
        let made = world.judge(asker, Method::POST, "/wrapup-types", Some(&new), asker.reads_max).await;
        let one = format!("/wrapup-types/{}", made.data(201)["id"]);
        world.judge(asker, Method::PUT, &one, Some(&json!({"name": "Changed"})), asker.reads_max).await;
        world.judge(asker, Method::DELETE, &one, None, asker.reads_max).await;
        removed.insert("/wrapup-types/{wrapupTypeId}".to_owned());

        let board = asker.api.post("/crm/boards", json!({"name": "Staged"})).await.data(201)["id"].clone();
        let stages = format!("/crm/boards/{board}/lists");
        let made = world.judge(asker, Method::POST, &stages, Some(&json!({"label": "New"})), asker.reads_max).await;
        let one = format!("{stages}/{}", made.data(201)["id"]);
        world.judge(asker, Method::PUT, &one, Some(&json!({"label": "Changed"})), asker.reads_max).await;
        world.judge(asker, Method::DELETE, &one, None, asker.reads_max).await;
        removed.insert("/crm/boards/{boardId}/lists/{listId}".to_owned());

        let card = json!({
            "boardId": board, "name": "New", "contactIds": [asker.contact], "assignedToUserId": asker.company.ana,
            "ticketId": asker.ticket, "products": [{"name": "New", "unitPrice": 1}],
        });
        let made = world.judge(asker, Method::POST, "/crm/cards", Some(&card), asker.reads_max).await;
        let stage = made.data(201)["list"]["id"].clone();
        let one = format!("/crm/cards/{}", made.data(201)["id"]);
        for (verb, body) in [
            ("/move", json!({"crmBoardListId": stage, "position": 1})),
            ("/win", json!({})),
            ("/reopen", json!({})),
            ("/lose", json!({"statusReason": "x"})),
        ] {
            world.judge(asker, Method::POST, &format!("{one}{verb}"), Some(&body), asker.reads_max).await;
        }
        world
            .judge(asker, Method::PUT, &one, Some(&json!({"name": "Changed", "contactIds": []})), asker.reads_max)
            .await;
        let line = json!({"name": "Another", "unitPrice": 1});
        let lines = format!("{one}/products");
        let made = world.judge(asker, Method::POST, &lines, Some(&line), asker.reads_max).await;
        let line = format!("{lines}/{}", made.data(201)["id"]);
        world.judge(asker, Method::PUT, &line, Some(&json!({"quantity": 2})), asker.reads_max).await;
        world.judge(asker, Method::DELETE, &line, None, asker.reads_max).await;
        world.judge(asker, Method::DELETE, &one, None, asker.reads_max).await;
        removed.insert("/crm/cards/{cardId}".to_owned());
        removed.insert("/crm/cards/{cardId}/products/{cardProductId}".to_owned());

        let contact = asker.api.post("/contacts", json!({"name": "Linked"})).await.data(201)["id"].clone();
        let link = format!("/contacts/{contact}/tags/{}", asker.tag);
        let member = format!("/queues/{}/users/{}", asker.company.sales, asker.company.ana);
        for (link, documented) in
            [(link, "/contacts/{contactId}/tags/{tagId}"), (member, "/queues/{queueId}/users/{userId}")]
        {
            world.judge(asker, Method::PUT, &link, None, asker.reads_max).await;
            world.judge(asker, Method::DELETE, &link, None, asker.reads_max).await;
            removed.insert(documented.to_owned());
        }
        let new = json!({"name": "New"});
        let made = world.judge(asker, Method::POST, "/contact-lists", Some(&new), asker.reads_max).await;
        let one = format!("/contact-lists/{}", made.data(201)["id"]);
        let members = json!({"contactIds": [contact]});
        world.judge(asker, Method::POST, &format!("{one}/contacts"), Some(&members), asker.reads_max).await;
        let campaign = json!({"name": "New", "contactListId": made.data(201)["id"], "channelId": asker.company.phone,
            "message": "New", "scheduledAt": "2099-01-01T00:00:00Z"});
        let campaign = asker.api.post("/campaigns", campaign).await.data(201)["id"].clone();
        for verb in ["start", "pause", "resume", "cancel"] {
            let verb = format!("/campaigns/{campaign}/{verb}");
            world.judge(asker, Method::POST, &verb, None, asker.reads_max).await.data(200);
        }
        world.judge(asker, Method::DELETE, &format!("{one}/contacts/{contact}"), None, asker.reads_max).await;
        // As many as have the tag: each is looked for in the list, and seen to be there.
        let most = asker.reads_max + 30 * asker.rows.unsigned_abs();
        let tagged = json!({"tagId": asker.tag});
        world.judge(asker, Method::POST, &format!("{one}/contacts"), Some(&tagged), most).await;
        world.judge(asker, Method::DELETE, &one, None, most).await;
        removed.insert("/contact-lists/{contactListId}".to_owned());
        removed.insert("/contact-lists/{contactListId}/contacts/{contactId}".to_owned());
        // What many rows refer to: they go with it, or lose it, and nobody else's are looked at.
        let most = asker.reads_max + 30 * asker.rows.unsigned_abs();
        world.judge(asker, Method::DELETE, &format!("/tags/{}", asker.tag), None, most).await;
        let send =
            json!({"channelId": asker.company.phone, "number": "5511988887777", "type": "text", "body": "Hello"});
        world.judge(asker, Method::POST, "/messages", Some(&send), asker.reads_max).await;
    }
    let document = hotline::routes::document();
    let removable: BTreeSet<String> = document["paths"]
        .as_object()
        .expect("paths")
        .iter()
        .filter(|(_, item)| item["delete"].is_object())
        .map(|(path, _)| path.strip_prefix("/api/v1").unwrap_or(path).to_owned())
        .collect();
    assert_eq!(removed, removable, "every DELETE of the document is judged");
    world.end().await;
}

#[actix_web::test]
async fn what_was_kept_long_enough_is_found_and_removed_without_a_look_at_others() {
    let (mut world, askers) = World::make().await;
    let db = world.app.database.db.clone();
    for asker in &askers {
        let company = asker.company.id;
        run(
            &db,
            &format!(
                "update tickets set closed_at = now() - interval '40 days'
                 where company_id = {company} and status = 'closed' and (id % 20 = 2 or {} = {TINY})",
                asker.rows
            ),
        )
        .await;
        world.plans.take();
        let removed = retentions::set(&db, company, Some(30)).await.expect("said").due;
        assert!(removed > 0, "nothing is due");
        eventually("all of it is gone", || async {
            retentions::all(&db)
                .await
                .expect("a list")
                .iter()
                .any(|kept| kept.company == company && kept.removed == removed && kept.last_run.is_some())
        })
        .await;
        let plans = world.plans.take();
        let read = rows_read_by(&plans);
        if read > asker.reads_max {
            let worst = plans.iter().max_by_key(|plan| rows_read(&plan["Plan"])).expect("a statement");
            world.too_much.push(format!("a removal of {company} read {read} rows: {worst:#}"));
        }
        world.judged += 1;
        world.seen += usize::from(!plans.is_empty());
    }
    world.end().await;
}

#[actix_web::test]
async fn every_table_of_companies_is_planned_alike() {
    let app = TestApp::start().await;
    let known = "select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attname = 'company_id'
            and a.attstattarget <> 0 order by 1";
    let known: Vec<String> = sqlx::query_scalar(known).fetch_all(&app.database.db).await.expect("tables");
    assert_eq!(known, Vec::<String>::new(), "have statistics on company_id: `set statistics 0`, see migration 21");
    let searched =
        "select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
        where m.amname = 'gin' and c.relnamespace = 'public'::regnamespace
            and pg_get_indexdef(i.indexrelid, 1, true) <> 'company_id' order by 1";
    let searched: Vec<String> = sqlx::query_scalar(searched).fetch_all(&app.database.db).await.expect("indexes");
    assert_eq!(searched, Vec::<String>::new(), "hold what is searched for without its company");
    app.stop().await;
}

/// How many of these statements read boards and what is on them.
fn of_boards(plans: &[Value]) -> usize {
    let names = |plan: &&Value| {
        let text = plan["Query Text"].as_str().expect("a statement");
        ["boards", "board_lists", "from cards", "from contacts"].iter().any(|table| text.contains(table))
    };
    plans.iter().filter(names).count()
}

#[actix_web::test]
async fn a_board_takes_as_many_statements_with_three_stages_as_with_thirty() {
    let (world, askers) = World::make().await;
    let asker = &askers[0];
    let mut taken = BTreeSet::new();
    for (stages, cards) in [(3, 3), (3, 300), (30, 30), (30, 600)] {
        let lists: Vec<Value> = (0..stages).map(|number| json!({"label": number.to_string()})).collect();
        let new = json!({"name": "Some", "crmBoardLists": lists});
        let board = asker.api.post("/crm/boards", new).await.data(201)["id"].as_i64().expect("an id");
        let filled = format!(
            "with made as (
                 insert into cards (company_id, board_id, list_id, position, name, creation_source)
                 select s.company_id, s.board_id, s.id, k, 'Some', 'api' from board_lists s, generate_series(1, {cards}) k
                 where s.company_id = {} and s.board_id = {board} and k % {stages} = s.label::int
                 returning company_id, id)
             insert into card_contacts (company_id, card_id, contact_id) select company_id, id, {} from made",
            asker.company.id, asker.contact
        );
        run(&world.app.database.db, &filled).await;
        world.plans.take();
        let reply = asker.api.get(&format!("/crm/boards/{board}")).await;
        let lists = reply.data(200)["lists"].as_array().expect("stages");
        let held = |stage: &Value| (stage["countCards"].as_i64(), stage["cards"].as_array().map(Vec::len));
        let each = cards / stages;
        assert!(
            lists.iter().all(|stage| held(stage) == (Some(each), usize::try_from(each.min(100)).ok())),
            "{lists:?}"
        );
        taken.insert(of_boards(&world.plans.take()));
    }
    assert_eq!(taken, BTreeSet::from([5]), "statements of a single read");
    world.app.stop().await;
}
