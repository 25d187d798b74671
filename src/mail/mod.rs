//! Outgoing mail: letters to people, sent to an SMTP relay. The queue is bounded, each letter is attempted once, and
//! each attempt has a timeout: a person who misses a letter requests another one.

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

/// Timeout of a letter, from its turn to the relay's acceptance.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);

/// Maximum number of letters that wait or are being sent, some kilobytes each. An installation sends a few in an hour:
/// more means abuse, or a relay that hangs.
const QUEUE_MAX: u32 = 200;

/// How many of these people cause who have not signed in and ask for a link: the others are left to administrators.
const ASKED_MAX: usize = QUEUE_MAX as usize / 2;

/// Concurrent connections to the relay: one that hangs does not delay the others; and how many of these are for letters that
/// people cause who have not signed in.
const CONNECTIONS_MAX: usize = 4;
const ASKED_CONNECTIONS_MAX: usize = CONNECTIONS_MAX / 2;

/// The relay, and the sender's address.
#[derive(Clone, Debug)]
pub struct MailOptions {
    /// The relay.
    pub relay: Relay,
    /// The sender's address.
    pub from: Mailbox,
    /// Timeout of a letter.
    pub send_time_max: Duration,
}

impl MailOptions {
    /// With the default timeout.
    pub fn new(relay: Relay, from: Mailbox) -> Self {
        Self { relay, from, send_time_max: SEND_TIME_MAX }
    }
}

/// Why a letter was not sent.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The recipient's address is invalid, or the text cannot be encoded.
    #[error("could not compose the e-mail: {0}")]
    OutgoingEmail(String),
    /// The relay has not accepted it.
    #[error("the relay did not accept it: {0}")]
    Relay(#[from] lettre::transport::smtp::Error),
    /// The timeout has expired.
    #[error("the relay took longer than {} s", .0.as_secs_f32())]
    Time(Duration),
    /// The service is shutting down.
    #[error("the service is stopping")]
    Stopping,
}

/// A plain-text letter to one person.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct OutgoingEmail {
    pub to: String,
    pub subject: String,
    pub text: String,
}

/// A place in the queue; released when dropped.
pub struct Place {
    #[allow(dead_code)]
    place: OwnedSemaphorePermit,
    /// Of a letter that somebody causes who has not signed in: its place among these.
    asked: Option<OwnedSemaphorePermit>,
}

/// Sends letters. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    send_time_max: Duration,
    places: Arc<Semaphore>,
    asked_places: Arc<Semaphore>,
    connections: Arc<Semaphore>,
    asked_connections: Arc<Semaphore>,
    figures: Data<Metrics>,
}

impl Mailer {
    /// Creates the mailer without connecting.
    ///
    /// # Errors
    /// When TLS cannot verify the relay's name.
    pub fn new(options: &MailOptions, figures: Data<Metrics>) -> Result<Self, MailError> {
        tls::install();
        let MailOptions { relay, from, send_time_max } = options;
        let checked = || TlsParameters::new(relay.host.clone());
        let security = match relay.security {
            Security::Tls => Tls::Wrapper(checked()?),
            Security::StartTls => Tls::Required(checked()?),
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
            places: Arc::new(Semaphore::new(QUEUE_MAX as usize)),
            asked_places: Arc::new(Semaphore::new(ASKED_MAX)),
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            asked_connections: Arc::new(Semaphore::new(ASKED_CONNECTIONS_MAX)),
            figures,
        })
    }

    /// A place for a letter; `None` while the queue is full.
    pub fn place(&self) -> Option<Place> {
        let place = self.places.clone().try_acquire_owned().ok().map(|place| Place { place, asked: None });
        if place.is_none() {
            self.figures.mails.add_failed();
            tracing::warn!("e-mail dropped: {QUEUE_MAX} are already queued");
        }
        place
    }

    /// A place for a letter that somebody causes who has not signed in; `None` while their part of the queue is full.
    pub fn place_asked(&self) -> Option<Place> {
        let Ok(asked) = self.asked_places.clone().try_acquire_owned() else {
            self.figures.mails.add_failed();
            tracing::warn!("password e-mail dropped: {ASKED_MAX} are already queued");
            return None;
        };
        Some(Place { asked: Some(asked), ..self.place()? })
    }

    /// Sends a letter once it is its turn, within the timeout. The outcome is counted, and a failure is logged.
    ///
    /// # Errors
    /// When the relay has not accepted it.
    pub async fn send(&self, place: Place, letter: OutgoingEmail) -> Result<(), MailError> {
        let sent = self.hand_over(letter, place.asked.is_some()).await;
        match &sent {
            Ok(()) => self.figures.mails.add_sent(),
            Err(error) => {
                self.figures.mails.add_failed();
                // The recipient is left out, because logs must not contain personal data.
                tracing::warn!(%error, "could not send an e-mail");
            }
        }
        sent
    }

    async fn hand_over(&self, letter: OutgoingEmail, is_asked: bool) -> Result<(), MailError> {
        // First among those that were asked for, so that none of them waits where the others do.
        let _asked_turn = if is_asked {
            Some(self.asked_connections.acquire().await.map_err(|_| MailError::Stopping)?)
        } else {
            None
        };
        let _turn = self.connections.acquire().await.map_err(|_| MailError::Stopping)?;
        let message = self.written(letter)?;
        match timeout(self.send_time_max, self.transport.send(message)).await {
            Ok(sent) => Ok(sent.map(drop)?),
            Err(_) => Err(MailError::Time(self.send_time_max)),
        }
    }

    fn written(&self, letter: OutgoingEmail) -> Result<Message, MailError> {
        let wrong = |error: &dyn std::fmt::Display| MailError::OutgoingEmail(error.to_string());
        // Only the address: a person's name may contain anything.
        let to = Mailbox::new(None, letter.to.parse().map_err(|error| wrong(&error))?);
        let id = format!("<{}@{}>", uuid(), self.from.email.domain());
        let mut message = Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(letter.subject)
            .message_id(Some(id))
            .header(ContentType::TEXT_PLAIN)
            .body(letter.text)
            .map_err(|error| wrong(&error))?;
        // RFC 3834: prevents automatic replies.
        let automatic = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
        message.headers_mut().insert_raw(automatic);
        Ok(message)
    }

    /// Waits until the queue is empty, at most for the timeout of a letter.
    pub async fn settle(&self) {
        // If the timeout expires, `close` reports it.
        drop(timeout(self.send_time_max, self.places.acquire_many(QUEUE_MAX)).await);
    }

    /// Waits until the queue is empty, at most for the timeout of a letter; further letters are refused.
    pub async fn close(&self) {
        let all = timeout(self.send_time_max, self.places.acquire_many(QUEUE_MAX)).await;
        if all.is_err() {
            tracing::warn!(
                left = QUEUE_MAX as usize - self.places.available_permits(),
                "e-mails were dropped at shutdown"
            );
        }
        self.places.close();
        self.connections.close();
        self.asked_connections.close();
    }
}

/// 128 random bits, as text.
fn uuid() -> String {
    hex::encode(rand::random::<[u8; 16]>())
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;
    use tokio::net::TcpListener;

    use super::*;

    fn letter() -> OutgoingEmail {
        OutgoingEmail { to: "ana@example.com".to_owned(), subject: "A letter".to_owned(), text: "Hello".to_owned() }
    }

    #[actix_web::test]
    async fn letters_that_strangers_cause_take_a_part_of_the_queue_and_of_the_connections() {
        // It accepts nothing, so each letter keeps its connection.
        let relay = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("smtp://{}", relay.local_addr().expect("an address"));
        let from = "desk@acme.example".parse().expect("a sender");
        let options = MailOptions::new(url.parse().expect("a relay"), from);
        let mailer = Mailer::new(&options, Data::new(Metrics::new(Vec::new()))).expect("a mailer");

        let asked: Vec<Place> = std::iter::from_fn(|| mailer.place_asked()).collect();
        assert_eq!(asked.len(), ASKED_MAX);
        let own: Vec<Place> = std::iter::from_fn(|| mailer.place()).collect();
        assert_eq!(own.len(), QUEUE_MAX as usize - ASKED_MAX);

        let mut sent: Vec<_> = asked.into_iter().map(|place| Box::pin(mailer.send(place, letter()))).collect();
        assert!(sent.iter_mut().all(|sending| sending.as_mut().now_or_never().is_none()));
        assert_eq!(mailer.connections.available_permits(), CONNECTIONS_MAX - ASKED_CONNECTIONS_MAX);
        let place = own.into_iter().next().expect("a place");
        let mut own = pin!(mailer.send(place, letter()));
        assert!(own.as_mut().now_or_never().is_none());
        assert_eq!(mailer.connections.available_permits(), CONNECTIONS_MAX - ASKED_CONNECTIONS_MAX - 1);
        drop(sent);
        assert!(mailer.place_asked().is_some());
    }
}
