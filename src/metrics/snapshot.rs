//! All metrics at one moment, with their names.

use std::fmt;
use std::time::Duration;

use actix_web::web::Data;
use hotline_actors::{Engine, clock};
use hotline_persistence::cluster::Membership;
use hotline_persistence::{error, journal, pool, rejected};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;

use super::process::ProcessCollector;
use super::writer::MetricWriter;
use super::{Metrics, process};
use crate::telemetry::conditions::Condition;

/// The prefix of every name.
const PREFIX: &str = "hotline";

const NS_PER_S: f64 = 1e9;

/// Timeout of the database check: far above what the check needs, and far below the timeout of metrics collectors.
const PROBE_TIME_MAX: Duration = Duration::from_secs(1);

/// All metrics at one moment.
pub(super) struct MetricsSnapshot {
    engine: Engine,
    metrics: Data<Metrics>,
    database_is_up: bool,
}

impl MetricsSnapshot {
    /// Checks whether the database responds; everything else is read when it is formatted.
    pub(super) async fn take(engine: Engine, metrics: Data<Metrics>) -> Self {
        let probed_engine = engine.clone();
        // Runs on the runtime that lives longest: a connection opened by the check ends with its runtime.
        let database_is_up = engine.background().spawn(async move { is_database_up(&probed_engine).await }).await;
        Self { engine, metrics, database_is_up: database_is_up.unwrap_or(false) }
    }

    /// Formats the metrics in the Prometheus text format, version 0.0.4.
    pub(super) fn into_text(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        text::encode_registry(&mut text, &registry)?;
        // The metrics of the process have the names that every Prometheus client uses, so they get no prefix.
        let mut process_registry = Registry::default();
        process_registry.register_collector(Box::new(ProcessCollector));
        text::encode_registry(&mut text, &process_registry)?;
        Ok(text)
    }
}

async fn is_database_up(engine: &Engine) -> bool {
    let store = engine.store();
    // A database that responds but accepts no changes (its disk is full) is not up.
    if !store.log.queue().is_up() {
        return false;
    }
    // No check while background work uses every connection: the check must not delay it, and waiting is not an outage.
    let housekeeping = &store.housekeeping;
    if housekeeping.num_idle() == 0 && housekeeping.size() >= pool::HOUSEKEEPING_MAX {
        return true;
    }
    let probe = sqlx::query_scalar::<_, i32>("select 1").fetch_one(housekeeping);
    tokio::time::timeout(PROBE_TIME_MAX, probe).await.is_ok_and(|answer| answer.is_ok())
}

impl fmt::Debug for MetricsSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsSnapshot").finish_non_exhaustive()
    }
}

impl Collector for MetricsSnapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = MetricWriter::new(encoder);
        self.conditions(&mut writer)?;
        self.requests(&mut writer)?;
        self.connections(&mut writer)?;
        self.actors(&mut writer)?;
        self.sockets(&mut writer)?;
        self.events(&mut writer)?;
        self.sending(&mut writer)?;
        self.schedules(&mut writer)?;
        self.campaigns(&mut writer)?;
        self.hooks(&mut writer)?;
        if let Some(membership) = self.engine.store().membership() {
            self.edge(&mut writer)?;
            self.member(membership, &mut writer)?;
        }
        self.webhooks(&mut writer)?;
        self.mails(&mut writer)?;
        self.retention(&mut writer)?;
        self.cascades(&mut writer)?;
        if let Some(stats) = self.engine.store().log.journal_stats() {
            write_journal(&mut writer, &stats)?;
        }
        self.flushes(&mut writer)?;
        self.database(&mut writer)?;
        self.host(&mut writer)?;
        self.process(&mut writer)
    }
}

impl MetricsSnapshot {
    fn conditions(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let conditions = &self.metrics.conditions;
        let help = "Whether the service should receive requests, as /health/ready reports";
        writer.gauge("ready", help, u64::from(conditions.is_ready()))?;
        let mut samples = writer.gauges("condition", "Whether a condition holds that an operator must know about")?;
        for condition in Condition::ALL {
            samples.value([("condition", condition.name())], u64::from(conditions.holds(condition)))?;
        }
        Ok(())
    }

    fn connections(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let connections = &self.metrics.connections;
        writer.gauge("http_connections", "Open connections of clients", connections.open())?;
        writer.gauge("http_connections_limit", "Connections above which none is accepted", connections.limit())?;
        let help = "Connections closed at once, because their address has too many";
        writer.counter("http_connections_refused_total", help, connections.refused())
    }

    fn host(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let host = &self.metrics.host;
        let mut samples = writer.gauges("disk_free_bytes", "Free space on the disk of a folder")?;
        for (folder, free) in host.free_bytes() {
            samples.value([("folder", folder)], free)?;
        }
        if let Some(completed_at_s) = host.backup_completed_at_s() {
            let help = "When the last backup was completed, in seconds since 1970";
            writer.gauge("backup_completed_timestamp_seconds", help, completed_at_s)?;
        }
        Ok(())
    }

    fn requests(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        let operations: Vec<_> = metrics.requests.samples().collect();
        let mut samples = writer.counters("http_requests_total", "Requests answered")?;
        for operation in &operations {
            for (status, count) in &operation.statuses {
                let status = status.map_or_else(|| "other".to_owned(), |status| status.to_string());
                let labels = [("route", operation.route), ("method", operation.method), ("status", status.as_str())];
                samples.value(labels, *count)?;
            }
        }
        let mut samples = writer.histograms("http_request_duration_seconds", "Time until the response")?;
        for operation in &operations {
            let labels = [("route", operation.route), ("method", operation.method)];
            samples.histogram(labels, &operation.latency_ns, NS_PER_S)?;
        }
        let count_of = |wanted: u16| -> u64 {
            let statuses = operations.iter().flat_map(|operation| &operation.statuses);
            statuses.filter(|(status, _)| *status == Some(wanted)).map(|(_, count)| count).sum()
        };
        writer.counter("http_unauthorized_total", "Requests with a missing or invalid token (401)", count_of(401))?;
        writer.counter("http_rate_limited_total", "Requests above their company's rate limit (429)", count_of(429))?;
        // Exists even while it is 0, so that an alert on its increase sees the first error.
        writer.counter(
            "http_internal_errors_total",
            "Requests answered with an internal error (500)",
            count_of(500),
        )?;
        writer.counter(
            "http_idempotent_replays_total",
            "Retries answered with the recorded response",
            metrics.replays(),
        )
    }

    fn edge(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let edge = &self.metrics.cluster;
        writer.counter("cluster_forwarded_total", "Requests forwarded to their company's process", edge.forwarded())?;
        writer.counter("cluster_taken_total", "Requests forwarded to this process by others", edge.received())?;
        let mut samples = writer.counters(
            "cluster_requests_total",
            "Requests for other processes' companies that were delayed, repeated, refused or aborted",
        )?;
        for (end, count) in [
            ("waited", edge.waited()),
            ("sent_again", edge.retried()),
            ("refused", edge.refused()),
            ("cut", edge.aborted()),
        ] {
            samples.value([("end", end)], count)?;
        }
        Ok(())
    }

    fn member(&self, membership: &Membership, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let metrics = &self.metrics.cluster;
        let help = "Time until the response to a forwarded request";
        writer.histogram("cluster_forward_duration_seconds", help, &metrics.response_times(), NS_PER_S)?;
        writer.gauge(
            "cluster_slots",
            "Slots this process serves, of 1024",
            to_u64(membership.placement.count_here()),
        )?;
        let help = "Time left of this process's lease, renewed by each heartbeat";
        writer.gauge("cluster_lease_left_seconds", help, membership.lease.ends_in().as_secs_f64())?;
        writer.gauge("cluster_peers", "Other processes of the cluster", to_u64(membership.placement.peers().len()))?;
        let mut samples = writer.gauges("cluster_peer_reachable", "Whether a process is reached at its address")?;
        for (node, is_reachable) in metrics.reachability() {
            samples.value([("node", node.as_str())], u64::from(is_reachable))?;
        }
        let mut samples =
            writer.counters("cluster_slot_moves_total", "Slots opened, handed over, or not moved in time")?;
        for (end, moves) in [
            ("opened", metrics.opened_slots()),
            ("handed_over", metrics.handed_over_slots()),
            ("canceled", metrics.canceled_moves()),
        ] {
            samples.value([("end", end)], moves)?;
        }
        writer.counter("cluster_seals_total", "Unresponsive processes fenced by this one", metrics.fenced_lives())?;
        let help = "Duration of the last takeover";
        writer.gauge("cluster_takeover_seconds", help, metrics.last_takeover().as_secs_f64())
    }

    fn actors(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let stats = self.engine.stats();
        let kinds = [
            ("tickets", stats.tickets),
            ("sessions", stats.sessions),
            ("channels", stats.channels),
            ("schedules", stats.schedules),
            ("campaigns", stats.campaigns),
        ];
        let mut samples = writer.gauges("actors_hot", "Actors in memory")?;
        for (kind, actors) in &kinds {
            samples.value([("kind", kind)], to_u64(actors.hot))?;
        }
        writer.gauge(
            "tickets_listed",
            "Open tickets that are counted and listed in memory",
            to_u64(stats.listed_tickets),
        )?;
        let mut samples = writer.gauges("actor_commands_waiting", "Commands queued for an actor")?;
        for (kind, actors) in &kinds {
            samples.value([("kind", kind)], to_u64(actors.waiting))?;
        }
        Ok(())
    }

    fn sockets(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let sockets = &self.metrics.sockets;
        writer.gauge("sockets_open", "Open visitor sockets", sockets.open())?;
        writer.gauge(
            "sessions_watching",
            "Visitor sessions with an open socket",
            to_u64(self.engine.sessions.connected_sessions()),
        )?;
        writer.counter("socket_messages_total", "Messages pushed to visitors", sockets.pushed())?;
        writer.counter("socket_cuts_total", "Sockets closed because they read too slowly", sockets.cut())
    }

    fn events(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let events = &self.metrics.events;
        writer.gauge("event_streams_open", "Open event streams", events.open())?;
        writer.counter("event_stream_events_total", "Events sent to streams", events.sent())
    }

    fn sending(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let sending = self.engine.sending.stats();
        let mut samples = writer.gauges("outbox_messages", "Messages in memory on their way to providers")?;
        for (state, messages) in
            [("waiting", sending.waiting), ("calling", sending.calling), ("noting", sending.recording)]
        {
            samples.value([("state", state)], to_u64(messages))?;
        }
        let mut samples =
            writer.gauges("outbox_channels", "Channels with held messages, or more than fit in memory")?;
        for (state, channels) in [("behind", sending.channels_behind), ("held", sending.channels_held)] {
            samples.value([("state", state)], to_u64(channels))?;
        }
        let mut samples = writer.counters("outbox_attempts_total", "Attempts to send a message, by result")?;
        for attempts in &sending.attempts {
            samples.value([("end", attempts.end)], attempts.count)?;
        }
        writer.counter(
            "outbox_given_up_total",
            "Messages that expired before a provider accepted them",
            sending.given_up,
        )
    }

    fn schedules(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let schedules = self.engine.schedules.stats();
        let mut samples = writer.gauges("schedules", "Scheduled messages in memory that are not sent yet")?;
        for (state, messages) in [("held", schedules.held), ("due", schedules.due), ("late", schedules.late)] {
            samples.value([("state", state)], to_u64(messages))?;
        }
        let mut samples = writer.counters("schedules_ended_total", "Scheduled messages that came due, by result")?;
        for (end, messages) in [("sent", schedules.sent), ("failed", schedules.failed)] {
            samples.value([("end", end)], messages)?;
        }
        Ok(())
    }

    fn campaigns(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let campaigns = self.engine.campaigns.stats();
        writer.gauge("campaigns_running", "Running campaigns", to_u64(campaigns.running))?;
        let mut samples = writer.gauges("campaign_recipients", "Recipients of campaigns in memory")?;
        for (state, recipients) in [("held", campaigns.recipients), ("under_way", campaigns.in_transit)] {
            samples.value([("state", state)], to_u64(recipients))?;
        }
        let mut samples = writer.counters("campaign_recipients_ended_total", "Processed recipients, by result")?;
        let ends =
            [("handed_over", campaigns.handed_over), ("skipped", campaigns.skipped), ("failed", campaigns.failed)];
        for (end, recipients) in ends {
            samples.value([("end", end)], recipients)?;
        }
        Ok(())
    }

    fn hooks(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let mut samples = writer.counters("hook_notices_total", "Notifications from providers, by result")?;
        for (end, notices) in self.metrics.hooks.events() {
            samples.value([("end", end)], notices)?;
        }
        let help = "Statuses and changes of unknown messages dropped, because their channel has too many";
        writer.counter("hook_statuses_dropped_total", help, self.engine.inbound.dropped_updates())
    }

    fn webhooks(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let webhooks = &self.metrics.webhooks;
        let mut samples = writer.counters("webhook_attempts_total", "Attempts to deliver an event, by result")?;
        for (end, attempts) in webhooks.outcomes() {
            samples.value([("end", end)], attempts)?;
        }
        writer.gauge("webhook_attempts_under_way", "Attempts waiting for a response", webhooks.under_way())?;
        let help = "Age of the oldest event that an active webhook has not accepted";
        writer.gauge("webhook_lag_seconds", help, webhooks.lag(clock::now()).as_secs_f64())?;
        let help = "Webhooks disabled because their endpoint no longer exists or has failed for days";
        writer.counter("webhooks_switched_off_total", help, webhooks.disabled())
    }

    fn mails(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let mut samples = writer.counters("mails_total", "E-mails to people, by result")?;
        for (end, emails) in self.metrics.mails.outcomes() {
            samples.value([("end", end)], emails)?;
        }
        Ok(())
    }

    fn retention(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let retention = self.engine.retention.stats();
        let help = "Conversations deleted by retention";
        writer.counter("retention_removed_total", help, retention.removed)?;
        let help = "Time since the oldest overdue conversation was due for deletion";
        writer.gauge("retention_oldest_due_seconds", help, retention.longest_overdue.as_secs_f64())
    }

    fn cascades(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let help = "Failed cleanup steps after deletions; each is retried";
        writer.counter("cascade_failures_total", help, self.engine.cascades.failures())
    }

    fn flushes(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let log = &self.engine.store().log;
        let queue = log.queue();
        let flushes = queue.flushes();
        let pending = log.appended().saturating_sub(log.flushed());
        let help = "Changes refused because the journal, or without one the database, had no room";
        writer.counter("changes_refused_total", help, log.refused_count())?;
        writer.gauge("flush_pending_entries", "Entries of the log that are not in the tables yet", pending)?;
        writer.gauge(
            "flush_lag_seconds",
            "Age of the oldest durable entry that is not in the tables",
            queue.lag().as_secs_f64(),
        )?;
        writer.histogram("flush_changes", "Changes per transaction", &flushes.changes.read(), 1.0)?;
        let durations = flushes.duration_ns.read();
        writer.histogram("flush_duration_seconds", "Duration of each transaction", &durations, NS_PER_S)?;
        writer.counter("flush_failures_total", "Transactions that failed and are retried", flushes.failed())?;
        writer.counter("changes_written_total", "Changes written to the tables", queue.changes_written())?;
        writer.counter("rows_rejected_total", "Rows rejected by PostgreSQL; see rejected_changes", rejected::count())
    }

    fn database(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let connections = self.engine.store().connections();
        let help = "Whether the database responds and accepts changes";
        writer.gauge("database_up", help, u64::from(self.database_is_up))?;
        writer.gauge(
            "database_connections",
            "Open connections for requests and background work",
            u64::from(connections.open),
        )?;
        writer.gauge("database_connections_idle", "Idle connections", to_u64(connections.idle))?;
        writer.gauge("database_connections_limit", "Maximum number of connections", u64::from(pool::POOL_MAX))?;
        let help = "Statements and changes queued for their company's share of the connections";
        writer.gauge("database_waiting", help, to_u64(connections.waiting))?;
        let help = "Statements and changes that got no connection in time";
        writer.counter("database_connection_timeouts_total", help, error::connection_timeouts())
    }

    fn process(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        if let Some(bytes) = process::resident_bytes() {
            writer.gauge("process_resident_memory_bytes", "Memory in use", bytes)?;
        }
        writer.gauge("uptime_seconds", "Time since the start", self.metrics.started_at.elapsed().as_secs_f64())?;
        writer
            .gauges("build_info", "Always 1, with the version as a label")?
            .value([("version", env!("CARGO_PKG_VERSION"))], 1)
    }
}

fn write_journal(writer: &mut MetricWriter<'_>, stats: &journal::Stats) -> fmt::Result {
    writer.gauge("journal_queued_records", "Records waiting for the journal's disk", stats.queued_records)?;
    writer.gauge(
        "journal_queued_bytes",
        "Size of the records waiting for the journal's disk",
        to_u64(stats.queued_bytes),
    )?;
    writer.gauge("journal_bytes", "Size of the journal on disk", stats.live_bytes)?;
    writer.gauge("journal_limit_bytes", "Size at which changes are refused", stats.max_bytes)?;
    writer.gauge("journal_segments", "Files of the journal", to_u64(stats.segments))?;
    writer.counter("journal_syncs_total", "Syncs, one for each group of records", stats.syncs)?;
    writer.counter("journal_records_total", "Records synced", stats.records)
}

fn to_u64(count: usize) -> u64 {
    count as u64
}
