//! `hotline demo`: the service with demo data.

mod people;
mod sales;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use actix_web::web::Data;
use hotline_actors::services::Recipient;
use hotline_actors::tickets::{Author, Close, Execute, Receive, Send, Transfer};
use hotline_persistence::sealed::Keyring;
use hotline_persistence::table::{self, Columns};
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, ChannelType, NewChannel};
use hotline_persistence::tables::contacts::{self, Visitor};
use hotline_persistence::tables::queues::Queue;
use hotline_persistence::tables::tokens::{self, NewToken};
use hotline_persistence::tables::webchat_sessions::{SessionRow, SessionStatus};
use hotline_persistence::tables::wrapup_categories::{WrapupCategory, WrapupCategoryId};
use hotline_persistence::tables::wrapup_types::{self, WrapupType};
use hotline_persistence::tables::{companies, users};
use hotline_persistence::{ChannelId, CompanyId, ContactId, PgPool, QueueId, SessionId, UserId, WrapupTypeId, key};
use ipnet::{IpNet, Ipv4Net};
use serde_json::json;

use self::people::People;
use super::signals::Signals;
use super::{Failure, serve};
use crate::app::App;
use crate::config::{DatabaseArgs, ServeArgs};
use crate::service::Service;
use crate::visitors::DemoPage;

/// The name of the demo's company.
const COMPANY_NAME: &str = "Demo Ltd";

/// The visitor who is signed in to the demo page's shop: her id in the shop, name and e-mail.
const SIGNED_IN_VISITOR: (&str, &str, &str) = ("customer-1", "Maria Lima", "maria@example.com");

/// The wrap-up type of the demo's closed conversations.
const SOLVED: &str = "Solved";

/// How long the seed waits until the running service knows the new company.
const DIRECTORY_TIME_MAX: Duration = Duration::from_secs(10);

pub async fn run(mut args: ServeArgs, database: &DatabaseArgs) -> Result<(), Failure> {
    // People who try out webhooks run their receiver on this machine.
    let loopback = [IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::LOCALHOST, 8)), IpNet::V6(Ipv6Addr::LOCALHOST.into())];
    args.events.webhook_allow_network.extend(loopback);
    let signals = Signals::listen()?;
    let Some(service) = serve::start(&args, database, &signals).await? else { serve::end_interrupted_start().await };
    let demo = seed(&service.app).await?;
    let base = format!("http://{}", service.address);
    show_page(&service, &demo).await?;
    println!("hotline is ready on {base}");
    let people = people::prepare(&service.app, demo.company).await?;
    println!("{}", guide(&base, &demo, &people));
    serve::run_until_signal(service, signals).await
}

/// Enables the page with both sides of a conversation, and allows it to embed the webchat.
async fn show_page(service: &Service, demo: &DemoCompany) -> Result<(), Failure> {
    let app = &service.app;
    let organization = app.engine.directory().company(demo.company).ok_or("the demo company no longer exists")?;
    let webchat = organization.channels.get(&demo.webchat).ok_or("the demo company no longer has a webchat")?;
    let mut users: Vec<_> = organization.users.iter().filter(|(_, user)| user.active).collect();
    users.sort_unstable_by_key(|(id, _)| **id);
    let users: Vec<_> = users.into_iter().map(|(id, user)| json!({"id": id, "name": user.name})).collect();
    let settings = webchat.settings()?;
    let secret = settings.identity_secrets.into_iter().next().ok_or("the demo's webchat has no identity secret")?;
    let page = DemoPage::new(
        secret,
        json!({"sub": SIGNED_IN_VISITOR.0, "name": SIGNED_IN_VISITOR.1, "email": SIGNED_IN_VISITOR.2}),
        json!({
            "api": crate::web::admission::modules::API,
            "token": demo.key,
            "publicKey": webchat.public_key,
            "channelId": demo.webchat,
            "company": organization.company.name,
            "queueId": webchat.queue_id,
            "wrapupTypeId": demo.wrapup_type,
            "users": users,
            "visitor": SIGNED_IN_VISITOR.1,
        }),
    );
    let page_origins = own_origins(service.address);
    let allow_page_origins = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), Failure> {
        for origin in page_origins {
            if !settings.allowed_origins.contains(&origin) {
                settings.allowed_origins.push(origin);
            }
        }
        Ok(())
    };
    let store = app.engine.store();
    channels::update(&store.housekeeping, &store.keys, demo.company, demo.webchat, allow_page_origins).await?;
    app.engine.refresh(demo.company).await;
    service.handles.demo.publish(page);
    Ok(())
}

/// The page's origins, as browsers on this machine send them.
fn own_origins(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let mut hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
    if !address.ip().is_unspecified() && !address.ip().is_loopback() {
        // Printed as a socket address, so that an IPv6 address is in brackets.
        hosts.push(SocketAddr::new(address.ip(), 0).to_string().trim_end_matches(":0").to_owned());
    }
    // An origin omits the scheme's default port.
    let port = if port == 80 { String::new() } else { format!(":{port}") };
    hosts.into_iter().map(|host| format!("http://{host}{port}")).collect()
}

/// The demo's records.
pub struct DemoCompany {
    /// The company.
    pub company: CompanyId,
    /// A token with all permissions.
    pub key: String,
    /// The company's webchat.
    pub webchat: ChannelId,
    /// A wrap-up type of the company's queue.
    pub wrapup_type: WrapupTypeId,
}

/// Creates a company with users, queues, wrap-up types, channels and some conversations, or finds the one of an earlier
/// demo.
///
/// # Errors
/// When the database cannot be written.
pub async fn seed(app: &Data<App>) -> Result<DemoCompany, Failure> {
    let db = &app.engine.store().housekeeping;
    if let Some(earlier) = companies::all(db).await?.into_iter().find(|company| company.name == COMPANY_NAME) {
        return reuse_company(app, earlier.id).await;
    }
    let company = companies::insert(db, COMPANY_NAME).await?.id;
    let support_columns = Columns::from([("name", "Support".into()), ("wrapupRequired", true.into())]);
    let support = table::insert::<Queue>(db, company, &support_columns).await?.id;
    let sales = table::insert::<Queue>(db, company, &name_column("Sales")).await?.id;
    let ana = insert_user(db, company, "Ana Souza", people::AGENT).await?;
    let ben = insert_user(db, company, "Ben Carter", "ben@demo.example").await?;
    for (queue, user) in [(support, ana), (support, ben), (sales, ben)] {
        users::QUEUES.add(db, company, user, queue).await?;
    }
    let outcome = table::insert::<WrapupCategory>(db, company, &name_column("Outcome")).await?.id;
    let solved = insert_wrapup_type(db, company, outcome, SOLVED, support).await?;
    insert_wrapup_type(db, company, outcome, "Sold", sales).await?;
    let webchat = insert_channel(db, company, "Website", ChannelType::Webchat, None, support).await?;
    ensure_identity_secret(app, company, webchat).await?;
    insert_channel(db, company, "Phone", ChannelType::Whatsapp, Some("5511999990000"), sales).await?;
    let key = insert_token(db, company).await?;
    wait_for_directory(app, &key).await?;
    let contacts = create_conversations(app, company, webchat, support, ana, solved).await?;
    sales::seed(db, company, sales, ben, &contacts).await?;
    Ok(DemoCompany { company, key, webchat, wrapup_type: solved })
}

fn name_column(name: &str) -> Columns {
    Columns::from([("name", name.into())])
}

async fn insert_user(db: &PgPool, company: CompanyId, name: &str, email: &str) -> Result<UserId, Failure> {
    let columns = Columns::from([("name", name.into()), ("email", email.into())]);
    let mut connection = db.acquire().await?;
    Ok(users::insert(&mut connection, company, columns).await?.id)
}

async fn insert_wrapup_type(
    db: &PgPool,
    company: CompanyId,
    category: WrapupCategoryId,
    name: &str,
    queue: QueueId,
) -> Result<WrapupTypeId, Failure> {
    let columns = Columns::from([("name", name.into()), ("categoryId", category.into())]);
    let id = table::insert::<WrapupType>(db, company, &columns).await?.id;
    wrapup_types::QUEUES.set(db, company, id, &[queue]).await?;
    Ok(id)
}

/// The company of an earlier demo, with its conversations unchanged, and a new token.
async fn reuse_company(app: &Data<App>, company: CompanyId) -> Result<DemoCompany, Failure> {
    let key = insert_token(&app.engine.store().housekeeping, company).await?;
    wait_for_directory(app, &key).await?;
    let organization = app.engine.directory().company(company).ok_or("the demo company no longer exists")?;
    let webchat = organization.channels.values().find(|channel| channel.kind == ChannelType::Webchat);
    if let Some(webchat) = webchat {
        ensure_identity_secret(app, company, webchat.id).await?;
        app.engine.refresh(company).await;
    }
    let solved = organization.wrapup_types.iter().find(|(_, kind)| kind.name == SOLVED);
    Ok(DemoCompany {
        company,
        key,
        webchat: webchat.ok_or("the demo company no longer has a webchat")?.id,
        wrapup_type: *solved.ok_or("the wrap-up type of the demo company no longer exists")?.0,
    })
}

/// Ensures that the webchat has an identity secret, with which the demo page signs the identity of its visitor.
async fn ensure_identity_secret(app: &Data<App>, company: CompanyId, webchat: ChannelId) -> Result<(), Failure> {
    let add_secret = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), Failure> {
        if settings.identity_secrets.is_empty() {
            settings.rotate_identity_secret(true);
        }
        Ok(())
    };
    let store = app.engine.store();
    channels::update(&store.housekeeping, &store.keys, company, webchat, add_secret).await?;
    Ok(())
}

async fn insert_token(db: &PgPool, company: CompanyId) -> Result<String, Failure> {
    let permissions = super::everything();
    let new = NewToken { name: "demo", permissions, ..NewToken::default() };
    Ok(tokens::insert(db, company, new).await?.1)
}

async fn insert_channel(
    db: &PgPool,
    company: CompanyId,
    name: &str,
    kind: ChannelType,
    number: Option<&str>,
    queue: QueueId,
) -> Result<ChannelId, Failure> {
    let new = NewChannel { name, kind, number, queue_id: Some(queue), settings: ChannelSettings::default() };
    // These settings have no secrets, so no key is needed.
    Ok(channels::insert(db, &Keyring::default(), company, new).await?.id)
}

/// Waits until the directory has the token, and with it the company. The directory learns of both from the database's
/// notifications.
async fn wait_for_directory(app: &Data<App>, key: &str) -> Result<(), Failure> {
    let hash = key::hash(key);
    let poll_token = async {
        while app.engine.directory().token(&hash).is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DIRECTORY_TIME_MAX, poll_token)
        .await
        .map_err(|_| "the directory did not load the new company in time")?;
    Ok(())
}

/// A conversation of the demo.
struct DemoConversation {
    /// The visitor's id in the shop, name and e-mail.
    visitor: (&'static str, &'static str, &'static str),
    question: &'static str,
    answer: Option<&'static str>,
    /// Whether the conversation is closed after the answer.
    is_solved: bool,
}

/// One conversation that waits, one in progress, and one that is solved.
const CONVERSATIONS: [DemoConversation; 3] = [
    DemoConversation {
        visitor: SIGNED_IN_VISITOR,
        question: "Hello, where is my order?",
        answer: None,
        is_solved: false,
    },
    DemoConversation {
        visitor: ("customer-2", "John Doe", "john@example.com"),
        question: "Can I pay by card?",
        answer: Some("Yes, we accept all major cards."),
        is_solved: false,
    },
    DemoConversation {
        visitor: ("customer-3", "Lucía Gómez", "lucia@example.com"),
        question: "There is a mistake on my invoice.",
        answer: Some("We have corrected it and sent you a new one by e-mail."),
        is_solved: true,
    },
];

/// Creates the demo's conversations and returns their contacts.
async fn create_conversations(
    app: &Data<App>,
    company: CompanyId,
    webchat: ChannelId,
    support: QueueId,
    agent: UserId,
    solved: WrapupTypeId,
) -> Result<Vec<ContactId>, Failure> {
    let engine = &app.engine;
    let mut contacts = Vec::new();
    let author = Author { user: Some((agent, "Ana Souza".to_owned())), ..Author::API };
    for DemoConversation { visitor: (id, name, email), question, answer, is_solved } in CONVERSATIONS {
        let [id, name, email] = [id, name, email].map(|text| Some(text.to_owned()));
        let visitor = Visitor { external_id: id, name, email, ..Visitor::default() };
        let contact = contacts::find_or_create_for_visitor(&engine.store().housekeeping, company, &visitor).await?.id;
        contacts.push(contact);
        let session = open_session(app, company, webchat, contact).await?;
        let receive = Receive { session: Some(session), ..Receive::text(question) };
        let message = engine.inbound.receive(company, webchat, contact, Execute::from(receive)).await?;
        let Some(answer) = answer else { continue };
        let transfer = Transfer { queue: Some(support), user: Some(Some(agent)), author: author.clone() };
        engine.tickets.ask(company, message.ticket_id, transfer).await?;
        let send = Send::text(answer, author.clone());
        let target = engine.sending.resolve(company, Recipient::Contact(webchat, contact)).await?;
        engine.sending.send(&target, send).await?;
        if is_solved {
            let close = Close { wrapup_type: Some(solved), wrapup_note: None, author: author.clone() };
            engine.tickets.ask(company, message.ticket_id, close).await?;
        }
    }
    Ok(contacts)
}

async fn open_session(
    app: &Data<App>,
    company: CompanyId,
    webchat: ChannelId,
    contact: ContactId,
) -> Result<SessionId, Failure> {
    let now = hotline_actors::clock::now();
    let row = SessionRow {
        company_id: company,
        id: SessionId::random(),
        channel_id: webchat,
        contact_id: contact,
        ticket_id: None,
        status: SessionStatus::Active,
        token_hash: key::hash(&key::new_key("vt_")).to_vec(),
        page: None,
        utm: None,
        created_at: now,
        last_seen_at: now,
        ended_at: None,
        verified: true,
        claimed: None,
        shown_from: None,
        token_hashes: Vec::new(),
        by: None,
    };
    let id = row.id.clone();
    app.engine.sessions.begin(hotline_actors::webchat::NewSession { row, attached: None }).await?;
    Ok(id)
}

/// What the demo prints: addresses, accounts, and command lines that work when pasted one after the other.
fn guide(base: &str, DemoCompany { company, key, webchat, wrapup_type }: &DemoCompany, people: &People) -> String {
    let api = format!("{base}/api/v1");
    let People { admin: (admin, admin_password), agent: (agent, agent_password) } = people;
    format!(
        r#"
Open {base}/ in a browser: a visitor on the left, an agent's desk on the right. The page contains the token below, so
do not share it.

company {company}, token {key}

The panel is at {base}/panel/. Sign in with one of these accounts; the passwords change with every start:
administrator {admin} {admin_password}
agent {agent} {agent_password}

# list the open tickets
curl -s -H 'Authorization: Bearer {key}' '{api}/tickets?status=open'

# follow events as they happen, in another terminal
curl -sN -H 'Authorization: Bearer {key}' {api}/events/stream

# a visitor opens a session and writes a message
session=$(curl -s -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{{"channelId":{webchat},"visitor":{{"name":"Visitor One","externalId":"v1"}}}}' {api}/webchat/sessions | sed 's/.*"data":{{"id":"\([^"]*\)".*/\1/'); echo $session
ticket=$(curl -s -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{{"body":"Is anybody there?"}}' {api}/webchat/sessions/$session/messages | sed 's/.*"ticketId":\([0-9]*\).*/\1/'); echo $ticket

# the company answers, and the visitor reads it
curl -s -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{{"ticketId":'$ticket',"type":"text","body":"Yes, how can I help?"}}' {api}/messages
curl -s -H 'Authorization: Bearer {key}' {api}/webchat/sessions/$session/messages

# list the boards and cards of sales
curl -s -H 'Authorization: Bearer {key}' {api}/crm/boards
curl -s -H 'Authorization: Bearer {key}' {api}/crm/cards

# close the ticket
curl -s -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{{"wrapupTypeId":{wrapup_type},"wrapupNote":"Answered."}}' {api}/tickets/$ticket/close
curl -s -H 'Authorization: Bearer {key}' {api}/tickets/$ticket/events

Kill this process with `kill -9` at any moment and start it again: every acknowledged change is kept.
Stop it with Ctrl-C."#
    )
}
