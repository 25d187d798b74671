//! The measurements of `load run`, and whether they meet the aims.

use serde::Serialize;

use crate::disk::SyncTimes;
use crate::generator::LoadCounts;
use crate::machine::Machine;
use crate::scenario::{OFFERED, Scenario, Server};
use crate::usage::{Cpu, Memory};

/// The 99th percentile of a send at half load is at most this many times that of the bare handler (a), plus one sync of
/// the disk.
const HALF_LOAD_MULTIPLE_MAX: f64 = 3.0;

/// The 99th percentile of a send, at the same rate for all servers, is at most this fraction of a transaction's (b).
const OFFERED_FRACTION_MAX: f64 = 0.2;

/// Maximum 99th percentile of the mix with this many connections, in milliseconds.
const MIX_CONNECTIONS: u32 = 128;
const MIX_P99_MS_MAX: f64 = 60.0;

/// Minimum lists a second of [`Scenario::Inbox`]; maximum 95th percentile of [`Scenario::BusyInbox`], in milliseconds.
const INBOX_RATE_MIN: f64 = 5_000.0;
const INBOX_P95_MS_MAX: f64 = 5.0;

/// One run of the generator, and the resources used meanwhile.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Round {
    #[serde(flatten)]
    pub counted: LoadCounts,
    pub cpu: Cpu,
    /// Memory at the end of the run.
    pub memory: Memory,
    /// Seconds from the end of the run until the tables had everything.
    pub behind_s: f64,
}

/// The rounds of one server in one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Measure {
    pub scenario: Scenario,
    pub server: Server,
    pub connections: u32,
    pub rounds: Vec<Round>,
}

impl Measure {
    /// The median of a figure.
    pub fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(figure).collect())
    }

    pub fn per_second(&self) -> f64 {
        self.median(|round| round.counted.per_second())
    }

    pub fn p50_us(&self) -> f64 {
        self.median(|round| round.counted.p50_us as f64)
    }

    pub fn p95_us(&self) -> f64 {
        self.median(|round| round.counted.p95_us as f64)
    }

    pub fn p99_us(&self) -> f64 {
        self.median(|round| round.counted.p99_us as f64)
    }
}

/// The result of `load run`.
#[derive(Clone, Debug, Serialize)]
pub struct Throughput {
    pub machine: Machine,
    pub seconds: u64,
    pub rounds: u64,
    pub tickets: usize,
    pub sync: SyncTimes,
    pub measures: Vec<Measure>,
}

/// An aim, and whether it is met.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub what: String,
    pub aim: String,
    pub measured: String,
    pub is_met: bool,
}

impl Throughput {
    pub fn find(&self, scenario: Scenario, server: Server, connections: u32) -> Option<&Measure> {
        self.measures.iter().find(|measure| {
            measure.scenario == scenario && measure.server == server && measure.connections == connections
        })
    }

    /// Hotline's throughput divided by that of a yardstick: the median over pairs of rounds that were measured one
    /// after the other.
    pub fn ratio(&self, scenario: Scenario, server: Server, connections: u32) -> Option<f64> {
        // At a fixed rate the throughputs are equal.
        let hotline = self.find(scenario, Server::Hotline, connections).filter(|_| !scenario.is_paced())?;
        let yardstick = self.find(scenario, server, connections)?;
        let pairs = hotline.rounds.iter().zip(&yardstick.rounds);
        Some(median(pairs.map(|(one, other)| one.counted.per_second() / other.counted.per_second()).collect()))
    }

    /// The verdicts on all aims that were measured.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for measure in self.measures.iter().filter(|measure| measure.server == Server::Hotline) {
            let (scenario, connections) = (measure.scenario, measure.connections);
            for aim in scenario.aims() {
                let Some(ratio) = self.ratio(scenario, aim.server, connections) else { continue };
                verdicts.push(Verdict {
                    what: format!("{}, {connections} connections", scenario.title()),
                    aim: format!("at least {} of {}", aim.at_least, aim.server.title()),
                    measured: format!("{ratio:.2}"),
                    is_met: ratio >= aim.at_least,
                });
            }
            verdicts.extend(self.own_verdict(measure));
            verdicts.extend(self.half_load_verdict(measure));
            verdicts.extend(self.offered_verdict(measure));
            verdicts.extend(mix_verdict(measure));
            verdicts.extend(self.inbox_verdict(measure));
        }
        verdicts
    }

    /// Compares with another of Hotline's scenarios, over as many connections.
    fn own_verdict(&self, measure: &Measure) -> Option<Verdict> {
        let aim = measure.scenario.own_aim()?;
        let other = self.find(aim.scenario, Server::Hotline, measure.connections)?;
        let ratio = measure.per_second() / other.per_second();
        Some(Verdict {
            what: format!("{}, {} connections", measure.scenario.title(), measure.connections),
            aim: format!("at least {} of {}", aim.at_least, aim.scenario.title()),
            measured: format!("{ratio:.2}"),
            is_met: ratio >= aim.at_least,
        })
    }

    fn offered_verdict(&self, measure: &Measure) -> Option<Verdict> {
        if measure.scenario != Scenario::Offered {
            return None;
        }
        let plain_us = self.find(Scenario::Offered, Server::Plain, measure.connections)?.p99_us();
        let p99_us = measure.p99_us();
        Some(Verdict {
            what: format!("p99 of a send at {OFFERED:.0} a second, {} connections", measure.connections),
            aim: format!("at most {OFFERED_FRACTION_MAX} x {:.2} ms of (b)", plain_us / 1e3),
            measured: format!("{:.2} ms", p99_us / 1e3),
            is_met: p99_us <= OFFERED_FRACTION_MAX * plain_us,
        })
    }

    fn inbox_verdict(&self, measure: &Measure) -> Option<Verdict> {
        let verdict = |aim: String, measured: String, is_met| Verdict {
            what: format!("{}, {} connections", measure.scenario.title(), measure.connections),
            aim,
            measured,
            is_met,
        };
        match measure.scenario {
            Scenario::Inbox => {
                let rate = measure.per_second();
                let (aim, measured) = (format!("at least {INBOX_RATE_MIN} a second"), format!("{rate:.0}"));
                Some(verdict(aim, measured, rate >= INBOX_RATE_MIN))
            }
            Scenario::BusyInbox => {
                let p95_ms = measure.p95_us() / 1e3;
                let aim = format!("p95 of {} open tickets at most {INBOX_P95_MS_MAX} ms", self.tickets);
                Some(verdict(aim, format!("{p95_ms:.2} ms"), p95_ms <= INBOX_P95_MS_MAX))
            }
            _ => None,
        }
    }

    fn half_load_verdict(&self, measure: &Measure) -> Option<Verdict> {
        if measure.scenario != Scenario::HalfLoad {
            return None;
        }
        let bare_us = self.find(Scenario::HalfLoad, Server::Bare, measure.connections)?.p99_us();
        let sync_us = self.sync.p99_us as f64;
        let limit_us = HALF_LOAD_MULTIPLE_MAX * bare_us + sync_us;
        let p99_us = measure.p99_us();
        Some(Verdict {
            what: format!("p99 of a send at half load ({:.0} a second)", measure.per_second()),
            aim: format!(
                "at most {HALF_LOAD_MULTIPLE_MAX} x {:.2} ms of (a) + {:.2} ms of a sync = {:.2} ms",
                bare_us / 1e3,
                sync_us / 1e3,
                limit_us / 1e3
            ),
            measured: format!("{:.2} ms", p99_us / 1e3),
            is_met: p99_us <= limit_us,
        })
    }
}

fn mix_verdict(measure: &Measure) -> Option<Verdict> {
    if measure.scenario != Scenario::Mix || measure.connections != MIX_CONNECTIONS {
        return None;
    }
    let p99_ms = measure.p99_us() / 1e3;
    Some(Verdict {
        what: format!("p99 of the mix, {MIX_CONNECTIONS} connections"),
        aim: format!("at most {MIX_P99_MS_MAX} ms"),
        measured: format!("{p99_ms:.2} ms"),
        is_met: p99_ms <= MIX_P99_MS_MAX,
    })
}

/// The median; of an even number of figures, the upper one of the middle two; NaN if there are none.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::generator::Errors;

    /// A measurement with these requests per second, one for each round.
    pub fn measure(scenario: Scenario, server: Server, rates: &[u64], p99_us: u64) -> Measure {
        let round = |rate: &u64| Round {
            counted: LoadCounts {
                requests: *rate,
                seconds: 1.0,
                bytes: 0,
                p50_us: p99_us / 2,
                p95_us: p99_us,
                p99_us,
                max_us: p99_us,
                errors: Errors::default(),
            },
            cpu: Cpu::default(),
            memory: Memory::default(),
            behind_s: 0.0,
        };
        Measure { scenario, server, connections: 32, rounds: rates.iter().map(round).collect() }
    }

    /// A run with these measurements.
    pub fn throughput(measures: Vec<Measure>) -> Throughput {
        let machine = Machine {
            measured_at: "now".to_owned(),
            commit: None,
            cpu: "any".to_owned(),
            cores: 2,
            memory_gib: 1.0,
            kernel: "6".to_owned(),
            postgres: "15".to_owned(),
            is_release: true,
        };
        let sync = SyncTimes { p50_us: 100, p99_us: 500 };
        Throughput { machine, seconds: 1, rounds: 3, tickets: 10, sync, measures }
    }

    #[test]
    fn rounds_are_compared_with_their_neighbours() {
        // The machine slows down, but the ratio of each pair is 0.5.
        let run = throughput(vec![
            measure(Scenario::Send, Server::Hotline, &[1000, 500, 400], 10),
            measure(Scenario::Send, Server::Bare, &[2000, 1000, 800], 10),
        ]);
        assert_eq!(run.ratio(Scenario::Send, Server::Bare, 32), Some(0.5));
        assert_eq!(run.ratio(Scenario::Send, Server::Bare, 128), None);
    }

    #[test]
    fn an_aim_is_met_or_not() {
        let run = throughput(vec![
            measure(Scenario::Send, Server::Hotline, &[600], 10),
            measure(Scenario::Send, Server::Bare, &[1000], 10),
            measure(Scenario::Send, Server::Plain, &[200], 10),
        ]);
        let met: Vec<bool> = run.verdicts().iter().map(|verdict| verdict.is_met).collect();
        assert_eq!(met, [true, false], "0.6 of (a) is enough, 3 times (b) is not");
    }

    #[test]
    fn aims_relative_to_a_send_are_compared_with_it() {
        let run = throughput(vec![
            measure(Scenario::Send, Server::Hotline, &[1000], 10),
            measure(Scenario::SendKeyed, Server::Hotline, &[840], 10),
            measure(Scenario::Open, Server::Hotline, &[500], 10),
            measure(Scenario::Offered, Server::Hotline, &[100], 2000),
            measure(Scenario::Offered, Server::Plain, &[100], 10_000),
        ]);
        let met: Vec<bool> = run.verdicts().iter().map(|verdict| verdict.is_met).collect();
        assert_eq!(met, [false, true, true], "0.84 is not 0.85; half, and a fifth, are enough");
        let mix = |connections| Measure { connections, ..measure(Scenario::Mix, Server::Hotline, &[1], 60_001) };
        assert!(throughput(vec![mix(32)]).verdicts().is_empty());
        assert!(!throughput(vec![mix(MIX_CONNECTIONS)]).verdicts()[0].is_met);
    }

    #[test]
    fn the_aim_at_half_load_is_three_times_the_bare_handler_and_a_sync() {
        let run = |p99_us| {
            throughput(vec![
                measure(Scenario::HalfLoad, Server::Hotline, &[100], p99_us),
                measure(Scenario::HalfLoad, Server::Bare, &[100], 1000),
            ])
        };
        assert!(run(3500).verdicts()[0].is_met);
        assert!(!run(3501).verdicts()[0].is_met);
    }
}
