//! Statistics and indexes of the tables, and a read that takes many statements.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::World;
use super::seed::run;
use crate::support::TestApp;

#[actix_web::test]
async fn no_table_has_statistics_on_company_id_and_every_search_index_begins_with_it() {
    let app = TestApp::shared().await;
    let tables = "select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attname = 'company_id'
            and a.attstattarget <> 0 order by 1";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&app.db).await.expect("tables");
    assert_eq!(
        tables,
        Vec::<String>::new(),
        "tables have statistics on company_id: `set statistics 0`, see the end of the baseline"
    );
    let searched =
        "select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
        where m.amname = 'gin' and c.relnamespace = 'public'::regnamespace
            and pg_get_indexdef(i.indexrelid, 1, true) <> 'company_id' order by 1";
    let searched: Vec<String> = sqlx::query_scalar(searched).fetch_all(&app.db).await.expect("indexes");
    assert_eq!(searched, Vec::<String>::new(), "search indexes do not begin with company_id");
    app.stop().await;
}

/// How many of these statements read boards, and the stages, cards and contacts on them.
fn count_board_statements(plans: &[Value]) -> usize {
    let reads_boards = |plan: &&Value| {
        let text = plan["Query Text"].as_str().expect("a statement");
        ["boards", "board_lists", "from cards", "from contacts"].iter().any(|table| text.contains(table))
    };
    plans.iter().filter(reads_boards).count()
}

#[actix_web::test]
async fn a_board_takes_as_many_statements_with_three_stages_as_with_thirty() {
    let (world, callers) = World::make().await;
    let caller = &callers[0];
    let mut statement_counts = BTreeSet::new();
    for (stages, cards) in [(3, 3), (3, 300), (30, 30), (30, 600)] {
        let lists: Vec<Value> = (0..stages).map(|number| json!({"label": number.to_string()})).collect();
        let new = json!({"name": "Some", "crmBoardLists": lists});
        let board = caller.api.post("/crm/boards", new).await.data(201)["id"].as_i64().expect("an id");
        let filled = format!(
            "with made as (
                 insert into cards (company_id, board_id, list_id, position, name, creation_source)
                 select s.company_id, s.board_id, s.id, k, 'Some', 'api' from board_lists s, generate_series(1, {cards}) k
                 where s.company_id = {} and s.board_id = {board} and k % {stages} = s.label::int
                 returning company_id, id)
             insert into card_contacts (company_id, card_id, contact_id) select company_id, id, {} from made",
            caller.company.id, caller.contact
        );
        run(&world.app.db, &filled).await;
        world.plans.take();
        let reply = caller.api.get(&format!("/crm/boards/{board}")).await;
        let lists = reply.data(200)["lists"].as_array().expect("stages");
        let held = |stage: &Value| (stage["countCards"].as_i64(), stage["cards"].as_array().map(Vec::len));
        let each = cards / stages;
        assert!(
            lists.iter().all(|stage| held(stage) == (Some(each), usize::try_from(each.min(100)).ok())),
            "{lists:?}"
        );
        statement_counts.insert(count_board_statements(&world.plans.take()));
    }
    assert_eq!(statement_counts, BTreeSet::from([5]), "the number of statements of one read");
    world.app.stop().await;
}
