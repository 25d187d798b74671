//! A reference to a record that can be deleted is removed with an event or a date, or is named here with the reason why
//! not.

use std::collections::BTreeSet;

use hotline_persistence::tables::cascades::{Cascade, Reference, When};

use crate::support::TestDatabase;

/// Foreign keys to records that can be deleted, in rows that need no event and no date, with the reason.
const NOT_SHOWN: [(&str, &str, &str); 7] = [
    ("channels", "queue_id", "a queue that a channel points to is not deleted"),
    ("contact_addresses", "contact_id", "a part of the contact"),
    ("contact_custom_field_values", "contact_id", "a part of the contact"),
    ("contact_tags", "contact_id", "a part of the contact"),
    ("queue_users", "user_id", "a part of the user: a queue does not show who works there"),
    ("tickets", "contact_id", "deleted with their contact"),
    ("webchat_sessions", "contact_id", "deleted with their contact"),
];

/// A table, its column, and the table that it refers to.
type ForeignKey = (String, String, String);

fn references(when: When) -> BTreeSet<ForeignKey> {
    let of = |cascade: &Cascade| {
        let table = cascade.table();
        let all = cascade.references().iter().filter(move |reference| reference.when == when);
        all.map(move |Reference { table: holder, column, .. }| {
            ((*holder).to_owned(), (*column).to_owned(), table.to_owned())
        })
    };
    Cascade::EVERY.iter().flat_map(of).collect()
}

#[actix_web::test]
async fn every_reference_to_a_record_that_can_be_deleted_is_in_its_cascade_or_has_a_reason() {
    let database = TestDatabase::migrated().await;
    let tables: Vec<&str> = Cascade::EVERY.iter().map(|cascade| cascade.table()).collect();
    let keys: Vec<ForeignKey> = sqlx::query_as(
        "select c.conrelid::regclass::text, a.attname::text, c.confrelid::regclass::text
         from pg_constraint c cross join unnest(c.conkey) as k (number)
         join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.number
         where c.contype = 'f' and c.confrelid::regclass::text = any ($1) and a.attname <> 'company_id'",
    )
    .bind(&tables)
    .fetch_all(&database.db)
    .await
    .expect("the foreign keys");
    let keys: BTreeSet<ForeignKey> = keys.into_iter().collect();
    let at_once = references(When::AtOnce);
    let is_excepted = |(table, column, _): &ForeignKey| {
        NOT_SHOWN.iter().any(|(holder, reference, _)| holder == table && reference == column)
    };
    for key in &keys {
        assert!(
            at_once.contains(key) || is_excepted(key),
            "{key:?} is not in `Cascade::references`: name it there, or here with the reason"
        );
    }
    assert!(at_once.is_subset(&keys), "a reference that is removed at once has no foreign key: {at_once:?}, {keys:?}");
    for (table, column, _) in NOT_SHOWN {
        let is_there = keys.iter().any(|(holder, reference, _)| holder == table && reference == column);
        assert!(is_there, "{table}.{column} is no longer a foreign key");
    }
    // References that are removed in steps have triggers, for new rows and for changed ones, which look for the record
    // in the right table.
    let triggers: Vec<(String, String, String)> = sqlx::query_as(
        "select t.tgrelid::regclass::text, t.tgname::text, p.prosrc from pg_trigger t join pg_proc p on p.oid = t.tgfoid
         where t.tgname like 'refers\\_%'",
    )
    .fetch_all(&database.db)
    .await
    .expect("the triggers");
    let in_steps = references(When::InSteps);
    for (table, column, target) in &in_steps {
        for name in [format!("refers_by_{column}"), format!("refers_anew_by_{column}")] {
            let has_trigger = triggers.iter().any(|(holder, trigger, body)| {
                holder == table
                    && *trigger == name
                    && body.contains(&format!("from {target} where company_id = new.company_id and id = new.{column}"))
            });
            assert!(has_trigger, "{table} has no trigger {name} that checks {target}");
        }
    }
    assert_eq!(triggers.len(), 2 * in_steps.len(), "{triggers:?}");
    database.drop().await;
}
