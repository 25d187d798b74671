//! Calls of providers while the database is away, and when the process is killed in the middle.

use futures_util::future::join_all;
use hotline::service::Service;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::channels::{self, ChannelSettings, ChannelType, NewChannel, Secret};
use hotline_persistence::{CompanyId, PgPool};
use hotline_postgres::{Cluster, ClusterOptions};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::process::{Process, keys_of, with_database};
use crate::support::provider::hooks::{Phone, image, signature, text};
use crate::support::service::TestOptions;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, Reply, eventually, keys};

const SECRET: &str = "app secret";
const MARIA: &str = "5511987654321";

/// Creates a phone channel that only receives; its public key.
async fn create_channel(db: &PgPool, keys: &Keyring, company: CompanyId) -> String {
    let settings = ChannelSettings {
        phone_number_id: Some("106540352242922".to_owned()),
        app_secret: Some(Secret(SECRET.to_owned())),
        ..ChannelSettings::default()
    };
    let new = NewChannel { name: "Phone", kind: ChannelType::Whatsapp, number: None, queue_id: None, settings };
    channels::insert(db, keys, company, new).await.expect("channel").public_key
}

fn phone() -> Phone {
    Phone { id: "106540352242922".to_owned(), number: "15550783881".to_owned() }
}

/// A signed call of the provider's to a hook.
fn signed_call(api: &Api, key: &str, body: &Value) -> RequestBuilder {
    let bytes = body.to_string();
    let signature = signature(SECRET, bytes.as_bytes());
    let request = api.anonymous(Method::POST, &format!("/hooks/{key}"));
    request.header("x-hub-signature-256", signature).body(bytes)
}

/// Makes such a call; the answer, or `None` if there is none.
async fn call_hook(api: &Api, key: &str, body: &Value) -> Option<Reply> {
    Reply::try_of(signed_call(api, key, body)).await
}

/// Makes such a call, and again while it is refused because others keep it waiting.
async fn repeat_call(api: &Api, key: &str, body: &Value) -> Reply {
    Reply::retried_while_busy(|| signed_call(api, key, body)).await
}

#[actix_web::test]
async fn a_hot_channel_takes_calls_while_postgres_is_away_and_calls_of_unknown_contacts_are_retried() {
    let folder = prepared_folder();
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = crate::support::database::pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    let (hot, cold) = (create_channel(&db, &keys(), company.id).await, create_channel(&db, &keys(), company.id).await);
    let settings = TestOptions::default().settings(&folder, cluster.connect_options());
    let service = Service::start(settings.clone()).await.expect("the service starts");
    let api = Api::new(service.address, &company.key);
    let text_call = |id: &str, body: &str| phone().message(MARIA, "Maria", text(id, body));
    let first = call_hook(&api, &hot, &text_call("wamid.1", "before")).await.expect("an answer");
    assert_eq!(first.data(200)["taken"], 1);

    cluster.stop().await.expect("PostgreSQL stops");
    for (id, body) in [("wamid.2", "during"), ("wamid.3", "still")] {
        let call = text_call(id, body);
        assert_eq!(call_hook(&api, &hot, &call).await.expect("an answer").data(200)["taken"], 1);
        assert_eq!(call_hook(&api, &hot, &call).await.expect("an answer").data(200)["repeated"], 1);
    }
    let answer = text_call("wamid.4", "an answer");
    let mut quoting = answer.clone();
    quoting["entry"][0]["changes"][0]["value"]["messages"][0]["context"]["id"] = "wamid.2".into();
    assert_eq!(call_hook(&api, &hot, &quoting).await.expect("an answer").data(200)["taken"], 1);
    // Memory has neither this contact nor what the cold channel has received.
    let stranger = phone().message("5511900000009", "João", text("wamid.5", "hello"));
    for (key, call) in [(&hot, &stranger), (&cold, &text_call("wamid.6", "hello"))] {
        let reply = call_hook(&api, key, call).await.expect("an answer");
        reply.error(503, "ERR_API_UNAVAILABLE");
        assert!(reply.headers.contains_key("retry-after"));
    }
    // A call with messages of both contacts: the known one's is taken, and the provider has to repeat the call for the
    // other.
    let mut both = phone().messages(MARIA, "Maria", vec![text("wamid.7", "together"), text("wamid.8", "with João")]);
    both["entry"][0]["changes"][0]["value"]["messages"][1]["from"] = "5511900000009".into();
    call_hook(&api, &hot, &both).await.expect("an answer").error(503, "ERR_API_UNAVAILABLE");

    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back");
    eventually("lists are served again", || async { api.get("/tickets").await.status == 200 }).await;
    let again = call_hook(&api, &hot, &both).await.expect("an answer");
    assert_eq!((&again.data(200)["taken"], &again.data(200)["repeated"]), (&1.into(), &1.into()));
    assert_eq!(call_hook(&api, &hot, &stranger).await.expect("an answer").data(200)["taken"], 1);
    let bodies = async |api: &Api| {
        let all = api.all("/messages").await;
        all.iter().map(|message| message["body"].as_str().expect("body").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(bodies(&api).await, ["before", "during", "still", "an answer", "together", "with João", "hello"]);
    let all = api.all("/messages").await;
    assert_eq!(all[3]["quotedMessageId"], all[1]["id"]);
    assert_eq!(api.all("/tickets").await.len(), 2);
    service.stop().await.expect("a clean stop");

    let service = Service::start(settings).await.expect("the service starts again");
    let api = Api::new(service.address, &company.key);
    assert_eq!(
        call_hook(&api, &hot, &text_call("wamid.2", "during")).await.expect("an answer").data(200)["repeated"],
        1
    );
    assert_eq!(bodies(&api).await.len(), 7);
    service.stop().await.expect("a clean stop");
    db.close().await;
    cluster.stop().await.expect("PostgreSQL stops");
}

#[actix_web::test]
async fn a_kill_loses_nothing_that_was_answered_and_repetitions_add_what_was_not() {
    const CALLS: usize = 120;
    let folder = prepared_folder();
    let (company, key) = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        let key = create_channel(db, &keys_of(folder.path()), company.id).await;
        (company, key)
    })
    .await;
    let process = Process::serve(folder.path());
    let api = Api::new(process.address, &company.key);

    let calls: Vec<Value> = (0..CALLS)
        .map(|number| {
            let from = format!("55119000000{:02}", number % 7);
            let id = format!("wamid.{number}");
            let message = if number % 10 == 0 {
                image(&id, "a file", Some(&number.to_string()))
            } else {
                text(&id, &number.to_string())
            };
            let message = message.referred(&format!("ad {number}"), "https://fb.me/ad", "Buy", "click");
            phone().message(&from, "Somebody", message)
        })
        .collect();
    // Killed while many calls are in flight.
    let calling = join_all(calls.iter().map(|call| call_hook(&api, &key, call)));
    let killing = async {
        eventually("some messages are stored", || async {
            // A list that the load delays for seconds is refused.
            let listed = api.try_get("/messages").await.filter(|reply| reply.status == 200);
            listed.is_some_and(|reply| !reply.data(200).as_array().is_none_or(Vec::is_empty))
        })
        .await;
        process.kill();
    };
    let (answers, ()) = futures_util::future::join(calling, killing).await;
    let answered: Vec<usize> = answers
        .iter()
        .enumerate()
        .filter(|(_, answer)| answer.as_ref().is_some_and(|reply| reply.status == 200))
        .map(|(number, _)| number)
        .collect();

    let mut process = Process::serve(folder.path());
    let api = Api::new(process.address, &company.key);
    let stored: Vec<String> =
        api.all("/messages").await.iter().map(|message| message["body"].as_str().expect("body").to_owned()).collect();
    for number in &answered {
        assert!(stored.contains(&number.to_string()), "message {number} was answered and is lost");
    }
    // The provider repeats every call, as providers do.
    for answer in join_all(calls.iter().map(|call| repeat_call(&api, &key, call))).await {
        let counted = answer.data(200);
        assert_eq!(
            counted["taken"].as_u64().zip(counted["repeated"].as_u64()).map(|(taken, repeated)| taken + repeated),
            Some(1)
        );
    }
    let mut bodies: Vec<usize> = api
        .all("/messages")
        .await
        .iter()
        .map(|message| message["body"].as_str().and_then(|body| body.parse().ok()).expect("a number"))
        .collect();
    bodies.sort_unstable();
    assert_eq!(bodies, (0..CALLS).collect::<Vec<_>>(), "a message is missing or stored twice");
    let tickets = api.all("/tickets").await;
    assert_eq!(tickets.len(), 7);
    let unread: u64 = tickets.iter().map(|ticket| ticket["unreadCount"].as_u64().expect("a count")).sum();
    assert_eq!(unread, CALLS as u64);
    assert!(api.all("/contacts").await.iter().all(|contact| contact["ctwaClid"] == "click"));
    println!("{} of {CALLS} calls were answered before the kill", answered.len());
    process.terminate();
    assert!(process.wait().success(), "the stop was not clean: {}", process.log());
}

#[actix_web::test]
async fn a_kill_neither_loses_an_opt_out_nor_repeats_it() {
    let folder = prepared_folder();
    let (company, key) = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        let key = create_channel(db, &keys_of(folder.path()), company.id).await;
        (company, key)
    })
    .await;
    for round in 0..2 {
        // The call is answered. At the kill, the opt-out is only in the journal, or already in the table.
        let process = Process::serve(folder.path());
        let api = Api::new(process.address, &company.key);
        let call = phone().message(MARIA, "Maria", text(&format!("wamid.{round}"), "STOP"));
        assert_eq!(call_hook(&api, &key, &call).await.expect("an answer").data(200)["taken"], 1);
        process.kill();
        let process = Process::serve(folder.path());
        let api = Api::new(process.address, &company.key);
        let all = api.all("/contacts").await;
        assert_eq!((all.len(), &all[0]["marketingOptOut"]), (1, &true.into()));
        // From here on the contact is opted in, however often the entry is replayed and the call repeated.
        let path = format!("/contacts/{}", all[0]["id"]);
        api.put(&path, serde_json::json!({"marketingOptOut": false})).await.data(200);
        process.kill();
        let process = Process::serve(folder.path());
        let api = Api::new(process.address, &company.key);
        assert_eq!(call_hook(&api, &key, &call).await.expect("an answer").data(200)["repeated"], 1);
        assert_eq!(api.get(&path).await.data(200)["marketingOptOut"], false);
        process.kill();
    }
}

#[actix_web::test]
async fn a_message_that_the_company_sent_in_the_native_app_survives_a_kill_once() {
    let folder = prepared_folder();
    let (company, key) = with_database(folder.path(), async |db| {
        let company = Company::create(db, "Acme").await;
        let key = create_channel(db, &keys_of(folder.path()), company.id).await;
        (company, key)
    })
    .await;
    let process = Process::serve(folder.path());
    let api = Api::new(process.address, &company.key);
    let question = phone().message(MARIA, "Maria", text("wamid.1", "a question"));
    let answer = phone().echoes(MARIA, vec![text("wamid.2", "from the phone")]);
    for call in [&question, &answer] {
        assert_eq!(call_hook(&api, &key, call).await.expect("an answer").data(200)["taken"], 1);
    }
    // Killed first while the entries are only in the journal, and then after they were written to the tables.
    let mut process = process;
    for _ in 0..2 {
        process.kill();
        process = Process::serve(folder.path());
        let api = Api::new(process.address, &company.key);
        let all = api.all("/messages").await;
        assert_eq!((all.len(), &all[1]["direction"], &all[1]["via"]), (2, &"outbound".into(), &"nativeApp".into()));
        let tickets = api.all("/tickets").await;
        assert_eq!((tickets.len(), &tickets[0]["firstResponseAt"]), (1, &all[1]["createdAt"]));
        assert_eq!(call_hook(&api, &key, &answer).await.expect("an answer").data(200)["repeated"], 1);
    }
    process.kill();
}
