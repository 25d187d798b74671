-- Which user last set a webhook up, so that it tells them of no card that they may not see any more; none: an integration, or who
-- runs the installation. A user who is gone sees none, so their id stays.
alter table webhooks add column maker_id bigint;

update webhooks w set maker_id = a.actor_id
from audit_log a
where a.company_id = w.company_id and a.action = 'createWebhook' and a.actor_kind = 'user' and a.target_id = w.id::text;

-- What a contact's message holds beside its readable text, `{kind, …}`: the option that was chosen. Null: nothing.
alter table messages add column content jsonb;

-- The user who made a campaign: its messages are theirs, as an integration's are the integration's.
alter table campaigns add column user_id bigint;
