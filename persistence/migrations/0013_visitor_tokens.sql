-- A visitor's browser shows its token and nothing else: the session is found by the token's hash.
create unique index webchat_sessions_token on webchat_sessions (company_id, channel_id, token_hash);
