//! Outgoing mail: e-mails to people, sent to an SMTP relay. The queue is bounded, each e-mail is attempted once, and
//! each attempt has a timeout: a person who misses an e-mail can request another one.

mod relay;

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

pub use self::relay::Relay;
use self::relay::Security;
use crate::metrics::Metrics;
use crate::tls;

/// Timeout of an e-mail, from the connection to the relay's acceptance.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);

/// Maximum number of e-mails that wait or are being sent, a few kilobytes each. An installation sends a few in an hour:
/// more means abuse, or a relay that hangs.
const QUEUE_MAX: u32 = 200;

/// Maximum number of these that were requested without signing in (password links). The rest is for administrators.
const UNAUTHENTICATED_MAX: usize = QUEUE_MAX as usize / 2;

/// Maximum connections to the relay: several, so that one e-mail that hangs does not delay the others; and how many of
/// them may be used for e-mails that were requested without signing in.
const CONNECTIONS_MAX: usize = 4;
const UNAUTHENTICATED_CONNECTIONS_MAX: usize = CONNECTIONS_MAX / 2;

/// The relay, and the sender's address.
#[derive(Clone, Debug)]
pub struct MailOptions {
    /// The relay.
    pub relay: Relay,
    /// The sender's address.
    pub from: Mailbox,
    /// Timeout of an e-mail.
    pub send_time_max: Duration,
}

impl MailOptions {
    /// With the default timeout.
    pub fn new(relay: Relay, from: Mailbox) -> Self {
        Self { relay, from, send_time_max: SEND_TIME_MAX }
    }
}

/// Why an e-mail was not sent.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The recipient's address is invalid, or the text cannot be encoded.
    #[error("could not compose the e-mail: {0}")]
    Message(String),
    /// The relay has not accepted it.
    #[error("the relay did not accept it: {0}")]
    Relay(#[from] lettre::transport::smtp::Error),
    /// The relay has closed the connection.
    #[error("the relay closed the connection")]
    Disconnected,
    /// The timeout has expired.
    #[error("the relay took longer than {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The service is shutting down.
    #[error("the service is stopping")]
    Stopping,
}

impl MailError {
    /// The error without texts that may contain the recipient's address.
    fn without_recipient(&self) -> String {
        match self {
            Self::Message(_) => "could not compose the e-mail".to_owned(),
            Self::Relay(error) => match error.status() {
                Some(code) => format!("the relay did not accept it: {code}"),
                None if error.is_timeout() => "the relay did not answer in time".to_owned(),
                None if error.is_tls() => format!("no TLS with the relay: {error}"),
                None if error.is_response() => "the relay's answer could not be read".to_owned(),
                None => format!("the relay could not be used: {error}"),
            },
            Self::Disconnected | Self::TimedOut(_) | Self::Stopping => self.to_string(),
        }
    }
}

/// A plain-text e-mail to one person.
#[derive(Clone, Debug)]
pub struct OutgoingEmail {
    pub to: String,
    pub subject: String,
    pub text: String,
}

/// A reservation in the queue; released when dropped.
pub struct QueuePermit {
    #[allow(dead_code)]
    permit: OwnedSemaphorePermit,
    /// The permit among the e-mails that are requested without signing in.
    unauthenticated: Option<OwnedSemaphorePermit>,
}

/// Sends e-mails. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    send_time_max: Duration,
    queue: Arc<Semaphore>,
    unauthenticated_queue: Arc<Semaphore>,
    connections: Arc<Semaphore>,
    unauthenticated_connections: Arc<Semaphore>,
    metrics: Data<Metrics>,
}

impl Mailer {
    /// Creates the mailer without connecting.
    ///
    /// # Errors
    /// When TLS cannot verify the relay's name.
    pub fn new(options: &MailOptions, metrics: Data<Metrics>) -> Result<Self, MailError> {
        tls::install();
        let MailOptions { relay, from, send_time_max } = options;
        let tls_parameters = || TlsParameters::new(relay.host.clone());
        let security = match relay.security {
            Security::Tls => Tls::Wrapper(tls_parameters()?),
            Security::StartTls => Tls::Required(tls_parameters()?),
            Security::None => Tls::None,
        };
        let transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&relay.host)
            .port(relay.port)
            .tls(security)
            .hello_name(ClientId::Domain(from.email.domain().to_owned()))
            .timeout(Some(*send_time_max));
        let transport = match relay.login.clone() {
            Some((user, password)) => transport.credentials(Credentials::new(user, password)),
            None => transport,
        };
        Ok(Self {
            transport: transport.build(),
            from: from.clone(),
            send_time_max: *send_time_max,
            queue: Arc::new(Semaphore::new(QUEUE_MAX as usize)),
            unauthenticated_queue: Arc::new(Semaphore::new(UNAUTHENTICATED_MAX)),
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            unauthenticated_connections: Arc::new(Semaphore::new(UNAUTHENTICATED_CONNECTIONS_MAX)),
            metrics,
        })
    }

    /// Connects to the relay and signs in, without sending anything.
    ///
    /// # Errors
    /// When the relay does not accept it.
    pub async fn check(&self) -> Result<(), MailError> {
        match timeout(self.send_time_max, self.transport.test_connection()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(MailError::Disconnected),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(MailError::TimedOut(self.send_time_max)),
        }
    }

    /// A reservation for an e-mail; `None` while the queue is full.
    pub fn reserve(&self) -> Option<QueuePermit> {
        let permit =
            self.queue.clone().try_acquire_owned().ok().map(|permit| QueuePermit { permit, unauthenticated: None });
        if permit.is_none() {
            self.metrics.mails.add_failed();
            tracing::warn!("e-mail dropped: {QUEUE_MAX} are already queued");
        }
        permit
    }

    /// A reservation for an e-mail that is requested without signing in; `None` while that part of the queue is full.
    pub fn reserve_unauthenticated(&self) -> Option<QueuePermit> {
        let Ok(unauthenticated) = self.unauthenticated_queue.clone().try_acquire_owned() else {
            self.metrics.mails.add_failed();
            tracing::warn!("password e-mail dropped: {UNAUTHENTICATED_MAX} are already queued");
            return None;
        };
        Some(QueuePermit { unauthenticated: Some(unauthenticated), ..self.reserve()? })
    }

    /// Sends an e-mail once a connection is free; the timeout begins then. The outcome is counted, and a failure is
    /// logged. The reservation can be used for further e-mails, one at a time.
    ///
    /// # Errors
    /// When it cannot be composed, the relay has not accepted it, or the service is stopping.
    pub async fn send(&self, permit: &QueuePermit, email: OutgoingEmail) -> Result<(), MailError> {
        let result = self.send_to_relay(email, permit.unauthenticated.is_some()).await;
        match &result {
            Ok(()) => self.metrics.mails.add_sent(),
            Err(error) => {
                self.metrics.mails.add_failed();
                // Logs must not contain personal data: neither the recipient, nor a relay's reply, which may quote it.
                tracing::warn!(error = error.without_recipient(), "could not send an e-mail");
            }
        }
        result
    }

    async fn send_to_relay(&self, email: OutgoingEmail, is_unauthenticated: bool) -> Result<(), MailError> {
        // Acquired first, so that these e-mails occupy no connection while they wait for each other.
        let _unauthenticated_permit = if is_unauthenticated {
            Some(self.unauthenticated_connections.acquire().await.map_err(|_| MailError::Stopping)?)
        } else {
            None
        };
        let _permit = self.connections.acquire().await.map_err(|_| MailError::Stopping)?;
        let message = self.build_message(email)?;
        match timeout(self.send_time_max, self.transport.send(message)).await {
            Ok(result) => Ok(result.map(drop)?),
            Err(_) => Err(MailError::TimedOut(self.send_time_max)),
        }
    }

    fn build_message(&self, email: OutgoingEmail) -> Result<Message, MailError> {
        let compose_error = |error: &dyn std::fmt::Display| MailError::Message(error.to_string());
        // Only the address: a person's name may contain anything.
        let to = Mailbox::new(None, email.to.parse().map_err(|error| compose_error(&error))?);
        let id = format!("<{}@{}>", random_id(), self.from.email.domain());
        let mut message = Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(email.subject)
            .message_id(Some(id))
            .header(ContentType::TEXT_PLAIN)
            .body(email.text)
            .map_err(|error| compose_error(&error))?;
        // RFC 3834: prevents automatic replies.
        let automatic = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
        message.headers_mut().insert_raw(automatic);
        Ok(message)
    }

    /// Waits until the queue is empty, at most for the timeout of an e-mail.
    pub async fn settle(&self) {
        // If the timeout expires, `close` reports it.
        drop(timeout(self.send_time_max, self.queue.acquire_many(QUEUE_MAX)).await);
    }

    /// Waits until the queue is empty, at most for the timeout of an e-mail; e-mails after that are refused.
    pub async fn close(&self) {
        let all_permits = timeout(self.send_time_max, self.queue.acquire_many(QUEUE_MAX)).await;
        if all_permits.is_err() {
            tracing::warn!(
                left = QUEUE_MAX as usize - self.queue.available_permits(),
                "e-mails were dropped at shutdown"
            );
        }
        self.queue.close();
        self.connections.close();
        self.unauthenticated_connections.close();
    }
}

/// 128 random bits, as text.
fn random_id() -> String {
    hex::encode(rand::random::<[u8; 16]>())
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;
    use tokio::net::TcpListener;

    use super::*;

    fn email() -> OutgoingEmail {
        OutgoingEmail { to: "ana@example.com".to_owned(), subject: "Hello".to_owned(), text: "Hello".to_owned() }
    }

    #[actix_web::test]
    async fn unauthenticated_emails_are_limited_to_a_part_of_the_queue_and_of_the_connections() {
        // This relay never responds, so each e-mail occupies its connection.
        let relay = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("smtp://{}", relay.local_addr().expect("an address"));
        let from = "desk@acme.example".parse().expect("a sender");
        let options = MailOptions::new(url.parse().expect("a relay"), from);
        let mailer = Mailer::new(&options, Data::new(Metrics::new(Vec::new()))).expect("a mailer");

        let unauthenticated: Vec<QueuePermit> = std::iter::from_fn(|| mailer.reserve_unauthenticated()).collect();
        assert_eq!(unauthenticated.len(), UNAUTHENTICATED_MAX);
        let authenticated: Vec<QueuePermit> = std::iter::from_fn(|| mailer.reserve()).collect();
        assert_eq!(authenticated.len(), QUEUE_MAX as usize - UNAUTHENTICATED_MAX);

        let mut sends: Vec<_> = unauthenticated.iter().map(|permit| Box::pin(mailer.send(permit, email()))).collect();
        assert!(sends.iter_mut().all(|sending| sending.as_mut().now_or_never().is_none()));
        assert_eq!(mailer.connections.available_permits(), CONNECTIONS_MAX - UNAUTHENTICATED_CONNECTIONS_MAX);
        let permit = authenticated.into_iter().next().expect("a permit");
        let mut authenticated = pin!(mailer.send(&permit, email()));
        assert!(authenticated.as_mut().now_or_never().is_none());
        assert_eq!(mailer.connections.available_permits(), CONNECTIONS_MAX - UNAUTHENTICATED_CONNECTIONS_MAX - 1);
        drop(sends);
        drop(unauthenticated);
        assert!(mailer.reserve_unauthenticated().is_some());
    }
}
