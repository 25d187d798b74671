select k.id, k.name, k.description, k.won, k.won_at, k.lost, k.lost_at, k.status_reason, k.board_id, k.due, k.ticket_id,
    k.creation_source, k.products_total, k.created_at, k.updated_at,
    (select jsonb_build_object('id', l.id, 'name', l.label) from board_lists l
        where l.company_id = k.company_id and l.id = k.list_id) as list,
    (select jsonb_build_object('id', s.id, 'name', s.name, 'color', s.color) from card_statuses s
        where s.company_id = k.company_id and s.id = k.status_id) as status,
    (select jsonb_build_object('id', b.id, 'name', b.name) from businesses b
        where b.company_id = k.company_id and b.id = k.business_id) as business,
    (select jsonb_build_object('id', o.id, 'name', o.name) from card_origins o
        where o.company_id = k.company_id and o.id = k.origin_id) as origin,
    (select jsonb_build_object('id', u.id, 'name', u.name) from users u
        where u.company_id = k.company_id and u.id = k.assigned_user_id) as assigned_to,
    array(select x.contact_id from card_contacts x
        where x.company_id = k.company_id and x.card_id = k.id order by x.contact_id) as contact_ids,
    -- Amounts as text: readers of JSON would round numbers.
    coalesce((select jsonb_agg(jsonb_build_object('id', p.id, 'name', p.name, 'sku', p.sku,
            'productId', (select q.id from products q where q.company_id = p.company_id and q.id = p.product_id),
            'quantity', p.quantity::text, 'unitPrice', p.unit_price::text, 'totalPrice', p.total_price::text) order by p.id)
        from card_products p where p.company_id = k.company_id and p.card_id = k.id), '[]') as products,
    coalesce((select jsonb_agg(jsonb_build_object('key', f.key, 'value', v.value, 'customFieldId', f.id,
            'name', f.name, 'type', f.type) order by f.position, f.id)
        from card_custom_field_values v
        join custom_fields f on f.company_id = v.company_id and f.id = v.custom_field_id
        where v.company_id = k.company_id and v.card_id = k.id), '[]') as custom_fields
from cards k
