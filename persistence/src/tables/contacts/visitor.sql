select id, verified, false as is_new from (
    select id, verified, 1 as preference from contacts where company_id = $1 and external_id = $2
    union all select id, verified, 2 from contacts where company_id = $1 and number = any ($3)
    union all (select id, verified, 3 from contacts where company_id = $1 and lower(email) = lower($4)
        order by id limit 1)
) found order by preference, id limit 1
