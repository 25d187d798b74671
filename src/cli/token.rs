//! `hotline token`: what speaks for a company.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use hotline_persistence::CompanyId;
use hotline_persistence::tables::tokens::{self, NewToken, Permissions};
use ipnet::Ipv4Net;
use serde_json::json;

use super::Failure;
use super::database::with_database;
use super::output::OutputArgs;
use crate::config::DatabaseArgs;
use crate::routes::MODULES;

/// The methods a permission may name.
const METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE"];

/// Addresses and ranges a token may be bound to.
const ALLOWED_IPS_MAX: usize = 50;

#[derive(Subcommand)]
pub enum Command {
    /// Make a token; its key is printed once
    Create(Create),
    /// List the tokens
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
    /// The company it speaks for
    #[arg(long, value_name = "ID")]
    company: i64,
    /// What it is called in lists and events
    #[arg(long)]
    name: String,
    /// Everything is permitted
    #[arg(long, conflicts_with = "permission", required_unless_present = "permission")]
    all: bool,
    /// What is permitted in a module, for instance tickets:GET,POST (repeatable)
    #[arg(long, value_name = "MODULE:METHODS")]
    permission: Vec<String>,
    /// When it stops working, for instance 2027-01-31T00:00:00Z
    #[arg(long, value_name = "DATE-TIME")]
    expires: Option<DateTime<Utc>>,
    /// An IPv4 address or range it may be used from (repeatable, at most 50; none: from anywhere)
    #[arg(long, value_name = "IPV4")]
    allow_ip: Vec<String>,
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
            let all = with_database(&database, async |db| Ok(tokens::all(db, company).await?)).await?;
            output.many("tokens", &["id", "companyId", "prefix", "name"], all)
        }
    }
}

impl Create {
    async fn run(self) -> Result<(), Failure> {
        let new = NewToken {
            name: &super::named(&self.name)?,
            permissions: if self.all { everything() } else { permissions(&self.permission)? },
            allowed_ips: allowed_ips(&self.allow_ip)?,
            expires_at: self.expires,
        };
        let company = CompanyId(self.company);
        let (row, key) = with_database(&self.database, async |db| Ok(tokens::insert(db, company, new).await?)).await?;
        self.output
            .one(json!({"id": row.id, "key": key, "prefix": row.prefix, "companyId": row.company_id, "name": row.name}))
    }
}

/// Every method of every module.
pub fn everything() -> Permissions {
    let methods: BTreeSet<String> = METHODS.iter().map(|method| (*method).to_owned()).collect();
    MODULES.iter().map(|module| ((*module).to_owned(), methods.clone())).collect()
}

fn permissions(named: &[String]) -> Result<Permissions, Failure> {
    let mut permissions = Permissions::new();
    for permission in named {
        let (module, methods) =
            permission.split_once(':').ok_or_else(|| format!("`{permission}` is not MODULE:METHODS"))?;
        if !MODULES.contains(&module) {
            return Err(format!("`{module}` is none of {}", MODULES.join(", ")).into());
        }
        for method in methods.split(',') {
            if !METHODS.contains(&method) {
                return Err(format!("`{method}` is none of {}", METHODS.join(", ")).into());
            }
            permissions.entry(module.to_owned()).or_default().insert(method.to_owned());
        }
    }
    Ok(permissions)
}

fn allowed_ips(named: &[String]) -> Result<Vec<String>, Failure> {
    if named.len() > ALLOWED_IPS_MAX {
        return Err(format!("at most {ALLOWED_IPS_MAX} addresses and ranges are allowed").into());
    }
    for entry in named {
        let is_ipv4 = entry.parse::<std::net::Ipv4Addr>().is_ok() || entry.parse::<Ipv4Net>().is_ok();
        if !is_ipv4 {
            return Err(format!("`{entry}` is no IPv4 address or range").into());
        }
    }
    Ok(named.to_vec())
}
