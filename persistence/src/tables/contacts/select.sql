select c.id, c.name, c.number, c.number_country, c.email, c.code, c.cpf_cnpj, c.origin, c.profile_pic_url,
    c.is_group, c.social_username, c.lid, c.source_url, c.source_id, c.headline, c.media_type, c.media_url,
    c.utm_source, c.utm_medium, c.utm_campaign, c.utm_id, c.fbclid, c.gclid, c.ctwa_clid, c.verified, c.marketing_opt_out, c.created_at, c.updated_at,
    coalesce((select jsonb_agg(jsonb_build_object('id', t.id, 'name', t.name, 'color', t.color) order by t.id)
        from contact_tags x join tags t on t.company_id = x.company_id and t.id = x.tag_id
        where x.company_id = c.company_id and x.contact_id = c.id), '[]') as tags,
    coalesce((select jsonb_agg(jsonb_build_object('key', f.key, 'value', v.value, 'customFieldId', f.id,
            'name', f.name, 'type', f.type) order by f.position, f.id)
        from contact_custom_field_values v
        join custom_fields f on f.company_id = v.company_id and f.id = v.custom_field_id
        where v.company_id = c.company_id and v.contact_id = c.id), '[]') as custom_fields,
    (select jsonb_build_object('id', h.id, 'name', h.name, 'type', h.type) from contact_last_channels l
        join channels h on h.company_id = l.company_id and h.id = l.channel_id
        where l.company_id = c.company_id and l.contact_id = c.id) as last_channel,
    coalesce((select jsonb_agg(jsonb_build_object('channelType', i.channel_type, 'scope', i.scope, 'kind', i.kind,
            'value', i.value, 'since', i.since, 'until', i.until) order by i.until nulls first, i.kind, i.scope, i.value)
        from (select null::text as channel_type, null::text as scope, 'number' as kind, c.number as value,
                (select n.since from contact_numbers n where n.company_id = c.company_id and n.contact_id = c.id
                    and n.number = c.number and n.until is null) as since, null::timestamptz as until
            where c.number is not null
            union all select h.type, a.channel_id::text, coalesce(a.kind, 'userId'), a.address, a.created_at, a.until
                from contact_addresses a join channels h on h.company_id = a.company_id and h.id = a.channel_id
                where a.company_id = c.company_id and a.contact_id = c.id
            union all select null, null, 'number', n.number, n.since, n.until from contact_numbers n
                where n.company_id = c.company_id and n.contact_id = c.id and n.until is not null
                    and n.number is distinct from c.number) i), '[]') as identities,
    coalesce((select jsonb_agg(jsonb_build_object('contactId', s.other_id, 'kind', s.kind, 'value', s.value,
            'since', s.created_at) order by s.other_id)
        from contact_merge_suggestions s where s.company_id = c.company_id and s.contact_id = c.id), '[]')
        as merge_suggestions
from contacts c
