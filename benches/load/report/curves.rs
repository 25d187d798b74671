//! The curves as SVG.

use plotters::prelude::*;

use crate::curves::{BY_ROWS, CurvesResult, Point};
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Server};

const SIZE: (u32, u32) = (1080, 1800);

/// Width to the right of a plot, for the names of its lines, because within the plot they would cover points.
const LEGEND_WIDTH: u32 = 190;

/// A curve of one server: its name, its colour, its points.
type Line<'a> = (&'a str, RGBColor, Vec<(f64, f64)>);

pub fn plot(curved: &CurvesResult) -> Outcome<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let per_second = |point: &Point| point.round.counted.per_second();
        let by_connections = |scenario: Scenario| {
            let heading = format!("{}: requests a second, by connections", scenario.title());
            let lines = lines(curved, scenario, |point| {
                point.rows.is_none().then(|| (f64::from(point.connections), per_second(point)))
            });
            (heading, ["connections", "requests a second"], lines)
        };
        let by_rows = |scenario: Scenario| {
            let heading = format!("{}: requests a second, by messages that are there", scenario.title());
            let lines = lines(curved, scenario, |point| Some((point.rows? as f64, per_second(point))));
            (heading, ["messages", "requests a second"], lines)
        };
        let by_rate = lines(curved, Scenario::Offered, |point| {
            Some((point.offered.unwrap_or_default(), point.round.counted.p99_us as f64 / 1e3))
        });
        let by_rate = (
            "send: p99 in ms, by the rate that is offered".to_owned(),
            ["offered, requests a second", "p99 ms"],
            by_rate,
        );
        let mut plots = vec![by_connections(Scenario::Send), by_connections(Scenario::Read), by_rate];
        plots.extend(BY_ROWS.map(by_rows));
        for (part, (heading, axes, lines)) in area.split_evenly((plots.len(), 1)).iter().zip(&plots) {
            draw(part, heading, *axes, lines)?;
        }
        area.present()?;
    }
    Ok(svg)
}

/// The line of each server, through the positions that `position_of` returns; points without one are left out.
fn lines(
    curved: &CurvesResult,
    scenario: Scenario,
    position_of: impl Fn(&Point) -> Option<(f64, f64)>,
) -> Vec<Line<'static>> {
    let colors = [
        (Server::Hotline, RGBColor(15, 118, 110)),
        (Server::Bare, RGBColor(148, 163, 184)),
        (Server::Plain, RGBColor(185, 28, 28)),
        (Server::SameSql, RGBColor(100, 116, 139)),
    ];
    let positions = |server: Server| {
        curved
            .points
            .iter()
            .filter(|point| point.scenario == scenario && point.server == server)
            .filter_map(&position_of)
            .collect()
    };
    let lines = colors.map(|(server, color)| (server.title(), color, positions(server)));
    lines.into_iter().filter(|(_, _, points): &Line<'_>| !points.is_empty()).collect()
}

/// Both axes are logarithmic: the same ratio between two servers is the same distance everywhere.
fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    heading: &str,
    [x_label, y_label]: [&str; 2],
    lines: &[Line<'_>],
) -> Outcome<()>
where
    B::ErrorType: 'static,
{
    let points = || lines.iter().flat_map(|(_, _, points)| points);
    let range = |value: fn(&(f64, f64)) -> f64| {
        let values = || points().map(value);
        values().fold(f64::INFINITY, f64::min)..values().fold(0.0, f64::max)
    };
    let (x, y) = (range(|point| point.0), range(|point| point.1));
    if points().next().is_none() {
        return Ok(());
    }
    let mut chart = ChartBuilder::on(area)
        .caption(heading, ("sans-serif", 18))
        .margin(12)
        .margin_right(LEGEND_WIDTH)
        .x_label_area_size(36)
        .y_label_area_size(72)
        .build_cartesian_2d((x.start..x.end).log_scale(), (y.start * 0.8..y.end * 1.25).log_scale())?;
    // Only milliseconds have values below 1.
    let label = |value: &f64| if *value < 1.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    chart
        .configure_mesh()
        .x_desc(x_label)
        .y_desc(y_label)
        .x_label_formatter(&label)
        .y_label_formatter(&label)
        .light_line_style(WHITE)
        .draw()?;
    let left = i32::try_from(area.dim_in_pixel().0.saturating_sub(LEGEND_WIDTH))? + 16;
    for ((name, color, points), top) in lines.iter().zip((48..).step_by(22)) {
        chart.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)).point_size(3))?;
        area.draw(&PathElement::new([(left, top), (left + 16, top)], color.stroke_width(2)))?;
        area.draw(&Text::new(*name, (left + 22, top - 6), ("sans-serif", 13)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{measure, throughput};

    #[test]
    fn every_server_has_its_line_in_every_plot() {
        let run = throughput(Vec::new());
        let mut points = Vec::new();
        for (scenario, offered, rows) in [
            (Scenario::Send, None, None),
            (Scenario::Read, None, None),
            (Scenario::Offered, Some(100.0), None),
            (Scenario::Send, None, Some(1000)),
            (Scenario::List100, None, Some(1000)),
        ] {
            for server in scenario.servers() {
                for (connections, rate) in [(1, 100), (128, 9000)] {
                    let round = measure(scenario, *server, &[rate], 1000).rounds[0];
                    let offered = offered.map(|offered: f64| offered * f64::from(connections));
                    let rows = rows.map(|rows: i64| rows * i64::from(connections));
                    points.push(Point { scenario, server: *server, connections, offered, rows, round });
                }
            }
        }
        let curved = CurvesResult { machine: run.machine, seconds: 1, tickets: 10, sync: run.sync, points };
        assert_eq!(curved.max_per_second(Scenario::Send, Server::Hotline), 9000.0);
        let svg = plot(&curved).expect("a picture");
        assert_eq!(svg.matches("(b) transaction").count(), 3, "reads and lists have no (b)");
        assert_eq!(svg.matches("(a) bare handler").count(), 4);
        assert_eq!(svg.matches(Server::SameSql.title()).count(), 1);
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    }
}
