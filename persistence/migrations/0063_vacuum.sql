-- When autovacuum visits what grows for years. By itself it waits until a fifth of a table has changed, or was inserted: of
-- 20,000,000 messages that is 4,000,000, whose statistics are missing meanwhile and whose cleaning then takes the disk for
-- minutes. A visit to rows that were only inserted reads no index and no page twice, so it may come often; one that removes
-- rows reads every index of the table whole, so it comes at a twentieth.
do $$
declare
    grows text;
begin
    foreach grows in array array['messages', 'ticket_events', 'tickets', 'contacts', 'contact_addresses', 'contact_tags',
        'contact_custom_field_values', 'contact_last_channels', 'contact_list_contacts', 'webchat_sessions', 'media',
        'webhook_deliveries', 'campaign_recipients', 'schedules', 'cards', 'report_messages', 'report_tickets']
    loop
        execute format('alter table %I set (autovacuum_vacuum_scale_factor = 0.05,
            autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)', grows);
    end loop;
end $$;
