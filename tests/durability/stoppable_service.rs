//! A service in a process of its own, and its database, which the test runs: either can be stopped at any time.

use std::path::Path;

use hotline_persistence::PgPool;
use hotline_postgres::{Cluster, ClusterOptions};

use crate::process::Process;
use crate::support::database::url;
use crate::support::template::prepared_folder;
use crate::support::{Api, Company};

/// A service and its database, with one company.
pub struct StoppableService {
    folder: tempfile::TempDir,
    cluster: Option<Cluster>,
    process: Option<Process>,
    options: &'static [&'static str],
    pub company: Company,
}

impl StoppableService {
    /// Starts the database, lets `prepare` fill it, and starts the service with these options.
    pub async fn open<T>(
        options: &'static [&'static str],
        prepare: impl AsyncFnOnce(&PgPool, &Company, &Path) -> T,
    ) -> (Self, T) {
        let folder = prepared_folder();
        let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
        let db = crate::support::database::pool(cluster.connect_options());
        let company = Company::create(&db, "Acme").await;
        let prepared = prepare(&db, &company, folder.path()).await;
        db.close().await;
        let mut service = Self { folder, cluster: Some(cluster), process: None, options, company };
        service.start();
        (service, prepared)
    }

    pub fn start(&mut self) {
        let url = url(&self.cluster.as_ref().expect("PostgreSQL").connect_options());
        let mut options = vec!["--database-url", url.as_str()];
        options.extend(self.options);
        let process = Process::try_serve(self.folder.path(), &options)
            .unwrap_or_else(|log| panic!("hotline does not start: {log}"));
        self.process = Some(process);
    }

    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("a running service")
    }

    pub fn api(&self) -> Api {
        Api::new(self.process().address, &self.company.key)
    }

    /// The test's own connections to the service's database.
    pub fn database(&self) -> PgPool {
        crate::support::database::pool(self.cluster.as_ref().expect("PostgreSQL").connect_options())
    }

    pub async fn stop_database(&mut self) {
        self.cluster.take().expect("PostgreSQL").stop().await.expect("PostgreSQL stops");
    }

    pub async fn start_database(&mut self) {
        let options = ClusterOptions::for_tests(self.folder.path());
        self.cluster = Some(Cluster::start(options).await.expect("PostgreSQL is back"));
    }

    /// Stops both. The service must have written everything, and no row may have been rejected.
    pub async fn close(mut self) {
        let mut process = self.process.take().expect("a running service");
        process.terminate();
        assert!(process.wait().success(), "the stop was not clean: {}", process.log());
        let db = self.database();
        let rejected: i64 =
            sqlx::query_scalar("select count(*) from rejected_changes").fetch_one(&db).await.expect("count");
        assert_eq!(rejected, 0);
        db.close().await;
        self.stop_database().await;
    }
}
