//! Which sales records a person sees. Boards: those without queues and those of the person's queues. Cards: their own,
//! and with a profile that sees all cards every card on these boards. An administrator of the company sees all.

use reqwest::Method;
use serde_json::{Value, json};

use crate::steps::id;
use crate::support::{OwnApp, Person, Reply, TestApp};

#[actix_web::test]
async fn without_sees_all_cards_a_user_sees_only_their_own() {
    let app = OwnApp::start().await;
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
    let unassigned = card(support, None, "nobody's").await;
    // Ana is in one queue, Ben in both.
    let ana = Person::user(&app, company.ana, "ana@example.com").await;
    let ids = |reply: &Reply| -> Vec<i64> { reply.data(200).as_array().expect("a list").iter().map(id).collect() };
    assert_eq!(ids(&ana.get("/crm/boards").await), [support]);
    assert_eq!(ids(&ana.get("/crm/cards").await), [own]);
    assert_eq!(ids(&ana.get(&format!("/crm/boards/{support}/cards")).await), [own]);
    assert_eq!(ids(&ana.get(&format!("/crm/cards?assignedToUserId={}", company.ana)).await), [own]);
    ana.get(&format!("/crm/cards?assignedToUserId={}", company.ben)).await.error(404, "ERR_API_NOT_FOUND");
    let board = ana.get(&format!("/crm/boards/{support}")).await;
    let stage = &board.data(200)["lists"][0];
    assert_eq!((&stage["countCards"], &stage["cards"].as_array().map(Vec::len)), (&json!(1), &Some(1)));
    // Requests for hidden cards and boards are answered as if these did not exist.
    let stage_id = stage["id"].clone();
    for hidden in [bens, unassigned] {
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
                ana.request(method, &format!("/crm/cards/{hidden}{end}")).json(&json!({"crmBoardListId": stage_id}));
            Reply::of(request).await.error(404, "ERR_API_NOT_FOUND");
        }
    }
    for end in ["", "/cards", "/indicators"] {
        ana.get(&format!("/crm/boards/{sales}{end}")).await.error(404, "ERR_API_NOT_FOUND");
    }
    ana.post("/crm/cards", json!({"boardId": sales, "name": "x"})).await.error(404, "ERR_API_NOT_FOUND");
    // A card that she creates without naming a user is assigned to her.
    let created = ana.post("/crm/cards", json!({"boardId": support, "name": "new"})).await;
    assert_eq!(
        (&created.data(201)["assignedTo"]["id"], &created.data(201)["creationSource"]),
        (&json!(company.ana), &json!("user"))
    );
    ana.put(&format!("/crm/cards/{own}"), json!({"name": "renamed"})).await.data(200);

    // An integration sees all.
    assert_eq!(ids(&app.api.get("/crm/boards").await), [support, sales]);
    app.stop().await;
}

#[actix_web::test]
async fn a_cursor_in_a_persons_cards_is_refused_to_others() {
    let app = OwnApp::start().await;
    let company = &app.company;
    let ana = Person::user(&app, company.ana, "ana@example.com").await;
    let ben = Person::user(&app, company.ben, "ben@example.com").await;
    let (root, _) = Person::admin(&app, "root@example.com").await;
    let root = root.in_company(company.id);
    let board = json!({"name": "Support", "crmBoardQueues": [{"queueId": company.support}]});
    let board = id(app.api.post("/crm/boards", board).await.data(201));
    for user in [company.ana, company.ben, company.ana, company.ben] {
        let card = json!({"boardId": board, "name": "x", "assignedToUserId": user});
        app.api.post("/crm/cards", card).await.data(201);
        app.api.post("/contacts", json!({"name": "Maria"})).await.data(201);
    }
    // Requests the first page, and returns the path of the second.
    let second_page_path = async |person: &Person, list: &str| {
        let first = person.get(&format!("{list}?perPage=1&cursor=")).await;
        first.data(200);
        let cursor = first.body["meta"]["nextCursor"].as_str().expect("a cursor").to_owned();
        format!("{list}?perPage=1&cursor={cursor}")
    };
    for list in ["/crm/cards".to_owned(), format!("/crm/boards/{board}/cards")] {
        for (person, others) in [(&ana, [&ben, &root]), (&ben, [&ana, &root]), (&root, [&ana, &ben])] {
            let next = second_page_path(person, &list).await;
            for other in others {
                assert_eq!(other.get(&next).await.invalid_fields(), ["cursor"], "{list}");
            }
            assert_eq!(person.get(&next).await.data(200).as_array().map(Vec::len), Some(1), "{list}");
        }
    }
    // A cursor of a list that is the same for everyone is valid for everyone.
    let next = second_page_path(&ana, "/contacts").await;
    for person in [&ben, &root] {
        assert_eq!(person.get(&next).await.data(200).as_array().map(Vec::len), Some(1));
    }
    app.stop().await;
}

/// Gives Ana the profile with this name.
async fn give_ana_profile(app: &TestApp, name: &str) {
    Person::give_profile(app, app.company.ana, name).await;
}

#[actix_web::test]
async fn a_supervisor_sees_the_cards_of_visible_boards_and_an_administrator_sees_all() {
    let app = OwnApp::start().await;
    let company = &app.company;
    let board = async |name: &str, queues: Value| {
        let reply = app.api.post("/crm/boards", json!({"name": name, "crmBoardQueues": queues})).await;
        id(reply.data(201))
    };
    let support = board("Support", json!([{"queueId": company.support}])).await;
    let sales = board("Sales", json!([{"queueId": company.sales}])).await;
    let free = board("Free", json!([])).await;
    let card = async |board: i64, user: Option<i64>| {
        let reply = app.api.post("/crm/cards", json!({"boardId": board, "name": "x", "assignedToUserId": user})).await;
        let card = id(reply.data(201));
        app.api.post(&format!("/crm/cards/{card}/win"), json!({})).await.data(200);
        card
    };
    let (bens, unassigned) = (card(support, Some(company.ben.0)).await, card(free, None).await);
    let (hidden, own) = (card(sales, Some(company.ben.0)).await, card(sales, Some(company.ana.0)).await);
    give_ana_profile(&app, "Supervisor").await;
    let ana = Person::user(&app, company.ana, "ana@example.com").await;
    let ids = |reply: &Reply| -> Vec<i64> { reply.data(200).as_array().expect("a list").iter().map(id).collect() };
    assert_eq!(ids(&ana.get("/crm/boards").await), [support, free]);
    assert_eq!(ids(&ana.get("/crm/cards").await), [bens, unassigned, own]);
    assert_eq!(ids(&ana.get(&format!("/crm/cards?assignedToUserId={}", company.ben)).await), [bens]);
    assert_eq!(ids(&ana.get(&format!("/crm/cards?boardId={sales}")).await), [own]);
    for visible in [bens, unassigned, own] {
        ana.get(&format!("/crm/cards/{visible}")).await.data(200);
    }
    ana.get(&format!("/crm/cards/{hidden}")).await.error(404, "ERR_API_NOT_FOUND");
    for end in ["", "/cards", "/indicators"] {
        ana.get(&format!("/crm/boards/{support}{end}")).await.data(200);
        ana.get(&format!("/crm/boards/{free}{end}")).await.data(200);
        ana.get(&format!("/crm/boards/{sales}{end}")).await.error(404, "ERR_API_NOT_FOUND");
    }
    ana.post("/crm/cards", json!({"boardId": sales, "name": "x"})).await.error(404, "ERR_API_NOT_FOUND");
    // Figures cover the boards that she sees: not her own card on a hidden board.
    let report = "/reports/sales?groupBy=user";
    let won = async || -> i64 {
        let reply = ana.get(report).await;
        reply.data(200).as_array().expect("rows").iter().filter_map(|row| row["wonCards"].as_i64()).sum()
    };
    assert_eq!(won().await, 2);
    ana.get(&format!("{report}&boardId={sales}")).await.error(404, "ERR_API_NOT_FOUND");
    assert_eq!(dashboard_boards(&ana).await, [support, free]);
    // Events of cards are shown only to those who see all cards.
    let count_card_events = async || {
        let events = ana.get("/events?limit=1000").await;
        let events = events.data(200).as_array().expect("events").clone();
        assert!(!events.is_empty());
        events.iter().filter(|event| event["type"].as_str().is_some_and(|kind| kind.starts_with("card."))).count()
    };
    app.api.post("/contacts", json!({"name": "Maria"})).await.data(201);
    assert_eq!(count_card_events().await, 0);
    ana.get("/events?types=contact.created,card.won").await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    ana.get("/events/stream?types=card.won").await.error(403, "ERR_API_FORBIDDEN_SCOPE");

    give_ana_profile(&app, "Administrator").await;
    assert_eq!(ids(&ana.get("/crm/boards").await), [support, sales, free]);
    assert_eq!(ids(&ana.get("/crm/cards").await), [bens, unassigned, hidden, own]);
    ana.get(&format!("/crm/cards/{hidden}")).await.data(200);
    assert_eq!((won().await, dashboard_boards(&ana).await), (4, vec![support, sales, free]));
    // Each of the four cards was created and won.
    assert_eq!(count_card_events().await, 8);
    app.stop().await;
}

/// The boards in the person's sales dashboard.
async fn dashboard_boards(person: &Person) -> Vec<i64> {
    let dashboard = person.get("/dashboards/sales").await;
    dashboard.data(200)["boards"].as_array().expect("boards").iter().map(id).collect()
}

#[actix_web::test]
async fn figures_and_events_of_cards_require_seeing_all_cards() {
    let app = OwnApp::start().await;
    let company = &app.company;
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    let seller = json!({"name": "Seller", "permissions": {"crm": ["GET"], "reports": ["GET"], "events": ["GET"]}});
    admin.in_company(company.id).post("/profiles", seller).await.data(201);
    give_ana_profile(&app, "Seller").await;
    let queues = json!([{"queueId": company.support}]);
    let board = app.api.post("/crm/boards", json!({"name": "Support", "crmBoardQueues": queues})).await;
    let board = id(board.data(201));
    let card = json!({"boardId": board, "name": "x", "assignedToUserId": company.ben});
    app.api.post("/crm/cards", card).await.data(201);
    app.api.post("/contacts", json!({"name": "Maria"})).await.data(201);
    let ana = Person::user(&app, company.ana, "ana@example.com").await;
    ana.get(&format!("/crm/boards/{board}")).await.data(200);
    let indicators = format!("/crm/boards/{board}/indicators");
    for path in [&indicators, "/dashboards/sales", "/reports/sales?groupBy=user", "/events?types=card.created"] {
        ana.get(path).await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    }
    ana.get("/reports/tickets?groupBy=queue").await.data(200);
    let events = ana.get("/events").await;
    let kinds: Vec<&Value> = events.data(200).as_array().expect("events").iter().map(|event| &event["type"]).collect();
    assert!(kinds.contains(&&json!("contact.created")), "{kinds:?}");
    assert!(!kinds.iter().any(|kind| kind.as_str().is_some_and(|kind| kind.starts_with("card."))), "{kinds:?}");
    // A stream that began while she saw all cards ends once she does not, and a new one contains no events of cards.
    give_ana_profile(&app, "Administrator").await;
    let mut stream = ana.request(Method::GET, "/events/stream?after=0").send().await.expect("a stream");
    read_until(&mut stream, "card.created").await;
    give_ana_profile(&app, "Seller").await;
    app.api.post("/contacts", json!({"name": "Mario"})).await.data(201);
    while stream.chunk().await.expect("a chunk").is_some() {}
    let mut stream = ana.request(Method::GET, "/events/stream?after=0").send().await.expect("a stream");
    let received = read_until(&mut stream, "Mario").await;
    assert!(!received.contains("card."), "{received}");
    drop(stream);
    app.stop().await;
}

/// Reads a stream until it contains the text, and returns what was read.
async fn read_until(stream: &mut reqwest::Response, text: &str) -> String {
    let mut received = String::new();
    while !received.contains(text) {
        let chunk = stream.chunk().await.expect("a chunk").expect("the stream is open");
        received.push_str(&String::from_utf8_lossy(&chunk));
    }
    received
}
