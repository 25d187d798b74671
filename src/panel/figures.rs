//! The metrics of `/metrics` as JSON, for the page that charts them.

use std::collections::BTreeMap;

use actix_web::web::Data;
use hotline_actors::{Engine, clock};
use hotline_persistence::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::extractors::InstallationAdmin;
use crate::app::App;
use crate::metrics;
use crate::web::{ApiError, ApiResult, Json};

/// All metrics at one time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// When they were collected.
    pub at: Timestamp,
    /// The metrics.
    pub figures: Vec<Figure>,
}

/// A metric; see `docs/metrics.md`.
#[derive(Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    /// The name.
    #[schema(example = "hotline_http_requests_total")]
    pub name: String,
    /// The metric's type: `counter`, `gauge`, `histogram` or `info`.
    #[schema(example = "counter")]
    pub kind: String,
    /// The metric's help text.
    #[schema(example = "Requests answered")]
    pub help: String,
    /// The values.
    pub samples: Vec<Sample>,
}

/// A value of a metric.
#[derive(Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// Suffix of the name: `_bucket`, `_sum`, `_count`, or empty.
    #[schema(example = "_sum")]
    pub suffix: String,
    /// The labels.
    #[schema(example = json!({"method": "GET"}))]
    pub labels: BTreeMap<String, String>,
    /// The value; `null` if it is not a number.
    #[schema(example = 42.0)]
    pub value: Option<f64>,
}

/// `GET /installation/figures`.
pub async fn show(_: InstallationAdmin, app: Data<App>) -> ApiResult<Json<Figures>> {
    let text = metrics::text(Engine::clone(&app.engine), app.metrics.clone()).await.map_err(ApiError::internal)?;
    Ok(Json::of(Figures { at: clock::now().into(), figures: parse_metrics(&text) }))
}

/// Parses the text of `/metrics`; the metrics keep their order.
fn parse_metrics(text: &str) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (Some(keyword), Some(name), rest) = (words.next(), words.next(), words.next().unwrap_or_default())
            else {
                continue;
            };
            if figures.last().is_none_or(|figure| figure.name != name) {
                figures.push(Figure { name: name.to_owned(), ..Figure::default() });
            }
            let Some(figure) = figures.last_mut() else { continue };
            match keyword {
                "HELP" => rest.trim_end_matches('.').clone_into(&mut figure.help),
                "TYPE" => rest.clone_into(&mut figure.kind),
                _ => {}
            }
        } else if let Some(figure) = figures.last_mut() {
            figure.samples.extend(parse_sample(&figure.name, line));
        }
    }
    figures
}

/// Parses `name_suffix{label="value",…} number`.
fn parse_sample(name: &str, line: &str) -> Option<Sample> {
    let rest = line.strip_prefix(name)?;
    let (rest, value) = rest.rsplit_once(' ')?;
    let (suffix, mut unparsed_labels) =
        rest.split_once('{').map_or((rest, ""), |(suffix, labels)| (suffix, labels.trim_end_matches('}')));
    let mut labels = BTreeMap::new();
    while let Some((label, value_and_rest)) = unparsed_labels.split_once("=\"") {
        let mut label_value = String::new();
        let mut characters = value_and_rest.char_indices();
        let mut end = value_and_rest.len();
        while let Some((index, character)) = characters.next() {
            match character {
                '\\' => label_value
                    .extend(characters.next().map(|(_, escaped)| if escaped == 'n' { '\n' } else { escaped })),
                '"' => {
                    end = index + 1;
                    break;
                }
                plain => label_value.push(plain),
            }
        }
        labels.insert(label.trim_start_matches(',').to_owned(), label_value);
        unparsed_labels = value_and_rest.get(end..).unwrap_or_default();
    }
    let value = value.parse::<f64>().ok().filter(|value| value.is_finite());
    Some(Sample { suffix: suffix.to_owned(), labels, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_parsed_with_its_labels() {
        let text = "# HELP hotline_requests Requests, answered.\n# TYPE hotline_requests counter\n\
            hotline_requests_total{route=\"/a/{id}\",text=\"x, \\\"y\\\" \\\\\"} 7\nhotline_requests_total 0.5\n\
            # HELP hotline_up Whether it is up.\n# TYPE hotline_up gauge\nhotline_up NaN\n# EOF\n";
        let figures = parse_metrics(text);
        assert_eq!(figures.len(), 2, "{figures:?}");
        let labels =
            [("route", "/a/{id}"), ("text", "x, \"y\" \\")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            figures[0],
            Figure {
                name: "hotline_requests".to_owned(),
                kind: "counter".to_owned(),
                help: "Requests, answered".to_owned(),
                samples: vec![
                    Sample { suffix: "_total".to_owned(), labels: labels.into(), value: Some(7.0) },
                    Sample { suffix: "_total".to_owned(), labels: BTreeMap::new(), value: Some(0.5) },
                ],
            }
        );
        assert_eq!(figures[1].samples[0].value, None);
    }
}
