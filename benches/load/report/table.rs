//! The figures as Markdown.

use crate::cluster::{self, Round};
use crate::curves::CurvesResult;
use crate::figures::{Measure, Throughput, Verdict};
use crate::memory::MemoryResult;
use crate::scenario::{Scenario, Server};
use crate::soak::SoakResult;
use crate::{against, grown};

/// Number of the slowest lists that are shown.
const SLOWEST: usize = 60;

pub fn throughput(run: &Throughput) -> String {
    let mut text = format!(
        "{}\n\nMedians of {} x {} s, {} tickets. One append of 4 KiB and its sync, with the disk to itself: p50 {} ms, \
         p99 {} ms.\n\n",
        run.machine.line(),
        run.rounds,
        run.seconds,
        run.tickets,
        ms(run.sync.p50_us as f64),
        ms(run.sync.p99_us as f64),
    );
    text.push_str(&verdicts(&run.verdicts()));
    text.push_str(
        "\n`ratio` is Hotline's requests a second divided by this row's. CPU is in cores used during the measurement, \
         memory as it was at its end; `behind` is how long the tables took after it to hold everything.\n\n",
    );
    text.push_str(&table(
        &[
            "scenario",
            "conn.",
            "server",
            "requests/s",
            "ratio",
            "p50 ms",
            "p99 ms",
            "max ms",
            "errors",
            "CPU Hotline",
            "CPU PostgreSQL",
            "CPU wrk",
            "CPU yardstick",
            "MiB Hotline",
            "MiB PostgreSQL",
            "behind s",
        ],
        run.measures.iter().map(|measure| row(run, measure)),
    ));
    text
}

pub fn curves(curved: &CurvesResult) -> String {
    let head = format!(
        "{}\n\nOnce {} s each, {} tickets. One append of 4 KiB and its sync, with the disk to itself: p50 {} ms, p99 {} ms.\n\n",
        curved.machine.line(),
        curved.seconds,
        curved.tickets,
        ms(curved.sync.p50_us as f64),
        ms(curved.sync.p99_us as f64),
    );
    let rows = curved.points.iter().map(|point| {
        let counted = &point.round.counted;
        let cores = |used_s: f64| format!("{:.2}", used_s / counted.seconds);
        vec![
            if point.offered.is_some() { "send, offered".to_owned() } else { point.scenario.title().to_owned() },
            point.connections.to_string(),
            point.offered.map_or_else(|| "all".to_owned(), |rate| format!("{rate:.0}")),
            point.rows.map(|rows| rows.to_string()).unwrap_or_default(),
            point.server.title().to_owned(),
            format!("{:.0}", counted.per_second()),
            ms(counted.p50_us as f64),
            ms(counted.p99_us as f64),
            ms(counted.max_us as f64),
            cores(point.round.cpu.hotline_s),
            cores(point.round.cpu.postgres_s),
        ]
    });
    let columns = [
        "scenario",
        "conn.",
        "offered/s",
        "messages before",
        "server",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "max ms",
        "CPU Hotline",
        "CPU PostgreSQL",
    ];
    head + &table(&columns, rows)
}

fn row(run: &Throughput, measure: &Measure) -> Vec<String> {
    let ratio = match measure.server {
        Server::Hotline => None,
        server => run.ratio(measure.scenario, server, measure.connections),
    };
    let cores = |used_s: fn(&crate::usage::Cpu) -> f64| {
        format!("{:.2}", measure.median(|round| used_s(&round.cpu) / round.counted.seconds))
    };
    vec![
        measure.scenario.title().to_owned(),
        measure.connections.to_string(),
        measure.server.title().to_owned(),
        format!("{:.0}", measure.per_second()),
        ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        ms(measure.p50_us()),
        ms(measure.p99_us()),
        ms(measure.median(|round| round.counted.max_us as f64)),
        measure.rounds.iter().map(|round| round.counted.errors.total()).sum::<u64>().to_string(),
        cores(|cpu| cpu.hotline_s),
        cores(|cpu| cpu.postgres_s),
        cores(|cpu| cpu.generator_s),
        cores(|cpu| cpu.yardstick_s),
        mib(measure.median(|round| round.memory.hotline_bytes as f64)),
        mib(measure.median(|round| round.memory.postgres_bytes as f64)),
        format!("{:.1}", measure.median(|round| round.behind_s)),
    ]
}

pub fn soak(soaked: &SoakResult) -> String {
    let round = &soaked.round;
    let mut text = format!(
        "{}\n\n{} s of the mix over {} connections, {} tickets: {:.0} requests a second, p50 {} ms, p99 {} ms, {} \
         errors; {:.1} s behind at the end.\n\n",
        soaked.machine.line(),
        soaked.seconds,
        soaked.connections,
        soaked.tickets,
        round.counted.per_second(),
        ms(round.counted.p50_us as f64),
        ms(round.counted.p99_us as f64),
        round.counted.errors.total(),
        round.behind_s,
    );
    text.push_str(&verdicts(&soaked.verdicts()));
    text.push('\n');
    // About one line a minute; the JSON has them all.
    let every = (soaked.samples.len() / 10).max(1);
    text.push_str(&table(
        &[
            "after s",
            "MiB Hotline",
            "MiB PostgreSQL",
            "most s behind",
            "most entries behind",
            "hot tickets",
            "hot sessions",
        ],
        soaked.samples.iter().step_by(every).map(|sample| {
            vec![
                format!("{:.0}", sample.at_s),
                mib(sample.hotline_bytes as f64),
                mib(sample.postgres_bytes as f64),
                format!("{:.2}", sample.lag_s_max),
                format!("{:.0}", sample.pending_max),
                format!("{:.0}", sample.hot_tickets),
                format!("{:.0}", sample.hot_sessions),
            ]
        }),
    ));
    text.push_str("\nThe largest tables at the end:\n\n");
    text.push_str(&table(
        &["table", "MiB", "MiB of indexes", "rows %", "dead %", "free %", "times vacuumed"],
        soaked.tables.iter().map(|table| {
            vec![
                table.name.clone(),
                mib(table.bytes as f64),
                mib(table.index_bytes as f64),
                format!("{:.0}", table.live_percent),
                format!("{:.1}", table.dead_percent),
                format!("{:.1}", table.free_percent),
                table.vacuumed.to_string(),
            ]
        }),
    ));
    text
}

pub fn memory(measured: &MemoryResult) -> String {
    let retired = &measured.retired;
    let mut text = format!("{}\n\n", measured.machine.line());
    text.push_str(&verdicts(&measured.verdicts()));
    text.push('\n');
    let (few, many) = (format!("MiB, {} hot", measured.few), format!("MiB, {} hot", measured.many));
    text.push_str(&table(
        &["", &few, &many, "bytes each"],
        measured.costs.iter().map(|cost| {
            vec![
                format!("hot {}", cost.kind.title()),
                mib(cost.few_bytes as f64),
                mib(cost.many_bytes as f64),
                format!("{:.0}", cost.each_bytes),
            ]
        }),
    ));
    text.push_str(&format!(
        "\nWhen nobody used them any more, {:.0} hot tickets became {:.0} in {:.0} s, and {} MiB became {} MiB.\n",
        retired.hot_before,
        retired.hot_after,
        retired.seconds,
        mib(retired.before_bytes as f64),
        mib(retired.after_bytes as f64)
    ));
    text
}

pub fn grown(measured: &grown::GrownResult) -> String {
    let mut text = format!(
        "{}\n\n{} messages, {} tickets and {} contacts of {} companies, of which the one that asks has {} %; {} sends a \
         second beside the lists and reports, each asked {} times.\n\n",
        measured.machine.line(),
        measured.messages,
        measured.tickets,
        measured.contacts,
        measured.companies,
        measured.percent,
        measured.sends_per_second,
        measured.rounds,
    );
    text.push_str(&verdicts(&measured.verdicts()));
    if let Some([empty, grown]) = &measured.upkeep {
        let latency = |sends: &grown::SendLatency| format!("{:.2} / {:.2}", sends.p50_ms, sends.p99_ms);
        let row = |what: &str, show: &dyn Fn(&grown::Upkeep) -> String| vec![what.to_owned(), show(empty), show(grown)];
        let rows = [
            row("sends: p50 / p99, ms", &|upkeep| latency(&upkeep.sends_alone)),
            row("beside a deletion: p50 / p99, ms", &|upkeep| {
                upkeep.deletion.as_ref().map_or_else(|| "–".to_owned(), |(_, sends)| latency(sends))
            }),
            row("conversations deleted a second", &|upkeep| {
                upkeep.deletion.as_ref().map_or_else(|| "–".to_owned(), |(rate, _)| format!("{rate:.0}"))
            }),
            row("beside a backup: p50 / p99, ms", &|upkeep| latency(&upkeep.sends_beside_backup)),
            row("backup, s", &|upkeep| format!("{:.1}", upkeep.backup_s)),
            row("backup, MiB", &|upkeep| mib(upkeep.backup_bytes as f64)),
            row("start until ready, s", &|upkeep| format!("{:.2}", upkeep.start_s)),
            row("first list of 100 after it, ms", &|upkeep| format!("{:.1}", upkeep.first_list_ms)),
        ];
        text.push_str(
            "\nWhat an operator does, with as many sends a second beside a deletion of conversations older than half a \
                       year, and beside a backup:\n\n",
        );
        text.push_str(&table(&["", "empty database", "this database"], rows.into_iter()));
    }
    let mut slowest = measured.asked.clone();
    slowest.sort_by(|one, other| other.p95_ms.total_cmp(&one.p95_ms));
    text.push_str("\nThe reports, and the slowest lists:\n\n");
    let is_list =
        |asked: &&grown::RequestTimes| !asked.path.starts_with("/reports/") && !asked.path.starts_with("/dashboards/");
    let shown =
        measured.asked.iter().filter(|asked| !is_list(asked)).chain(slowest.iter().filter(is_list).take(SLOWEST));
    text.push_str(&table(
        &["request", "p50 ms", "p95 ms", "aim ms", "refused"],
        shown.map(|asked| {
            vec![
                asked.path.clone(),
                format!("{:.1}", asked.p50_ms),
                format!("{:.1}", asked.p95_ms),
                asked.aim_ms.to_string(),
                if asked.refused.is_empty() {
                    String::new()
                } else {
                    format!("{} ({})", asked.refused.len(), asked.refused[0])
                },
            ]
        }),
    ));
    text
}

pub fn against(measured: &against::AgainstResult) -> String {
    let mut text = format!(
        "{}\n\nThis build beside {}: {} turns of {} s each, {} connections. A ratio is the median of those of each pair of turns, \
         with what half of them lie between.\n\n",
        measured.machine.line(),
        measured.other,
        measured.turns,
        measured.seconds,
        measured.connections,
    );
    let spread = |spread: against::Spread| format!("{:.3} ({:.3} to {:.3})", spread.median, spread.low, spread.high);
    text.push_str(&table(
        &["scenario", "requests/s", "the other's", "ratio", "processor for a request, of the other's"],
        measured.comparisons.iter().map(|comparison| {
            vec![
                comparison.scenario.title().to_owned(),
                format!("{:.0}", comparison.per_second),
                format!("{:.0}", comparison.other_per_second),
                spread(comparison.ratio),
                spread(comparison.cpu),
            ]
        }),
    ));
    text
}

pub fn cluster(measured: &cluster::ClusterResult) -> String {
    let mut text = format!(
        "{}\n\nOne to three processes, each with {} % of a processor, {} companies, {} connections in all: medians of {} measurements \
         of {} s. Each process is asked for all companies alike.\n\n",
        measured.machine.line(),
        measured.percent,
        measured.companies,
        measured.connections,
        measured.rounds.iter().filter(|round| round.nodes == 1 && round.scenario == Scenario::Send).count(),
        measured.seconds,
    );
    text.push_str(&verdicts(&measured.verdicts()));
    text.push('\n');
    let row = |rounds: &[Round], what: String, scenario: Scenario, nodes: usize, scale: String| {
        let median = |figure: fn(&Round) -> f64| cluster::ClusterResult::median(rounds, scenario, nodes, figure);
        vec![
            scenario.title().to_owned(),
            what,
            format!("{:.0}", median(|round| round.per_second)),
            scale,
            ms(median(|round| round.p50_us as f64)),
            ms(median(|round| round.p99_us as f64)),
            format!("{:.0}", median(|round| round.hotline_us)),
            format!("{:.0}", median(|round| round.postgres_us)),
        ]
    };
    let mut rows = Vec::new();
    for scenario in cluster::SCENARIOS {
        for nodes in 1..=3 {
            let scale = format!("{:.2}", measured.scale(scenario, nodes));
            rows.push(row(&measured.rounds, nodes.to_string(), scenario, nodes, scale));
        }
        for (rounds, what) in
            [(&measured.at_owner, "2, asked at the owner"), (&measured.elsewhere, "2, asked at the other")]
        {
            rows.push(row(rounds, what.to_owned(), scenario, 2, String::new()));
        }
    }
    let head = [
        "scenario",
        "processes",
        "requests/s",
        "of as many times one",
        "p50 ms",
        "p99 ms",
        "µs Hotline",
        "µs PostgreSQL",
    ];
    text + &table(&head, rows.into_iter())
}

fn verdicts(verdicts: &[Verdict]) -> String {
    table(
        &["", "aim", "measured", ""],
        verdicts.iter().map(|verdict| {
            let met = if verdict.is_met { "met" } else { "**missed**" };
            vec![verdict.what.clone(), verdict.aim.clone(), verdict.measured.clone(), met.to_owned()]
        }),
    )
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let mut text = line(&head) + &format!("|{}\n", "---|".repeat(head.len()));
    text.extend(rows.map(|row| line(&row)));
    text
}

fn ms(us: f64) -> String {
    format!("{:.2}", us / 1e3)
}

fn mib(bytes: f64) -> String {
    format!("{:.0}", bytes / 1024.0 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{measure, throughput};

    #[test]
    fn the_row_of_a_yardstick_shows_how_hotline_compares() {
        let run = throughput(vec![
            measure(Scenario::Read, Server::Hotline, &[900], 1500),
            measure(Scenario::Read, Server::Bare, &[1000], 1000),
        ]);
        let text = super::throughput(&run);
        assert!(text.contains("| read a ticket | 32 | Hotline | 900 |  | 0.75 | 1.50 |"), "{text}");
        assert!(text.contains("| read a ticket | 32 | (a) bare handler | 1000 | 0.90 | 0.50 | 1.00 |"), "{text}");
        assert!(text.contains("| at least 0.85 of (a) bare handler | 0.90 | met |"), "{text}");
    }
}
