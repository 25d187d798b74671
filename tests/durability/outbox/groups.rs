//! A group is a contact of its own, even after kills.

use serde_json::{Value, json};

use super::{Office, number};
use crate::support::provider::Answer;
use crate::support::provider::hooks::text;

const GROUP: &str = "Y2FwaV9ncm91cDox";

/// The call for a message that a member writes in the group.
fn group_message(office: &Office, mid: &str) -> Value {
    let mut call = office.phone("2101").message(&number(1), "Maria", text(mid, mid));
    call["entry"][0]["changes"][0]["value"]["messages"][0]["group_id"] = GROUP.into();
    call
}

#[actix_web::test]
async fn a_group_is_one_contact_with_one_ticket_and_is_answered_through_kills() {
    let mut office = Office::open("2101").await;
    let private = office.phone("2101").message(&number(1), "Maria", text("wamid.private", "private"));
    office.call_hook(&private).await;
    office.call_hook(&group_message(&office, "wamid.1")).await;
    // An answered message is kept, and the provider repeats a call whose answer it does not know.
    office.kill();
    office.start();
    for mid in ["wamid.1", "wamid.2"] {
        office.call_hook(&group_message(&office, mid)).await;
    }
    let all = office.api.all("/messages").await;
    let bodies: Vec<&Value> = all.iter().map(|message| &message["body"]).collect();
    assert_eq!(bodies, ["private", "wamid.1", "wamid.2"]);
    assert_ne!(all[0]["ticketId"], all[1]["ticketId"]);
    assert_eq!(all[1]["ticketId"], all[2]["ticketId"]);
    assert_eq!(all[2]["author"]["number"], number(1));
    let contact = office.api.get(&format!("/contacts/{}", all[1]["contactId"])).await.data(200).clone();
    assert_eq!((&contact["isGroup"], &contact["number"]), (&json!(true), &Value::Null));
    // An answer that waits through a kill goes to the group.
    office.provider.always("2101", Answer::status(503));
    let answer = json!({"ticketId": all[1]["ticketId"], "type": "text", "body": "hello all"});
    let job = office.api.post("/messages", answer).await.data(202)["jobId"].as_str().expect("a job").to_owned();
    office.provider.called_times("2101", 1).await;
    office.kill();
    office.provider.always("2101", Answer::Accept);
    office.start();
    office.wait_for_status(&job, "sent").await;
    let call = office.provider.accepted("2101").remove(0);
    assert_eq!((&call.body["to"], &call.body["recipient_type"]), (&json!(GROUP), &json!("group")));
    office.close();
}
