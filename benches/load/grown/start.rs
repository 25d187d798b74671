//! The start of a service on a database with a year of use in it.

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

/// Where the company is noted that a kept database was grown for.
const COMPANY: &str = "company.json";

/// A service on a database with a year of use in it: made now, or the one that was kept.
pub async fn start(binary: &Binary, folder: &Path, options: &GrownArgs) -> Outcome<(Service, Company, Api)> {
    let kept = options.keep_in.as_deref();
    let company = match kept.filter(|kept| kept.join(COMPANY).exists()) {
        Some(kept) => {
            copy(kept, folder)?;
            serde_json::from_slice(&std::fs::read(folder.join(COMPANY))?)?
        }
        None => {
            let service = Service::start(binary, folder, NEVER_S)?;
            let (company, api) = Company::create(&service).await?;
            let webhook = json!({"url": "https://crm.example/hotline", "active": false});
            api.post("/webhooks", webhook).await?;
            // The service would not know of the ids that are used up.
            service.stop()?;
            grow(binary, folder, &company, options).await?;
            if let Some(kept) = kept {
                std::fs::write(folder.join(COMPANY), serde_json::to_vec(&company)?)?;
                copy(folder, kept)?;
            }
            company
        }
    };
    let service = Service::start(binary, folder, NEVER_S)?;
    let api = Api::new(&service, &company.key)?;
    Ok((service, company, api))
}

/// Copies what a folder holds, with its owners: PostgreSQL looks at them.
fn copy(from: &Path, to: &Path) -> Outcome<()> {
    std::fs::create_dir_all(to)?;
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status()?;
    if copied.success() { Ok(()) } else { Err(format!("{} is not copied", from.display()).into()) }
}

async fn grow(binary: &Binary, folder: &Path, company: &Company, options: &GrownArgs) -> Outcome<()> {
    let cluster = Cluster::open(ClusterOptions::new(folder)).await?;
    let db = hotline_persistence::pool::connect(cluster.connect_options());
    fill(&db, company, options).await?;
    db.close().await;
    let began = Instant::now();
    let rebuilt = binary.run_command(folder, &["reports", "rebuild"])?;
    let count = rebuilt["companies"].as_array().map_or(0, Vec::len);
    eprintln!("the figures of {count} companies: {:.0?}", began.elapsed());
    Ok(cluster.stop().await?)
}
