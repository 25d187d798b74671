//! Fills the tables with the rows that a year of requests would have left, in a hundredth of the time.

use std::time::Instant;

use hotline_persistence::PgPool;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::options::GrownArgs;
use crate::outcome::Outcome;
use crate::seed::Company;

/// Tickets that one statement inserts.
const TICKETS_AT_ONCE: i64 = 50_000;

/// The tables with the most rows. Their indexes are created once the rows are there, which is several times quicker.
const LARGEST_TABLES: [&str; 4] = ["contacts", "tickets", "messages", "ticket_events"];

/// Memory that the server may use to make such an index.
const INDEX_MEMORY: &str = "1GB";

/// Inserts the rows of all companies; `company` gets its share. The service must not run: it would not notice that
/// these ids are used.
pub async fn fill(db: &PgPool, company: &Company, options: &GrownArgs) -> Outcome<()> {
    let mut db = db.acquire().await?;
    let db: &mut PgConnection = &mut db;
    // Without triggers and foreign keys, because these rows are valid.
    run(db, "set session_replication_role = replica; set statement_timeout = 0; set synchronous_commit = off").await?;
    let began = Instant::now();
    let others = create_companies(db, options.companies - 1).await?;
    let indexes = drop_indexes(db).await?;
    let all = RowCounts { contacts: options.contacts, tickets: options.conversations, messages: options.messages };
    insert_history(db, company.id, all.fraction(options.percent, 100)).await?;
    let each = all.fraction(100 - options.percent, 100 * i64::try_from(others.len())?.max(1));
    for other in others {
        insert_history(db, other, each).await?;
    }
    run(db, &sales(company.id, options.cards)).await?;
    run(db, &outreach(company.id)).await?;
    eprintln!("the rows: {:.0?}", began.elapsed());
    run(db, &format!("set maintenance_work_mem = '{INDEX_MEMORY}'")).await?;
    for index in indexes {
        run(db, &index).await?;
    }
    run(db, "select hotline_fill_zones()").await?;
    eprintln!("the indexes: {:.0?}", began.elapsed());
    run(db, "vacuum analyze").await?;
    // The connection returns to the pool without these settings.
    db.ping().await?;
    run(db, "reset all").await
}

/// Numbers of rows.
#[derive(Clone, Copy)]
struct RowCounts {
    contacts: i64,
    tickets: i64,
    messages: i64,
}

impl RowCounts {
    fn fraction(self, share: i64, of: i64) -> Self {
        let scaled = |count: i64| (count * share / of).max(1);
        Self { contacts: scaled(self.contacts), tickets: scaled(self.tickets), messages: scaled(self.messages) }
    }
}

async fn run(db: &mut PgConnection, statements: &str) -> Outcome<()> {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(db).await.map_err(|error| format!("{error}: {statements}"))?;
    Ok(())
}

/// Creates companies with a channel, a queue and an agent each.
async fn create_companies(db: &mut PgConnection, count: i64) -> Outcome<Vec<i64>> {
    let made: Vec<i64> = sqlx::query_scalar(
        "insert into companies (name, slot) select 'Neighbour ' || n, n % 1024 from generate_series(1, $1) n returning id",
    )
    .bind(count)
    .fetch_all(&mut *db)
    .await?;
    for statement in [
        "insert into queues (company_id, name) select id, 'Support' from companies c where id = any($1)",
        "insert into users (company_id, name, email) select id, 'Ana Souza', 'ana@example.com' from companies
         where id = any($1)",
        "insert into channels (company_id, name, type, status, public_key)
         select id, 'Website', 'webchat', 'connected', 'grown-' || id from companies where id = any($1)",
        "insert into wrapup_categories (company_id, name) select id, 'Outcome' from companies where id = any($1)",
        "insert into wrapup_types (company_id, name, category_id)
         select company_id, 'Solved', id from wrapup_categories where company_id = any($1)",
        "insert into tags (company_id, name) select id, 'VIP' from companies where id = any($1)",
    ] {
        sqlx::query(statement).bind(&made).execute(&mut *db).await?;
    }
    Ok(made)
}

/// Drops the indexes of [`LARGEST_TABLES`] that belong to no constraint, and returns the statements that create them.
async fn drop_indexes(db: &mut PgConnection) -> Outcome<Vec<String>> {
    let indexes: Vec<(String, String)> = sqlx::query_as(
        "select indexname, indexdef from pg_indexes i where schemaname = 'public' and tablename = any($1)
            and not exists (select from pg_constraint c where c.conname = i.indexname)",
    )
    .bind(&LARGEST_TABLES[..])
    .fetch_all(&mut *db)
    .await?;
    for (name, _) in &indexes {
        run(db, &format!("drop index {name}")).await?;
    }
    Ok(indexes.into_iter().map(|(_, made)| made).collect())
}

/// Inserts contacts, and their conversations of the year that ends now, oldest first. One in a hundred of the latest
/// tickets is open, at most one for each contact; every twentieth message is a note, and outbound messages whose id is
/// a multiple of 50 have failed.
async fn insert_history(db: &mut PgConnection, company: i64, counts: RowCounts) -> Outcome<()> {
    let RowCounts { contacts, tickets, messages } = counts;
    let each = (messages / tickets).max(2);
    for (table, rows) in [("queues", 5), ("users", 20), ("tags", 20)] {
        let values = if table == "users" { "name, email" } else { "name" };
        let row = if table == "users" { "'Some ' || n, 's' || n || '@example.com'" } else { "'Some ' || n" };
        run(
            db,
            &format!(
                "insert into {table} (company_id, {values}) select {company}, {row} from generate_series(1, {rows}) n"
            ),
        )
        .await?;
    }
    let first_contact: i64 = sqlx::query_scalar(
        "with made as (
            insert into contacts (company_id, name, number, email, code, origin, is_group, created_at, updated_at)
            select $1, (array['Ana', 'Bruno', 'Carla', 'Diego', 'Elisa'])[1 + n % 5] || ' ' || md5(n::text),
                '5531' || lpad(n::text, 9, '0'), 'c' || n || '@example.com', 'code ' || n,
                (array['site', 'shop', 'fair'])[1 + n % 3], n % 1000 = 0, at, at
            from generate_series(1, $2) n, lateral (select now() - (1 - n::float8 / $2) * interval '365 days' as at) x
            returning id)
         select min(id) from made",
    )
    .bind(company)
    .bind(contacts)
    .fetch_one(&mut *db)
    .await?;
    run(
        db,
        &format!(
            "insert into contact_last_channels (company_id, contact_id, channel_id, at)
             select company_id, id, (select min(id) from channels where company_id = {company}), updated_at
             from contacts where company_id = {company}"
        ),
    )
    .await?;
    run(
        db,
        &format!(
            "insert into contact_tags (company_id, contact_id, tag_id)
             select {company}, {first_contact} + n, (select min(id) from tags where company_id = {company} and id > n % 20)
             from generate_series(0, {contacts} - 1) n"
        ),
    )
    .await?;
    let (ticket, message, event) = (
        take_ids(db, "ticket", tickets).await?,
        take_ids(db, "message", tickets * each).await?,
        take_ids(db, "event", tickets * 2).await?,
    );
    // Remainders of divisions by primes spread the tickets over queues, users and wrap-up types.
    let parts = format!(
        "(select array_agg(id order by id) from queues where company_id = {company}) as queue,
         (select array_agg(id order by id) from users where company_id = {company}) as agent,
         (select array_agg(id order by id) from wrapup_types where company_id = {company}) as wrapup,
         (select min(id) from channels where company_id = {company}) as channel"
    );
    let mut from = 0;
    while from < tickets {
        let to = (from + TICKETS_AT_ONCE).min(tickets);
        run(
            db,
            &format!(
                "insert into tickets (company_id, id, channel_id, contact_id, queue_id, user_id, status, creation_source,
                    unread_count, last_message_id, wrapup_type_id, reopen_count, opened_at, first_response_at, closed_at,
                    answer_id, created_at, updated_at)
                 select {company}, {ticket} + n, channel, {first_contact} + n % {contacts},
                    queue[1 + n % 7 % array_length(queue, 1)], agent[1 + n % 23 % array_length(agent, 1)],
                    case when is_open then 'open' else 'closed' end, 'contact', 0, {message} + n * {each} + {each} - 1,
                    case when not is_open then wrapup[1 + n % array_length(wrapup, 1)] end, 0, at,
                    at + interval '1 minute', case when not is_open then at + interval '1 hour' end,
                    {message} + n * {each} + 1, at, at + interval '1 hour'
                 from (select {parts}) p, generate_series({from}, {to} - 1) n,
                    lateral (select now() - interval '1 hour' - (1 - n::float8 / {tickets}) * interval '365 days' as at,
                        n % 100 = 0 and n > {tickets} - {contacts} as is_open) x;
                 insert into ticket_events (company_id, id, ticket_id, type, \"to\", source, created_at)
                 select {company}, {event} + n * 2 + k, {ticket} + n, (array['opened', 'closed'])[1 + k],
                    case k when 0 then jsonb_build_object('queue', jsonb_build_object('id',
                        queue[1 + n % 7 % array_length(queue, 1)]), 'assignedTo', jsonb_build_object('id',
                        agent[1 + n % 23 % array_length(agent, 1)])) end,
                    case k when 0 then 'contact' else 'user' end,
                    now() - interval '1 hour' - (1 - n::float8 / {tickets}) * interval '365 days' + k * interval '1 hour'
                 from (select {parts}) p, generate_series({from}, {to} - 1) n, generate_series(0, 1) k;
                 insert into messages (company_id, id, job_id, ticket_id, contact_id, channel_id, direction, type, body,
                    status, user_id, user_name, source, provider_message_id, created_at, sent_at, delivered_at)
                 select {company}, id, id, {ticket} + n, {first_contact} + n % {contacts}, channel, direction,
                    case when direction = 'internal' then 'note' when id % 97 = 0 then 'template' else 'text' end,
                    'Good morning! How can we help you today? ' || id,
                    case when direction <> 'outbound' then 'received' when id % 50 = 0 then 'failed'
                        when id % 3 = 0 then 'read' when id % 3 = 1 then 'delivered' else 'sent' end,
                    case when direction <> 'inbound' then agent[1 + n % 23 % array_length(agent, 1)] end,
                    case when direction <> 'inbound' then 'Ana Souza' end,
                    case when direction = 'inbound' then 'contact' else 'user' end,
                    case when direction <> 'internal' then 'grown.' || id end, at,
                    case when direction = 'outbound' then at end, case when direction = 'outbound' then at end
                 from (select {parts}) p, generate_series({from}, {to} - 1) n, generate_series(0, {each} - 1) k,
                    lateral (select {message} + n * {each} + k as id,
                        case when (n * {each} + k) % 20 = 19 then 'internal' when k % 2 = 0 then 'inbound' else 'outbound' end
                            as direction,
                        now() - interval '1 hour' - (1 - n::float8 / {tickets}) * interval '365 days'
                            + k * interval '1 minute' as at) x"
            ),
        )
        .await?;
        from = to;
    }
    Ok(())
}

/// Takes this many ids of a kind, and returns the first.
async fn take_ids(db: &mut PgConnection, kind: &str, count: i64) -> Outcome<i64> {
    let next: Option<i64> =
        sqlx::query_scalar("update id_blocks set next = next + $2 where kind = $1 returning next - $2")
            .bind(kind)
            .bind(count)
            .fetch_optional(db)
            .await?;
    next.ok_or_else(|| format!("no ids of {kind}").into())
}

/// The statements for a board of ten stages, its cards, and products.
fn sales(company: i64, cards: i64) -> String {
    format!(
        "insert into product_categories (company_id, name) values ({company}, 'Plans');
         insert into products (company_id, name, sku, price, category_id)
            select {company}, 'Plan ' || n, 'sku ' || n, n, (select min(id) from product_categories where company_id = {company})
            from generate_series(1, 1000) n;
         insert into card_statuses (company_id, name) select {company}, 'Status ' || n from generate_series(1, 5) n;
         insert into businesses (company_id, name) select {company}, 'Business ' || n from generate_series(1, 5) n;
         insert into card_origins (company_id, name) select {company}, 'Origin ' || n from generate_series(1, 5) n;
         insert into boards (company_id, name) values ({company}, 'Sales');
         insert into board_lists (company_id, board_id, label, position, done_list)
            select {company}, b.id, 'Stage ' || n, n, n = 10 from boards b, generate_series(1, 10) n
            where b.company_id = {company};
         insert into cards (company_id, board_id, list_id, position, name, creation_source, assigned_user_id, status_id,
                business_id, origin_id, due, won_at, lost_at, created_at, updated_at)
            select {company}, board, stage[case when n % 10 = 9 then 10 else 1 + n % 9 end], n, 'Card ' || md5(n::text), 'api',
                agent[1 + n % 23 % array_length(agent, 1)], status[1 + n % 5], business[1 + n % 5], origin[1 + n % 5], at,
                case when n % 10 = 9 then at end, case when n % 10 = 8 then at end, at, at
            from (select (select min(id) from boards where company_id = {company}) as board,
                    (select array_agg(id order by position) from board_lists where company_id = {company}) as stage,
                    (select array_agg(id) from users where company_id = {company}) as agent,
                    (select array_agg(id) from card_statuses where company_id = {company}) as status,
                    (select array_agg(id) from businesses where company_id = {company}) as business,
                    (select array_agg(id) from card_origins where company_id = {company}) as origin) p,
                generate_series(1, {cards}) n,
                lateral (select now() - (1 - n::float8 / {cards}) * interval '365 days' as at) x;
         insert into card_contacts (company_id, card_id, contact_id)
            select {company}, id, first + id % 1000 from cards,
                (select min(id) as first from contacts where company_id = {company}) c where company_id = {company};
         insert into card_products (company_id, card_id, product_id, name, unit_price, quantity)
            select {company}, k.id, p.id, p.name, p.price, 2
            from cards k join products p on p.company_id = k.company_id and p.sku = 'sku ' || (1 + k.id % 1000)
            where k.company_id = {company};
         update cards k set products_total = (select sum(total_price) from card_products p
                where p.company_id = k.company_id and p.card_id = k.id) where k.company_id = {company}"
    )
}

/// The statements for scheduled messages, a list with a tenth of the contacts, a campaign that was sent to all of
/// these, and the deliveries of a webhook.
fn outreach(company: i64) -> String {
    format!(
        "insert into schedules (company_id, id, contact_id, channel_id, body, send_at, status, created_at, updated_at)
            select {company}, n, (select min(id) from contacts where company_id = {company}) + n % 1000,
                (select min(id) from channels where company_id = {company}), 'Your order is ready',
                now() + interval '1 year' + n * interval '1 minute',
                case when n % 2 = 0 then 'pending' else 'canceled' end, now(), now()
            from generate_series(1, 100000) n;
         update id_blocks set next = greatest(next, 100001) where kind = 'schedule';
         insert into contact_lists (company_id, name) values ({company}, 'Customers');
         insert into contact_list_contacts (company_id, contact_list_id, contact_id)
            select {company}, (select max(id) from contact_lists where company_id = {company}), id from contacts
            where company_id = {company} and id % 10 = 0;
         update contact_lists l set contacts_count = (select count(*) from contact_list_contacts c
            where c.company_id = l.company_id and c.contact_list_id = l.id) where company_id = {company};
         insert into campaigns (company_id, name, status, contact_list_id, channel_id, scheduled_at, completed_at, message, read)
            select company_id, 'Spring sale', 'completed', id, (select min(id) from channels where company_id = {company}),
                now() - interval '1 day', now() - interval '1 day', 'Our sale begins', contacts_count
            from contact_lists where company_id = {company};
         insert into campaign_recipients (company_id, campaign_id, contact_id, status)
            select company_id, (select max(id) from campaigns where company_id = {company}), contact_id, 'read'
            from contact_list_contacts where company_id = {company};
         insert into webhook_deliveries (company_id, webhook_id, event_id, type, lane, status, tries, attempts, created_at,
                updated_at)
            select {company}, (select max(id) from webhooks where company_id = {company}), n,
                (array['ticket.opened', 'message.created'])[1 + n % 2], 'ticket:' || n / 20,
                case when n % 50 = 0 then 'failed' else 'delivered' end, 1, '[]', at, at + interval '1 second'
            from generate_series(1, 1000000) n, lateral (select now() - (1000000 - n) * interval '2.5 seconds' as at) made"
    )
}
