//! The companies of these tests, and their records.

use sqlx::{AssertSqlSafe, PgConnection, PgExecutor, PgPool};

use super::{GROWN, HUGE, TINY};
use crate::support::Company;

/// The id of a webhook with deliveries.
pub const WEBHOOK: i64 = 1_000;

pub async fn run(db: impl PgExecutor<'_>, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(db).await.expect(statement);
}

/// Fills a database with companies of very different sizes. One of them is created after the statistics are taken.
pub async fn fill(db: &PgPool) {
    // Without autovacuum the statistics that are taken below stay, in every copy of the database.
    // A partitioned table holds no rows of its own.
    let tables: Vec<String> = sqlx::query_scalar(
        "select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'",
    )
    .fetch_all(db)
    .await
    .expect("tables");
    for table in tables {
        run(db, &format!("alter table {table} set (autovacuum_enabled = false)")).await;
    }
    let mut connection = db.acquire().await.expect("a connection");
    // Connections of the pool plan every execution; here that would include the check of every row's foreign keys.
    run(&mut *connection, "set plan_cache_mode = auto").await;
    let huge = Company::create(db, "Huge").await;
    seed(&mut connection, &huge, HUGE).await;
    let mut tiny = Vec::new();
    for number in 1..=12 {
        let company = Company::create(db, &format!("Tiny {number}")).await;
        seed(&mut connection, &company, TINY).await;
        tiny.push(company);
    }
    run(&mut *connection, "analyze").await;
    let grown = Company::create(db, "Grown").await;
    seed(&mut connection, &grown, GROWN).await;
    // The keys of their tokens are saved nowhere else.
    let kept = serde_json::to_string(&(&grown, tiny.last())).expect("JSON");
    run(&mut *connection, &format!("comment on schema public is $kept${kept}$kept$")).await;
}

/// Returns the grown company and a tiny one of a database that `fill` has filled.
pub async fn callers(db: &PgPool) -> (Company, Company) {
    let kept = "select obj_description('public'::regnamespace, 'pg_namespace')";
    let kept: String = sqlx::query_scalar(kept).fetch_one(db).await.expect("what was kept");
    serde_json::from_str(&kept).expect("two companies")
}

/// Inserts `rows` contacts, tickets, cards and so on for a company, and at most 500 of what a company has few of.
async fn seed(db: &mut PgConnection, company: &Company, rows: i64) {
    let id = company.id;
    let few = rows.min(500);
    // The directory holds these links, and many calls load it again: the grown company's limit allows only some.
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
             select {id}, 'some' || k, 'Some ' || k, case when k % 4 = 0 then 'contact' else 'card' end, 'text', k
             from generate_series(1, {few}) k"
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
             select {id}, b.id, l.id, c.k, 'Some ' || c.k, 'api', {user},
                 (select max(id) from card_statuses where company_id = {id}),
                 (select max(id) from businesses where company_id = {id}),
                 (select max(id) from card_origins where company_id = {id}), {base} + c.k, now(),
                 case when c.k % 3 = 2 then now() end, case when c.k % 3 = 1 then now() end
             from (select max(id) as id from boards where company_id = {id}) b, generate_series(1, {rows}) as c (k),
                 board_lists l
             where l.company_id = {id} and l.board_id = b.id and l.position = 1 + c.k % 3 order by c.k"
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
        // One event for each inbound message, after the events of the company's channels.
        format!(
            "with inserted as (
                 insert into events (company_id, last_id, created_at, first_id, types, told)
                 select {id}, c.last_id + m.k, now(), c.last_id + m.k, -1,
                     jsonb_build_array(jsonb_build_object('k', 'message.received', 'a', 0, 'r',
                         jsonb_build_object('m', jsonb_build_object('i', m.id, 't', m.ticket_id, 's', 'received'))))
                 from event_counters c, (select id, ticket_id, row_number() over (order by id) as k from messages
                     where company_id = {id} and direction = 'inbound') m
                 where c.company_id = {id} returning last_id)
             update event_counters set last_id = (select max(last_id) from inserted) where company_id = {id}"
        ),
        format!("select hotline_fill_zones({id})"),
    ] {
        run(&mut *db, &statement).await;
    }
}
