//! The figures as SVG: ratios as bars with the aims as lines, latencies as spans from p50 to p99.

use std::fmt::Write as _;

use crate::figures::{Measure, Throughput};
use crate::scenario::Server;
use crate::soak::SoakResult;

const WIDTH: f64 = 960.0;
/// Where labels end and figures begin, and where figures end.
const LEFT: f64 = 300.0;
const RIGHT: f64 = 900.0;
const ROW_HEIGHT: f64 = 20.0;
/// Width of a figure beside its bar.
const FIGURE_WIDTH: f64 = 36.0;

const HOTLINE: &str = "#0f766e";
const YARDSTICK: &str = "#94a3b8";
const AIM: &str = "#b91c1c";
const INK: &str = "#1e293b";
const RULE: &str = "#e2e8f0";

/// A picture that grows downwards.
struct Svg {
    body: String,
    y: f64,
}

impl Svg {
    fn new() -> Self {
        Self { body: String::new(), y: 0.0 }
    }

    fn text(&mut self, x: f64, anchor: &str, size: u32, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let y = self.y;
        self.push(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}" fill="{INK}">{text}</text>"#
        ));
    }

    fn heading(&mut self, text: &str) {
        self.y += 36.0;
        self.text(16.0, "start", 15, text);
        self.y += 10.0;
    }

    fn rectangle(&mut self, from: f64, to: f64, y: f64, height: f64, color: &str) {
        let width = (to - from).max(1.0);
        self.push(format_args!(
            r#"<rect x="{from:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{color}"/>"#
        ));
    }

    fn line(&mut self, x: (f64, f64), y: (f64, f64), color: &str) {
        self.push(format_args!(
            r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="{color}" stroke-width="1.5"/>"#,
            x.0, y.0, x.1, y.1
        ));
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }

    fn finish(self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"system-ui, sans-serif\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
             {}</svg>\n",
            self.body,
            height = self.y + 24.0
        )
    }
}

pub fn throughput(run: &Throughput) -> String {
    let mut svg = Svg::new();
    // Hotline is many times as fast as (b), and slower than the others: these need two scales.
    ratios(&mut svg, run, "Requests a second, as a part of a bare handler's (a) and of the same SQL's (c)", |server| {
        matches!(server, Server::Bare | Server::SameSql)
    });
    ratios(&mut svg, run, "Requests a second, as a multiple of one transaction a request (b)", |server| {
        server == Server::Plain
    });
    latencies(&mut svg, run);
    svg.finish()
}

fn ratios(svg: &mut Svg, run: &Throughput, heading: &str, is_shown: impl Fn(Server) -> bool) {
    let rows: Vec<(&Measure, f64)> = run
        .measures
        .iter()
        .filter(|measure| is_shown(measure.server))
        .filter_map(|measure| Some((measure, run.ratio(measure.scenario, measure.server, measure.connections)?)))
        .collect();
    let aim = |measure: &Measure| measure.scenario.aims().iter().find(|aim| aim.server == measure.server);
    let reached = rows.iter().map(|(measure, ratio)| ratio.max(aim(measure).map_or(0.0, |aim| aim.at_least)));
    let Some(ratio_max) = reached.reduce(f64::max) else { return };
    let x = |ratio: f64| LEFT + (RIGHT - LEFT) * ratio / (ratio_max * 1.1).max(1.0);
    svg.heading(heading);
    for (measure, ratio) in rows {
        svg.y += ROW_HEIGHT;
        svg.text(LEFT - 8.0, "end", 12, &label(measure));
        svg.rectangle(x(0.0), x(ratio), svg.y - 12.0, 14.0, HOTLINE);
        let mut end = x(ratio);
        if let Some(aim) = aim(measure) {
            let at = x(aim.at_least);
            svg.line((at, at), (svg.y - 15.0, svg.y + 5.0), AIM);
            // The figure is not written across the line.
            end = if (end..end + FIGURE_WIDTH).contains(&at) { at } else { end };
        }
        svg.text(end + 6.0, "start", 12, &format!("{ratio:.2}"));
    }
    svg.y += 16.0;
    svg.text(LEFT, "start", 11, "red: the aim");
}

/// Decades of the scale, in microseconds.
const DECADES: [f64; 6] = [1e1, 1e2, 1e3, 1e4, 1e5, 1e6];

fn latencies(svg: &mut Svg, run: &Throughput) {
    if run.measures.is_empty() {
        return;
    }
    let x = |us: f64| {
        let fraction = (us.clamp(DECADES[0], DECADES[5]) / DECADES[0]).log10() / 5.0;
        LEFT + (RIGHT - LEFT) * fraction
    };
    svg.heading("Latency, from p50 to p99 (logarithmic)");
    let top = svg.y + 8.0;
    let bottom = top + ROW_HEIGHT * run.measures.len() as f64 + 4.0;
    for decade in DECADES {
        svg.line((x(decade), x(decade)), (top, bottom), RULE);
    }
    for measure in &run.measures {
        svg.y += ROW_HEIGHT;
        svg.text(LEFT - 8.0, "end", 12, &label(measure));
        let color = if measure.server == Server::Hotline { HOTLINE } else { YARDSTICK };
        svg.rectangle(x(measure.p50_us()), x(measure.p99_us()), svg.y - 10.0, 9.0, color);
    }
    svg.y = bottom + 14.0;
    for (decade, name) in DECADES.iter().zip(["10 µs", "0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s"]) {
        svg.text(x(*decade), "middle", 11, name);
    }
}

fn label(measure: &Measure) -> String {
    format!("{}, {} conn. · {}", measure.scenario.title(), measure.connections, measure.server.title())
}

/// Height of a curve.
const CURVE_HEIGHT: f64 = 180.0;

pub fn soak(soaked: &SoakResult) -> String {
    let mut svg = Svg::new();
    let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    let points = |figure: &dyn Fn(&crate::soak::Sample) -> f64| -> Vec<(f64, f64)> {
        soaked.samples.iter().map(|sample| (sample.at_s, figure(sample))).collect()
    };
    curve(&mut svg, "Memory of Hotline, MiB", &points(&|sample| mib(sample.hotline_bytes)));
    curve(&mut svg, "Most seconds the tables were behind", &points(&|sample| sample.lag_s_max));
    svg.finish()
}

fn curve(svg: &mut Svg, heading: &str, points: &[(f64, f64)]) {
    let value_max = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let Some(&(last, _)) = points.last().filter(|_| value_max > 0.0) else { return };
    svg.heading(&format!("{heading} (scale to {value_max:.2}, {last:.0} s)"));
    let (top, bottom) = (svg.y + 8.0, svg.y + 8.0 + CURVE_HEIGHT);
    let (left, right) = (40.0, RIGHT);
    svg.line((left, right), (bottom, bottom), RULE);
    svg.line((left, right), (top, top), RULE);
    let position = |(at, value): &(f64, f64)| {
        format!("{:.1},{:.1}", left + (right - left) * at / last, bottom - CURVE_HEIGHT * value / value_max)
    };
    let path: Vec<String> = points.iter().map(position).collect();
    svg.push(format_args!(
        r#"<polyline points="{}" fill="none" stroke="{HOTLINE}" stroke-width="2"/>"#,
        path.join(" ")
    ));
    svg.y = bottom;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::{measure, throughput};
    use crate::scenario::Scenario;

    #[test]
    fn each_comparison_has_a_bar_and_its_aim_a_line() {
        let run = throughput(vec![
            measure(Scenario::Send, Server::Hotline, &[600], 1500),
            measure(Scenario::Send, Server::Bare, &[1000], 1000),
            measure(Scenario::Send, Server::Plain, &[100], 9000),
        ]);
        let svg = super::throughput(&run);
        assert_eq!(svg.matches(AIM).count(), 2);
        assert!(svg.contains(">0.60</text>") && svg.contains(">6.00</text>"), "{svg}");
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
}
