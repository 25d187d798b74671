//! Sending: whom a message reaches, what else a send does, and what is refused.

use futures_util::future::join_all;
use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use crate::check_list::check_list;
use crate::steps::{NOBODY, assert_timestamp, channel, close, history, id, listed, sent, ticket};
use crate::support::TestApp;

fn text(recipient: Value) -> Value {
    let mut body = json!({"type": "text", "body": "hello"});
    body.as_object_mut().expect("object").extend(recipient.as_object().expect("object").clone());
    body
}

/// A visitor's session with an open ticket: session, contact, ticket.
async fn visited(app: &TestApp, visitor: &str) -> (String, i64, i64) {
    let (session, contact) = app.session(visitor).await;
    let said = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hi"})).await;
    (session.0, contact.0, said.data(201)["ticketId"].as_i64().expect("ticket"))
}

#[actix_web::test]
async fn a_send_answers_a_job_and_keeps_the_message() {
    let app = TestApp::start().await;
    let phone = app.company.phone;
    let reply = app.api.post("/messages", text(json!({"channelId": phone, "number": "5511900000001"}))).await;
    let accepted = reply.data(202);
    let job_id = accepted["jobId"].as_str().expect("job");
    assert_eq!(accepted, &json!({"jobId": job_id, "status": "queued"}));

    let job = app.api.get(&format!("/messages/jobs/{job_id}")).await;
    let job = job.data(200);
    let message = app.api.get(&format!("/messages/{}", job["messageId"])).await;
    let message = message.data(200);
    assert_eq!(
        job,
        &json!({"jobId": job_id, "status": "queued", "messageId": id(message), "ticketId": message["ticketId"], "error": null})
    );
    assert_timestamp(&message["createdAt"]);
    let opened = ticket(&app.api, message["ticketId"].as_i64().expect("ticket")).await;
    assert_eq!(
        message,
        &json!({
            "id": job["messageId"], "jobId": job_id, "ticketId": id(&opened), "contactId": opened["contact"]["id"],
            "channelId": phone, "direction": "outbound", "type": "text", "body": "hello", "media": null,
            "template": null, "interactive": null, "quotedMessageId": null, "status": "queued", "error": null,
            "user": null, "source": "api", "createdAt": message["createdAt"], "sentAt": null, "deliveredAt": null,
            "readAt": null,
        })
    );
    assert_eq!(opened["creationSource"], "api");
    assert_eq!(opened["unreadCount"], 0);
    assert_eq!(
        opened["lastMessage"],
        json!({"id": id(message), "body": "hello", "direction": "outbound", "createdAt": message["createdAt"]})
    );
    assert_eq!(app.api.all("/messages").await, std::slice::from_ref(message));
    app.stop().await;
}

#[actix_web::test]
async fn of_several_recipients_the_ticket_comes_first_then_the_contact_then_the_number() {
    let app = TestApp::start().await;
    let phone = app.company.phone;
    let first = app.ticket("5511900000001").await.0;
    let contact = app.contact("5511900000002").await.0;
    let number = "5511900000003";
    let all =
        sent(&app.api, text(json!({"channelId": phone, "ticketId": first, "contactId": contact, "number": number})))
            .await;
    assert_eq!(all["ticketId"], first);
    let two = sent(&app.api, text(json!({"channelId": phone, "contactId": contact, "number": number}))).await;
    assert_eq!(two["contactId"], contact);
    assert_eq!(listed(&app.api, &format!("/contacts?number={number}")).await, [0; 0], "a contact was made for nothing");
    let one = sent(&app.api, text(json!({"channelId": phone, "number": number}))).await;
    let named = app.api.get(&format!("/contacts/{}", one["contactId"])).await;
    assert_eq!(named.data(200)["number"], number);
    app.stop().await;
}

#[actix_web::test]
async fn a_send_without_a_recipient_or_with_a_number_where_there_are_none_is_a_400() {
    let app = TestApp::start().await;
    let social = channel(&app, "Social", ChannelType::Instagram).await;
    let company = &app.company;
    let nobody = app.api.post("/messages", text(json!({"channelId": company.phone}))).await;
    nobody.error(400, "ERR_API_CONTACT_NOT_IDENTIFIED");
    for channel in [company.webchat.0, social] {
        let body = text(json!({"channelId": channel, "number": "5511900000001"}));
        app.api.post("/messages", body).await.error(400, "ERR_API_CONTACT_NOT_IDENTIFIED");
    }
    assert_eq!(listed(&app.api, "/contacts").await, [0; 0], "a refused send made a contact");
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_ticket_or_channel_of_another_company_is_not_found() {
    let app = TestApp::start().await;
    let (other, api) = app.another_company().await;
    let phone = app.company.phone;
    let foreign = sent(&api, text(json!({"channelId": other.phone, "number": "5511900000001"}))).await;

    let send = async |body: Value| app.api.post("/messages", text(body)).await;
    let nobody = send(json!({"channelId": phone, "contactId": NOBODY})).await;
    nobody.error(404, "ERR_API_CONTACT_NOT_FOUND");
    for reopen in [false, true] {
        let theirs = send(json!({"channelId": phone, "contactId": foreign["contactId"], "reopenTicket": reopen})).await;
        assert_eq!(theirs.body, nobody.body);
    }
    let webchat = send(json!({"channelId": app.company.webchat, "contactId": foreign["contactId"]})).await;
    assert_eq!(webchat.body, nobody.body);

    let nobody = send(json!({"ticketId": NOBODY})).await;
    nobody.error(404, "ERR_API_NOT_FOUND");
    for body in [
        json!({"ticketId": foreign["ticketId"]}),
        json!({"ticketId": foreign["ticketId"], "channelId": phone}),
        json!({"channelId": other.phone, "number": "5511900000002"}),
        json!({"channelId": phone, "number": "5511900000002", "queueId": other.support}),
        json!({"channelId": phone, "number": "5511900000002", "closeTicket": true, "wrapupTypeId": other.sold}),
    ] {
        assert_eq!(send(body.clone()).await.body, nobody.body, "{body}");
    }
    for path in
        [format!("/messages/{}", foreign["id"]), format!("/messages/jobs/{}", foreign["jobId"].as_str().expect("job"))]
    {
        assert_eq!(app.api.get(&path).await.body, nobody.body, "{path}");
    }
    assert_eq!(listed(&app.api, "/messages").await, [0; 0]);
    assert_eq!(api.all("/messages").await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn who_cannot_receive_on_a_channel_is_unreachable_there() {
    let app = TestApp::start().await;
    let company = &app.company;
    let social = channel(&app, "Social", ChannelType::Messenger).await;
    let numbered = app.contact("5511900000001").await.0;
    let (session, visitor) = app.session("visitor").await;
    let send = async |channel: i64, contact: i64| {
        app.api.post("/messages", text(json!({"channelId": channel, "contactId": contact}))).await
    };
    // No phone, no conversation with the social channel, no session in the webchat.
    send(company.phone.0, visitor.0).await.error(422, "ERR_API_CONTACT_UNREACHABLE");
    send(social, numbered).await.error(422, "ERR_API_CONTACT_UNREACHABLE");
    send(company.webchat.0, numbered).await.error(422, "ERR_API_CONTACT_UNREACHABLE");
    let another = channel(&app, "Another website", ChannelType::Webchat).await;
    send(another, visitor.0).await.error(422, "ERR_API_CONTACT_UNREACHABLE");
    assert_eq!(listed(&app.api, "/tickets").await, [0; 0], "a refused send opened a ticket");

    // A ticket that somebody opened makes nobody reachable.
    let opened = app.api.post("/tickets", json!({"channelId": social, "contactId": numbered})).await;
    let opened = id(opened.data(201));
    app.api.post("/messages", text(json!({"ticketId": opened}))).await.error(422, "ERR_API_CONTACT_UNREACHABLE");

    // A session does, even an ended one that nothing was said in.
    app.api.post(&format!("/webchat/sessions/{session}/end"), json!({})).await.data(200);
    send(company.webchat.0, visitor.0).await.data(202);
    app.stop().await;
}

#[actix_web::test]
async fn who_wrote_on_a_social_channel_once_can_be_written_to() {
    let app = TestApp::start().await;
    let social = channel(&app, "Social", ChannelType::Instagram).await;
    let contact = app.contact("5511900000001").await.0;
    let opened = app.api.post("/tickets", json!({"channelId": social, "contactId": contact})).await;
    let opened = id(opened.data(201));
    close(&app.api, opened).await;
    app.api.get("/tickets").await.data(200); // The ticket is in the tables now.
    sqlx::query(
        "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, body, status, source,
             created_at)
         values ($1, 1000000000, $2, $3, $4, 'inbound', 'text', 'hi', 'received', 'contact', now())",
    )
    .bind(app.company.id)
    .bind(opened)
    .bind(contact)
    .bind(social)
    .execute(&app.database.db)
    .await
    .expect("a message");
    let message = sent(&app.api, text(json!({"channelId": social, "contactId": contact}))).await;
    assert_ne!(message["ticketId"], opened, "a closed ticket was written in");
    app.stop().await;
}

#[actix_web::test]
async fn a_send_to_a_new_number_makes_its_contact() {
    let app = TestApp::start().await;
    let phone = app.company.phone;
    let first =
        sent(&app.api, text(json!({"channelId": phone, "number": "+55 (11) 98765-4321", "contactName": " Maria "})))
            .await;
    let contact = app.api.get(&format!("/contacts/{}", first["contactId"])).await;
    let contact = contact.data(200);
    assert_eq!(contact["number"], "5511987654321");
    assert_eq!(contact["name"], "Maria");
    assert_eq!(contact["lastChannel"], json!({"id": phone, "name": "Phone", "type": "whatsapp"}));

    // The next send finds it, however the number is written, and does not rename it.
    let second =
        sent(&app.api, text(json!({"channelId": phone, "number": "55.11.98765.4321", "contactName": "Other"}))).await;
    assert_eq!(second["contactId"], first["contactId"]);
    assert_eq!(second["ticketId"], first["ticketId"]);
    let same = app.api.get(&format!("/contacts/{}", first["contactId"])).await;
    assert_eq!(same.data(200)["name"], "Maria");

    // Without a name the number is the name.
    let nameless = sent(&app.api, text(json!({"channelId": phone, "number": "5511987654322"}))).await;
    assert_eq!(ticket(&app.api, nameless["ticketId"].as_i64().expect("id")).await["contact"]["name"], "5511987654322");
    app.stop().await;
}

#[actix_web::test]
async fn the_country_of_a_new_number_is_deduced() {
    let app = TestApp::start().await;
    for (number, country) in [("5511987654321", "BR"), ("351912345678", "PT"), ("12025550123", "US")] {
        let message = sent(&app.api, text(json!({"channelId": app.company.phone, "number": number}))).await;
        let contact = app.api.get(&format!("/contacts/{}", message["contactId"])).await;
        assert_eq!(contact.data(200)["numberCountry"], country, "{number}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn concurrent_sends_to_a_new_number_make_one_contact_and_one_ticket() {
    let app = TestApp::start().await;
    let sends = (0..32).map(|index| {
        let body = json!({"channelId": app.company.phone, "number": "5511900000001", "type": "text", "body": index.to_string()});
        sent(&app.api, body)
    });
    let messages = join_all(sends).await;
    assert!(messages.iter().all(|message| message["contactId"] == messages[0]["contactId"]));
    assert!(messages.iter().all(|message| message["ticketId"] == messages[0]["ticketId"]));
    assert_eq!(listed(&app.api, "/contacts").await.len(), 1);
    assert_eq!(listed(&app.api, "/tickets").await.len(), 1);
    assert_eq!(listed(&app.api, "/messages").await.len(), 32);
    app.stop().await;
}

#[actix_web::test]
async fn on_a_webchat_the_transfer_comes_after_the_send_and_the_closing_after_the_transfer() {
    let app = TestApp::start().await;
    let company = &app.company;
    let (_, _, open) = visited(&app, "visitor").await;
    // Sold is no wrap-up of support: the ticket must have moved before it is closed.
    let message = sent(
        &app.api,
        text(json!({
            "ticketId": open, "queueId": company.sales, "closeTicket": true, "wrapupTypeId": company.sold,
            "wrapupNote": "two boxes",
        })),
    )
    .await;
    let closed = ticket(&app.api, open).await;
    assert_eq!(closed["status"], "closed");
    assert_eq!(closed["queue"], json!({"id": company.sales, "name": "Sales"}));
    assert_eq!(closed["wrapupType"], json!({"id": company.sold, "name": "Sold"}));
    assert_eq!(closed["wrapupNote"], "two boxes");
    assert_eq!(closed["lastMessage"]["id"], id(&message));
    assert_eq!(message["status"], "sent");
    assert_timestamp(&message["sentAt"]);
    let events = history(&app.api, open).await;
    assert_eq!(events.iter().map(|(kind, ..)| kind.as_str()).collect::<Vec<_>>(), ["opened", "transferred", "closed"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_send_whose_transfer_or_closing_is_refused_sends_nothing() {
    let app = TestApp::start().await;
    let company = &app.company;
    let (_, _, web) = visited(&app, "visitor").await;
    let phone = app.ticket("5511900000001").await.0;
    app.api.post(&format!("/tickets/{phone}/transfer"), json!({"queueId": company.support})).await.data(200);
    for open in [web, phone] {
        let before = (ticket(&app.api, open).await, app.api.all(&format!("/tickets/{open}/messages")).await);
        for body in [
            json!({"ticketId": open, "closeTicket": true}),
            json!({"ticketId": open, "closeTicket": true, "wrapupTypeId": company.sold}),
            json!({"ticketId": open, "queueId": company.sales, "closeTicket": true, "wrapupTypeId": company.solved}),
        ] {
            let refused = app.api.post("/messages", text(body.clone())).await;
            assert_eq!(refused.invalid_fields(), ["wrapupTypeId"], "{body}");
        }
        let refused = app.api.post("/messages", text(json!({"ticketId": open, "queueId": NOBODY}))).await;
        refused.error(404, "ERR_API_NOT_FOUND");
        assert_eq!((ticket(&app.api, open).await, app.api.all(&format!("/tickets/{open}/messages")).await), before);
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_send_reopens_the_latest_ticket_only_if_asked_to() {
    let app = TestApp::start().await;
    let to = json!({"channelId": app.company.phone, "number": "5511900000001"});
    let reopening = json!({"channelId": app.company.phone, "number": "5511900000001", "reopenTicket": true});
    let ticket_of = |message: Value| message["ticketId"].as_i64().expect("ticket");
    // With none to reopen, one is opened.
    let first = ticket_of(sent(&app.api, text(reopening.clone())).await);
    assert_eq!(ticket(&app.api, first).await["reopenCount"], 0);
    close(&app.api, first).await;
    let second = ticket_of(sent(&app.api, text(to)).await);
    assert!(second > first);
    // The open one is used, and not reopened.
    assert_eq!(ticket_of(sent(&app.api, text(reopening.clone())).await), second);
    assert_eq!(ticket(&app.api, second).await["reopenCount"], 0);
    close(&app.api, second).await;
    assert_eq!(ticket_of(sent(&app.api, text(reopening.clone())).await), second);
    let reopened = ticket(&app.api, second).await;
    assert_eq!((&reopened["status"], &reopened["reopenCount"]), (&json!("open"), &json!(1)));
    assert_eq!(ticket(&app.api, first).await["status"], "closed");

    // By its id a ticket is reopened unless another one is open.
    let refused = app.api.post("/messages", text(json!({"ticketId": first, "reopenTicket": true}))).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["ticketId"], second);
    close(&app.api, second).await;
    let refused = app.api.post("/messages", text(json!({"ticketId": first}))).await;
    assert_eq!(refused.error(409, "ERR_API_TICKET_CLOSED")["ticketId"], first);
    assert_eq!(ticket_of(sent(&app.api, text(json!({"ticketId": first, "reopenTicket": true}))).await), first);
    // The restarted service finds the latest in the tables.
    close(&app.api, first).await;
    let app = crate::steps::restarted(app).await;
    let fresh =
        ticket_of(sent(&app.api, text(json!({"channelId": app.company.phone, "number": "5511900000001"}))).await);
    close(&app.api, fresh).await;
    let app = crate::steps::restarted(app).await;
    assert_eq!(ticket_of(sent(&app.api, text(reopening)).await), fresh);
    app.stop().await;
}

#[actix_web::test]
async fn a_channel_that_is_not_the_tickets_is_refused() {
    let app = TestApp::start().await;
    let open = app.ticket("5511900000001").await.0;
    let refused = app.api.post("/messages", text(json!({"ticketId": open, "channelId": app.company.webchat}))).await;
    assert_eq!(refused.invalid_fields(), ["channelId"]);
    assert_eq!(listed(&app.api, "/messages").await, [0; 0]);
    let agreed = sent(&app.api, text(json!({"ticketId": open, "channelId": app.company.phone}))).await;
    let without = sent(&app.api, text(json!({"ticketId": open}))).await;
    assert_eq!((&agreed["ticketId"], &without["ticketId"]), (&json!(open), &json!(open)));
    app.stop().await;
}

#[actix_web::test]
async fn without_a_ticket_the_channel_is_required() {
    let app = TestApp::start().await;
    let contact = app.contact("5511900000001").await;
    for recipient in [json!({"contactId": contact}), json!({"number": "5511900000001"}), json!({})] {
        assert_eq!(app.api.post("/messages", text(recipient)).await.invalid_fields(), ["channelId"]);
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_job_is_known_by_its_own_id_only() {
    let app = TestApp::start().await;
    let (_, _, open) = visited(&app, "visitor").await;
    let inbound = listed(&app.api, "/messages").await[0];
    let message = sent(&app.api, text(json!({"ticketId": open}))).await;
    let job_id = message["jobId"].as_str().expect("job");
    let job = app.api.get(&format!("/messages/jobs/{job_id}")).await;
    assert_eq!(
        job.data(200),
        &json!({"jobId": job_id, "status": "sent", "messageId": id(&message), "ticketId": open, "error": null})
    );
    let nobody = app.api.get(&format!("/messages/{NOBODY}")).await.body;
    for unknown in [&format!("job_{NOBODY}"), &format!("job_{inbound}"), &id(&message).to_string(), "job_", "abc"] {
        let reply = app.api.get(&format!("/messages/jobs/{unknown}")).await;
        reply.error(404, "ERR_API_NOT_FOUND");
        assert_eq!(reply.body, nobody, "{unknown}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn every_filter_finds_its_messages_and_no_others() {
    let app = TestApp::start().await;
    let company = &app.company;
    let (other, other_api) = app.another_company().await;
    sent(&other_api, text(json!({"channelId": other.phone, "number": "5511900000001"}))).await;

    let (_, visitor, web) = visited(&app, "visitor").await;
    let inbound = listed(&app.api, "/messages").await[0];
    let answer = id(&sent(&app.api, text(json!({"ticketId": web}))).await);
    let note = id(app.api.post(&format!("/tickets/{web}/notes"), json!({"body": "note"})).await.data(201));
    let first = sent(&app.api, text(json!({"channelId": company.phone, "number": "5511900000001"}))).await;
    let second = id(&sent(&app.api, text(json!({"channelId": company.phone, "number": "5511900000002"}))).await);
    let first_id = id(&first);

    let everything = [inbound, answer, note, first_id, second];
    for (query, expected) in [
        (String::new(), everything.to_vec()),
        (format!("ticketId={web}"), vec![inbound, answer, note]),
        (format!("ticketId={}", first["ticketId"]), vec![first_id]),
        (format!("contactId={visitor}"), vec![inbound, answer, note]),
        (format!("contactId={}", first["contactId"]), vec![first_id]),
        (format!("channelId={}", company.phone), vec![first_id, second]),
        ("direction=inbound".to_owned(), vec![inbound]),
        ("direction=outbound".to_owned(), vec![answer, first_id, second]),
        ("direction=internal".to_owned(), vec![note]),
        ("type=text".to_owned(), vec![inbound, answer, first_id, second]),
        ("type=note".to_owned(), vec![note]),
        ("type=media".to_owned(), vec![]),
        ("status=queued".to_owned(), vec![first_id, second]),
        ("status=sent".to_owned(), vec![answer]),
        (format!("direction=outbound&channelId={}", company.webchat), vec![answer]),
        (format!("ticketId={web}&direction=outbound&status=queued"), vec![]),
    ] {
        assert_eq!(listed(&app.api, &format!("/messages?{query}")).await, expected, "{query}");
    }
    let received = listed(&app.api, "/messages?status=received").await;
    assert!(received.contains(&inbound) && !received.contains(&answer), "{received:?}");
    check_list(&app, "/messages", &everything, &["created"]).await;
    check_list(&app, &format!("/messages?ticketId={web}"), &everything[..3], &["created"]).await;
    app.stop().await;
}

#[actix_web::test]
async fn the_first_response_is_the_first_outbound_message_of_the_opening() {
    let app = TestApp::start().await;
    let (session, _, open) = visited(&app, "visitor").await;
    app.api.post(&format!("/tickets/{open}/notes"), json!({"body": "not a response"})).await.data(201);
    assert_eq!(ticket(&app.api, open).await["firstResponseAt"], Value::Null);
    let first = sent(&app.api, text(json!({"ticketId": open}))).await;
    assert_eq!(ticket(&app.api, open).await["firstResponseAt"], first["createdAt"]);
    app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "thanks"})).await.data(201);
    sent(&app.api, text(json!({"ticketId": open}))).await;
    assert_eq!(
        ticket(&app.api, open).await["firstResponseAt"],
        first["createdAt"],
        "the second response is not the first"
    );

    let body = json!({"wrapupTypeId": app.company.solved});
    app.api.post(&format!("/tickets/{open}/close"), body).await.data(200);
    let again = sent(&app.api, text(json!({"ticketId": open, "reopenTicket": true}))).await;
    assert_eq!(ticket(&app.api, open).await["firstResponseAt"], again["createdAt"], "not of the current opening");
    app.stop().await;
}

#[actix_web::test]
async fn a_body_of_exactly_the_limit_is_kept_as_it_is() {
    let app = TestApp::start().await;
    let open = app.ticket("5511900000001").await.0;
    for body in ["é".repeat(32_768), "😀".repeat(16_384), "x".repeat(65_536)] {
        let message = sent(&app.api, json!({"ticketId": open, "type": "text", "body": body})).await;
        assert!(message["body"] == body.as_str(), "the body changed");
    }
    let odd = "line\r\nline\ttab \u{202e}right \u{1}control 'quote\" \\ {{unknown";
    let message = sent(&app.api, json!({"ticketId": open, "type": "text", "body": format!("  {odd}\n")})).await;
    assert_eq!(message["body"], odd);
    app.stop().await;
}

#[actix_web::test]
async fn messages_of_a_ticket_are_in_the_order_they_were_accepted() {
    let app = TestApp::start().await;
    let open = app.ticket("5511900000001").await.0;
    let mut accepted = Vec::new();
    for index in 0..20 {
        let reply =
            app.api.post("/messages", json!({"ticketId": open, "type": "text", "body": index.to_string()})).await;
        accepted.push(reply.data(202)["jobId"].clone());
    }
    let messages = app.api.all(&format!("/tickets/{open}/messages")).await;
    assert_eq!(messages.iter().map(|message| message["jobId"].clone()).collect::<Vec<_>>(), accepted);
    app.stop().await;
}
