//! The number of tickets that each user has, compared with a count made by hand.

use serde_json::{Value, json};

use crate::organization::opened;
use crate::plain::created;
use crate::steps::{close, sql};
use crate::support::{OwnApp, TestApp};

const PATH: &str = "/users/metrics";

async fn counts(app: &TestApp, query: &str) -> Vec<(i64, i64)> {
    let number = |value: &Value| value.as_i64().expect("a number");
    let rows = app.api.all(&format!("{PATH}?{query}")).await;
    rows.iter().map(|row| (number(&row["user_id"]), number(&row["count_tickets"]))).collect()
}

#[actix_web::test]
async fn tickets_are_counted_by_user_queue_and_time() {
    let app = OwnApp::start().await;
    let company = &app.company;
    let (_, other) = app.another_company().await;
    let (ana, ben) = (company.ana.0, company.ben.0);
    let profile = app.api.all("/profiles").await[2].clone();
    let eva = created(&app.api, "/users", json!({"name": "Eva", "email": "eva@example.com", "active": false})).await;
    app.api.put(&format!("/users/{ben}"), json!({"profileId": profile["id"]})).await.data(200);

    // The day in March, the queue, the user, and whether the ticket is closed.
    let tickets = [
        (1, Some(company.support), ana, false),
        (2, Some(company.support), ana, true),
        (3, None, ana, false),
        (4, Some(company.support), ben, false),
        (5, Some(company.sales), ben, true),
        (6, Some(company.sales), ben, false),
    ];
    for (day, queue, user, is_closed) in tickets {
        let more = json!({"queueId": queue, "userId": user});
        let ticket = opened(&app, &format!("551190000000{day}"), more).await;
        if is_closed {
            let wrapup = if queue == Some(company.support) { company.solved } else { company.sold };
            app.api.post(&format!("/tickets/{ticket}/close"), json!({"wrapupTypeId": wrapup})).await.data(200);
        }
    }
    let unassigned = app.ticket("5511900000009").await;
    close(&app.api, unassigned.0).await;
    // Tickets that are not in the tables yet are counted as well.
    assert_eq!(counts(&app, "").await, [(ana, 3), (ben, 3), (eva, 0)]);
    assert_eq!(
        app.api.get(PATH).await.body,
        json!({
            "data": [
                {"user_id": ana, "user_name": "Ana", "user_profile": "Agent", "queues": company.support.to_string(),
                 "count_tickets": 3},
                {"user_id": ben, "user_name": "Ben", "user_profile": "Agent",
                 "queues": format!("{},{}", company.support, company.sales), "count_tickets": 3},
                {"user_id": eva, "user_name": "Eva", "user_profile": "Agent", "queues": "", "count_tickets": 0},
            ],
            "meta": {"page": 1, "perPage": 100, "hasMore": false},
        })
    );

    for (day, ..) in tickets {
        sql(
            &app,
            "update tickets set opened_at = make_timestamptz(2026, 3, $1::integer, 12, 0, 0, 'UTC')
             where contact_id = (select id from contacts where number = '551190000000' || $1)",
            day,
        )
        .await;
    }
    for (query, expected) in [
        ("from=2026-03-03T12:00:00Z", vec![(ana, 1), (ben, 3), (eva, 0)]),
        ("from=2026-03-03T12:00:00.001Z", vec![(ana, 0), (ben, 3), (eva, 0)]),
        ("to=2026-03-04T12:00:00Z", vec![(ana, 3), (ben, 1), (eva, 0)]),
        ("from=2026-03-02T00:00:00Z&to=2026-03-05T23:59:59Z", vec![(ana, 2), (ben, 2), (eva, 0)]),
        ("from=2027-01-01T00:00:00Z", vec![(ana, 0), (ben, 0), (eva, 0)]),
        (&format!("queueId={}", company.support), vec![(ana, 2), (ben, 1)]),
        (&format!("queueId={}", company.sales), vec![(ben, 2)]),
        (&format!("queueId={}&from=2026-03-06T00:00:00Z", company.sales), vec![(ben, 1)]),
        (&format!("userId={ana}"), vec![(ana, 3)]),
        (&format!("userId={ana}&queueId={}", company.support), vec![(ana, 2)]),
        (&format!("userId={ana}&queueId={}", company.sales), vec![]),
        ("order=desc", vec![(eva, 0), (ben, 3), (ana, 3)]),
    ] {
        assert_eq!(counts(&app, query).await, expected, "{query}");
    }
    let other_counts: Vec<i64> =
        other.all(PATH).await.iter().map(|row| row["count_tickets"].as_i64().expect("a number")).collect();
    assert_eq!(other_counts, [0, 0], "another company's tickets are counted");
    app.stop().await;
}

#[actix_web::test]
async fn metrics_have_pages_like_every_list() {
    let app = TestApp::shared().await;
    created(&app.api, "/users", json!({"name": "Eva", "email": "eva@example.com"})).await;
    let mut names = Vec::new();
    for page in 1..=3 {
        let reply = app.api.get(&format!("{PATH}?page={page}&perPage=1")).await;
        assert_eq!(reply.data(200).as_array().expect("rows").len(), 1);
        assert_eq!(reply.body["meta"], json!({"page": page, "perPage": 1, "hasMore": page < 3}));
        names.push(reply.data(200)[0]["user_name"].clone());
    }
    assert_eq!(names, ["Ana", "Ben", "Eva"]);
    let wrong = app.api.get(&format!("{PATH}?from=x&to=2026-01-01&queueId=x&userId=x&order=up")).await;
    let mut fields = wrong.invalid_fields();
    fields.sort();
    assert_eq!(fields, ["from", "order", "queueId", "to", "userId"]);
    let past = app.api.get(&format!("{PATH}?page=9&perPage=1000")).await;
    assert_eq!(past.body, json!({"data": [], "meta": {"page": 9, "perPage": 100, "hasMore": false}}));
    app.stop().await;
}
