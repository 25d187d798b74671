//! `hotline webhook`: manages webhooks.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use hotline_actors::clock;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::select::PageRequest;
use hotline_persistence::table::Columns;
use hotline_persistence::tables::events::{self, EventKind};
use hotline_persistence::tables::webhooks::deliveries::{self, DeliveryFilter, DeliveryStatus};
use hotline_persistence::tables::webhooks::{self, WEBHOOKS_MAX, Webhook, WebhookId, replays};
use hotline_persistence::{CompanyId, Error, PgPool, key};
use ipnet::IpNet;
use serde::Serialize;

use super::audit::{AuditedAction, Target};
use super::database::{read_database, with_database, with_secrets};
use super::{Failure, GlobalArgs};
use crate::api::webhooks::{Delivery, ReplayResult, TestResult, WebhookWithSecret, test_event};
use crate::config;
use crate::web::request::values::{FromField, Name, WebhookAddress};
use crate::webhooks::{Webhooks, new_secret};

#[derive(Subcommand)]
pub enum Command {
    /// Create a webhook; its secret is printed once
    Create(Create),
    /// List webhooks, with the reason if one was disabled
    List {
        /// Show only the webhooks of this company
        #[arg(long, value_name = "ID")]
        company: Option<CompanyId>,
    },
    /// Show a webhook
    Show(WebhookArgs),
    /// Update a webhook; omitted options keep their values
    Update {
        #[command(flatten)]
        webhook: WebhookArgs,
        #[command(flatten)]
        changes: WebhookUpdate,
        #[command(flatten)]
        networks: WebhookNetworkArgs,
    },
    /// Delete a webhook and its delivery history
    Delete(WebhookArgs),
    /// Rotate the secret of a webhook; the new one is printed once, and both sign deliveries for 24 hours
    RotateSecret(WebhookArgs),
    /// Send a test event to a webhook, and print the response
    Test {
        #[command(flatten)]
        webhook: WebhookArgs,
        #[command(flatten)]
        networks: WebhookNetworkArgs,
    },
    /// List the deliveries of a webhook, newest first
    Deliveries {
        #[command(flatten)]
        webhook: WebhookArgs,
        /// Show only deliveries with this status
        #[arg(long, value_name = "pending|delivered|failed", value_parser = parse_status)]
        status: Option<DeliveryStatus>,
        /// Maximum number of deliveries
        #[arg(long, default_value_t = 100, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
    },
    /// Resend events to a webhook
    Replay {
        #[command(flatten)]
        webhook: WebhookArgs,
        #[command(flatten)]
        selection: ReplaySelection,
    },
}

/// The private networks in which endpoints may be.
#[derive(Args)]
pub struct WebhookNetworkArgs {
    /// Private network that webhook endpoints may be in, as given to `hotline serve` (repeatable or comma-separated)
    #[arg(long, env = "HOTLINE_WEBHOOK_ALLOW_NETWORK", value_delimiter = ',', value_parser = config::network,
        value_name = "CIDR")]
    webhook_allow_network: Vec<IpNet>,
}

impl WebhookNetworkArgs {
    fn client(&self) -> Result<Webhooks, Failure> {
        Ok(Webhooks::new(&config::webhook_options(&self.webhook_allow_network))?)
    }

    /// Validates a URL: the service must be able to send there.
    fn check_url(&self, url: String) -> Result<String, Failure> {
        self.client()?.check(&url)?;
        Ok(url)
    }
}

#[derive(Args)]
#[command(
    override_usage = "hotline webhook create <URL> --company <ID> [OPTIONS]",
    after_help = "Examples:
  hotline webhook create https://example.com/hotline --company 1
  hotline webhook create https://example.com/desk --company 1 --type ticket.opened --type ticket.closed"
)]
pub struct Create {
    #[command(flatten)]
    url: UrlArgs,
    /// Company ID
    #[arg(long, value_name = "ID")]
    company: CompanyId,
    /// Description
    #[arg(long, value_name = "TEXT", value_parser = parse_description)]
    description: Option<Description>,
    /// Event type to send, for example ticket.opened (repeatable); without it, all types
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_kind)]
    types: Vec<EventKind>,
    #[command(flatten)]
    networks: WebhookNetworkArgs,
}

/// The endpoint of a new webhook, given as a positional argument or, in the old spelling, by `--url`.
#[derive(Args)]
pub struct UrlArgs {
    /// URL of the endpoint
    #[arg(value_parser = parse_url, required_unless_present = "url_option")]
    url: Option<String>,
    /// Old spelling of URL
    #[arg(long = "url", value_name = "URL", value_parser = parse_url, hide = true, conflicts_with = "url")]
    url_option: Option<String>,
}

impl UrlArgs {
    /// The URL; clap ensures that it is given in one of the two ways.
    fn into_url(self) -> String {
        self.url.or(self.url_option).unwrap_or_default()
    }
}

/// The changes; at least one is required.
#[derive(Args)]
#[group(required = true, multiple = true)]
pub struct WebhookUpdate {
    /// New URL of the endpoint
    #[arg(long, value_parser = parse_url)]
    url: Option<String>,
    /// New description; an empty value removes it
    #[arg(long, value_name = "TEXT", value_parser = parse_description)]
    description: Option<Description>,
    /// Event type to send, replacing all previous types (repeatable); an empty value sends all
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_new_kind, conflicts_with = "all_types")]
    types: Vec<NewKind>,
    /// Old spelling of --type ''
    #[arg(long, hide = true)]
    all_types: bool,
    /// Whether events are sent; a webhook that is enabled again resumes where it stopped
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    active: Option<bool>,
}

/// The description of a webhook; `None` for an empty value.
#[derive(Clone)]
struct Description(Option<String>);

/// An event type; `None` for an empty value.
#[derive(Clone)]
struct NewKind(Option<EventKind>);

/// One webhook.
#[derive(Args)]
pub struct WebhookArgs {
    /// Webhook ID
    id: WebhookId,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct ReplaySelection {
    /// Resend all events after this event ID
    #[arg(long, value_name = "EVENT", value_parser = clap::value_parser!(i64).range(0..))]
    after: Option<i64>,
    /// Resend this delivery
    #[arg(long, value_name = "ID")]
    delivery: Option<i64>,
    /// Resend deliveries that have failed since this time, for example 2031-01-31T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    failed_since: Option<DateTime<Utc>>,
}

/// A webhook with its company, as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PrintedWebhook {
    company_id: CompanyId,
    #[serde(flatten)]
    webhook: Webhook,
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        Command::Create(create) => create.run(global).await,
        Command::List { company } => list(company, global).await,
        Command::Show(webhook) => webhook.show(global).await,
        Command::Update { webhook, changes, networks } => changes.apply(webhook.id, &networks, global).await,
        Command::Delete(webhook) => webhook.delete(global).await,
        Command::RotateSecret(webhook) => webhook.rotate(global).await,
        Command::Test { webhook, networks } => webhook.test(&networks, global).await,
        Command::Deliveries { webhook, status, limit } => webhook.list_deliveries(status, limit, global).await,
        Command::Replay { webhook, selection } => webhook.replay(selection, global).await,
    }
}

async fn list(company: Option<CompanyId>, global: &GlobalArgs) -> Result<(), Failure> {
    let all = read_database(&global.database, async |db| Ok(webhooks::all(db, company).await?)).await?;
    let all: Vec<_> = all.into_iter().map(|(company_id, webhook)| PrintedWebhook { company_id, webhook }).collect();
    let columns = ["id", "companyId", "url", "description", "types", "active", "disabledReason"];
    global.output.many("webhooks", &columns, all)
}

impl Create {
    async fn run(self, global: &GlobalArgs) -> Result<(), Failure> {
        let url = self.networks.check_url(self.url.into_url()).map_err(|reason| format!("URL {reason}"))?;
        let mut columns = Columns::from([("url", url.into()), ("types", EventKind::words(self.types).into())]);
        if let Some(Description(description)) = self.description {
            columns.set("description", description);
        }
        let creation = with_secrets(&global.database, async |db, keys| {
            let work = async || {
                let secret = new_secret();
                let mut transaction = db.begin().await?;
                let last_event = events::last_id(&mut *transaction, self.company).await?;
                let maker = None;
                let inserted =
                    webhooks::insert(&mut transaction, keys, self.company, columns, &secret, (maker, last_event.0))
                        .await;
                let webhook = inserted?
                    .ok_or_else(|| format!("the company has reached the maximum of {WEBHOOKS_MAX} webhooks"))?;
                transaction.commit().await?;
                Ok(WebhookWithSecret { webhook, secret: secret.0 })
            };
            let audited = AuditedAction::of_company(Some(self.company), "createWebhook");
            audited.run(db, work, |created| Target::of(created.webhook.id)).await
        });
        global.output.one(creation.await?)
    }
}

impl WebhookUpdate {
    async fn apply(self, id: WebhookId, networks: &WebhookNetworkArgs, global: &GlobalArgs) -> Result<(), Failure> {
        let mut columns = Columns::default();
        if let Some(url) = self.url {
            columns.set("url", networks.check_url(url).map_err(|reason| format!("--url {reason}"))?);
        }
        if let Some(Description(description)) = self.description {
            columns.set("description", description);
        }
        if self.all_types || !self.types.is_empty() {
            let types: Vec<EventKind> = self.types.into_iter().filter_map(|NewKind(kind)| kind).collect();
            columns.set("types", EventKind::words(types));
        }
        if let Some(active) = self.active {
            columns.set("active", active);
        }
        let update = with_database(&global.database, async |db| {
            let company = webhooks::company_of(db, id).await?;
            let work = async || {
                let mut transaction = db.begin().await?;
                let webhook = webhooks::update(&mut transaction, company, id, columns, None).await?;
                transaction.commit().await?;
                Ok(webhook)
            };
            audited_action(company, id, "updateWebhook").run(db, work, |_| Target::of(id)).await
        });
        global.output.one(update.await?)
    }
}

impl WebhookArgs {
    async fn show(self, global: &GlobalArgs) -> Result<(), Failure> {
        let search = read_database(&global.database, async |db| {
            let company = webhooks::company_of(db, self.id).await?;
            let all = webhooks::all(db, Some(company)).await?;
            Ok(all.into_iter().find(|(_, webhook)| webhook.id == self.id))
        });
        let (company_id, webhook) = search.await?.ok_or(Error::NotFound("webhook"))?;
        global.output.one(PrintedWebhook { company_id, webhook })
    }

    async fn delete(self, global: &GlobalArgs) -> Result<(), Failure> {
        let deletion = with_database(&global.database, async |db| {
            let company = webhooks::company_of(db, self.id).await?;
            let work = async || {
                webhooks::remove(db, company, self.id).await?;
                Ok(serde_json::json!({"id": self.id, "deleted": true}))
            };
            audited_action(company, self.id, "deleteWebhook").run(db, work, |_| Target::of(self.id)).await
        });
        global.output.one(deletion.await?)
    }

    async fn rotate(self, global: &GlobalArgs) -> Result<(), Failure> {
        let rotation = with_secrets(&global.database, async |db, keys| {
            let company = webhooks::company_of(db, self.id).await?;
            let work = async || {
                let secret = new_secret();
                let mut transaction = db.begin().await?;
                let webhook =
                    webhooks::rotate_secret(&mut transaction, keys, company, self.id, &secret, clock::now()).await?;
                transaction.commit().await?;
                Ok(WebhookWithSecret { webhook, secret: secret.0 })
            };
            audited_action(company, self.id, "rotateWebhookSecret").run(db, work, |_| Target::of(self.id)).await
        });
        global.output.one(rotation.await?)
    }

    async fn test(self, networks: &WebhookNetworkArgs, global: &GlobalArgs) -> Result<(), Failure> {
        let client = networks.client()?;
        let test = with_secrets(&global.database, async |db, keys| {
            let company = webhooks::company_of(db, self.id).await?;
            let work = async || send_test(db, keys, &client, (company, self.id)).await;
            audited_action(company, self.id, "testWebhook").run(db, work, |_| Target::of(self.id)).await
        });
        global.output.one(test.await?)
    }

    async fn list_deliveries(
        self,
        status: Option<DeliveryStatus>,
        limit: i64,
        global: &GlobalArgs,
    ) -> Result<(), Failure> {
        let filter = DeliveryFilter { status, ..DeliveryFilter::default() };
        let page = PageRequest { descending: true, ..PageRequest::first(limit) };
        let listing = read_database(&global.database, async |db| {
            let company = webhooks::company_of(db, self.id).await?;
            Ok(deliveries::list(db, company, self.id, &filter, page).await?)
        });
        let rows: Vec<Delivery> = listing.await?.rows.into_iter().map(Delivery::from).collect();
        let columns = ["id", "type", "status", "nextAttemptAt", "createdAt", "updatedAt"];
        global.output.many("deliveries", &columns, rows)
    }

    async fn replay(self, selection: ReplaySelection, global: &GlobalArgs) -> Result<(), Failure> {
        let replay = with_database(&global.database, async |db| {
            let company = webhooks::company_of(db, self.id).await?;
            let work = async || replay_deliveries(db, (company, self.id), selection).await;
            audited_action(company, self.id, "replayWebhook").run(db, work, |_| Target::of(self.id)).await
        });
        global.output.one(replay.await?)
    }
}

/// An action on a webhook, for the audit log of its company.
fn audited_action(company: CompanyId, id: WebhookId, action: &'static str) -> AuditedAction {
    AuditedAction::of_company(Some(company), action).on(id)
}

async fn send_test(
    db: &PgPool,
    keys: &Keyring,
    client: &Webhooks,
    (company, id): (CompanyId, WebhookId),
) -> Result<TestResult, Failure> {
    let endpoint = webhooks::endpoint(db, keys, company, id).await?.ok_or("no such webhook")?;
    let now = clock::now();
    let json = Bytes::from(test_event(id, now).to_string());
    let attempt = client.deliver(&endpoint.url, endpoint.secrets_at(now), &key::new_key("test_"), json).await;
    if attempt.error.is_none() {
        let mut transaction = db.begin().await?;
        webhooks::clear_failure(&mut transaction, &endpoint).await?;
        transaction.commit().await?;
    }
    Ok(attempt.into())
}

async fn replay_deliveries(
    db: &PgPool,
    (company, id): (CompanyId, WebhookId),
    selection: ReplaySelection,
) -> Result<ReplayResult, Failure> {
    if let Some(since) = selection.failed_since {
        let replayed = replays::replay_failed(db, company, id, since).await?;
        return Ok(ReplayResult { deliveries: i64::try_from(replayed).unwrap_or(i64::MAX) });
    }
    let mut transaction = db.begin().await?;
    let deliveries = match selection {
        ReplaySelection { after: Some(event), .. } => {
            replays::replay_after(&mut transaction, company, id, event).await?
        }
        ReplaySelection { delivery: Some(delivery), .. } => {
            if !replays::replay_one(&mut transaction, company, id, delivery).await? {
                return Err(format!("webhook {id} has no delivery {delivery}").into());
            }
            1
        }
        _ => return Err("one of --after, --delivery and --failed-since is required".into()),
    };
    transaction.commit().await?;
    Ok(ReplayResult { deliveries })
}

/// Validates a URL as the API does.
fn parse_url(text: &str) -> Result<String, String> {
    Ok(WebhookAddress::from_text(text)?.0)
}

fn parse_description(text: &str) -> Result<Description, String> {
    let name = Some(text.trim()).filter(|text| !text.is_empty()).map(Name::from_text);
    Ok(Description(name.transpose()?.map(|name| name.0)))
}

fn parse_kind(text: &str) -> Result<EventKind, String> {
    let unknown_kind = |()| format!("unknown event type `{text}`; docs/events.md lists all types");
    text.parse().map_err(unknown_kind)
}

fn parse_new_kind(text: &str) -> Result<NewKind, String> {
    if text.trim().is_empty() { Ok(NewKind(None)) } else { parse_kind(text).map(|kind| NewKind(Some(kind))) }
}

fn parse_status(text: &str) -> Result<DeliveryStatus, String> {
    text.parse().map_err(|()| "must be pending, delivered or failed".to_owned())
}

fn parse_time(text: &str) -> Result<DateTime<Utc>, String> {
    DateTime::<Utc>::from_text(text)
}
