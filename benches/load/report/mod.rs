//! Writes the figures to `target/load/`, for people (Markdown, SVG) and for programs (JSON, with every round). With
//! `--keep`, those for people are also written to `benches/load/results/`.

mod curves;
mod plot;
mod table;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::curves::CurvesResult;
use crate::figures::Throughput;
use crate::memory::MemoryResult;
use crate::outcome::Outcome;
use crate::soak::SoakResult;
use crate::{against, cluster, grown, machine};

pub fn throughput(run: &Throughput, keep: bool) -> Outcome<()> {
    let report = Report { name: "throughput", text: table::throughput(run), plot: Some(plot::throughput(run)) };
    report.write(run, keep)
}

pub fn curves(curved: &CurvesResult, keep: bool) -> Outcome<()> {
    Report { name: "curves", text: table::curves(curved), plot: Some(curves::plot(curved)?) }.write(curved, keep)
}

pub fn soak(soaked: &SoakResult, keep: bool) -> Outcome<()> {
    let report = Report { name: "soak", text: table::soak(soaked), plot: Some(plot::soak(soaked)) };
    report.write(soaked, keep)
}

pub fn memory(measured: &MemoryResult, keep: bool) -> Outcome<()> {
    Report { name: "memory", text: table::memory(measured), plot: None }.write(measured, keep)
}

pub fn against(measured: &against::AgainstResult, keep: bool) -> Outcome<()> {
    Report { name: "against", text: table::against(measured), plot: None }.write(measured, keep)
}

pub fn cluster(measured: &cluster::ClusterResult, keep: bool) -> Outcome<()> {
    Report { name: "cluster", text: table::cluster(measured), plot: None }.write(measured, keep)
}

pub fn grown(measured: &grown::GrownResult, keep: bool) -> Outcome<()> {
    Report { name: "grown", text: table::grown(measured), plot: None }.write(measured, keep)
}

struct Report {
    name: &'static str,
    text: String,
    plot: Option<String>,
}

impl Report {
    fn write(&self, figures: &impl Serialize, keep: bool) -> Outcome<()> {
        println!("{}", self.text);
        let folder = target_folder()?.join("load");
        self.write_to(&folder)?;
        let figures = serde_json::to_string_pretty(figures)? + "\n";
        std::fs::write(folder.join(self.name).with_extension("json"), figures)?;
        if keep {
            self.write_to(&machine::sources().join("benches/load/results"))?;
        }
        Ok(())
    }

    /// Writes the table, and the plot if there is one.
    fn write_to(&self, folder: &Path) -> Outcome<()> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(self.name);
        std::fs::write(path.with_extension("md"), &self.text)?;
        if let Some(plot) = &self.plot {
            std::fs::write(path.with_extension("svg"), plot)?;
        }
        eprintln!("figures: {}", path.with_extension("md").display());
        Ok(())
    }
}

/// Cargo's target folder: this program is in `<target>/<profile>/examples/`.
fn target_folder() -> Outcome<PathBuf> {
    let here = std::env::current_exe()?;
    Ok(here.ancestors().nth(3).ok_or("where this was built is not known")?.to_owned())
}
