//! What `/metrics` shows, read as strictly as Prometheus does.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Every sample by its name and labels, as written.
#[derive(Debug)]
pub struct ScrapedMetrics(BTreeMap<String, f64>);

impl ScrapedMetrics {
    pub async fn of(address: SocketAddr) -> Self {
        let client = hotline::tls::client().build().expect("a client");
        let response = client.get(format!("http://{address}/metrics")).send().await.expect("metrics are served");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
        Self::parse(&response.text().await.expect("text"))
    }

    /// A sample, which must be there.
    #[track_caller]
    pub fn value(&self, sample: &str) -> f64 {
        self.get(sample).unwrap_or_else(|| panic!("no {sample} in {:#?}", self.0))
    }

    pub fn get(&self, sample: &str) -> Option<f64> {
        self.0.get(sample).copied()
    }

    /// Samples whose name or labels contain this text.
    pub fn with(&self, text: &str) -> Vec<(&str, f64)> {
        let matching = self.0.iter().filter(|(sample, _)| sample.contains(text));
        matching.map(|(sample, value)| (sample.as_str(), *value)).collect()
    }

    fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line does not end with a newline");
        let mut families: BTreeMap<&str, &str> = BTreeMap::new();
        let mut names_with_help = BTreeSet::new();
        let mut samples = BTreeMap::new();
        let mut current = "";
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').expect("a help has words");
                check_name(name);
                assert!(!words.is_empty() && names_with_help.insert(name), "{line}");
                current = name;
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a type has a kind");
                assert_eq!(name, current, "a type after the help of another metric");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                assert!(families.insert(name, kind).is_none(), "twice: {line}");
            } else {
                let (sample, value) = line.rsplit_once(' ').expect("a sample has a value");
                let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
                let name = sample.split('{').next().expect("a name");
                let kind = families.get(current).unwrap_or_else(|| panic!("a sample before its type: {line}"));
                let ending = name.strip_prefix(current).unwrap_or_else(|| panic!("not a sample of {current}: {line}"));
                let endings: &[&str] = if *kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                assert!(endings.contains(&ending), "{line}");
                if let Some(labels) = sample.strip_prefix(name).filter(|labels| !labels.is_empty()) {
                    check_labels(labels);
                }
                assert!(
                    value >= 0.0 && samples.insert(sample.to_owned(), value).is_none(),
                    "negative, or twice: {line}"
                );
            }
        }
        assert_eq!(names_with_help.len(), families.len(), "a help without a type");
        let metrics = Self(samples);
        metrics.check_histograms();
        metrics
    }

    /// Checks that the counts of buckets only grow, and that the last one counts everything.
    fn check_histograms(&self) {
        for (sample, count) in self.with("_count") {
            let (name, labels) = sample.split_once("_count").expect("it ends so");
            let labels = labels.trim_matches(['{', '}']);
            let mut buckets: Vec<(f64, f64)> = self
                .with(&format!("{name}_bucket{{"))
                .into_iter()
                .filter_map(|(bucket, value)| {
                    let (_, inside) = bucket.trim_end_matches('}').split_once('{')?;
                    let (le, others) = inside.strip_prefix("le=\"")?.split_once('"')?;
                    (others.trim_start_matches(',') == labels).then(|| (le.parse().expect("a bound"), value))
                })
                .collect();
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{sample}: {buckets:?}");
            assert_eq!(buckets.last(), Some(&(f64::INFINITY, count)), "{sample}: {buckets:?}");
        }
    }
}

fn check_name(name: &str) {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    // Metrics of the process have the names that every Prometheus client gives them.
    assert!((name.starts_with("hotline_") || name.starts_with("process_")) && is_plain, "{name}");
}

fn check_labels(labels: &str) {
    let inside = labels.strip_prefix('{').and_then(|labels| labels.strip_suffix('}')).expect("labels in braces");
    let mut names = BTreeSet::new();
    // No value of ours contains a comma or a quote.
    for label in inside.split(',') {
        let (name, value) = label.split_once('=').expect("a label has a value");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') && names.insert(name), "{labels}");
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).expect("a value in quotes");
        assert!(!value.contains(['"', '\\']), "{labels}");
    }
}
