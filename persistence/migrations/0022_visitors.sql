-- Who a visitor is: what a browser claims stays with its session, and only what is vouched for names a contact.

-- Whether a signed identity, or the company's own server, says who a webchat contact is. Contacts that were there
-- before are not: until the company vouches for them, a signed identity does not find them.
alter table contacts add column verified boolean not null default false;

alter table webchat_sessions
    add column verified     boolean not null default false,
    -- What an unsigned visitor says of themselves; null of a verified one, and of sessions older than this.
    add column claimed      jsonb,
    -- From when on what was said is shown, where that is before the session began: when the one before had ended.
    add column shown_from   timestamptz,
    -- Further tokens that open it: a visitor who signs in elsewhere goes on in the session that is there.
    add column token_hashes bytea[] not null default '{}';

create index webchat_sessions_tokens on webchat_sessions using gin (company_id, token_hashes);
