//! Reads every list of the API by cursor, except those of the panel.

use futures_util::future::join_all;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings};
use reqwest::Method;
use serde_json::{Value, json};

use super::{List, field_text};
use crate::steps::id;
use crate::support::{Receiver, TestApp, eventually, keys};

/// How many contacts there are to be added to a contact list.
const POOL: usize = 30;

/// A time far in the future.
const LATER: &str = "2099-01-31T12:00:00.000Z";

/// The origin of the website that embeds the webchat.
const ORIGIN: &str = "https://shop.example";

/// The operations that this file tests.
pub const LISTS: [&str; 33] = [
    "listBoardCards",
    "listBoards",
    "listBusinesses",
    "listCampaignRecipients",
    "listCampaigns",
    "listCardOrigins",
    "listCardStatuses",
    "listCards",
    "listContactListContacts",
    "listContactLists",
    "listContacts",
    "listCustomFields",
    "listGlobalVariables",
    "listMessages",
    "listProductCategories",
    "listProducts",
    "listQueueUsers",
    "listQueueWrapupTypes",
    "listQueues",
    "listQuickMessages",
    "listSchedules",
    "listSessionMessages",
    "listTags",
    "listTicketEvents",
    "listTicketMessages",
    "listTickets",
    "listUserMetrics",
    "listUsers",
    "listVisitorMessages",
    "listWebhookDeliveries",
    "listWebhooks",
    "listWrapupCategories",
    "listWrapupTypes",
];

/// Checks each list. `expected` are their operations, which must be among [`LISTS`].
async fn check(lists: Vec<List<'_>>, expected: &[&str]) {
    let mut checked = Vec::new();
    for list in lists {
        checked.push(list.check().await);
    }
    assert_eq!(checked, expected);
    assert!(expected.iter().all(|name| LISTS.contains(name)), "LISTS lacks one of {expected:?}");
}

fn named(number: usize) -> Value {
    json!({"name": format!("Some {number}")})
}

#[actix_web::test]
async fn lists_of_plain_resources_are_read_by_cursor_while_they_change() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let category = id(api.post("/wrapup-categories", json!({"name": "Outcomes"})).await.data(201));
    let lists = vec![
        List::plain(api, "listTags", "/tags", named).read_with(&["search=some", "createdFrom=2000-01-01T00:00:00Z"]),
        List::plain(api, "listQueues", "/queues", named),
        List::plain(api, "listWrapupCategories", "/wrapup-categories", named),
        List::plain(
            api,
            "listQuickMessages",
            "/quick-messages",
            |number| json!({"shortcut": format!("s{number}"), "message": "Some text"}),
        ),
        List::plain(
            api,
            "listGlobalVariables",
            "/global-variables",
            |number| json!({"key": format!("key{number}"), "value": "x"}),
        ),
        List::plain(api, "listProductCategories", "/product-categories", named),
        List::plain(api, "listProducts", "/products", |number| json!({"name": format!("Some {number}"), "price": 1}))
            .read_with(&["search=some", "active=true"]),
        List::plain(api, "listBoards", "/crm/boards", named).read_with(&["archived=false"]),
        List::plain(api, "listCardStatuses", "/crm/statuses", named),
        List::plain(api, "listBusinesses", "/crm/businesses", named),
        List::plain(api, "listCardOrigins", "/crm/origins", named),
        List::plain(api, "listContactLists", "/contact-lists", named),
        List::plain(api, "listCustomFields", "/custom-fields", |number| {
            let application = if number % 2 == 0 { "contact" } else { "card" };
            json!({"name": format!("Some {number}"), "application": application, "type": "text"})
        })
        .read_with(&["application=contact"]),
        List::of(api, "listWrapupTypes", "/wrapup-types")
            .adds(move |number| {
                let name = format!("Some {number}");
                (Method::POST, "/wrapup-types".to_owned(), json!({"name": name, "categoryId": category}))
            })
            .removes(|id| (Method::DELETE, format!("/wrapup-types/{id}"), Value::Null)),
    ];
    let expected = [
        "listTags",
        "listQueues",
        "listWrapupCategories",
        "listQuickMessages",
        "listGlobalVariables",
        "listProductCategories",
        "listProducts",
        "listBoards",
        "listCardStatuses",
        "listBusinesses",
        "listCardOrigins",
        "listContactLists",
        "listCustomFields",
        "listWrapupTypes",
    ];
    check(lists, &expected).await;
    app.stop().await;
}

fn user(number: usize) -> Value {
    json!({"name": format!("Some {number}"), "email": format!("some{number}@example.com")})
}

#[actix_web::test]
async fn lists_of_users_and_of_a_queue_are_read_by_cursor_while_they_change() {
    let app = TestApp::shared().await;
    let (api, sales) = (&app.api, app.company.sales);
    let category = id(api.post("/wrapup-categories", json!({"name": "Outcomes"})).await.data(201));
    let lists = vec![
        List::plain(api, "listUsers", "/users", user).read_with(&["search=some"]),
        List::plain(api, "listUserMetrics", "/users", |number| user(number + 1000))
            .at("/users/metrics")
            .known_by(|row| field_text(row, "user_id")),
        List::of(api, "listQueueUsers", format!("/queues/{sales}/users"))
            .adds(move |number| {
                let mut body = user(number + 2000);
                body["queueIds"] = json!([sales]);
                (Method::POST, "/users".to_owned(), body)
            })
            .removes(move |id| (Method::DELETE, format!("/queues/{sales}/users/{id}"), Value::Null)),
        List::of(api, "listQueueWrapupTypes", format!("/queues/{sales}/wrapup-types"))
            .adds(move |number| {
                let body = json!({"name": format!("Type {number}"), "categoryId": category, "queueIds": [sales]});
                (Method::POST, "/wrapup-types".to_owned(), body)
            })
            .removes(|id| (Method::DELETE, format!("/wrapup-types/{id}"), Value::Null)),
    ];
    check(lists, &["listUsers", "listUserMetrics", "listQueueUsers", "listQueueWrapupTypes"]).await;
    app.stop().await;
}

#[actix_web::test]
async fn all_contacts_and_those_of_a_list_are_read_by_cursor_while_they_change() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let tag = id(api.post("/tags", json!({"name": "Tagged"})).await.data(201));
    let contact = move |number: usize| {
        json!({"name": format!("Some {number}"), "origin": "shop", "tagIds": [tag],
            "number": format!("55119{number:08}"), "email": "some@example.com"})
    };
    let pool =
        join_all((0..POOL).map(|number| api.post("/contacts", json!({"name": format!("Pooled {number}")})))).await;
    let pool: Vec<i64> = pool.iter().map(|reply| id(reply.data(201))).collect();
    let list = id(api.post("/contact-lists", json!({"name": "Everybody"})).await.data(201));
    let lists = vec![
        List::of(api, "listContactListContacts", format!("/contact-lists/{list}/contacts"))
            .adds(move |number| {
                let body = json!({"contactIds": [pool[number % POOL]]});
                (Method::POST, format!("/contact-lists/{list}/contacts"), body)
            })
            .removes(move |id| (Method::DELETE, format!("/contact-lists/{list}/contacts/{id}"), Value::Null))
            .read_with(&["search=pooled"]),
        // These include the contacts of the contact list above.
        List::of(api, "listContacts", "/contacts")
            .adds(move |number| (Method::POST, "/contacts".to_owned(), contact(number)))
            .removes(|id| (Method::DELETE, format!("/contacts/{id}"), Value::Null))
            .read_with(&[
                "search=some",
                "origin=shop",
                "isGroup=false",
                "email=some@example.com",
                "createdFrom=2000-01-01T00:00:00Z",
                &format!("tagId={tag}"),
            ]),
    ];
    check(lists, &["listContactListContacts", "listContacts"]).await;
    app.stop().await;
}

#[actix_web::test]
async fn lists_of_tickets_and_messages_are_read_by_cursor_while_they_change() {
    let app = TestApp::shared().await;
    let (api, phone) = (&app.api, app.company.phone);
    let send = move |number: usize| {
        let number = format!("55119{number:08}");
        let body =
            json!({"channelId": phone, "number": number, "contactName": "Some", "type": "text", "body": "Hello"});
        (Method::POST, "/messages".to_owned(), body)
    };
    let ticket = app.ticket("5511800000001").await;
    let say = move |number: usize| {
        (Method::POST, "/messages".to_owned(), json!({"ticketId": ticket, "type": "text", "body": number.to_string()}))
    };
    let by_channel = format!("channelId={phone}");
    let lists = vec![
        List::of(api, "listTickets", "/tickets").adds(send).read_with(&[
            "search=some",
            &by_channel,
            "unassigned=true",
            "createdFrom=2000-01-01T00:00:00Z",
        ]),
        // A closed ticket no longer matches.
        List::of(api, "listTickets", "/tickets?status=open")
            .adds(move |number| send(number + 1000))
            .removes(|id| (Method::POST, format!("/tickets/{id}/close"), json!({}))),
        List::of(api, "listMessages", "/messages").adds(say).read_with(&[
            "direction=outbound",
            "status=queued",
            "type=text",
            &by_channel,
            "createdFrom=2000-01-01T00:00:00Z",
        ]),
        List::of(api, "listTicketMessages", format!("/tickets/{ticket}/messages")).adds(say),
        List::of(api, "listTicketEvents", format!("/tickets/{ticket}/events")).adds(move |number| {
            (Method::POST, format!("/tickets/{ticket}/notes"), json!({"body": format!("Note {number}")}))
        }),
    ];
    let expected = ["listTickets", "listTickets", "listMessages", "listTicketMessages", "listTicketEvents"];
    check(lists, &expected).await;
    app.stop().await;
}

#[actix_web::test]
async fn lists_of_webchat_messages_are_read_by_cursor_while_they_change() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let allow = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), hotline_persistence::Error> {
        settings.allowed_origins = vec![ORIGIN.to_owned()];
        Ok(())
    };
    let channel = channels::update(&app.db, &keys(), app.company.id, app.company.webchat, allow)
        .await
        .expect("the channel is changed");
    app.refreshed().await;
    let (session, _) = app.session("v-1").await;
    let session_messages = format!("/webchat/sessions/{session}/messages");
    let session_path = session_messages.clone();
    let opened =
        api.post("/webchat/sessions", json!({"channelId": app.company.webchat, "visitor": {"name": "V"}})).await;
    let token = opened.data(201)["token"].as_str().expect("a token").to_owned();
    let visitor =
        move |method: Method, path: &str| api.anonymous(method, path).bearer_auth(&token).header("origin", ORIGIN);
    let visitor_messages = format!("/webchat/{}/messages", channel.public_key);
    let visitor_path = visitor_messages.clone();
    let lists = vec![
        List::of(api, "listSessionMessages", session_messages)
            .adds(move |number| (Method::POST, session_path.clone(), json!({"body": format!("Hello {number}")})))
            .read_with(&["after=0"]),
        List::new("listVisitorMessages", visitor_messages, visitor)
            .adds(move |number| (Method::POST, visitor_path.clone(), json!({"body": format!("Hello {number}")})))
            .read_with(&["after=0"]),
    ];
    check(lists, &["listSessionMessages", "listVisitorMessages"]).await;
    app.stop().await;
}

#[actix_web::test]
async fn lists_of_cards_are_read_by_cursor_while_they_change() {
    let app = TestApp::shared().await;
    let api = &app.api;
    let board = id(api.post("/crm/boards", json!({"name": "Sales"})).await.data(201));
    let stage = id(&api.get(&format!("/crm/boards/{board}")).await.data(200)["lists"][0]);
    let card = move |number: usize| {
        (Method::POST, "/crm/cards".to_owned(), json!({"boardId": board, "name": format!("Some {number}")}))
    };
    let remove = |id: &str| (Method::DELETE, format!("/crm/cards/{id}"), Value::Null);
    let by_stage = format!("crmBoardListId={stage}");
    let by_board_and_stage = format!("boardId={board}&crmBoardListId={stage}");
    let lists = vec![
        List::of(api, "listCards", "/crm/cards").adds(card).removes(remove).read_with(&[
            "search=some",
            "won=false",
            &by_board_and_stage,
        ]),
        List::of(api, "listBoardCards", format!("/crm/boards/{board}/cards?won=false"))
            .adds(card)
            // A won card no longer matches.
            .removes(|id| (Method::POST, format!("/crm/cards/{id}/win"), json!({})))
            .read_with(&[&by_stage]),
    ];
    check(lists, &["listCards", "listBoardCards"]).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_cursor_reads_a_list_by_id_while_its_positions_change() {
    let app = TestApp::shared().await;
    let board = id(app.api.post("/crm/boards", json!({"name": "Sales"})).await.data(201));
    let stage = id(&app.api.get(&format!("/crm/boards/{board}")).await.data(200)["lists"][0]);
    let mut cards = Vec::new();
    for number in 0..7 {
        let card = json!({"boardId": board, "name": format!("Card {number}")});
        cards.push(id(app.api.post("/crm/cards", card).await.data(201)));
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/crm/boards/{board}/cards?crmBoardListId={stage}&perPage=2&cursor={cursor}");
        let reply = app.api.get(&path).await;
        seen.extend(crate::steps::ids(reply.data(200).as_array().expect("cards")));
        let Some(next) = reply.body["meta"]["nextCursor"].as_str() else { break };
        cursor = next.to_owned();
        // Cards that were not read yet move before those that were.
        for card in cards.iter().rev().take(3) {
            let target = json!({"crmBoardListId": stage, "position": 0});
            app.api.post(&format!("/crm/cards/{card}/move"), target).await.data(200);
        }
    }
    assert_eq!(seen, cards);
    app.stop().await;
}

#[actix_web::test]
async fn lists_of_schedules_and_campaigns_are_read_by_cursor_while_they_change() {
    let app = TestApp::shared().await;
    let (api, phone) = (&app.api, app.company.phone);
    let contacts = join_all((0..12).map(|number| {
        api.post("/contacts", json!({"name": format!("Some {number}"), "number": format!("55117{number:08}")}))
    }))
    .await;
    let contacts: Vec<i64> = contacts.iter().map(|reply| id(reply.data(201))).collect();
    let recipient = contacts[0];
    let list = id(api.post("/contact-lists", json!({"name": "Everybody"})).await.data(201));
    api.post(&format!("/contact-lists/{list}/contacts"), json!({"contactIds": contacts})).await.data(200);
    let campaign = move |number: usize| {
        json!({"name": format!("Some {number}"), "contactListId": list, "channelId": phone, "scheduledAt": LATER,
            "message": "Hello", "ratePerMinute": 1})
    };
    let paused = id(api.post("/campaigns", campaign(0)).await.data(201));
    api.post(&format!("/campaigns/{paused}/start"), json!({})).await.data(200);
    api.post(&format!("/campaigns/{paused}/pause"), json!({})).await.data(200);
    let recipients = format!("/campaigns/{paused}/recipients");
    eventually("the campaign has its recipients", || async { api.all(&recipients).await.len() == 12 }).await;
    let lists = vec![
        List::of(api, "listSchedules", "/schedules")
            .adds(move |_| {
                let body = json!({"contactId": recipient, "channelId": phone, "body": "Hello", "sendAt": LATER});
                (Method::POST, "/schedules".to_owned(), body)
            })
            .read_with(&["status=pending"]),
        List::of(api, "listCampaigns", "/campaigns")
            .adds(move |number| (Method::POST, "/campaigns".to_owned(), campaign(number)))
            .removes(|id| (Method::DELETE, format!("/campaigns/{id}"), Value::Null))
            .read_with(&["status=scheduled"]),
        List::of(api, "listCampaignRecipients", recipients.clone()).known_by(|row| field_text(&row["contact"], "id")),
    ];
    check(lists, &["listSchedules", "listCampaigns", "listCampaignRecipients"]).await;
    app.stop().await;
}

#[actix_web::test]
async fn lists_of_webhooks_and_their_deliveries_are_read_by_cursor_while_they_change() {
    let app = TestApp::shared().await;
    let (api, receiver) = (&app.api, Receiver::start().await);
    let webhook = id(api.post("/webhooks", json!({"url": receiver.url()})).await.data(201));
    for number in 0..9 {
        api.post("/contacts", json!({"name": format!("Noted {number}")})).await.data(201);
    }
    receiver.has(9).await;
    let deliveries = format!("/webhooks/{webhook}/deliveries");
    eventually("nine deliveries are listed", || async { api.all(&deliveries).await.len() >= 9 }).await;
    let lists = vec![
        List::of(api, "listWebhookDeliveries", deliveries.clone())
            .adds(|number| (Method::POST, "/contacts".to_owned(), named(number)))
            .known_by(|row| field_text(row, "eventId"))
            .read_with(&["createdFrom=2000-01-01T00:00:00Z"]),
        // They are inactive, so that nothing is sent to them. A company has at most twenty.
        List::plain(api, "listWebhooks", "/webhooks", |_| json!({"url": "https://hooks.example/", "active": false}))
            .read_with(&["active=false"]),
    ];
    check(lists, &["listWebhookDeliveries", "listWebhooks"]).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_page_by_cursor_ends_at_a_mebibyte_and_one_by_number_is_complete() {
    let app = TestApp::shared().await;
    let ticket = app.ticket("5511900000001").await;
    for number in 0..30 {
        let body = format!("{number} {}", "x".repeat(60_000));
        app.api.post("/messages", json!({"ticketId": ticket, "type": "text", "body": body})).await.data(202);
    }
    let path = format!("/tickets/{ticket}/messages");
    let by_number = app.api.get(&path).await;
    let all = crate::steps::ids(by_number.data(200).as_array().expect("messages"));
    assert_eq!((all.len(), &by_number.body["meta"]["hasMore"]), (30, &json!(false)));
    let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let reply = app.api.get(&format!("{path}?cursor={cursor}")).await;
        assert!(reply.bytes.len() < (1 << 20) + 1_000, "{} bytes", reply.bytes.len());
        seen.extend(crate::steps::ids(reply.data(200).as_array().expect("messages")));
        pages += 1;
        let Some(next) = reply.body["meta"]["nextCursor"].as_str() else { break };
        assert_eq!(reply.body["meta"]["hasMore"], true);
        next.clone_into(&mut cursor);
    }
    assert_eq!((seen, pages), (all, 2));
    app.stop().await;
}
