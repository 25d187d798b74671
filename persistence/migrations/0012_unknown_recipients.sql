-- Locks: campaign_recipients (access exclusive, catalog only)
-- The message of a recipient may be in doubt. Existing rows fulfil the stricter check that this one replaces, so it needs no
-- validation.
alter table campaign_recipients drop constraint campaign_recipients_status_check,
    add constraint campaign_recipients_status_check
        check (status in ('pending', 'sent', 'delivered', 'read', 'failed', 'skipped', 'unknown')) not valid;
