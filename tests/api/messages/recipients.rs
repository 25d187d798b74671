//! Whom a message is for, and who can be reached where.

use futures_util::future::join_all;
use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use super::text;
use crate::steps::{NOBODY, channel, close, id, listed, sent, ticket};
use crate::support::TestApp;

#[actix_web::test]
async fn of_several_recipients_the_ticket_comes_first_then_the_contact_then_the_number() {
    let app = TestApp::shared().await;
    let phone = app.company.phone;
    let first = app.ticket("5511900000001").await.0;
    let contact = app.contact("5511900000002").await.0;
    let number = "5511900000003";
    let to_all =
        sent(&app.api, text(json!({"channelId": phone, "ticketId": first, "contactId": contact, "number": number})))
            .await;
    assert_eq!(to_all["ticketId"], first);
    let to_contact = sent(&app.api, text(json!({"channelId": phone, "contactId": contact, "number": number}))).await;
    assert_eq!(to_contact["contactId"], contact);
    assert_eq!(
        listed(&app.api, &format!("/contacts?number={number}")).await,
        [0; 0],
        "a send to a contact created another one for the number"
    );
    let to_number = sent(&app.api, text(json!({"channelId": phone, "number": number}))).await;
    let created = app.api.get(&format!("/contacts/{}", to_number["contactId"])).await;
    assert_eq!(created.data(200)["number"], number);
    app.stop().await;
}

#[actix_web::test]
async fn a_send_without_a_recipient_or_with_a_number_on_a_channel_without_numbers_is_a_400() {
    let app = TestApp::shared().await;
    let social = channel(&app, "Social", ChannelType::Instagram).await;
    let company = &app.company;
    let refused = app.api.post("/messages", text(json!({"channelId": company.phone}))).await;
    refused.error(400, "ERR_API_CONTACT_NOT_IDENTIFIED");
    for channel in [company.webchat.0, social] {
        let body = text(json!({"channelId": channel, "number": "5511900000001"}));
        app.api.post("/messages", body).await.error(400, "ERR_API_CONTACT_NOT_IDENTIFIED");
    }
    assert_eq!(listed(&app.api, "/contacts").await, [0; 0], "a refused send made a contact");
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_ticket_or_channel_of_another_company_is_not_found() {
    let app = TestApp::shared().await;
    let (other, api) = app.another_company().await;
    let phone = app.company.phone;
    let foreign = sent(&api, text(json!({"channelId": other.phone, "number": "5511900000001"}))).await;

    let send = async |body: Value| app.api.post("/messages", text(body)).await;
    let refused = send(json!({"channelId": phone, "contactId": NOBODY})).await;
    refused.error(404, "ERR_API_CONTACT_NOT_FOUND");
    for reopen in [false, true] {
        let theirs = send(json!({"channelId": phone, "contactId": foreign["contactId"], "reopenTicket": reopen})).await;
        assert_eq!(theirs.body, refused.body);
    }
    let webchat = send(json!({"channelId": app.company.webchat, "contactId": foreign["contactId"]})).await;
    assert_eq!(webchat.body, refused.body);

    let refused = send(json!({"ticketId": NOBODY})).await;
    refused.error(404, "ERR_API_NOT_FOUND");
    for body in [
        json!({"ticketId": foreign["ticketId"]}),
        json!({"ticketId": foreign["ticketId"], "channelId": phone}),
        json!({"channelId": other.phone, "number": "5511900000002"}),
        json!({"channelId": phone, "number": "5511900000002", "queueId": other.support}),
        json!({"channelId": phone, "number": "5511900000002", "closeTicket": true, "wrapupTypeId": other.sold}),
    ] {
        assert_eq!(send(body.clone()).await.body, refused.body, "{body}");
    }
    for path in
        [format!("/messages/{}", foreign["id"]), format!("/messages/jobs/{}", foreign["jobId"].as_str().expect("job"))]
    {
        assert_eq!(app.api.get(&path).await.body, refused.body, "{path}");
    }
    assert_eq!(listed(&app.api, "/messages").await, [0; 0]);
    assert_eq!(api.all("/messages").await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_that_cannot_receive_on_a_channel_is_unreachable_there() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let social = channel(&app, "Social", ChannelType::Messenger).await;
    let numbered = app.contact("5511900000001").await.0;
    let (session, visitor) = app.session("visitor").await;
    let send = async |channel: i64, contact: i64| {
        app.api.post("/messages", text(json!({"channelId": channel, "contactId": contact}))).await
    };
    // No number, no conversation on the social channel, no session in the webchat.
    send(company.phone.0, visitor.0).await.error(422, "ERR_API_CONTACT_UNREACHABLE");
    send(social, numbered).await.error(422, "ERR_API_CONTACT_UNREACHABLE");
    send(company.webchat.0, numbered).await.error(422, "ERR_API_CONTACT_UNREACHABLE");
    let another = channel(&app, "Another website", ChannelType::Webchat).await;
    send(another, visitor.0).await.error(422, "ERR_API_CONTACT_UNREACHABLE");
    assert_eq!(listed(&app.api, "/tickets").await, [0; 0], "a refused send opened a ticket");

    // A ticket that was opened through the API does not make its contact reachable.
    let opened = app.api.post("/tickets", json!({"channelId": social, "contactId": numbered})).await;
    let opened = id(opened.data(201));
    app.api.post("/messages", text(json!({"ticketId": opened}))).await.error(422, "ERR_API_CONTACT_UNREACHABLE");

    // A session does, even one that has ended without a message.
    app.api.post(&format!("/webchat/sessions/{session}/end"), json!({})).await.data(200);
    send(company.webchat.0, visitor.0).await.data(202);
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_that_once_wrote_on_a_social_channel_is_reachable_there() {
    let app = TestApp::shared().await;
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
    .execute(&app.db)
    .await
    .expect("a message");
    let message = sent(&app.api, text(json!({"channelId": social, "contactId": contact}))).await;
    assert_ne!(message["ticketId"], opened, "a closed ticket got the message");
    app.stop().await;
}

#[actix_web::test]
async fn a_send_to_a_new_number_creates_its_contact() {
    let app = TestApp::shared().await;
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
    let app = TestApp::shared().await;
    for (number, country) in [("5511987654321", "BR"), ("351912345678", "PT"), ("12025550123", "US")] {
        let message = sent(&app.api, text(json!({"channelId": app.company.phone, "number": number}))).await;
        let contact = app.api.get(&format!("/contacts/{}", message["contactId"])).await;
        assert_eq!(contact.data(200)["numberCountry"], country, "{number}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn concurrent_sends_to_a_new_number_make_one_contact_and_one_ticket() {
    let app = TestApp::shared().await;
    let messages = join_all((0..32).map(async |index| {
        let body = json!({"channelId": app.company.phone, "number": "5511900000001", "type": "text", "body": index.to_string()});
        // On a busy machine, some of many concurrent requests get `503` at first.
        let reply = app.api.post_while_busy("/messages", &body).await;
        assert_eq!(reply.data(202)["status"], "queued");
        let job = reply.data(202)["jobId"].as_str().expect("a job");
        let job = app.api.get_while_busy(&format!("/messages/jobs/{job}")).await;
        let message = &job.data(200)["messageId"];
        app.api.get_while_busy(&format!("/messages/{message}")).await.data(200).clone()
    }))
    .await;
    assert!(messages.iter().all(|message| message["contactId"] == messages[0]["contactId"]));
    assert!(messages.iter().all(|message| message["ticketId"] == messages[0]["ticketId"]));
    assert_eq!(listed(&app.api, "/contacts").await.len(), 1);
    assert_eq!(listed(&app.api, "/tickets").await.len(), 1);
    assert_eq!(listed(&app.api, "/messages").await.len(), 32);
    app.stop().await;
}

#[actix_web::test]
async fn a_channel_other_than_the_tickets_is_refused() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    let refused = app.api.post("/messages", text(json!({"ticketId": open, "channelId": app.company.webchat}))).await;
    assert_eq!(refused.invalid_fields(), ["channelId"]);
    assert_eq!(listed(&app.api, "/messages").await, [0; 0]);
    let with_channel = sent(&app.api, text(json!({"ticketId": open, "channelId": app.company.phone}))).await;
    let without_channel = sent(&app.api, text(json!({"ticketId": open}))).await;
    assert_eq!((&with_channel["ticketId"], &without_channel["ticketId"]), (&json!(open), &json!(open)));
    app.stop().await;
}

#[actix_web::test]
async fn without_a_ticket_the_channel_is_required() {
    let app = TestApp::shared().await;
    let contact = app.contact("5511900000001").await;
    for recipient in [json!({"contactId": contact}), json!({"number": "5511900000001"}), json!({})] {
        assert_eq!(app.api.post("/messages", text(recipient)).await.invalid_fields(), ["channelId"]);
    }
    app.stop().await;
}
