//! `load against`: compares this build of Hotline with another one, in short alternating turns. The speed of a shared
//! machine changes from minute to minute, so two long runs would compare the machine; two turns a second apart compare
//! the code, and the median of many such pairs is reported.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use crate::figures::Round;
use crate::generator::Load;
use crate::machine::Machine;
use crate::options::{AgainstArgs, SharedArgs};
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Server};
use crate::service::Binary;
use crate::stage::Stage;

/// The comparison of one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct BuildComparison {
    pub scenario: Scenario,
    pub per_second: f64,
    pub other_per_second: f64,
    /// Throughput of this build divided by that of the other one, for each pair of turns.
    pub ratio: Spread,
    /// The same ratio of processor time per request, of Hotline and PostgreSQL together.
    pub cpu: Spread,
}

/// The median and the quartiles of some figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let quantile = |share: f64| figures[((figures.len() - 1) as f64 * share).round() as usize];
        Self { low: quantile(0.25), median: quantile(0.5), high: quantile(0.75) }
    }
}

/// The result of `load against`.
#[derive(Debug, Serialize)]
pub struct AgainstResult {
    pub machine: Machine,
    pub other: String,
    pub seconds: u64,
    pub turns: u64,
    pub connections: u32,
    #[serde(rename = "beside")]
    pub comparisons: Vec<BuildComparison>,
}

pub async fn run(shared: &SharedArgs, options: &AgainstArgs) -> Outcome<AgainstResult> {
    let chosen = choose(&options.scenarios)?;
    let uses_pool = chosen.iter().any(|scenario| scenario.consumes_subjects());
    let pool = if uses_pool { options.pool } else { 0 };
    let ours = Stage::set_up(&Binary::measured()?, shared.tickets, pool, None).await?;
    let other = Stage::set_up(&Binary::at(&options.other)?, shared.tickets, pool, None).await?;
    let pair = Pair { stages: [&ours, &other], options };
    let mut comparisons = Vec::new();
    for scenario in Scenario::ALL {
        let of_scenario = match scenario {
            Scenario::Open if uses_pool => pair.open_and_close().await?,
            // Opening and closing are measured together, if either was chosen.
            Scenario::Open | Scenario::Close => continue,
            _ if chosen.contains(&scenario) => vec![pair.measure_alternating(scenario).await?],
            _ => continue,
        };
        for comparison in &of_scenario {
            eprintln!(
                "{:<20} {:.3} of the other's ({:.3} to {:.3})",
                comparison.scenario.title(),
                comparison.ratio.median,
                comparison.ratio.low,
                comparison.ratio.high
            );
        }
        comparisons.extend(of_scenario);
    }
    let machine = Machine::here(ours.postgres_version().await?)?;
    ours.tear_down().await?;
    other.tear_down().await?;
    Ok(AgainstResult {
        machine,
        other: options.other.display().to_string(),
        seconds: options.seconds,
        turns: options.turns,
        connections: options.connections,
        comparisons,
    })
}

/// The scenarios to compare: the named ones, or all without a fixed rate if none is named.
///
/// # Errors
/// When a named one has a fixed rate.
fn choose(named: &[Scenario]) -> Outcome<Vec<Scenario>> {
    let comparable: Vec<Scenario> = Scenario::ALL.into_iter().filter(|scenario| !scenario.is_paced()).collect();
    if named.is_empty() {
        return Ok(comparable);
    }
    let name = |scenario: &Scenario| scenario.to_possible_value().map(|value| value.get_name().to_owned());
    match named.iter().find(|scenario| scenario.is_paced()).and_then(name) {
        Some(paced) => {
            let others: Vec<String> = comparable.iter().filter_map(name).collect();
            Err(format!("`{paced}` has a fixed rate and cannot be compared; these can: {}", others.join(", ")).into())
        }
        None => Ok(named.to_vec()),
    }
}

/// The two builds, this one first.
struct Pair<'a> {
    stages: [&'a Stage; 2],
    options: &'a AgainstArgs,
}

impl Pair<'_> {
    async fn measure_alternating(&self, scenario: Scenario) -> Outcome<BuildComparison> {
        let mut rounds = [Vec::new(), Vec::new()];
        // The first turn opens connections and fills caches, and is not counted.
        for turn in 0..=self.options.turns {
            for build in order(turn) {
                let stage = self.stages[build];
                let round = self.measure(stage, scenario, &[], &[]).await?;
                if scenario == Scenario::Mix {
                    stage.reopen_changed().await?;
                }
                if turn > 0 {
                    rounds[build].push(round);
                }
            }
        }
        Ok(compare(scenario, &rounds))
    }

    /// Each turn opens tickets until its time is over, and then closes as many of them as its time allows.
    async fn open_and_close(&self) -> Outcome<Vec<BuildComparison>> {
        let (mut opening, mut closing) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for turn in 0..=self.options.turns {
            for build in order(turn) {
                let stage = self.stages[build];
                let open = self.measure(stage, Scenario::Open, &stage.pool, &[]).await?;
                let close = self.measure(stage, Scenario::Close, &[], &stage.open_pool_tickets().await?).await?;
                stage.close_pool_tickets().await?;
                if turn > 0 {
                    opening[build].push(open);
                    closing[build].push(close);
                }
            }
        }
        Ok(vec![compare(Scenario::Open, &opening), compare(Scenario::Close, &closing)])
    }

    async fn measure(&self, stage: &Stage, scenario: Scenario, contacts: &[i64], closing: &[i64]) -> Outcome<Round> {
        let subjects = stage.subjects(contacts, closing)?;
        let load = Load {
            scenario,
            server: Server::Hotline,
            address: stage.address(Server::Hotline),
            subjects: &subjects,
            connections: self.options.connections,
            time: Duration::from_secs(self.options.seconds),
            rate: None,
        };
        stage.measure(&load).await
    }
}

/// The order of the builds in a turn. It alternates, so that the effects of one turn on the next are the same for both.
fn order(turn: u64) -> [usize; 2] {
    if turn.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

fn compare(scenario: Scenario, rounds: &[Vec<Round>; 2]) -> BuildComparison {
    let spread_of = |figure: fn(&Round) -> f64| {
        Spread::of(rounds[0].iter().zip(&rounds[1]).map(|(ours, other)| figure(ours) / figure(other)).collect())
    };
    let per_second =
        |rounds: &[Round]| Spread::of(rounds.iter().map(|round| round.counted.per_second()).collect()).median;
    BuildComparison {
        scenario,
        per_second: per_second(&rounds[0]),
        other_per_second: per_second(&rounds[1]),
        ratio: spread_of(|round| round.counted.per_second()),
        cpu: spread_of(|round| (round.cpu.hotline_s + round.cpu.postgres_s) / round.counted.requests as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_with_a_fixed_rate_cannot_be_compared() {
        let all = choose(&[]).expect("scenarios");
        assert_eq!(all.len(), Scenario::ALL.len() - 3);
        assert_eq!(choose(&[Scenario::Say, Scenario::Mix]).expect("scenarios"), [Scenario::Say, Scenario::Mix]);
        for paced in [Scenario::BusyInbox, Scenario::HalfLoad, Scenario::Offered] {
            assert!(!all.contains(&paced));
            let refusal = choose(&[Scenario::Send, paced]).expect_err("a fixed rate").to_string();
            assert!(refusal.contains("send, send-keyed, open, close, "), "{refusal}");
        }
    }

    #[test]
    fn a_spread_is_the_median_and_the_quartiles() {
        let spread = Spread::of(vec![1.1, 0.8, 1.0, 0.9, 5.0]);
        assert_eq!(spread, Spread { low: 0.9, median: 1.0, high: 1.1 });
        assert_eq!(Spread::of(vec![2.0]), Spread { low: 2.0, median: 2.0, high: 2.0 });
        assert_ne!(order(1), order(2));
    }
}
