-- What reports are made of, counted as it happens: the persister adds to these figures in the transaction that writes the
-- rows they are derived from and moves the watermark, so that each change is counted once. `hotline reports rebuild` counts
-- them anew from the rows.

-- Since when the contact waits for the company; null while nobody does. And the first message by which the company
-- answered a contact who had opened the ticket; what goes out by itself (a greeting, a campaign) is no answer.
alter table tickets
    add column waiting_since timestamptz,
    add column answer_id     bigint;

update tickets t set answer_id = (
    select min(m.id) from messages m
    where m.company_id = t.company_id and m.ticket_id = t.id and m.direction = 'outbound' and m.source in ('api', 'user'))
where t.creation_source = 'contact';

update tickets t set waiting_since = (
    select min(m.created_at) from messages m
    where m.company_id = t.company_id and m.ticket_id = t.id and m.direction = 'inbound' and m.id > coalesce((
        select max(o.id) from messages o
        where o.company_id = t.company_id and o.ticket_id = t.id and o.direction = 'outbound'
            and o.source in ('api', 'user')), 0))
where t.status = 'open';

-- Figures of a quarter of an hour, of which the days of every time zone are made, and of a day in UTC, of which long
-- periods are. `key` is the id of the queue, channel or user, or the type of the message: empty where there is none, and
-- of the company as a whole. Like messages they have no foreign keys.
create table report_tickets (
    company_id        bigint      not null,
    dimension         text        not null check (dimension in ('company', 'queue', 'channel', 'user')),
    grain             text        not null check (grain in ('quarter', 'day')),
    at                timestamptz not null,
    key               text        not null,
    opened            bigint      not null,
    closed            bigint      not null,
    reopened          bigint      not null,
    answered          bigint      not null,
    -- Milliseconds from the opening to the first answer, of those that were answered; and to the closing, of those that
    -- were closed.
    answer_ms         bigint      not null,
    resolution_ms     bigint      not null,
    primary key (company_id, dimension, grain, at, key)
) with (fillfactor = 70);

create table report_messages (
    company_id bigint      not null,
    dimension  text        not null check (dimension in ('company', 'channel', 'user', 'type')),
    grain      text        not null check (grain in ('quarter', 'day')),
    at         timestamptz not null,
    key        text        not null,
    inbound    bigint      not null,
    outbound   bigint      not null,
    failed     bigint      not null,
    primary key (company_id, dimension, grain, at, key)
) with (fillfactor = 70);

create table report_wrapups (
    company_id     bigint      not null,
    grain          text        not null check (grain in ('quarter', 'day')),
    at             timestamptz not null,
    -- 0 where the ticket was in none.
    queue_id       bigint      not null,
    wrapup_type_id bigint      not null,
    count          bigint      not null,
    primary key (company_id, grain, at, queue_id, wrapup_type_id)
) with (fillfactor = 70);

-- What those were called who are in reports and nowhere else any more.
create table report_labels (
    company_id bigint not null references companies on delete cascade,
    dimension  text   not null,
    key        bigint not null,
    label      text   not null,
    primary key (company_id, dimension, key)
);

create function hotline_keep_label() returns trigger language plpgsql as $$
begin
    insert into report_labels (company_id, dimension, key, label)
    -- Of a company that goes as a whole nothing is kept.
    select old.company_id, tg_argv[0], old.id, old.name from companies where id = old.company_id
    on conflict (company_id, dimension, key) do update set label = excluded.label;
    return null;
end $$;

create trigger keep_label after delete on queues for each row execute function hotline_keep_label('queue');
create trigger keep_label after delete on users for each row execute function hotline_keep_label('user');
create trigger keep_label after delete on channels for each row execute function hotline_keep_label('channel');
create trigger keep_label after delete on wrapup_types for each row execute function hotline_keep_label('wrapup');

-- Sales of a period, over all boards.
create index cards_won_then on cards (company_id, won_at) where won_at is not null;
create index cards_lost_then on cards (company_id, lost_at) where lost_at is not null;

do $$
declare made text;
begin
    foreach made in array array['report_tickets', 'report_messages', 'report_wrapups', 'report_labels'] loop
        execute format('alter table %I alter column company_id set statistics 0', made);
    end loop;
end $$;
