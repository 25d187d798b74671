//! Options of the command line; each can also be set by an environment variable.

mod api;
mod cluster;
mod database;
mod durability;
mod events;
mod files;
mod logs;
mod network;
mod panel;
mod sending;
mod start;
mod units;
mod values;
mod webchat;

use clap::Args;
use hotline_actors::EngineOptions;

pub use self::database::{DatabaseArgs, HEADING as DATABASE};
pub use self::files::MediaPlaceArgs;
pub use self::start::MigrationArgs;
pub use self::units::{DAY, HOUR, MILLISECOND, Size, days, durations};
pub use self::values::{network, public_url, webhook_options};
use crate::service::Settings;
use crate::templates;
use crate::web::connections::Limits;

/// The options of the service, in the groups of `--help`.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// Listeners and addresses.
    #[command(flatten, next_help_heading = "Network")]
    pub network: network::NetworkArgs,
    /// The journal and memory.
    #[command(flatten, next_help_heading = "Durability")]
    pub durability: durability::DurabilityArgs,
    /// The API.
    #[command(flatten, next_help_heading = "API")]
    pub api: api::ApiArgs,
    /// Visitors.
    #[command(flatten, next_help_heading = "Webchat")]
    pub webchat: webchat::WebchatArgs,
    /// Events.
    #[command(flatten, next_help_heading = "Events and webhooks")]
    pub events: events::EventArgs,
    /// Message files.
    #[command(flatten, next_help_heading = "Files")]
    pub files: files::FileArgs,
    /// E-mail and panel.
    #[command(flatten, next_help_heading = "E-mail and panel")]
    pub panel: panel::PanelArgs,
    /// Sending messages to providers.
    #[command(flatten, next_help_heading = "Sending")]
    pub sending: sending::SendingArgs,
    /// Membership in a cluster.
    #[command(flatten, next_help_heading = "Cluster")]
    pub cluster: cluster::ClusterArgs,
    /// Waiting and migrating at the start.
    #[command(flatten, next_help_heading = "Start")]
    pub start: start::StartArgs,
    /// Logs and traces.
    #[command(flatten, next_help_heading = "Logs and traces")]
    pub logs: logs::LogArgs,
}

impl ServeArgs {
    /// Converts the options to settings.
    ///
    /// # Errors
    /// When an option is invalid, excludes another one, or requires one that is missing.
    pub fn settings(&self, database: &DatabaseArgs) -> Result<Settings, String> {
        let journal = self.durability.journal()?;
        let durability = self.durability.durability;
        self.durability.check_postgres(database.url().is_none())?;
        let public_url = self.network.public_url.as_deref();
        Ok(Settings {
            listen: self.network.listen,
            data_dir: database.data_dir.clone(),
            database: database.database()?,
            key_file: database.key_file(),
            pg_bin: database.pg_bin.clone(),
            postgres_memory: self.durability.postgres_memory.map(|size| size.0),
            postgres_disk: self.durability.postgres_disk.map(|size| size.0),
            durability,
            on_premise: self.api.on_premise,
            journal,
            engine: self.engine_options()?,
            workers: std::thread::available_parallelism().map_or(2, usize::from),
            trusted_proxies: self.network.trusted_proxy.clone(),
            limits: Limits { per_address: self.network.max_connections_per_address, ..Limits::default() },
            rate_per_minute: self.api.rate_per_minute,
            per_page_max: self.api.max_page_size,
            visitors: self.webchat.visitors(),
            wrong_tokens_per_minute: self.api.invalid_tokens_per_minute,
            events: self.events.events(),
            metrics_listen: self.network.metrics_listen,
            provider: self.sending.provider(),
            outbound: self.sending.outbound(&self.files.fetch_allow_network),
            webhooks: webhook_options(&self.events.webhook_allow_network),
            panel: self.panel.panel(public_url)?,
            templates: templates::Options::default(),
            media: self.files.media(database, public_url)?,
            stop: self.network.stop(self.cluster.cluster_listen.is_some()),
            cluster: self.cluster.settings(database, durability, self.files.are_shared())?,
            start: self.start.options(),
        })
    }

    fn engine_options(&self) -> Result<EngineOptions, String> {
        Ok(EngineOptions {
            idle_after: self.durability.idle_after,
            session_idle_after: self.webchat.session_idle_after,
            conversation_window: self.sending.conversation_window()?,
            sending: self.sending.sending(),
            ..EngineOptions::default()
        })
    }
}
