//! The directory of all companies, which is loaded for many of them at once.

use std::collections::BTreeSet;

use hotline_actors::Directory;
use hotline_actors::directory::RELOAD_EVERY;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::tokens;
use hotline_persistence::{CompanyId, key};

use crate::support::{Company, TestDatabase};

/// Asserts that the directory has exactly what [`Company::create`] has made.
fn check_company(directory: &Directory, company: &Company) {
    let loaded = directory.company(company.id).expect("the company is known");
    let set = |ids: &mut dyn Iterator<Item = i64>| ids.collect::<BTreeSet<_>>();
    let Company { phone, webchat, support, sales, ana, ben, solved, sold, .. } = company;
    assert_eq!(set(&mut loaded.channels.keys().map(|id| id.0)), BTreeSet::from([phone.0, webchat.0]));
    assert_eq!(set(&mut loaded.queues.keys().map(|id| id.0)), BTreeSet::from([support.0, sales.0]));
    for (queue, users) in [(support, vec![ana.0, ben.0]), (sales, vec![ben.0])] {
        assert_eq!(set(&mut loaded.queues[queue].users.iter().map(|id| id.0)), users.into_iter().collect());
    }
    assert_eq!((loaded.user_name(*ana), loaded.user_name(*ben), loaded.users.len()), (Some("Ana"), Some("Ben"), 2));
    for (wrapup_type, queue) in [(solved, support), (sold, sales)] {
        let queues = loaded.wrapup_types[wrapup_type].queues.iter().copied().collect::<Vec<_>>();
        assert_eq!(queues, [*queue]);
    }
    for channel in loaded.channels.values() {
        assert_eq!(directory.channel(&channel.public_key), Some((company.id, channel.id)));
    }
    let token = directory.token(&key::hash(&company.key)).expect("its token is known");
    assert_eq!((token.row.company_id, loaded.tokens.len()), (company.id, 1));
}

#[actix_web::test]
async fn companies_that_are_loaded_together_each_have_their_own_records() {
    let database = TestDatabase::migrated().await;
    let db = &database.db;
    let mut companies = Vec::new();
    for name in ["One", "Two", "Three"] {
        companies.push(Company::create(db, name).await);
    }
    let directory = Directory::load(db, &Keyring::default(), RELOAD_EVERY).await.expect("it is loaded");
    companies.iter().for_each(|company| check_company(&directory, company));

    let [one, two, three] = companies.as_slice() else { panic!("three companies") };
    let variable = "insert into global_variables (company_id, key, value) values ($1, 'hours', '9')";
    sqlx::query(variable).bind(one.id).execute(db).await.expect("a variable");
    let token = directory.token(&key::hash(&one.key)).expect("a token").row.id;
    let (_, new_key) = tokens::rotate(db, token).await.expect("another key");
    let public_keys: Vec<String> = {
        let loaded = directory.company(two.id).expect("the company is known");
        loaded.channels.values().map(|channel| channel.public_key.clone()).collect()
    };
    sqlx::query("delete from companies where id = $1").bind(two.id).execute(db).await.expect("the company is deleted");
    // In another order, one id twice, and one of a company that never existed.
    let ids = [three.id, one.id, two.id, one.id, CompanyId::new(i64::MAX)];
    directory.refresh_all(db, &ids).await.expect("they are loaded again");
    let loaded = directory.company(one.id).expect("the company is known");
    assert_eq!(loaded.global_variables["hours"], "9");
    assert!(directory.token(&key::hash(&one.key)).is_none(), "the old key is still known");
    assert_eq!(directory.token(&key::hash(&new_key)).expect("the new key").row.company_id, one.id);
    assert!(directory.company(two.id).is_none() && directory.token(&key::hash(&two.key)).is_none());
    assert!(
        public_keys.iter().all(|key| directory.channel(key).is_none()),
        "a channel of the deleted company is still known"
    );
    check_company(&directory, three);
    assert!(directory.company(three.id).is_some_and(|loaded| loaded.global_variables.is_empty()));
    database.drop().await;
}
