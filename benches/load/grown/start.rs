//! The start of a service on a database with a year of data.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use hotline_postgres::{Cluster, ClusterOptions};
use serde_json::json;

use super::rows::fill;
use crate::options::GrownArgs;
use crate::outcome::Outcome;
use crate::seed::{Api, Company};
use crate::service::{Binary, NEVER_S, Service};

/// The file, beside a stored database, with the company whose data was generated.
const COMPANY_FILE: &str = "company.json";

/// Starts a service on a database with a year of data: a stored one, or a new one.
pub async fn start(binary: &Binary, folder: &Path, options: &GrownArgs) -> Outcome<(Service, Company, Api)> {
    let stored = options.keep_in.as_deref();
    let company = match stored.filter(|stored| stored.join(COMPANY_FILE).exists()) {
        Some(stored) => {
            copy(stored, folder)?;
            serde_json::from_slice(&std::fs::read(folder.join(COMPANY_FILE))?)?
        }
        None => {
            let service = Service::start(binary, folder, NEVER_S)?;
            let (company, api) = Company::create(&service).await?;
            let webhook = json!({"url": "https://crm.example/hotline", "active": false});
            api.post("/webhooks", webhook).await?;
            // A running service would not notice that the ids of the new rows are used.
            service.stop()?;
            grow(binary, folder, &company, options).await?;
            if let Some(stored) = stored {
                std::fs::write(folder.join(COMPANY_FILE), serde_json::to_vec(&company)?)?;
                copy(folder, stored)?;
            }
            company
        }
    };
    let service = Service::start(binary, folder, NEVER_S)?;
    let api = Api::new(&service, &company.key)?;
    Ok((service, company, api))
}

/// Copies the content of a folder, including the owners of its files, which PostgreSQL checks.
fn copy(from: &Path, to: &Path) -> Outcome<()> {
    std::fs::create_dir_all(to)?;
    let status = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status()?;
    if status.success() { Ok(()) } else { Err(format!("{} could not be copied", from.display()).into()) }
}

async fn grow(binary: &Binary, folder: &Path, company: &Company, options: &GrownArgs) -> Outcome<()> {
    let cluster = Cluster::open(ClusterOptions::new(folder)).await?;
    let db = hotline_persistence::pool::connect(cluster.connect_options());
    fill(&db, company, options).await?;
    db.close().await;
    let started_at = Instant::now();
    let rebuilt = binary.run_command(folder, &["reports", "rebuild"])?;
    let count = rebuilt["companies"].as_array().map_or(0, Vec::len);
    eprintln!("the figures of {count} companies: {:.0?}", started_at.elapsed());
    Ok(cluster.stop().await?)
}
