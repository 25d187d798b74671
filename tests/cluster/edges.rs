//! Any process answers for any company: one that does not serve it is an edge, which forwards the request.

use reqwest::Method;
use serde_json::json;

use crate::rig::Rig;
use crate::support::Reply;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_process_answers_for_any_company() {
    let rig = Rig::start(2).await;
    for company in &rig.companies {
        let apis: Vec<_> = rig.members.iter().map(|member| member.api(&company.key)).collect();
        for (number, (api, other)) in [(&apis[0], &apis[1]), (&apis[1], &apis[0])].into_iter().enumerate() {
            // What one process has answered, the other shows at once: from the tables and from the directory.
            let tag = api.post("/tags", json!({"name": format!("tag {number}"), "color": "#112233"})).await;
            let id = tag.data(201)["id"].clone();
            assert_eq!(other.get(&format!("/tags/{id}")).await.data(200)["name"], format!("tag {number}"));
            let queue = api.post("/queues", json!({"name": format!("queue {number}"), "color": "#112233"})).await;
            let queue = queue.data(201)["id"].clone();
            // An idempotency key is the company's, at whichever process it is used.
            let contact = json!({"number": format!("5511900000{number:03}"), "name": "Ana"}).to_string();
            let key = format!("contact-{number}");
            let first = Reply::of(api.keyed(Method::POST, "/contacts", &key, contact.clone())).await;
            let contact_id = first.data(201)["id"].clone();
            let again = Reply::of(other.keyed(Method::POST, "/contacts", &key, contact)).await;
            assert!(again.is_replay() && again.body == first.body, "{}", again.body);
            // A live change, with the queue that was made at the other process a moment ago.
            let opened = json!({"channelId": company.phone, "contactId": contact_id, "queueId": queue});
            let ticket = other.post("/tickets", opened).await.data(201)["id"].clone();
            let sent = api.post("/messages", json!({"ticketId": ticket, "type": "text", "body": "hello"})).await;
            assert_eq!(sent.status, 202, "{}", sent.body);
            let read = other.get(&format!("/tickets/{ticket}")).await;
            assert_eq!(read.data(200)["queue"]["id"], queue, "{}", read.body);
            // More than an edge buffers.
            let contacts: Vec<_> = (0..900).map(|row| json!({"name": format!("{} {row}", "x".repeat(80))})).collect();
            let imported = other.post("/contacts/import", json!({"contacts": contacts})).await;
            assert_eq!(imported.status, 200, "{}", imported.body);
            let listed = api.get("/contacts?perPage=1000").await;
            assert!(listed.data(200).as_array().is_some_and(|rows| rows.len() > 900), "{} rows", listed.bytes.len());
            // The process that serves the company refuses it, and the edge passes its response on.
            other.get("/tickets/999999999").await.error(404, "ERR_API_NOT_FOUND");
        }
    }
    // From another address: the rig's own has used tokens before members knew them, which counts as guessing.
    let stranger = hotline::tls::client().local_address("127.0.0.9".parse::<std::net::IpAddr>().expect("an address"));
    let stranger = stranger.build().expect("a client");
    for member in &rig.members {
        let asked = stranger.get(format!("http://{}/api/v1/tags", member.address())).bearer_auth("sk_live_nobody");
        Reply::of(asked).await.error(401, "ERR_API_UNAUTHORIZED");
    }
}
