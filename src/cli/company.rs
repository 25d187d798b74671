//! `hotline company`: manages companies.

use clap::{Args, Subcommand};
use hotline_persistence::stop_words::{self, CHARACTERS_MAX, WORDS_MAX};
use hotline_persistence::tables::companies::{self, CompanyChanges, CompanyRow};
use hotline_persistence::visible_text;
use hotline_persistence::{CompanyId, Error};

use super::audit::{AuditedAction, Target};
use super::database::{read_database, with_database, with_new_database};
use super::{Failure, GlobalArgs};
use crate::web::request::values::{FromField, Name};

#[derive(Subcommand)]
pub enum Command {
    /// Create a company, with the profiles Administrator, Supervisor and Agent
    Create {
        /// Name of the company
        name: String,
    },
    /// List companies
    List,
    /// Show a company
    Show {
        /// Company ID
        id: CompanyId,
    },
    /// Update a company; omitted options keep their values
    #[command(after_help = "Example:\n  hotline company update 1 --rate-per-minute=600 --time-zone=America/Sao_Paulo")]
    Update {
        /// Company ID
        id: CompanyId,
        #[command(flatten)]
        changes: CompanyUpdate,
    },
}

/// The changes; at least one is required.
#[derive(Args)]
#[group(required = true, multiple = true)]
pub struct CompanyUpdate {
    /// New name
    #[arg(long)]
    name: Option<String>,
    /// Whether the company is active; requests for an inactive one are refused
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    active: Option<bool>,
    /// Whether its plan includes the API (ignored with --on-premise)
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    api_enabled: Option<bool>,
    /// Maximum requests per minute; 0 for no limit
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(0..))]
    rate_per_minute: Option<i32>,
    /// Time zone in which its days begin, for example America/Sao_Paulo
    #[arg(long, value_name = "ZONE", value_parser = parse_time_zone)]
    time_zone: Option<chrono_tz::Tz>,
    /// Comma-separated words with which contacts opt out of campaigns. A word must be the whole message; case,
    /// accents and surrounding punctuation are ignored
    #[arg(long, value_name = "WORDS", value_parser = parse_stop_words)]
    stop_words: Option<StopWords>,
}

/// Stop words, normalized by [`stop_words::fold`].
#[derive(Clone)]
struct StopWords(Vec<String>);

pub async fn run(command: Command, global: &GlobalArgs) -> Result<(), Failure> {
    match command {
        Command::Create { name } => {
            let name = super::parse_name(&name)?;
            let creation = with_new_database(&global.database, async |db| {
                let audited = AuditedAction::of_installation("createCompany");
                audited.run(db, async || Ok(companies::insert(db, &name).await?), target).await
            });
            global.output.one(creation.await?)
        }
        Command::List => {
            let all = read_database(&global.database, async |db| Ok(companies::all(db).await?)).await?;
            global.output.many(
                "companies",
                &["id", "name", "active", "apiEnabled", "ratePerMinute", "timeZone", "stopWords"],
                all,
            )
        }
        Command::Show { id } => {
            let found = read_database(&global.database, async |db| Ok(companies::find(db, id).await?)).await?;
            global.output.one(found.ok_or(Error::NotFound("company"))?)
        }
        Command::Update { id, changes } => {
            let changes = CompanyChanges {
                name: changes.name.as_deref().map(super::parse_name).transpose()?,
                active: changes.active,
                api_enabled: changes.api_enabled,
                rate_per_minute: changes.rate_per_minute.map(Some),
                time_zone: changes.time_zone.map(|zone| zone.name().to_owned()),
                stop_words: changes.stop_words.map(|words| words.0),
                second_factor_required: None,
            };
            let update = with_database(&global.database, async |db| {
                let audited = AuditedAction::of_installation("updateCompany").on(id);
                audited.run(db, async || Ok(companies::update(db, id, changes).await?), target).await
            });
            global.output.one(update.await?)
        }
    }
}

fn target(row: &CompanyRow) -> Target {
    Target::named(row.id, &row.name)
}

fn parse_time_zone(text: &str) -> Result<chrono_tz::Tz, String> {
    text.parse().map_err(|_| "must be an IANA time zone, for example America/Sao_Paulo".to_owned())
}

/// Parses stop words by the panel's rules, so that the panel accepts every word that it shows.
fn parse_stop_words(text: &str) -> Result<StopWords, String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(',').filter(|word| !word.trim().is_empty()) {
        let Name(word) = Name::from_text(word).map_err(|reason| format!("a word {reason}"))?;
        let word = stop_words::fold(&word);
        if visible_text::is_blank(&word) {
            return Err("a word must not be blank".to_owned());
        }
        if word.chars().count() > CHARACTERS_MAX {
            return Err(format!("a word has at most {CHARACTERS_MAX} characters"));
        }
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if words.len() > WORDS_MAX {
        return Err(format!("a company has at most {WORDS_MAX} stop words"));
    }
    Ok(StopWords(words))
}
