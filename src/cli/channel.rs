//! `hotline channel`: where contacts write.

use clap::{Args, Subcommand};
use hotline_persistence::tables::channels::{self, ChannelType, NewChannel};
use hotline_persistence::{CompanyId, QueueId};
use serde_json::json;

use super::Failure;
use super::database::with_database;
use super::output::OutputArgs;
use crate::config::DatabaseArgs;
use crate::web::values::{Accepted, Number};

#[derive(Subcommand)]
pub enum Command {
    /// Make a channel
    Create(Create),
    /// List the channels
    List {
        /// Of this company only
        #[arg(long, value_name = "ID")]
        company: Option<i64>,
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
}

#[derive(Args)]
pub struct Create {
    /// The company it belongs to
    #[arg(long, value_name = "ID")]
    company: i64,
    /// What it speaks
    #[arg(long = "type", value_name = "whatsapp|messenger|instagram|webchat", value_parser = kind)]
    kind: ChannelType,
    /// What it is called
    #[arg(long)]
    name: String,
    /// Where new tickets go
    #[arg(long, value_name = "ID")]
    queue: Option<i64>,
    /// Its phone number (whatsapp)
    #[arg(long)]
    number: Option<String>,
    /// A website that may embed it (webchat, repeatable)
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(create) => create.run().await,
        Command::List { company, database, output } => {
            let company = company.map(CompanyId);
            let all = with_database(&database, async |db| Ok(channels::all(db, company).await?)).await?;
            output.many("channels", &["id", "companyId", "type", "status", "name", "publicKey"], all)
        }
    }
}

impl Create {
    async fn run(self) -> Result<(), Failure> {
        let number = self.number.as_deref().map(Number::from_text).transpose();
        let number = number.map_err(|reason| format!("--number {reason}"))?;
        let new = NewChannel {
            name: &super::named(&self.name)?,
            kind: self.kind,
            number: number.as_ref().map(|number| number.0.as_str()),
            queue_id: self.queue.map(QueueId),
            settings: json!({"allowedOrigins": self.allow_origin}),
        };
        let company = CompanyId(self.company);
        let row = with_database(&self.database, async |db| Ok(channels::insert(db, company, new).await?)).await?;
        self.output.one(row)
    }
}

fn kind(word: &str) -> Result<ChannelType, String> {
    word.parse().map_err(|()| format!("`{word}` is none of whatsapp, messenger, instagram, webchat"))
}
