//! A company with a record of every noun, created by the endpoints of the route table. A new endpoint is covered at
//! once; where it needs more than its schemas say, the failing test names what to add here.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use hotline::openapi::Operation;
use hotline_persistence::tables::contacts::{self, ContactByNumber};
use hotline_persistence::tables::source::Source;
use serde_json::{Value, json};

use super::samples::{Reference, Samples};
use super::table::{method, name, operations};
use crate::steps::id;
use crate::support::{Api, Company, Reply, TestApp};

/// The next number for values that must be unique.
static COUNTER: AtomicU64 = AtomicU64::new(1);

pub fn next_number() -> u64 {
    COUNTER.fetch_add(1, Ordering::Relaxed)
}

/// An id that no record has, in the form that the parameter takes.
pub fn unused_id(name: &str) -> &'static str {
    match name {
        "jobId" => "job_999999999",
        "sessionId" => "ws_00000000000000000000000000000000",
        _ => "999999999",
    }
}

/// The noun that a parameter or field names: one word can mean different nouns in different paths, and different words
/// the same noun.
pub fn noun(path: &str, name: &str) -> String {
    let one = name.strip_suffix("Ids").map_or_else(|| name.to_owned(), |stem| format!("{stem}Id"));
    match one.as_str() {
        "categoryId" if path.starts_with("/product") => "productCategoryId".to_owned(),
        "categoryId" => "wrapupCategoryId".to_owned(),
        "assignedToUserId" => "userId".to_owned(),
        "fromContactId" => "contactId".to_owned(),
        "fromTicketId" => "ticketId".to_owned(),
        "crmBoardListId" => "listId".to_owned(),
        "orderedId" if path.starts_with("/crm") => "listId".to_owned(),
        "orderedId" => "customFieldId".to_owned(),
        _ => one,
    }
}

/// A visitor's conversation, and what is in it.
pub struct Conversation {
    pub session: String,
    pub contact: i64,
    pub ticket: i64,
    pub message: i64,
}

/// A company with a record of every noun.
pub struct World<'a> {
    app: &'a TestApp,
    pub api: Api,
    pub company: Company,
    /// Stands in every text the company writes.
    pub mark: &'static str,
    /// The company that every body names, and that is not this one.
    pub stranger: i64,
    pub operations: Vec<Operation>,
    /// An id of every noun.
    ids: BTreeMap<String, String>,
}

impl<'a> World<'a> {
    pub async fn create(app: &'a TestApp, company: Company, api: Api, mark: &'static str) -> Self {
        let stranger = if company.id == app.company.id { company.id.0 + 1 } else { app.company.id.0 };
        let mut world = Self { app, api, company, mark, stranger, operations: operations(), ids: BTreeMap::new() };
        let conversation = world.start_conversation().await;
        let send = json!({"ticketId": conversation.ticket, "type": "text", "body": format!("from {mark}")});
        let job = world.api.post("/messages", send).await.data(202)["jobId"].as_str().expect("job").to_owned();
        // So that the report of wrap-ups has a row.
        let wrapped = world.start_conversation().await.ticket;
        let wrapup = json!({"wrapupTypeId": world.company.solved});
        world.api.post(&format!("/tickets/{wrapped}/close"), wrapup).await.data(200);
        let of_company = async |statement: &'static str| {
            let found: i64 =
                sqlx::query_scalar(statement).bind(world.company.id).fetch_one(&app.db).await.expect(statement);
            found.to_string()
        };
        let profile = of_company("select min(id) from profiles where company_id = $1 and not administers").await;
        let category = of_company("select min(id) from wrapup_categories where company_id = $1").await;
        let known: [(&str, String); 12] = [
            ("contactId", conversation.contact.to_string()),
            ("ticketId", conversation.ticket.to_string()),
            ("messageId", conversation.message.to_string()),
            ("jobId", job),
            ("sessionId", conversation.session),
            ("channelId", world.company.webchat.to_string()),
            ("queueId", world.company.support.to_string()),
            ("userId", world.company.ana.to_string()),
            ("wrapupTypeId", world.company.solved.to_string()),
            ("wrapupCategoryId", category),
            ("profileId", profile),
            // A delivery that is inserted when it is needed; no other company has this id.
            ("deliveryId", (1_000_000 + world.company.id.0).to_string()),
        ];
        world.ids.extend(known.map(|(noun, id)| (noun.to_owned(), id)));
        // What records of other nouns refer to comes first.
        let list = world.create_record("contactListId", &[]).await.expect("a list");
        world.ids.insert("contactListId".to_owned(), list);
        for operation in operations() {
            for name in operation.path_names() {
                let noun = noun(&operation.path, name);
                if !world.ids.contains_key(&noun) {
                    let id = world.create_record(&noun, &[]).await;
                    let id = id.unwrap_or_else(|| panic!("`known` in tests/api/front_door/world.rs lacks `{noun}`"));
                    world.ids.insert(noun, id);
                }
            }
        }
        world
    }

    /// The company's id of a noun.
    pub fn id(&self, noun: &str) -> &str {
        let known = self.ids.get(noun);
        known.unwrap_or_else(|| panic!("which id is `{noun}`? Say so in tests/api/front_door/world.rs")).as_str()
    }

    pub fn samples(&self) -> Samples<'_> {
        Samples { mark: self.mark, ids: &self.ids }
    }

    pub async fn create_contact(&self) -> i64 {
        let number = format!("55119{:08}", next_number());
        let new = ContactByNumber { number: &number, name: Some(self.mark), country: None };
        let db = &self.app.db;
        contacts::find_or_create_by_number(db, self.company.id, new, Source::Api).await.expect("contact").id.0
    }

    /// Opens a ticket without a queue.
    async fn open_ticket(&self) -> i64 {
        let body = json!({"channelId": self.company.phone, "contactId": self.create_contact().await});
        id(self.api.post("/tickets", body).await.data(201))
    }

    pub async fn start_conversation(&self) -> Conversation {
        let visitor = json!({"name": format!("{} {}", self.mark, next_number())});
        let open = json!({"channelId": self.company.webchat, "visitor": visitor});
        let session = self.api.post("/webchat/sessions", open).await;
        let session = session.data(201);
        let (contact, session) = (id(&session["contact"]), session["id"].as_str().expect("id").to_owned());
        let message = self.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await;
        let message = message.data(201);
        Conversation { session, contact, ticket: message["ticketId"].as_i64().expect("ticket"), message: id(message) }
    }

    /// Creates a campaign that is being sent, or is paused. It sends one message a minute to several contacts, so that
    /// it is not completed while a test is slow.
    async fn running_campaign(&self, is_paused: bool) -> i64 {
        let list = id(self.api.post("/contact-lists", json!({"name": self.mark})).await.data(201));
        let mut contacts = Vec::new();
        for _ in 0..6 {
            contacts.push(self.create_contact().await);
        }
        let contacts = json!({"contactIds": contacts});
        self.api.post(&format!("/contact-lists/{list}/contacts"), contacts).await.data(200);
        let body = json!({"name": self.mark, "contactListId": list, "channelId": self.company.phone, "message": self.mark,
            "scheduledAt": "2099-01-31T12:00:00.000Z", "ratePerMinute": 1});
        let campaign = id(self.api.post("/campaigns", body).await.data(201));
        let verbs: &[&str] = if is_paused { &["start", "pause"] } else { &["start"] };
        for verb in verbs {
            self.api.post(&format!("/campaigns/{campaign}/{verb}"), json!({})).await.data(200);
        }
        campaign
    }

    /// Inserts a failed delivery of a webhook.
    async fn insert_delivery(&self, webhook: i64) {
        sqlx::query(
            "insert into webhook_deliveries (company_id, webhook_id, event_id, type, lane, status, created_at)
             values ($1, $2, $3, 'note.added', 'ticket:1', 'failed', now())",
        )
        .bind(self.company.id)
        .bind(webhook)
        .bind(self.id("deliveryId").parse::<i64>().expect("a number"))
        .execute(&self.app.db)
        .await
        .expect("a delivery");
    }

    /// Inserts a question with the option `yes` that was sent in a conversation, and returns its id.
    pub async fn insert_question(&self, conversation: &Conversation) -> i64 {
        // A list is answered once all earlier messages are in the tables.
        self.api.get("/messages").await.data(200);
        let question = 1_000_000_000 + i64::try_from(next_number()).expect("few");
        sqlx::query(
            "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, interactive,
                 status, source, provider_message_id, created_at)
             values ($1, $2, $3, $4, $5, 'outbound', 'interactive', $6, 'sent', 'api', $7, now())",
        )
        .bind(self.company.id)
        .bind(question)
        .bind(conversation.ticket)
        .bind(conversation.contact)
        .bind(self.company.webchat)
        .bind(json!({
            "type": "button", "body": {"text": "Sure?"},
            "action": {"buttons": [{"type": "reply", "reply": {"id": "yes", "title": "Yes"}}]},
        }))
        .bind(format!("wamid.{question}"))
        .execute(&self.app.db)
        .await
        .expect("a question");
        question
    }

    /// Creates a record of a noun by the `POST` of its collection, whose path takes the ids of `within`. Returns its
    /// id, or none when there is no such endpoint.
    async fn create_record(&self, wanted: &str, within: &[(String, String)]) -> Option<String> {
        let is_collection = |operation: &&Operation| {
            operation.method == "POST"
                && self.operations.iter().any(|other| {
                    let last = other.path.strip_prefix(&format!("{}/{{", operation.path));
                    let name = last.and_then(|last| last.strip_suffix('}'));
                    name.is_some_and(|name| noun(&other.path, name) == wanted)
                })
        };
        let operation = self.operations.iter().find(is_collection)?;
        let mut body = self.samples().body(operation, None);
        self.fill(operation, &mut body);
        let outer = operation.path_names().map(|name| {
            let within = within.iter().find(|(known, _)| known == name).map(|(_, id)| id.as_str());
            (name.to_owned(), within.unwrap_or_else(|| self.id(&noun(&operation.path, name))).to_owned())
        });
        let path = Self::path(operation, &outer.collect::<Vec<_>>());
        let reply = self.api.post(&path, body.clone()).await;
        assert!(reply.status.is_success(), "{} with {body}: {}", name(operation), reply.body);
        Some(id(&reply.body["data"]).to_string())
    }

    /// Adds what an operation needs although its schema does not require it.
    fn fill(&self, operation: &Operation, body: &mut Value) {
        if (operation.method, operation.path.as_str()) == ("POST", "/crm/cards/{cardId}/products") {
            body["name"] = json!(format!("{} {}", self.mark, next_number()));
            body["unitPrice"] = json!(19.9);
        }
        if (operation.method, operation.path.as_str()) == ("POST", "/webhooks") {
            // The deliveries of an active webhook would change by themselves.
            body["active"] = json!(false);
        }
        if (operation.method, operation.path.as_str()) == ("POST", "/campaigns") {
            body["message"] = json!(self.mark);
        }
    }

    /// Ids for the operation's path, of records in a state that the operation accepts.
    pub async fn targets(&self, operation: &Operation) -> Vec<(String, String)> {
        let mut targets = Vec::new();
        for name in operation.path_names() {
            let noun = noun(&operation.path, name);
            let id = match noun.as_str() {
                "contactId" => self.create_contact().await.to_string(),
                "ticketId" => {
                    let ticket = self.open_ticket().await;
                    if operation.path.ends_with("/reopen") || operation.path.ends_with("/wrapup") {
                        crate::steps::close(&self.api, ticket).await;
                    }
                    ticket.to_string()
                }
                "sessionId" => self.start_conversation().await.session,
                "messageId" => self.insert_question(&self.start_conversation().await).await.to_string(),
                "cardId" if operation.path.ends_with("/reopen") => {
                    let card = self.create_record(&noun, &targets).await.expect("a card");
                    let lost =
                        self.api.post(&format!("/crm/cards/{card}/lose"), json!({"statusReason": self.mark})).await;
                    lost.data(200);
                    card
                }
                "campaignId" if operation.path.ends_with("/pause") || operation.path.ends_with("/resume") => {
                    self.running_campaign(operation.path.ends_with("/resume")).await.to_string()
                }
                "webhookId" if operation.path.ends_with("/replay") => {
                    let webhook = self.create_record(&noun, &targets).await.expect("a webhook");
                    let on = self.api.put(&format!("/webhooks/{webhook}"), json!({"active": true})).await;
                    on.data(200);
                    webhook
                }
                _ if operation.method == "GET" => self.id(&noun).to_owned(),
                _ => self.create_record(&noun, &targets).await.unwrap_or_else(|| self.id(&noun).to_owned()),
            };
            targets.push((name.to_owned(), id));
        }
        targets
    }

    /// Ids for the operation's path, and a body that it accepts. `field`, if any, holds an id of the company.
    pub async fn body(&self, operation: &Operation, field: Option<&Reference>) -> (Vec<(String, String)>, Value) {
        let mut targets = self.targets(operation).await;
        let mut body = self.samples().body(operation, field);
        self.fill(operation, &mut body);
        let company = &self.company;
        let field_name = field.map(|field| field.to_string()).unwrap_or_default();
        let mut set = |name: &str, value: Value| body[name] = value;
        match (operation.method, operation.path.as_str(), field_name.as_str()) {
            ("POST", "/contacts", _) => set("name", json!(format!("{} {}", self.mark, next_number()))),
            ("POST", "/contacts/import", "contacts.tagIds") => body["contacts"][0]["name"] = json!(self.mark),
            ("POST", "/tickets", _) => {
                set("channelId", json!(company.phone));
                set("contactId", json!(self.create_contact().await));
            }
            ("POST", "/contacts/{contactId}/merge", _) => set("fromContactId", json!(self.create_contact().await)),
            ("POST", "/tickets/{ticketId}/merge", _) => {
                let closed: i64 = targets[0].1.parse().expect("a number");
                crate::steps::close(&self.api, closed).await;
                let contact = crate::steps::ticket(&self.api, closed).await["contact"]["id"].clone();
                let open = json!({"channelId": company.phone, "contactId": contact});
                targets[0].1 = id(self.api.post("/tickets", open).await.data(201)).to_string();
                set("fromTicketId", json!(closed));
            }
            ("POST", "/tickets/{ticketId}/transfer", "") => set("userId", json!(company.ben)),
            ("POST", "/contact-lists/{contactListId}/contacts", "") => {
                set("contactIds", json!([self.create_contact().await]));
            }
            ("POST", "/messages", field_name) => {
                let conversation = self.start_conversation().await;
                match field_name {
                    "contactId" | "channelId" => {
                        set("contactId", json!(conversation.contact));
                        set("channelId", json!(company.webchat));
                    }
                    _ => set("ticketId", json!(conversation.ticket)),
                }
                set("closeTicket", json!(field_name == "wrapupTypeId"));
                // The message type of the samples needs a body.
                set("body", json!(self.mark));
            }
            ("POST", "/webchat/sessions/{sessionId}/messages", "reply.messageId") => {
                let conversation = self.start_conversation().await;
                let question = self.insert_question(&conversation).await;
                set("reply", json!({"messageId": question, "id": "yes"}));
                targets[0].1 = conversation.session;
            }
            ("POST", "/webchat/sessions/{sessionId}/messages", _) => set("body", json!(self.mark)),
            ("POST", "/webhooks/{webhookId}/replay", "deliveryId") => {
                let webhook: i64 = targets[0].1.parse().expect("a number");
                self.insert_delivery(webhook).await;
            }
            ("POST", "/webhooks/{webhookId}/replay", "") => set("after", json!(0)),
            ("PUT", "/custom-fields/order", _) => {
                let all = self.api.all("/custom-fields").await;
                let of_contacts = all.iter().filter(|field| field["application"] == "contact").map(id);
                set("application", json!("contact"));
                set("orderedIds", json!(of_contacts.collect::<Vec<_>>()));
            }
            ("PUT", "/crm/boards/{boardId}/lists/order", _) => {
                let board: i64 = targets[0].1.parse().expect("a number");
                let all = "select id from board_lists where company_id = $1 and board_id = $2";
                let all = sqlx::query_scalar(all).bind(company.id).bind(board).fetch_all(&self.app.db).await;
                let all: Vec<i64> = all.expect("stages");
                set("orderedIds", json!(all));
            }
            _ => {}
        }
        // Fields that never change may only be repeated.
        let fixed: &[&str] = match (operation.method, operation.path.as_str()) {
            ("PUT", "/custom-fields/{customFieldId}") => &["application", "key"],
            ("PUT", "/global-variables/{variableId}") => &["key"],
            ("PUT", "/crm/cards/{cardId}") => &["boardId"],
            _ => &[],
        };
        for field in fixed {
            body.as_object_mut().expect("an object").remove(*field);
        }
        if operation.body.is_some() {
            // The token decides the company, not this field.
            body["companyId"] = json!(self.stranger);
        }
        (targets, body)
    }

    /// The operation's path with these ids.
    pub fn path(operation: &Operation, targets: &[(String, String)]) -> String {
        let put = |path: String, (name, id): &(String, String)| path.replacen(&format!("{{{name}}}"), id, 1);
        targets.iter().fold(operation.path.clone(), put)
    }

    /// Sends a request for the operation, without a body if it takes none.
    pub async fn ask(&self, operation: &Operation, targets: &[(String, String)], body: &Value) -> Reply {
        let request = self.api.request(method(operation.method), &Self::path(operation, targets));
        Reply::of(if operation.body.is_some() { request.json(body) } else { request }).await
    }

    /// The answers to every `GET`, by path; with `about`, only of paths with an id of that noun.
    pub async fn shown(&self, about: Option<&str>) -> BTreeMap<String, Value> {
        let mut shown = BTreeMap::new();
        for operation in self.operations.iter().filter(|operation| operation.method == "GET") {
            let targets: Vec<(String, String)> = operation
                .path_names()
                .map(|name| (name.to_owned(), self.id(&noun(&operation.path, name)).to_owned()))
                .collect();
            if about.is_none_or(|about| targets.iter().any(|(name, _)| noun(&operation.path, name) == about)) {
                let reply = self.ask(operation, &targets, &Value::Null).await;
                assert_eq!(reply.status, 200, "{} with {targets:?}: {}", name(operation), reply.body);
                shown.insert(operation.path.clone(), reply.body);
            }
        }
        shown
    }
}
