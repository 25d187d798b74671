//! The contact of an inbound message: found or created, and of no other company.

use hotline_persistence::tables::channels::ChannelType::Whatsapp;
use serde_json::{Value, json};

use super::{MARIA, ProviderChannel, Setup, all_taken, contact, messages, tickets};
use crate::steps::{close, id, listed};
use crate::support::provider::hooks::text;
use crate::support::{TestApp, eventually};

#[actix_web::test]
async fn a_contact_is_found_by_their_number_and_keeps_the_name_they_were_given() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let known = app.api.post("/contacts", json!({"name": "Dona Maria", "number": MARIA})).await;
    channel.deliver(&app.api, &phone.message(MARIA, "maria :)", text("wamid.1", "hi"))).await;
    assert_eq!(messages(&app.api, channel.id).await[0]["contactId"], known.data(201)["id"]);
    assert_eq!(contact(&app.api, &known.data(201)["id"]).await["name"], "Dona Maria");
    // A contact whose name is its number takes the provider's name, also in the ticket.
    let number = "5511900000002";
    let unnamed = app.contact(number).await;
    channel.deliver(&app.api, &phone.message(number, "João", text("wamid.2", "hi"))).await;
    eventually("the contact is named", || async { contact(&app.api, &json!(unnamed)).await["name"] == "João" }).await;
    let ticket = messages(&app.api, channel.id).await[1]["ticketId"].clone();
    eventually("the ticket shows the name", || async {
        app.api.get(&format!("/tickets/{ticket}")).await.data(200)["contact"]["name"] == "João"
    })
    .await;
    assert_eq!(listed(&app.api, "/contacts").await.len(), 2);
    app.stop().await;
}

#[actix_web::test]
async fn a_number_that_the_provider_spells_differently_finds_the_same_contact() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    // Created with the ninth digit; the provider leaves it out.
    let known = app.contact("5511987654321").await;
    let call = channel.phone_account().message("551187654321", "Maria", text("wamid.1", "hi"));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    let call = channel.phone_account().message("551187654321", "Maria", text("wamid.2", "still me"));
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
    assert_eq!(messages(&app.api, channel.id).await.len(), 2);
    assert_eq!(listed(&app.api, "/contacts").await, [known.0]);
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_is_named_only_by_an_entry_about_them() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    // The sender's number, the ids in the only entry of `contacts`, and whether its name is the sender's.
    let cases = [
        ("5511987650001", json!({}), true),
        // The number in its other spelling.
        ("5511987650002", json!({"wa_id": "551187650002"}), true),
        ("5511987650003", json!({"wa_id": MARIA, "user_id": "BR.5511987650003"}), true),
        ("5511987650004", json!({"wa_id": MARIA}), false),
        ("5511987650005", json!({"user_id": "BR.1"}), false),
        ("5511987650006", json!({"wa_id": MARIA, "user_id": "BR.1"}), false),
    ];
    for (number, ids, is_senders) in cases {
        let mut call = channel.phone_account().message(number, "Maria", text(&format!("wamid.{number}"), "hi"));
        let value = &mut call["entry"][0]["changes"][0]["value"];
        value["messages"][0]["from_user_id"] = format!("BR.{number}").into();
        let mut named = json!({"profile": {"name": "Maria", "username": "@maria"}});
        named.as_object_mut().expect("an object").extend(ids.as_object().expect("an object").clone());
        value["contacts"] = json!([named]);
        assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
        let sender = messages(&app.api, channel.id).await.last().expect("the message")["contactId"].clone();
        let shown = contact(&app.api, &sender).await;
        let expected = if is_senders { (json!("Maria"), json!("@maria")) } else { (json!(number), Value::Null) };
        assert_eq!((&shown["name"], &shown["socialUsername"]), (&expected.0, &expected.1), "{ids:?}");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_contact_who_hides_their_number_is_known_by_the_providers_id() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    let hidden = |mid: &str| {
        let mut call = phone.message("", "Pablo", text(mid, "hi"));
        let value = &mut call["entry"][0]["changes"][0]["value"];
        value["contacts"] =
            json!([{"profile": {"name": "Pablo", "username": "@pablo"}, "user_id": "BR.13491208655302741918"}]);
        let message = value["messages"][0].as_object_mut().expect("message");
        message.remove("from");
        message.insert("from_user_id".to_owned(), "BR.13491208655302741918".into());
        call
    };
    assert_eq!(channel.deliver(&app.api, &hidden("wamid.1")).await, all_taken(1));
    assert_eq!(channel.deliver(&app.api, &hidden("wamid.2")).await, all_taken(1));
    let [one] = listed(&app.api, "/contacts").await[..] else { panic!("one contact") };
    let shown = contact(&app.api, &json!(one)).await;
    assert_eq!(
        (&shown["name"], &shown["number"], &shown["socialUsername"]),
        (&json!("Pablo"), &Value::Null, &json!("@pablo"))
    );
    // A contact who showed a number before stays the same when hiding it.
    let mut shown = phone.message(MARIA, "Maria", text("wamid.3", "with my number"));
    shown["entry"][0]["changes"][0]["value"]["messages"][0]["from_user_id"] = "BR.2".into();
    channel.deliver(&app.api, &shown).await;
    let known = messages(&app.api, channel.id).await[2]["contactId"].clone();
    eventually("the id is stored", || async {
        // Each run of this test against the same service has such an id in a company of its own.
        let stored = "select count(*) from contact_addresses where company_id = $1 and address = 'BR.2'";
        let stored: i64 = sqlx::query_scalar(stored).bind(app.company.id).fetch_one(&app.db).await.expect("count");
        stored == 1
    })
    .await;
    let mut call = hidden("wamid.4");
    let value = &mut call["entry"][0]["changes"][0]["value"];
    value["messages"][0]["from_user_id"] = "BR.2".into();
    value["contacts"][0]["user_id"] = "BR.2".into();
    channel.deliver(&app.api, &call).await;
    assert_eq!(messages(&app.api, channel.id).await[3]["contactId"], known);
    app.stop().await;
}

#[actix_web::test]
async fn two_companies_share_a_contact_and_a_providers_ids_and_see_nothing_of_each_other() {
    let app = TestApp::shared().await;
    let (other, their_api) = app.another_company().await;
    let ours = ProviderChannel::phone(&app).await;
    let theirs = ProviderChannel::create(&app, &other, Whatsapp, Setup::default()).await;
    for (channel, api, body) in [(&ours, &app.api, "for us"), (&theirs, &their_api, "for them")] {
        let call = channel.phone_account().message(MARIA, "Maria", text("wamid.same", body));
        assert_eq!(channel.deliver(api, &call).await, all_taken(1));
        let all = messages(api, channel.id).await;
        assert_eq!(all.len(), 1);
        assert_eq!(all[0]["body"], body);
        assert_eq!(listed(api, "/contacts").await.len(), 1);
    }
    // A call to the other company's key, signed with the own secret, is refused.
    let call = ours.phone_account().message(MARIA, "Maria", text("wamid.2", "hi"));
    let forged = ProviderChannel { app_secret: ours.app_secret.clone(), ..theirs.clone() };
    forged.call_signed(&app.api, &call).await.error(401, "ERR_API_UNAUTHORIZED");
    assert_eq!(messages(&their_api, theirs.id).await.len(), 1);
    app.stop().await;
}

#[actix_web::test]
async fn a_deleted_contact_who_writes_again_is_a_new_contact() {
    let app = TestApp::shared().await;
    let channel = ProviderChannel::phone(&app).await;
    let phone = channel.phone_account();
    channel.deliver(&app.api, &phone.message(MARIA, "Maria", text("wamid.1", "hi"))).await;
    let [opened] = &tickets(&app.api, channel.id).await[..] else { panic!("one ticket") };
    close(&app.api, id(opened)).await;
    let deleted = &opened["contact"]["id"];
    assert_eq!(app.api.delete(&format!("/contacts/{deleted}")).await.status, 204);
    channel.deliver(&app.api, &phone.message(MARIA, "Maria", text("wamid.2", "me again"))).await;
    let all = messages(&app.api, channel.id).await;
    assert_eq!(all.len(), 1);
    assert_ne!(&all[0]["contactId"], deleted);
    app.stop().await;
}
