//! `hotline channel`: manages channels.

mod options;
mod secrets;

use clap::{Args, Subcommand};
use hotline_persistence::tables::channels::{self, CHANNELS_MAX, ChannelRow, ChannelSettings, ChannelType, NewChannel};
use hotline_persistence::{ChannelId, CompanyId, Error, QueueId};
use serde::Serialize;
use serde_json::Value;

use self::options::{Options, apply};
use super::audit::{AuditedAction, Target};
use super::database::{read_database, with_secrets};
use super::subject::NameArgs;
use super::{Failure, GlobalArgs, output};
use crate::config::public_url;
use crate::web::request::channel_values::{embed_snippet, hook_url};

#[derive(Subcommand)]
pub enum Command {
    /// Create a channel; it is connected once it has all settings that its type requires
    Create(Create),
    /// List channels
    List {
        /// Show only the channels of this company
        #[arg(long, value_name = "ID")]
        company: Option<CompanyId>,
    },
    /// Show a channel, and the line to embed or the callback URL to enter at the provider
    Show {
        /// Channel ID
        id: ChannelId,
        #[command(flatten)]
        public_url: PublicUrlArgs,
    },
    /// Update a channel; omitted options keep their values
    Update(Update),
    /// Create or rotate the identity secret of a webchat; it is printed once
    #[command(alias = "identity-secret")]
    RotateIdentitySecret(RotateIdentitySecret),
}

#[derive(Args)]
#[command(
    override_usage = "hotline channel create <NAME> --company <ID> --type <TYPE> [OPTIONS]",
    after_help = "Examples:
  hotline channel create Website --company 1 --type webchat --allow-origin https://shop.example
  hotline channel create Phone --company 1 --type whatsapp --number 5511999990000 --phone-number-id 106540352 \\
      --access-token-file token.txt --app-secret-file secret.txt --verify-token-file verify.txt"
)]
pub struct Create {
    #[command(flatten)]
    name: NameArgs,
    /// Company ID
    #[arg(long, value_name = "ID")]
    company: CompanyId,
    /// Channel type
    #[arg(long = "type", value_name = "whatsapp|messenger|instagram|webchat", value_parser = parse_type)]
    kind: ChannelType,
    /// Queue ID for new tickets
    #[arg(long, value_name = "ID")]
    queue: Option<QueueId>,
    #[command(flatten)]
    public_url: PublicUrlArgs,
    #[command(flatten)]
    options: Options,
}

#[derive(Args)]
#[command(after_help = "An empty value removes a setting: --number ''. A repeatable option replaces all previous \
    values.\n\nA new --access-token reconnects a channel in status `error`.")]
pub struct Update {
    /// Channel ID
    id: ChannelId,
    /// New name
    #[arg(long)]
    name: Option<String>,
    /// Queue ID for new tickets; an empty value for none
    #[arg(long, value_name = "ID", value_parser = parse_queue)]
    queue: Option<NewQueue>,
    /// Old spelling of --queue ''
    #[arg(long, hide = true, conflicts_with = "queue")]
    no_queue: bool,
    #[command(flatten)]
    options: Options,
}

#[derive(Args)]
#[command(after_help = "\
Your server signs the identity of visitors with it: a JSON Web Token (HS256) whose `sub` is your own ID of the visitor, \
with `exp` at most 24 hours ahead and, optionally, `name`, `email` and `number`. The key is the whole printed text. See \
docs/webchat.md.

The previous secret stays valid until the next rotation, so that your server can switch without downtime.")]
pub struct RotateIdentitySecret {
    /// Channel ID
    id: ChannelId,
    /// Revoke the previous secret at once, for example because it has leaked
    #[arg(long)]
    revoke_previous: bool,
}

/// Where the service is reached.
#[derive(Args)]
pub struct PublicUrlArgs {
    /// Public URL of the service (scheme, host and port), for the printed embed code or callback URL
    #[arg(long, env = "HOTLINE_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    public_url: Option<String>,
}

/// The value of `--queue`; `None` if it is empty.
#[derive(Clone, Copy)]
struct NewQueue(Option<QueueId>);

/// A new identity secret, as it is printed once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewSecret {
    id: ChannelId,
    identity_secret: String,
    #[serde(rename = "identitySecrets")]
    valid_secrets_count: usize,
}

/// A channel as it is printed, without its secrets.
#[derive(Serialize)]
struct PrintedChannel {
    #[serde(flatten)]
    row: ChannelRow,
    /// `None` when this release cannot parse the stored settings.
    settings: Option<ChannelSettings>,
    #[serde(rename = "identitySecrets")]
    valid_secrets_count: usize,
}

impl PrintedChannel {
    fn of(row: ChannelRow) -> Self {
        let settings = row.visible_settings();
        let valid_secrets_count = row.settings.get("identitySecrets").and_then(Value::as_array).map_or(0, Vec::len);
        Self { row, settings, valid_secrets_count }
    }
}

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        Command::Create(create) => create.run(global).await,
        Command::List { company } => {
            let rows = read_database(&global.database, async |db| Ok(channels::all(db, company).await?)).await?;
            let printed: Vec<PrintedChannel> = rows.into_iter().map(PrintedChannel::of).collect();
            let columns = ["id", "companyId", "type", "status", "name", "number", "queueId", "publicKey", "lastError"];
            global.output.many("channels", &columns, printed)
        }
        Command::Show { id, public_url } => {
            let search = read_database(&global.database, async |db| {
                let company = channels::company_of(db, id).await?;
                Ok(channels::find(db, company, id).await?)
            });
            public_url.print_channel(search.await?.ok_or(Error::NotFound("channel"))?, global)
        }
        Command::Update(update) => update.run(global).await,
        Command::RotateIdentitySecret(rotate) => rotate.run(global).await,
    }
}

impl RotateIdentitySecret {
    async fn run(self, global: &GlobalArgs) -> Result<(), Failure> {
        let mut new_secret = None;
        let change = |row: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), Failure> {
            if row.kind != ChannelType::Webchat {
                return Err(
                    format!("a {} channel has no identity secret; only webchats have one", row.kind.as_str()).into()
                );
            }
            let secret = settings.rotate_identity_secret(!self.revoke_previous);
            new_secret = Some((secret, settings.identity_secrets.len()));
            Ok(())
        };
        let update = with_secrets(&global.database, async |db, keys| {
            let company = channels::company_of(db, self.id).await?;
            let audited = AuditedAction::of_company(Some(company), "rotateIdentitySecret").on(self.id);
            audited.run(db, async || channels::update(db, keys, company, self.id, change).await, target).await
        });
        let row = update.await?;
        let (secret, valid_secrets_count) = new_secret.ok_or("no secret was created")?;
        global.output.one(NewSecret { id: row.id, identity_secret: secret.0, valid_secrets_count })
    }
}

impl Create {
    async fn run(mut self, global: &GlobalArgs) -> Result<(), Failure> {
        self.options.read_files()?;
        let (mut number, mut settings) = (None, ChannelSettings::default());
        if let Some(input) = self.options.into_input()? {
            apply(input, self.kind, &mut number, &mut settings)?;
        }
        let name = super::parse_name(self.name.get())?;
        let new =
            NewChannel { name: &name, kind: self.kind, number: number.as_deref(), queue_id: self.queue, settings };
        let insertion = with_secrets(&global.database, async |db, keys| {
            let work = async || {
                let mut transaction = db.begin().await?;
                if channels::has_max_channels(&mut transaction, self.company).await? {
                    let message = format!("the company has reached its maximum number of channels ({CHANNELS_MAX})");
                    return Err(message.into());
                }
                let row = channels::insert_in(&mut transaction, keys, self.company, new).await?;
                transaction.commit().await?;
                Ok(row)
            };
            let audited = AuditedAction::of_company(Some(self.company), "createChannel");
            audited.run(db, work, target).await
        });
        self.public_url.print_channel(insertion.await?, global)
    }
}

impl PublicUrlArgs {
    /// Prints a channel, and how to connect it to the company's pages or to the provider.
    fn print_channel(&self, row: ChannelRow, global: &GlobalArgs) -> Result<(), Failure> {
        let step = SetupStep::of(&row, self.public_url.as_deref());
        global.output.one(ChannelWithStep { channel: PrintedChannel::of(row), step: &step })?;
        if !global.output.json {
            output::print(format_args!("\n{}", step.instructions()))?;
        }
        Ok(())
    }
}

/// A channel as it is printed, with the step that connects it.
#[derive(Serialize)]
struct ChannelWithStep<'a> {
    #[serde(flatten)]
    channel: PrintedChannel,
    #[serde(flatten)]
    step: &'a SetupStep,
}

/// The step by which a channel is connected to the company's pages or to the provider.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum SetupStep {
    /// The line to add to pages that embed the webchat.
    Embed(String),
    /// The URL to configure at the provider.
    HookUrl(String),
}

/// Placeholder for the service's URL when it is not known.
const PLACEHOLDER_URL: &str = "https://hotline.example";

impl SetupStep {
    fn of(row: &ChannelRow, public_url: Option<&str>) -> Self {
        let (base, key) = (public_url.unwrap_or(PLACEHOLDER_URL), &row.public_key);
        match row.kind {
            ChannelType::Webchat => Self::Embed(embed_snippet(base, key)),
            _ => Self::HookUrl(hook_url(base, key)),
        }
    }

    fn instructions(&self) -> String {
        let (task, line, note) = match self {
            Self::Embed(line) => (
                "Add this line to the pages that show the webchat",
                line,
                "Only origins of --allow-origin may embed it.",
            ),
            Self::HookUrl(url) => (
                "Enter this callback URL at the provider",
                url,
                "Enter the verify token of the channel as well, and subscribe to `messages`.",
            ),
        };
        let reminder =
            if line.contains(PLACEHOLDER_URL) { " Replace hotline.example with your service's address." } else { "" };
        format!("{task}:\n  {line}\n{note}{reminder}")
    }
}

impl Update {
    async fn run(mut self, global: &GlobalArgs) -> Result<(), Failure> {
        self.options.read_files()?;
        let input = self.options.into_input()?;
        if self.name.is_none() && self.queue.is_none() && !self.no_queue && input.is_none() {
            return Err("nothing to change; see `hotline channel update --help`".into());
        }
        let name = self.name.as_deref().map(super::parse_name).transpose()?;
        let change = |row: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), Failure> {
            if let Some(name) = name {
                row.name = name;
            }
            if self.no_queue || self.queue.is_some() {
                row.queue_id = self.queue.and_then(|NewQueue(queue)| queue);
            }
            let Some(input) = input else { return Ok(()) };
            let (has_new_token, has_credentials) = (input.has_new_token(), input.has_credentials());
            apply(input, row.kind, &mut row.number, settings)?;
            if has_credentials {
                row.update_status(settings, has_new_token);
            }
            Ok(())
        };
        let update = with_secrets(&global.database, async |db, keys| {
            let company = channels::company_of(db, self.id).await?;
            let audited = AuditedAction::of_company(Some(company), "updateChannel").on(self.id);
            audited.run(db, async || channels::update(db, keys, company, self.id, change).await, target).await
        });
        global.output.one(PrintedChannel::of(update.await?))
    }
}

fn target(row: &ChannelRow) -> Target {
    Target::named(row.id, &row.name)
}

fn parse_queue(text: &str) -> Result<NewQueue, String> {
    match text.trim() {
        "" => Ok(NewQueue(None)),
        id => id.parse().map(|id| NewQueue(Some(id))).map_err(|_| "must be the ID of a queue".to_owned()),
    }
}

fn parse_type(word: &str) -> Result<ChannelType, String> {
    word.parse().map_err(|()| "must be whatsapp, messenger, instagram or webchat".to_owned())
}
