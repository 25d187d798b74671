-- Who did it: the token of the integration that wrote a message or changed a ticket.
alter table messages add column integration_id bigint;
alter table ticket_events add column integration_id bigint;

-- Those who have left while closed tickets are still assigned to them: what they were called.
create table former_users (
    company_id bigint         not null references companies on delete cascade,
    id         bigint         not null,
    name       text           not null,
    left_at    timestamptz(3) not null default now(),
    primary key (company_id, id)
);

-- A note goes nowhere: it counts as sent as soon as it is written.
update messages set status = 'sent', sent_at = created_at where type = 'note' and status = 'received';

-- Who has no profile has the one of an agent.
update users u set profile_id = p.id from profiles p
where p.company_id = u.company_id and p.name = 'Agent' and u.profile_id is null;
