//! Checks what the service calls: the other processes of a cluster, providers, webhooks and the mail relay. Nothing is
//! sent to a contact or a person, and no URL is printed: it may contain a secret.

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
use crate::cli::failure::message_with_causes;
use crate::cli::findings::Finding;
use crate::mail::Mailer;
use crate::metrics::Metrics;
use crate::outbound::{Outbound, OutboundOptions, describe_failure};
use crate::providers::Graph;
use crate::service::Settings;

/// Timeout of a call.
const CALL_TIME_MAX: Duration = Duration::from_secs(10);

/// Maximum number of concurrent calls.
const CONCURRENT_CALLS_MAX: usize = 8;

/// Maximum number of processes, of channels, and of webhooks that are called; the others are only counted.
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
    let calls = lives.into_iter().map(async |life| {
        let reason = match timeout(CALL_TIME_MAX, TcpStream::connect(&life.address)).await {
            Ok(Ok(_)) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", CALL_TIME_MAX.as_secs()),
        };
        Some(format!("{} at {}: {reason}", life.node, life.address))
    });
    let next = "correct --cluster-address of that process, its name, or the firewall";
    Ok(vec![call_each("peers", calls, next).await])
}

/// Whether each channel's provider accepts its credentials. If the key file cannot be read, the finding is about it
/// instead: the credentials cannot be decrypted.
async fn check_channels(settings: &Settings, db: &PgPool) -> Result<Finding, Failure> {
    let keys = Keyring::at(&settings.key_file);
    if let Err(error) = keys.load() {
        let next = "correct the file, or run this command as the service's user";
        return Ok(Finding::problem("keys", message_with_causes(&error), next));
    }
    let graph = &Graph::new(&settings.provider, &settings.outbound)?;
    let mut rows = channels::all(db, None).await?;
    rows.iter_mut().for_each(|row| row.open(&keys));
    let accounts: Vec<Account> = rows.iter().filter_map(Account::of).collect();
    let calls = accounts.into_iter().map(async |account| {
        let error = graph.check_account(&account).await.err()?;
        Some(format!("channel {} of company {}: {error}", account.channel, account.company))
    });
    Ok(call_each("channels", calls, "enter the credentials again, or check --provider-url").await)
}

/// Whether each active webhook's host answers, with any status.
async fn check_webhooks(settings: &Settings, db: &PgPool) -> Result<Finding, Failure> {
    let options = &settings.webhooks;
    let outbound = OutboundOptions { allowed_networks: options.allowed_networks.clone(), call_time_max: CALL_TIME_MAX };
    let outbound = &Outbound::for_webhooks(&outbound, options.lookup.clone())?;
    let webhooks: Vec<_> = webhooks::all(db, None).await?.into_iter().filter(|(_, webhook)| webhook.active).collect();
    let calls = webhooks.into_iter().map(async |(company, webhook)| {
        let result = match outbound.request(Method::HEAD, &webhook.url) {
            Ok(request) => request.send().await.map(drop).map_err(describe_failure),
            Err(error) => Err(error),
        };
        result.err().map(|error| format!("webhook {} of company {company}: {error}", webhook.id))
    });
    let next = "the endpoint's owner has to make it reachable; for private networks see --webhook-allow-network";
    Ok(call_each("webhooks", calls, next).await)
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
        Err(error) => Finding::problem("mail relay", message_with_causes(&error), "correct --smtp-url, or the relay"),
    })
}

/// Makes the first [`CALLED_MAX`] calls, each of which returns its failure, and reports how many were answered.
async fn call_each(
    check: &'static str,
    calls: impl ExactSizeIterator<Item = impl Future<Output = Option<String>>>,
    next: &str,
) -> Finding {
    let count = calls.len();
    let called = count.min(CALLED_MAX);
    let failures: Vec<String> =
        iter(calls.take(CALLED_MAX)).buffered(CONCURRENT_CALLS_MAX).filter_map(std::future::ready).collect().await;
    let uncalled_text = if called < count { format!("; {} not called", count - called) } else { String::new() };
    if failures.is_empty() {
        let found = if count == 0 { "there are none".to_owned() } else { format!("{called} answered{uncalled_text}") };
        return Finding::ok(check, found);
    }
    let shown = failures.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("; ");
    Finding::problem(check, format!("{} of {called} failed: {shown}{uncalled_text}", failures.len()), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_calls_that_were_made_are_reported_as_answered() {
        let found_after = async |count: usize, failure: Option<&'static str>| {
            let calls = (0..count).map(|_| std::future::ready(failure.map(str::to_owned)));
            serde_json::to_value(call_each("channels", calls, "next").await).expect("JSON")["found"].clone()
        };
        assert_eq!(found_after(0, None).await, "there are none");
        assert_eq!(found_after(CALLED_MAX, None).await, "500 answered");
        assert_eq!(found_after(CALLED_MAX + 100, None).await, "500 answered; 100 not called");
        let found = found_after(CALLED_MAX + 1, Some("no")).await;
        assert_eq!(found, "500 of 500 failed: no; no; no; no; no; 1 not called");
    }
}
