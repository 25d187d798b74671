//! What of sales a person sees: boards by their queues and cards of their own, unless their profile sees all cards.

use reqwest::Method;
use serde_json::{Value, json};

use crate::steps::id;
use crate::support::{Person, Reply, TestApp};

#[actix_web::test]
async fn who_does_not_see_all_cards_sees_their_own() {
    let app = TestApp::start().await;
    let company = &app.company;
    let board = async |name: &str, queue: i64| {
        let body = json!({"name": name, "crmBoardQueues": [{"queueId": queue}]});
        id(app.api.post("/crm/boards", body).await.data(201))
    };
    let (support, sales) = (board("Support", company.support.0).await, board("Sales", company.sales.0).await);
    let card = async |board: i64, user: Option<i64>, name: &str| {
        let body = json!({"boardId": board, "name": name, "assignedToUserId": user});
        id(app.api.post("/crm/cards", body).await.data(201))
    };
    let own = card(support, Some(company.ana.0), "own").await;
    let bens = card(support, Some(company.ben.0), "Ben's").await;
    let nobodys = card(support, None, "nobody's").await;
    // She is in one queue, he in both.
    let ana = Person::user(&app, company.ana, "ana@example.com").await;
    let ids = |reply: &Reply| -> Vec<i64> { reply.data(200).as_array().expect("a list").iter().map(id).collect() };
    assert_eq!(ids(&ana.get("/crm/boards").await), [support]);
    assert_eq!(ids(&ana.get("/crm/cards").await), [own]);
    assert_eq!(ids(&ana.get(&format!("/crm/boards/{support}/cards")).await), [own]);
    assert_eq!(ids(&ana.get(&format!("/crm/cards?assignedToUserId={}", company.ana)).await), [own]);
    ana.get(&format!("/crm/cards?assignedToUserId={}", company.ben)).await.error(404, "ERR_API_NOT_FOUND");
    let shown = ana.get(&format!("/crm/boards/{support}")).await;
    let stage = &shown.data(200)["lists"][0];
    assert_eq!((&stage["countCards"], &stage["cards"].as_array().map(Vec::len)), (&json!(1), &Some(1)));
    // Whatever names another's card or board finds none.
    let stage = stage["id"].clone();
    for hidden in [bens, nobodys] {
        for (method, end) in [
            (Method::GET, ""),
            (Method::PUT, ""),
            (Method::POST, "/move"),
            (Method::POST, "/win"),
            (Method::POST, "/lose"),
            (Method::POST, "/reopen"),
            (Method::POST, "/products"),
        ] {
            let request =
                ana.request(method, &format!("/crm/cards/{hidden}{end}")).json(&json!({"crmBoardListId": stage}));
            Reply::of(request).await.error(404, "ERR_API_NOT_FOUND");
        }
    }
    for end in ["", "/cards", "/indicators"] {
        ana.get(&format!("/crm/boards/{sales}{end}")).await.error(404, "ERR_API_NOT_FOUND");
    }
    let elsewhere = json!({"boardId": sales, "name": "x"});
    ana.post("/crm/cards", elsewhere).await.error(404, "ERR_API_NOT_FOUND");
    // What she makes is hers, unless she says whose it is.
    let made = ana.post("/crm/cards", json!({"boardId": support, "name": "new"})).await;
    assert_eq!(
        (&made.data(201)["assignedTo"]["id"], &made.data(201)["creationSource"]),
        (&json!(company.ana), &json!("user"))
    );
    ana.put(&format!("/crm/cards/{own}"), json!({"name": "renamed"})).await.data(200);

    // Who sees all, and an integration.
    let profiles = app.api.all("/profiles").await;
    let supervisor: &Value = profiles.iter().find(|profile| profile["name"] == "Supervisor").expect("a profile");
    app.api.put(&format!("/users/{}", company.ana), json!({"profileId": supervisor["id"]})).await.data(200);
    assert_eq!(ids(&ana.get("/crm/boards").await), [support, sales]);
    assert_eq!(ids(&ana.get("/crm/cards").await).len(), 4);
    ana.get(&format!("/crm/cards/{bens}")).await.data(200);
    assert_eq!(ids(&app.api.get("/crm/boards").await), [support, sales]);
    app.stop().await;
}
