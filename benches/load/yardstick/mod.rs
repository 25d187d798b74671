//! What Hotline is compared with, in a process of its own with as many workers: `bare` (a), `plain` (b), `same_sql`
//! (c).

mod bare;
mod plain;
mod process;
mod same_sql;

use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use actix_web::web::Data;
use actix_web::{App, HttpServer};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgConnectOptions;

use crate::answers::Answers;
use crate::machine;
use crate::outcome::Outcome;

pub use plain::prepare;
pub use process::Process;

/// The settings of the process, which it reads from a file.
#[derive(Serialize, Deserialize)]
pub struct Settings {
    /// The server on which Hotline's database is.
    pub database_url: String,
    /// The name of the database of (b), beside it.
    pub plain_database: String,
    /// The company whose tickets are listed.
    pub company: i64,
    pub answers: Answers,
}

/// Serves until standard input ends, which is when the process that started it has ended.
pub fn serve(settings: &Path) -> Outcome<()> {
    let settings: Settings = serde_json::from_slice(&std::fs::read(settings)?)?;
    actix_rt::System::new().block_on(async {
        let hotline = PgConnectOptions::from_str(&settings.database_url)?;
        let plain = plain::Database(plain::connect(hotline.clone().database(&settings.plain_database)));
        let same_sql = Data::new(same_sql::Tables::open(hotline, settings.company).await?);
        let (plain, answers) = (Data::new(plain), Data::new(settings.answers));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(plain.clone())
                .app_data(same_sql.clone())
                .app_data(answers.clone())
                .configure(bare::routes)
                .configure(plain::routes)
                .configure(same_sql::routes)
        })
        .workers(machine::cores())
        .disable_signals()
        .bind(("127.0.0.1", 0))?;
        let address = *server.addrs().first().ok_or("no address")?;
        println!("{address}");
        std::thread::spawn(|| {
            // Nothing is written to this pipe: the read returns when the other process ends.
            let _ = std::io::stdin().read(&mut [0]);
            std::process::exit(0);
        });
        Ok(server.run().await?)
    })
}
