//! Options of the command line; each can also be set by an environment variable.

mod cluster;
mod database;
mod sending;
mod values;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use hotline_actors::EngineOptions;
use hotline_persistence::{Durability, journal};
use ipnet::IpNet;
use lettre::message::Mailbox;
use url::Url;

pub use self::cluster::ClusterArgs;
pub use self::database::DatabaseArgs;
pub use self::sending::SendingArgs;
use self::values::{address, collector, mailbox};
pub use self::values::{network, public_url, webhooks};
use crate::mail::{MailOptions, Relay};
use crate::media::{self, StoreUrl};
use crate::panel::PanelOptions;
use crate::service::{EventOptions, Settings};
use crate::templates;
use crate::visitors::{UploadOptions, VisitorOptions};
use crate::web::wire::{CONNECTIONS_PER_ADDRESS, Limits};
use crate::web::wrong_tokens::WRONG_TOKENS_PER_MINUTE;

/// The default limits of visitors.
const VISITORS: VisitorOptions = VisitorOptions::DEFAULT;

/// How the service is run.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// Which database.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Address and port of HTTP; `:8080` is every address of the machine
    #[arg(long, env = "HOTLINE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS:PORT",
        value_parser = address)]
    pub listen: SocketAddr,
    /// When a change counts as kept: once the local journal has synced it (journal), once PostgreSQL has committed
    /// it (database), or at once (memory, for benchmarks only)
    #[arg(long, env = "HOTLINE_DURABILITY", default_value = "journal", value_name = "journal|database|memory")]
    pub durability: Durability,
    /// Serve companies whatever their plan says
    #[arg(long, env = "HOTLINE_ON_PREMISE", value_name = "true|false", action = clap::ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = clap::builder::BoolishValueParser::new())]
    pub on_premise: bool,
    /// Most the journal may grow to while the database is away, in MiB
    #[arg(long, env = "HOTLINE_JOURNAL_MAX_MIB", default_value_t = 4096, value_name = "MIB",
        value_parser = clap::value_parser!(u64).range(1..=JOURNAL_MAX_MIB_MAX))]
    pub journal_max_mib: u64,
    /// Size of one segment of the journal, in KiB
    #[arg(long, env = "HOTLINE_JOURNAL_SEGMENT_KIB", default_value_t = 65_536, value_name = "KIB",
        value_parser = clap::value_parser!(u64).range(1..=JOURNAL_SEGMENT_KIB_MAX))]
    pub journal_segment_kib: u64,
    /// Seconds an actor without work stays in memory
    #[arg(long, env = "HOTLINE_IDLE_AFTER_S", default_value_t = 300, value_name = "SECONDS")]
    pub idle_after_s: u64,
    /// Seconds without its visitor after which a webchat session ends
    #[arg(long, env = "HOTLINE_SESSION_IDLE_AFTER_S", default_value_t = 1800, value_name = "SECONDS")]
    pub session_idle_after_s: u64,
    /// Hours after a contact's last message in which a phone channel takes more than templates; 0: always, for a
    /// provider that has no such window
    #[arg(long, env = "HOTLINE_CONVERSATION_WINDOW_HOURS", default_value_t = 24, value_name = "HOURS",
        value_parser = clap::value_parser!(i64).range(0..=CONVERSATION_WINDOW_HOURS_MAX))]
    pub conversation_window_hours: i64,
    /// A proxy in front of Hotline, an address or a range: its `X-Forwarded-For` names the caller (repeatable, or
    /// separated by commas)
    #[arg(long, env = "HOTLINE_TRUSTED_PROXIES", value_delimiter = ',', value_parser = network, value_name = "IP|CIDR")]
    pub trusted_proxies: Vec<IpNet>,
    /// Connections that one address may have open, those of trusted proxies aside; 0: as many as it likes
    #[arg(long, env = "HOTLINE_CONNECTIONS_PER_ADDRESS", default_value_t = CONNECTIONS_PER_ADDRESS,
        value_name = "CONNECTIONS")]
    pub connections_per_address: u32,
    /// Requests a minute of a company that has no limit of its own; 0: as many as it likes
    #[arg(long, env = "HOTLINE_RATE_PER_MINUTE", default_value_t = 6000, value_name = "REQUESTS")]
    pub rate_per_minute: u32,
    /// Most records of a page, from 1 to 1000
    #[arg(long, env = "HOTLINE_PER_PAGE_MAX", default_value_t = 100, value_name = "RECORDS",
        value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub per_page_max: i64,
    /// Webchat sessions that visitors of one address may open in a minute; 0: as many as they like
    #[arg(long, env = "HOTLINE_VISITOR_SESSIONS_PER_MINUTE", default_value_t = VISITORS.sessions_per_minute,
        value_name = "SESSIONS")]
    pub visitor_sessions_per_minute: u32,
    /// Messages that visitors of one address may send in a minute; 0: as many as they like
    #[arg(long, env = "HOTLINE_VISITOR_MESSAGES_PER_MINUTE", default_value_t = VISITORS.messages_per_minute,
        value_name = "MESSAGES")]
    pub visitor_messages_per_minute: u32,
    /// Other requests of one address's visitors in a minute, sockets they open included; 0: as many as they like
    #[arg(long, env = "HOTLINE_VISITOR_REQUESTS_PER_MINUTE", default_value_t = VISITORS.requests_per_minute,
        value_name = "REQUESTS")]
    pub visitor_requests_per_minute: u32,
    /// Sockets that visitors of one address may have open; 0: as many as they like
    #[arg(long, env = "HOTLINE_VISITOR_SOCKETS_PER_ADDRESS", default_value_t = VISITORS.sockets_per_address,
        value_name = "SOCKETS")]
    pub visitor_sockets_per_address: u32,
    /// MiB that a visitor's session may send in an hour; 0: as many as it likes
    #[arg(long, env = "HOTLINE_VISITOR_SESSION_MIB_PER_HOUR", default_value_t = VISITORS.uploads.session_mib_per_hour,
        value_name = "MIB", value_parser = clap::value_parser!(u32).range(..=UPLOAD_MIB_MAX))]
    pub visitor_session_mib_per_hour: u32,
    /// MiB that visitors of one address may send in an hour; 0: as many as they like
    #[arg(long, env = "HOTLINE_VISITOR_ADDRESS_MIB_PER_HOUR", default_value_t = VISITORS.uploads.address_mib_per_hour,
        value_name = "MIB", value_parser = clap::value_parser!(u32).range(..=UPLOAD_MIB_MAX))]
    pub visitor_address_mib_per_hour: u32,
    /// MiB that all visitors of one company may send in an hour; 0: as many as they like
    #[arg(long, env = "HOTLINE_VISITOR_COMPANY_MIB_PER_HOUR", default_value_t = VISITORS.uploads.company_mib_per_hour,
        value_name = "MIB", value_parser = clap::value_parser!(u32).range(..=UPLOAD_MIB_MAX))]
    pub visitor_company_mib_per_hour: u32,
    /// Requests with a wrong token that are answered at once, per address and minute; further ones wait a second for the same
    /// answer, and their connection is closed. Those with a valid token pass. 0: no limit
    #[arg(long, env = "HOTLINE_WRONG_TOKENS_PER_MINUTE", default_value_t = WRONG_TOKENS_PER_MINUTE,
        value_name = "REQUESTS")]
    pub wrong_tokens_per_minute: u32,
    /// Keep no events: nothing is told, and `/events` is not there
    #[arg(long, env = "HOTLINE_NO_EVENTS", value_name = "true|false", action = clap::ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = clap::builder::BoolishValueParser::new())]
    pub no_events: bool,
    /// Days that events are kept
    #[arg(long, env = "HOTLINE_EVENTS_KEPT_FOR_DAYS", default_value_t = EventOptions::default().kept_for_days,
        value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=EVENTS_KEPT_FOR_DAYS_MAX))]
    pub events_kept_for_days: u32,
    /// Address and port of the figures; without it there are none
    #[arg(long, env = "HOTLINE_METRICS_LISTEN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub metrics_listen: Option<SocketAddr>,
    /// Bytes of a file that is sent or received, at most
    #[arg(long, env = "HOTLINE_MEDIA_BYTES_MAX", default_value_t = media::BYTES_MAX, value_name = "BYTES",
        value_parser = clap::value_parser!(u64).range(1..=MEDIA_BYTES_MAX))]
    pub media_bytes_max: u64,
    /// MiB that stay free on the disks of files and journal: while there is less, files are refused. 0: none
    #[arg(long, env = "HOTLINE_FREE_MIB_MIN", default_value_t = media::FREE_BYTES_MIN >> 20, value_name = "MIB",
        value_parser = clap::value_parser!(u64).range(..=FREE_MIB_MAX))]
    pub free_mib_min: u64,
    /// A bucket for the files of messages, with the region, endpoint and credentials in the usual `AWS_…` variables;
    /// without it they are kept in the data folder
    #[arg(long, env = "HOTLINE_MEDIA_STORE", value_name = "s3://BUCKET/FOLDER")]
    pub media_store: Option<StoreUrl>,
    /// Seconds the address of a file is good
    #[arg(long, env = "HOTLINE_MEDIA_LINK_VALID_FOR_S", default_value_t = media::LINK_VALID_FOR.as_secs(),
        value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MEDIA_LINK_VALID_FOR_S_MAX))]
    pub media_link_valid_for_s: u64,
    /// Scheme, host and port under which others reach the service: the addresses of files begin with it; without it
    /// they are paths
    #[arg(long, env = "HOTLINE_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<String>,
    /// A network that webhooks may be in although it is not public; of this machine's own also over http (repeatable, or
    /// separated by commas)
    #[arg(long, env = "HOTLINE_WEBHOOK_ALLOW_NETWORK", value_delimiter = ',', value_parser = network,
        value_name = "IP|CIDR")]
    pub webhook_allow_network: Vec<IpNet>,
    /// A relay that takes mail: invitations and links to choose a password are sent to people instead of being passed on.
    /// `smtp://` is STARTTLS, `?tls=none` no TLS. Needs --mail-from and --public-url
    #[arg(long, env = "HOTLINE_SMTP_URL", value_name = "smtps://USER:PASSWORD@HOST:PORT", hide_env_values = true)]
    pub smtp_url: Option<Relay>,
    /// From whom mail comes
    #[arg(long, env = "HOTLINE_MAIL_FROM", value_name = "NAME <ADDRESS>", value_parser = mailbox)]
    pub mail_from: Option<Mailbox>,
    /// Let administrators of the installation do nothing in the panel before they have a second factor
    #[arg(long, env = "HOTLINE_REQUIRE_ADMIN_SECOND_FACTOR", value_name = "true|false", action = clap::ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = clap::builder::BoolishValueParser::new())]
    pub require_admin_second_factor: bool,
    /// How messages are handed over.
    #[command(flatten)]
    pub sending: SendingArgs,
    /// One of many processes.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Logs: `pretty` for people, `json` for machines. What is logged: RUST_LOG
    #[arg(long, env = "HOTLINE_LOG", default_value = "pretty", value_name = "pretty|json")]
    pub log: crate::telemetry::LogFormat,
    /// Address of an OpenTelemetry collector (OTLP over HTTP), as http://localhost:4318: requests' spans are exported to
    /// it; without it none are. Needs a build with the feature `otlp`
    #[arg(long, env = "HOTLINE_OTLP_ENDPOINT", value_name = "URL", value_parser = collector)]
    pub otlp_endpoint: Option<Url>,
}

/// Upper bound of the journal in MiB: 16 TiB. A larger value is an error.
const JOURNAL_MAX_MIB_MAX: u64 = 16 * 1024 * 1024;

/// Upper bound of a segment in KiB: 4 GiB. A larger value is an error.
const JOURNAL_SEGMENT_KIB_MAX: u64 = 4 * 1024 * 1024;

/// Upper bound of the conversation window: the hours of a leap year.
const CONVERSATION_WINDOW_HOURS_MAX: i64 = 366 * 24;

/// Upper bound of the days that events are kept: each day is a partition that every read must check.
const EVENTS_KEPT_FOR_DAYS_MAX: i64 = 366;

impl ServeArgs {
    /// The settings of mail, if it is configured.
    fn mail(&self) -> Result<Option<MailOptions>, String> {
        let Some(relay) = &self.smtp_url else { return Ok(None) };
        let from = self.mail_from.as_ref().ok_or("--smtp-url needs --mail-from: somebody has to be the sender")?;
        // The `Host` of a request can be forged, and a letter must not contain a link to another host.
        if self.public_url.is_none() {
            return Err("--smtp-url needs --public-url: the links in letters begin with it".to_owned());
        }
        Ok(Some(MailOptions::new(relay.clone(), from.clone())))
    }

    /// Converts the options to settings.
    ///
    /// # Errors
    /// When the database URL is invalid, the journal's limits leave no room, or an option of mail is missing.
    pub fn settings(&self) -> Result<Settings, String> {
        let (max_mib, segment_kib) = (self.journal_max_mib, self.journal_segment_kib);
        if max_mib * 1024 < 2 * segment_kib {
            return Err(format!(
                "--journal-max-mib {max_mib} is less than two segments of {segment_kib} KiB (--journal-segment-kib): \
                 give at least {}, or smaller segments",
                (2 * segment_kib).div_ceil(1024)
            ));
        }
        let mail = self.mail()?;
        Ok(Settings {
            listen: self.listen,
            data_dir: self.database.data_dir.clone(),
            database: self.database.database()?,
            key_file: self.database.key_file(),
            pg_bin: self.database.pg_bin.clone(),
            durability: self.durability,
            on_premise: self.on_premise,
            journal: journal::Options {
                max_bytes: self.journal_max_mib * 1024 * 1024,
                segment_bytes: self.journal_segment_kib * 1024,
                ..journal::Options::default()
            },
            engine: EngineOptions {
                idle_after: Duration::from_secs(self.idle_after_s),
                session_idle_after: Duration::from_secs(self.session_idle_after_s),
                conversation_window: Some(self.conversation_window_hours)
                    .filter(|hours| *hours > 0)
                    .map(chrono::TimeDelta::hours),
                sending: self.sending.sending(),
                ..EngineOptions::default()
            },
            workers: std::thread::available_parallelism().map_or(2, usize::from),
            trusted_proxies: self.trusted_proxies.clone(),
            limits: Limits { per_address: self.connections_per_address, ..Limits::default() },
            rate_per_minute: self.rate_per_minute,
            per_page_max: self.per_page_max,
            visitors: VisitorOptions {
                sessions_per_minute: self.visitor_sessions_per_minute,
                messages_per_minute: self.visitor_messages_per_minute,
                requests_per_minute: self.visitor_requests_per_minute,
                sockets_per_address: self.visitor_sockets_per_address,
                uploads: UploadOptions {
                    session_mib_per_hour: self.visitor_session_mib_per_hour,
                    address_mib_per_hour: self.visitor_address_mib_per_hour,
                    company_mib_per_hour: self.visitor_company_mib_per_hour,
                },
                ..VISITORS
            },
            wrong_tokens_per_minute: self.wrong_tokens_per_minute,
            events: EventOptions { are_kept: !self.no_events, kept_for_days: self.events_kept_for_days },
            metrics_listen: self.metrics_listen,
            provider: self.sending.provider(),
            outbound: self.sending.outbound(),
            webhooks: webhooks(&self.webhook_allow_network),
            panel: PanelOptions { mail, admins_need_factor: self.require_admin_second_factor },
            templates: templates::Options::default(),
            media: media::Options {
                store: self.media_store.clone(),
                bytes_max: self.media_bytes_max,
                public_url: self.public_url.clone(),
                free_bytes_min: self.free_mib_min << 20,
                watched: vec![self.database.data_dir.clone()],
                link_valid_for: Duration::from_secs(self.media_link_valid_for_s),
                ..self.cluster.media(&self.database)
            },
            cluster: self.cluster.settings(&self.database, self.durability, self.media_store.as_ref())?,
        })
    }
}

/// Upper bound of a rate in MiB per hour: 4 TiB, counted in KiB.
const UPLOAD_MIB_MAX: i64 = (u32::MAX / 1024) as i64;

/// Upper bound in MiB: an exbibyte.
const FREE_MIB_MAX: u64 = 1 << 40;

/// Upper bound of a file's size: 4 GiB.
const MEDIA_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// Upper bound of a URL's validity: a year.
const MEDIA_LINK_VALID_FOR_S_MAX: u64 = 365 * 24 * 3600;
