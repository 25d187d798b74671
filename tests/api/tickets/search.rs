//! Tickets are searched by the names and numbers of their contacts.

use serde_json::json;

use crate::steps::{listed, sent};
use crate::support::{OwnApp, TestApp};

#[actix_web::test]
async fn a_search_finds_names_and_numbers_without_regard_to_case_and_accents() {
    let app = TestApp::shared().await;
    let mut tickets = Vec::new();
    for (index, name) in
        ["José Ação", "JOSE maria", "100% Paper", "under_score", r"back\slash", "full％width"].iter().enumerate()
    {
        let number = format!("551190000010{index}");
        let body = json!({
            "channelId": app.company.phone, "number": number, "contactName": name, "type": "text", "body": "x",
        });
        tickets.push(sent(&app.api, body).await["ticketId"].as_i64().expect("ticket"));
    }
    let find = async |text: &str| {
        let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let found = listed(&app.api, &format!("/tickets?search={encoded}")).await;
        found
            .iter()
            .map(|found| tickets.iter().position(|ticket| ticket == found).expect("a ticket"))
            .collect::<Vec<_>>()
    };
    let all: Vec<usize> = (0..tickets.len()).collect();
    assert_eq!(find("jose").await, [0, 1]);
    assert_eq!(find("JOSÉ").await, [0, 1]);
    assert_eq!(find("acao").await, [0]);
    assert_eq!(find("  açÃo ").await, [0]);
    assert_eq!(find("00102").await, [2]);
    assert_eq!(find("5511900").await, all);
    assert_eq!(find("").await, all);
    assert_eq!(find("_").await, [3], "an underscore is a wildcard");
    assert_eq!(find("\\").await, [4]);
    assert_eq!(find("%a").await, [0; 0]);
    assert_eq!(find("0% p").await, [2]);
    assert_eq!(find("nobody").await, [0; 0]);
    // The words may be in different fields, but each must be within one.
    assert_eq!(find("maria\n5511").await, find("5511 maria").await);
    assert_eq!(find("maria5511").await, [0; 0], "a word runs from the name into the number");
    // Of the fields of a contact only its name and number are searched, even when the name has several lines.
    let update = "update contacts set name = E'One\nTwo', email = 'zed@example.com', code = 'C-77'
        where company_id = $1 and name = 'under_score'";
    sqlx::query(update).bind(app.company.id).execute(&app.db).await.expect("a contact");
    for (text, expected) in
        [("two", vec![3]), ("00103", vec![3]), ("one two 00103", vec![3]), ("zed", vec![]), ("c-77", vec![])]
    {
        assert_eq!(find(text).await, expected, "{text}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_percent_sign_of_any_width_is_not_a_wildcard_in_a_search() {
    let app = TestApp::shared().await;
    for (number, name) in [("5511900000001", "100% Paper"), ("5511900000002", "Anna")] {
        let body =
            json!({"channelId": app.company.phone, "number": number, "contactName": name, "type": "text", "body": "x"});
        sent(&app.api, body).await;
    }
    let find = async |encoded: &str| app.api.all(&format!("/tickets?search={encoded}")).await.len();
    assert_eq!(find("%25").await, 1, "%");
    // The full-width forms of `%` and `_` fold to the plain ones.
    assert_eq!(find("%EF%BC%85").await, 1, "wide %");
    assert_eq!(find("%EF%BC%BF").await, 0, "wide _");
    app.stop().await;
}

/// Enough tickets that each status has more than a search reads before it reads the contacts.
const TICKETS: i64 = 37_500;

#[actix_web::test]
async fn pages_of_a_search_continue_each_other_whether_many_or_few_contacts_match() {
    let app = OwnApp::start().await;
    let db = &app.db;
    for statement in [
        "insert into contacts (company_id, name, number)
         select $1, 'Everybody' || case when n <= 400 then ' Early' else '' end
                 || case when n <= 16000 then ' Former' else '' end
                 || case when n % 100 = 0 then ' Seldom' else '' end || case when n % 5000 = 0 then ' Rare' else '' end,
             (5511900000000 + n)::text from generate_series(1, $3) n where $2::bigint is not null",
        "insert into tickets (company_id, id, channel_id, contact_id, status, creation_source, unread_count, reopen_count,
             opened_at, closed_at, created_at, updated_at)
         select $1, 1000000 + k, $2, id, case when k % 3 = 0 then 'open' else 'closed' end, 'api', 0, 0, now(),
             case when k % 3 > 0 then now() end, now(), now()
         from (select id, row_number() over (order by id) as k from contacts where company_id = $1) c where k <= $3",
    ] {
        let insert = sqlx::query(statement).bind(app.company.id).bind(app.company.phone).bind(TICKETS);
        insert.execute(db).await.expect("rows");
    }
    let zones = sqlx::query("select hotline_fill_zones($1)").bind(app.company.id);
    zones.execute(db).await.expect("zones");
    for (word, order) in [
        ("everybody", "desc"),
        ("seldom", "desc"),
        ("seldom", "asc"),
        ("rare", "desc"),
        ("early", "desc"),
        ("early", "asc"),
        // Many contacts have this name, but none of those with the newest tickets.
        ("former", "desc"),
        ("nobody", "desc"),
    ] {
        for status in ["open", "closed"] {
            let expected: Vec<i64> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
                "select t.id from tickets t join contacts c on c.company_id = t.company_id and c.id = t.contact_id
                 where t.company_id = $1 and t.status = $2 and c.name ilike '%' || $3 || '%' order by t.id {order}"
            )))
            .bind(app.company.id)
            .bind(status)
            .bind(word)
            .fetch_all(db)
            .await
            .expect("tickets");
            // The last pages are beyond the tickets with which a search begins.
            for (size, page) in [(13, 1), (13, 2), (13, 5), (100, 12), (100, 54), (100, 107), (100, 125)] {
                let path = format!("/tickets?search={word}&status={status}&order={order}&perPage={size}&page={page}");
                let reply = app.api.get_while_busy(&path).await;
                let found = reply.data(200).as_array().expect("a list");
                let found: Vec<i64> = found.iter().map(|ticket| ticket["id"].as_i64().expect("an id")).collect();
                let begin = expected.len().min((page - 1) * size);
                assert_eq!(found, expected[begin..expected.len().min(begin + size)], "{path}");
                assert_eq!(reply.body["meta"]["hasMore"], json!(expected.len() > begin + size), "{path}");
            }
        }
    }
    let beyond = app.api.get("/tickets?search=everybody&page=9223372036854775807").await;
    assert_eq!(beyond.data(200), &json!([]));
    app.stop().await;
}
