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
pub use self::database::{DatabaseArgs, HEADING as DATABASE};
pub use self::sending::SendingArgs;
use self::values::{address, collector, mailbox};
pub use self::values::{network, public_url, webhooks};
use crate::mail::{MailOptions, Relay};
use crate::media::{self, StoreUrl};
use crate::panel::PanelOptions;
use crate::service::{EventOptions, Settings};
use crate::templates;
use crate::visitors::{UploadOptions, VisitorOptions};
use crate::web::admission::wrong_tokens::WRONG_TOKENS_PER_MINUTE;
use crate::web::connections::{CONNECTIONS_PER_ADDRESS, Limits};

/// The default limits of visitors.
const VISITORS: VisitorOptions = VisitorOptions::DEFAULT;

/// How the service is run.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// Address and port for HTTP; `:8080` listens on all IPv4 addresses
    #[arg(long, env = "HOTLINE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS:PORT",
        value_parser = address)]
    pub listen: SocketAddr,
    /// When a change is acknowledged: after the local journal is synced (`journal`), or after PostgreSQL commits it
    /// (`database`)
    #[arg(long, env = "HOTLINE_DURABILITY", default_value = "journal", value_name = "journal|database")]
    pub durability: Durability,
    /// Serve the API to every company, regardless of its plan
    #[arg(long, env = "HOTLINE_ON_PREMISE")]
    pub on_premise: bool,
    /// Maximum size of the journal in MiB; it grows while the database is unavailable
    #[arg(long, env = "HOTLINE_JOURNAL_MAX_MIB", default_value_t = 4096, value_name = "MIB",
        value_parser = clap::value_parser!(u64).range(1..=JOURNAL_MAX_MIB_MAX))]
    pub journal_max_mib: u64,
    /// Size of one segment of the journal, in KiB
    #[arg(long, env = "HOTLINE_JOURNAL_SEGMENT_KIB", default_value_t = 65_536, value_name = "KIB",
        value_parser = clap::value_parser!(u64).range(1..=JOURNAL_SEGMENT_KIB_MAX))]
    pub journal_segment_kib: u64,
    /// Seconds after which an idle actor is unloaded from memory
    #[arg(long, env = "HOTLINE_IDLE_AFTER_S", default_value_t = 300, value_name = "SECONDS")]
    pub idle_after_s: u64,
    /// Seconds of visitor absence after which a webchat session ends
    #[arg(long, env = "HOTLINE_SESSION_IDLE_AFTER_S", default_value_t = 1800, value_name = "SECONDS")]
    pub session_idle_after_s: u64,
    /// Hours after a contact's last message in which a phone channel accepts any message; afterwards only templates.
    /// 0 for providers without such a window
    #[arg(long, env = "HOTLINE_CONVERSATION_WINDOW_HOURS", default_value_t = 24, value_name = "HOURS",
        value_parser = clap::value_parser!(i64).range(0..=CONVERSATION_WINDOW_HOURS_MAX))]
    pub conversation_window_hours: i64,
    /// Address or range of a reverse proxy whose `X-Forwarded-For` header is trusted (repeatable or comma-separated)
    #[arg(long, env = "HOTLINE_TRUSTED_PROXIES", value_delimiter = ',', value_parser = network, value_name = "IP|CIDR")]
    pub trusted_proxies: Vec<IpNet>,
    /// Maximum open connections per client address, except trusted proxies; 0 for no limit
    #[arg(long, env = "HOTLINE_CONNECTIONS_PER_ADDRESS", default_value_t = CONNECTIONS_PER_ADDRESS,
        value_name = "CONNECTIONS")]
    pub connections_per_address: u32,
    /// Maximum requests per minute of a company without its own limit; 0 for no limit
    #[arg(long, env = "HOTLINE_RATE_PER_MINUTE", default_value_t = 6000, value_name = "REQUESTS")]
    pub rate_per_minute: u32,
    /// Maximum page size (1 to 1000)
    #[arg(long, env = "HOTLINE_PER_PAGE_MAX", default_value_t = 100, value_name = "RECORDS",
        value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub per_page_max: i64,
    /// Maximum webchat sessions opened per visitor address and minute; 0 for no limit
    #[arg(long, env = "HOTLINE_VISITOR_SESSIONS_PER_MINUTE", default_value_t = VISITORS.sessions_per_minute,
        value_name = "SESSIONS")]
    pub visitor_sessions_per_minute: u32,
    /// Maximum messages per visitor address and minute; 0 for no limit
    #[arg(long, env = "HOTLINE_VISITOR_MESSAGES_PER_MINUTE", default_value_t = VISITORS.messages_per_minute,
        value_name = "MESSAGES")]
    pub visitor_messages_per_minute: u32,
    /// Maximum other requests per visitor address and minute, including opened sockets; 0 for no limit
    #[arg(long, env = "HOTLINE_VISITOR_REQUESTS_PER_MINUTE", default_value_t = VISITORS.requests_per_minute,
        value_name = "REQUESTS")]
    pub visitor_requests_per_minute: u32,
    /// Maximum open sockets per visitor address; 0 for no limit
    #[arg(long, env = "HOTLINE_VISITOR_SOCKETS_PER_ADDRESS", default_value_t = VISITORS.sockets_per_address,
        value_name = "SOCKETS")]
    pub visitor_sockets_per_address: u32,
    /// Maximum data sent per visitor session and hour, in MiB; 0 for no limit
    #[arg(long, env = "HOTLINE_VISITOR_SESSION_MIB_PER_HOUR", default_value_t = VISITORS.uploads.session_mib_per_hour,
        value_name = "MIB", value_parser = clap::value_parser!(u32).range(..=UPLOAD_MIB_MAX))]
    pub visitor_session_mib_per_hour: u32,
    /// Maximum data sent per visitor address and hour, in MiB; 0 for no limit
    #[arg(long, env = "HOTLINE_VISITOR_ADDRESS_MIB_PER_HOUR", default_value_t = VISITORS.uploads.address_mib_per_hour,
        value_name = "MIB", value_parser = clap::value_parser!(u32).range(..=UPLOAD_MIB_MAX))]
    pub visitor_address_mib_per_hour: u32,
    /// Maximum data sent by all visitors of a company per hour, in MiB; 0 for no limit
    #[arg(long, env = "HOTLINE_VISITOR_COMPANY_MIB_PER_HOUR", default_value_t = VISITORS.uploads.company_mib_per_hour,
        value_name = "MIB", value_parser = clap::value_parser!(u32).range(..=UPLOAD_MIB_MAX))]
    pub visitor_company_mib_per_hour: u32,
    /// Maximum requests with an invalid token per address and minute; further ones are answered after a second, and
    /// their connection is closed. Requests with a valid token are not affected. 0 for no limit
    #[arg(long, env = "HOTLINE_WRONG_TOKENS_PER_MINUTE", default_value_t = WRONG_TOKENS_PER_MINUTE,
        value_name = "REQUESTS")]
    pub wrong_tokens_per_minute: u32,
    /// Disable events; `/events` and `/webhooks` then answer 404
    #[arg(long, env = "HOTLINE_NO_EVENTS")]
    pub no_events: bool,
    /// Days for which events are kept
    #[arg(long, env = "HOTLINE_EVENTS_KEPT_FOR_DAYS", default_value_t = EventOptions::default().retention_days,
        value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=EVENTS_KEPT_FOR_DAYS_MAX))]
    pub events_kept_for_days: u32,
    /// Address and port for Prometheus metrics; without it, metrics are disabled
    #[arg(long, env = "HOTLINE_METRICS_LISTEN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub metrics_listen: Option<SocketAddr>,
    /// Maximum size of a sent or received file, in bytes
    #[arg(long, env = "HOTLINE_MEDIA_BYTES_MAX", default_value_t = media::BYTES_MAX, value_name = "BYTES",
        value_parser = clap::value_parser!(u64).range(1..=MEDIA_BYTES_MAX))]
    pub media_bytes_max: u64,
    /// Minimum free disk space in MiB; below it, files are refused. 0 disables the check
    #[arg(long, env = "HOTLINE_FREE_MIB_MIN", default_value_t = media::FREE_BYTES_MIN >> 20, value_name = "MIB",
        value_parser = clap::value_parser!(u64).range(..=FREE_MIB_MAX))]
    pub free_mib_min: u64,
    /// Bucket for message files, with region, endpoint and credentials in the standard `AWS_…` variables; without it,
    /// files are stored in the data folder
    #[arg(long, env = "HOTLINE_MEDIA_STORE", value_name = "s3://BUCKET/FOLDER")]
    pub media_store: Option<StoreUrl>,
    /// Seconds for which a file URL is valid
    #[arg(long, env = "HOTLINE_MEDIA_LINK_VALID_FOR_S", default_value_t = media::LINK_VALID_FOR.as_secs(),
        value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MEDIA_LINK_VALID_FOR_S_MAX))]
    pub media_link_valid_for_s: u64,
    /// Public URL of the service (scheme, host and port); file URLs begin with it. Without it, they are paths
    #[arg(long, env = "HOTLINE_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<String>,
    /// Private network that webhook endpoints may be in; on this machine, also over http (repeatable or
    /// comma-separated)
    #[arg(long, env = "HOTLINE_WEBHOOK_ALLOW_NETWORK", value_delimiter = ',', value_parser = network,
        value_name = "IP|CIDR")]
    pub webhook_allow_network: Vec<IpNet>,
    /// SMTP server for invitations and password links; without it, administrators pass the links on. `smtp://` uses
    /// STARTTLS, `?tls=none` disables TLS. Requires --mail-from and --public-url
    #[arg(long, env = "HOTLINE_SMTP_URL", value_name = "smtps://USER:PASSWORD@HOST:PORT", hide_env_values = true)]
    pub smtp_url: Option<Relay>,
    /// Sender of e-mails
    #[arg(long, env = "HOTLINE_MAIL_FROM", value_name = "NAME <ADDRESS>", value_parser = mailbox)]
    pub mail_from: Option<Mailbox>,
    /// Require administrators of the installation to set up a second factor before they use the panel
    #[arg(long, env = "HOTLINE_REQUIRE_ADMIN_SECOND_FACTOR")]
    pub require_admin_second_factor: bool,
    /// How messages are handed over.
    #[command(flatten)]
    pub sending: SendingArgs,
    /// One of many processes.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Log format: `pretty` for people, `json` for machines. RUST_LOG sets the level
    #[arg(long, env = "HOTLINE_LOG", default_value = "pretty", value_name = "pretty|json")]
    pub log: crate::telemetry::LogFormat,
    /// URL of an OpenTelemetry collector (OTLP over HTTP) that receives request spans, for example
    /// http://localhost:4318. Requires a build with the feature `otlp`
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
        let from = self.mail_from.as_ref().ok_or("--smtp-url requires --mail-from, the sender of e-mails")?;
        // The `Host` of a request can be forged, and a letter must not contain a link to another host.
        if self.public_url.is_none() {
            return Err("--smtp-url requires --public-url, with which the links in e-mails begin".to_owned());
        }
        Ok(Some(MailOptions::new(relay.clone(), from.clone())))
    }

    /// Converts the options to settings.
    ///
    /// # Errors
    /// When the database URL is invalid, the journal's limits leave no room, or an option of mail is missing.
    pub fn settings(&self, database: &DatabaseArgs) -> Result<Settings, String> {
        let (max_mib, segment_kib) = (self.journal_max_mib, self.journal_segment_kib);
        if max_mib * 1024 < 2 * segment_kib {
            return Err(format!(
                "--journal-max-mib {max_mib} is less than two segments of {segment_kib} KiB (--journal-segment-kib); \
                 use at least {}, or smaller segments",
                (2 * segment_kib).div_ceil(1024)
            ));
        }
        let mail = self.mail()?;
        Ok(Settings {
            listen: self.listen,
            data_dir: database.data_dir.clone(),
            database: database.database()?,
            key_file: database.key_file(),
            pg_bin: database.pg_bin.clone(),
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
            events: EventOptions { enabled: !self.no_events, retention_days: self.events_kept_for_days },
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
                watched: vec![database.data_dir.clone()],
                link_valid_for: Duration::from_secs(self.media_link_valid_for_s),
                ..self.cluster.media(database)
            },
            cluster: self.cluster.settings(database, self.durability, self.media_store.as_ref())?,
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
