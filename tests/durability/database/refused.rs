//! A database that refuses every login or every change, or whose sessions are ended. Conversations continue, and
//! acknowledged messages are written afterwards.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::requirements::OwnedDatabase;
use crate::process::{Process, data_folder, serving};
use crate::states::lines;
use crate::support::{Api, Company, eventually};

/// How often all sessions are ended.
const SESSION_ENDS: usize = 5;

/// A service whose database belongs to a role of its own, and whose only conversation is in memory.
struct RefusedService {
    owned: OwnedDatabase,
    process: Process,
    company: Company,
    api: Api,
    accepted: BTreeSet<String>,
    // Dropped after the process, whose journal is in it.
    _folder: tempfile::TempDir,
}

impl RefusedService {
    async fn start() -> Self {
        let (owned, folder) = (OwnedDatabase::create("UTF8").await, data_folder());
        let mut serve = serving(folder.path());
        serve.args(["--database-url", &owned.url(), "--rate-per-minute", "0"]);
        let process =
            Process::start(folder.path(), &mut serve).unwrap_or_else(|log| panic!("hotline does not start: {log}"));
        let db = crate::support::database::pool(owned.options());
        let company = Company::create(&db, "Acme").await;
        db.close().await;
        let api = Api::new(process.address, &company.key);
        eventually("the company is seen", || async { api.get("/channels").await.status == 200 }).await;
        let mut service = Self { owned, process, company, api, accepted: BTreeSet::new(), _folder: folder };
        service.send().await;
        service
    }

    /// Sends a message, which must be accepted.
    async fn send(&mut self) {
        let body = format!("message {}", self.accepted.len());
        let send =
            json!({"channelId": self.company.phone, "number": "5511900000001", "type": "text", "body": body.clone()});
        self.api.post("/messages", send).await.data(202);
        self.accepted.insert(body);
    }

    /// Waits until a line was logged this many times in all; returns the last one.
    async fn wait_for_log(&self, message: &str, times: usize) -> Value {
        eventually(message, || async { lines(&self.process, message).len() == times }).await;
        lines(&self.process, message).pop().expect("a line")
    }

    /// Runs a statement as an administrator. One that alters the database is run outside of it, where sessions are not
    /// read-only.
    async fn execute(&self, statement: &str) {
        match statement.starts_with("alter database") {
            true => self.owned.execute_outside(statement).await,
            false => self.owned.execute_inside(statement).await,
        }
    }

    /// Ends every session of the service.
    async fn end_sessions(&self) {
        let role = &self.owned.role;
        let end = format!("select pg_terminate_backend(pid) from pg_stat_activity where usename = '{role}'");
        self.owned.execute_outside(&end).await;
    }

    /// Fails unless every accepted message is in the tables, once. Then stops the service.
    async fn check_and_stop(mut self) {
        let is_served = async || self.api.try_get("/messages").await.is_some_and(|reply| reply.status == 200);
        eventually("lists are served", is_served).await;
        let stored = self.api.all("/messages").await;
        let bodies: BTreeSet<String> =
            stored.iter().map(|message| message["body"].as_str().expect("a body").to_owned()).collect();
        assert_eq!((stored.len(), &bodies), (self.accepted.len(), &self.accepted));
        self.process.terminate();
        assert!(self.process.wait().success(), "{}", self.process.log());
        self.owned.drop().await;
    }
}

#[actix_web::test]
async fn conversations_continue_while_every_login_is_refused() {
    let mut service = RefusedService::start().await;
    let role = service.owned.role.clone();
    service.owned.execute_outside(&format!("alter role {role} nologin")).await;
    service.end_sessions().await;
    let logged = service.wait_for_log("database does not respond", 1).await;
    assert!(logged["reason"].as_str().is_some_and(|reason| reason.contains("not permitted to log in")), "{logged}");
    for _ in 0..5 {
        service.send().await;
    }
    service.owned.execute_outside(&format!("alter role {role} login")).await;
    service.wait_for_log("database responds again", 1).await;
    service.send().await;
    service.check_and_stop().await;
}

#[actix_web::test]
async fn changes_that_a_database_refuses_are_kept_and_written_afterwards() {
    let mut service = RefusedService::start().await;
    let (name, role) = (service.owned.name.clone(), service.owned.role.clone());
    let read_only = format!("alter database {name} set default_transaction_read_only = on");
    let writable = format!("alter database {name} reset default_transaction_read_only");
    for (number, (refuse, accept, reason)) in [
        (format!("revoke insert on messages from {role}"), format!("grant insert on messages to {role}"), "permission"),
        (read_only, writable, "read-only"),
    ]
    .into_iter()
    .enumerate()
    {
        service.execute(&refuse).await;
        service.end_sessions().await;
        for _ in 0..5 {
            service.send().await;
        }
        let logged = service.wait_for_log("database accepts no changes; they are retried", number + 1).await;
        assert!(logged["reason"].as_str().is_some_and(|text| text.contains(reason)), "{logged}");
        service.execute(&accept).await;
        service.end_sessions().await;
        service.wait_for_log("database accepts changes again", number + 1).await;
    }
    service.send().await;
    service.check_and_stop().await;
}

#[actix_web::test]
async fn sessions_that_are_ended_again_and_again_cost_nothing() {
    let mut service = RefusedService::start().await;
    for _ in 0..SESSION_ENDS {
        service.end_sessions().await;
        service.send().await;
        let is_served = async || service.api.try_get("/messages").await.is_some_and(|reply| reply.status == 200);
        eventually("lists are served over new sessions", is_served).await;
    }
    service.check_and_stop().await;
}
