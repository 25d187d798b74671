//! What the service calls: the other processes of a cluster, providers, webhooks and the mail relay. Nothing is sent to
//! a contact or a person, and no URL is printed: one may contain a secret.

use std::time::Duration;

use actix_web::web::Data;
use futures_util::StreamExt;
use futures_util::stream::iter;
use hotline_actors::channels::Account;
use hotline_persistence::PgPool;
use hotline_persistence::cluster::lives;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::{channels, webhooks};
use reqwest::Method;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::cli::Failure;
use crate::cli::failure::chain;
use crate::cli::findings::Finding;
use crate::mail::Mailer;
use crate::metrics::Metrics;
use crate::outbound::{Outbound, OutboundOptions, describe_failure};
use crate::providers::Graph;
use crate::service::Settings;

/// Timeout of a call.
const CALL_TIME_MAX: Duration = Duration::from_secs(10);

/// Maximum number of concurrent calls.
const CALLS_MAX: usize = 8;

/// Maximum number of channels, and of webhooks, that are called; the others are only counted.
const CALLED_MAX: usize = 500;

/// Maximum number of failures that a finding describes.
const SHOWN_MAX: usize = 5;

pub async fn check(settings: &Settings, db: &PgPool) -> Result<Vec<Finding>, Failure> {
    let mut findings = check_peers(db).await?;
    findings.push(check_channels(settings, db).await?);
    findings.push(check_webhooks(settings, db).await?);
    Ok(findings)
}

/// Whether each process of a cluster can be reached at the address that it gives the others.
async fn check_peers(db: &PgPool) -> Result<Vec<Finding>, Failure> {
    let lives = lives::all(db).await?;
    if lives.is_empty() {
        return Ok(Vec::new());
    }
    let count = lives.len();
    let calls = lives.into_iter().map(async |life| {
        let reason = match timeout(CALL_TIME_MAX, TcpStream::connect(&life.address)).await {
            Ok(Ok(_)) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", CALL_TIME_MAX.as_secs()),
        };
        Some(format!("{} at {}: {reason}", life.node, life.address))
    });
    let next = "correct --cluster-address of that process, its name, or the firewall";
    Ok(vec![summary("peers", count, collect_failures(calls).await, next)])
}

/// Whether each channel's provider accepts its credentials.
async fn check_channels(settings: &Settings, db: &PgPool) -> Result<Finding, Failure> {
    let keys = Keyring::at(&settings.key_file);
    keys.load()?;
    let graph = &Graph::new(&settings.provider, &settings.outbound)?;
    let mut rows = channels::all(db, None).await?;
    rows.iter_mut().for_each(|row| row.open(&keys));
    let accounts: Vec<Account> = rows.iter().filter_map(Account::of).collect();
    let count = accounts.len();
    let calls = accounts.into_iter().take(CALLED_MAX).map(async |account| {
        let error = graph.check_account(&account).await.err()?;
        Some(format!("channel {} of company {}: {error}", account.channel, account.company))
    });
    Ok(summary(
        "channels",
        count,
        collect_failures(calls).await,
        "enter the credentials again, or check --provider-url",
    ))
}

/// Whether each active webhook's host answers, with any status.
async fn check_webhooks(settings: &Settings, db: &PgPool) -> Result<Finding, Failure> {
    let options = &settings.webhooks;
    let outbound = OutboundOptions { allowed_networks: options.allowed_networks.clone(), call_time_max: CALL_TIME_MAX };
    let outbound = &Outbound::of_webhooks(&outbound, options.lookup.clone())?;
    let webhooks: Vec<_> = webhooks::all(db, None).await?.into_iter().filter(|(_, webhook)| webhook.active).collect();
    let count = webhooks.len();
    let calls = webhooks.into_iter().take(CALLED_MAX).map(async |(company, webhook)| {
        let result = match outbound.request(Method::HEAD, &webhook.url) {
            Ok(request) => request.send().await.map(drop).map_err(describe_failure),
            Err(error) => Err(error),
        };
        result.err().map(|error| format!("webhook {} of company {company}: {error}", webhook.id))
    });
    let next = "the endpoint's owner has to make it reachable; for private networks see --webhook-allow-network";
    Ok(summary("webhooks", count, collect_failures(calls).await, next))
}

/// Whether the mail relay accepts a connection and the login.
pub async fn check_mail_relay(settings: &Settings) -> Option<Finding> {
    let options = settings.panel.mail.as_ref()?;
    let result = match Mailer::new(options, Data::new(Metrics::new(Vec::new()))) {
        Ok(mailer) => mailer.check().await,
        Err(error) => Err(error),
    };
    Some(match result {
        Ok(()) => Finding::ok("mail relay", format!("{:?} accepts the login", options.relay)),
        Err(error) => Finding::problem("mail relay", chain(&error), "correct --smtp-url, or the relay"),
    })
}

/// Makes the calls and returns the failures.
async fn collect_failures(calls: impl Iterator<Item = impl Future<Output = Option<String>>>) -> Vec<String> {
    iter(calls).buffered(CALLS_MAX).filter_map(std::future::ready).collect().await
}

fn summary(check: &'static str, count: usize, failures: Vec<String>, next: &str) -> Finding {
    if failures.is_empty() {
        let found = if count == 0 { "there are none".to_owned() } else { format!("{count} answered") };
        return Finding::ok(check, found);
    }
    let shown = failures.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("; ");
    Finding::problem(check, format!("{} of {count} failed: {shown}", failures.len()), next)
}
