//! Writes metrics in the Prometheus text format.

use std::fmt;

use hotline_persistence::histogram::HistogramSnapshot;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// Writes metrics one after the other.
pub(super) struct MetricWriter<'a>(DescriptorEncoder<'a>);

impl<'a> MetricWriter<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    fn begin(&mut self, name: &'static str, help: &str, kind: MetricType) -> Result<MetricSamples<'_>, fmt::Error> {
        Ok(MetricSamples(self.0.encode_descriptor(name, help, None, kind)?))
    }

    pub(super) fn gauges(&mut self, name: &'static str, help: &str) -> Result<MetricSamples<'_>, fmt::Error> {
        self.begin(name, help, MetricType::Gauge)
    }

    pub(super) fn gauge(&mut self, name: &'static str, help: &str, value: impl EncodeGaugeValue) -> fmt::Result {
        self.gauges(name, help)?.0.encode_gauge(&value)
    }

    /// `name` includes `_total`, because header and samples have the same name in the Prometheus text format. The
    /// encoder is for OpenMetrics and would add `_total` to the samples of a counter, so they are encoded as those of a
    /// gauge.
    pub(super) fn counters(&mut self, name: &'static str, help: &str) -> Result<MetricSamples<'_>, fmt::Error> {
        self.begin(name, help, MetricType::Counter)
    }

    pub(super) fn counter(&mut self, name: &'static str, help: &str, value: u64) -> fmt::Result {
        self.counters(name, help)?.0.encode_gauge(&value)
    }

    /// Like [`Self::counter`], for a value with a fraction.
    pub(super) fn seconds_counter(&mut self, name: &'static str, help: &str, value: f64) -> fmt::Result {
        self.counters(name, help)?.0.encode_gauge(&value)
    }

    pub(super) fn histograms(&mut self, name: &'static str, help: &str) -> Result<MetricSamples<'_>, fmt::Error> {
        self.begin(name, help, MetricType::Histogram)
    }

    pub(super) fn histogram(
        &mut self,
        name: &'static str,
        help: &str,
        snapshot: &HistogramSnapshot,
        values_per_unit: f64,
    ) -> fmt::Result {
        write_histogram(&mut self.histograms(name, help)?.0, snapshot, values_per_unit)
    }
}

/// The samples of one metric.
pub(super) struct MetricSamples<'a>(MetricEncoder<'a>);

impl MetricSamples<'_> {
    pub(super) fn value<const N: usize>(&mut self, labels: [(&str, &str); N], value: u64) -> fmt::Result {
        self.0.encode_family(&labels)?.encode_gauge(&value)
    }

    pub(super) fn histogram<const N: usize>(
        &mut self,
        labels: [(&str, &str); N],
        snapshot: &HistogramSnapshot,
        values_per_unit: f64,
    ) -> fmt::Result {
        write_histogram(&mut self.0.encode_family(&labels)?, snapshot, values_per_unit)
    }
}

/// Writes a histogram; `values_per_unit` converts its values to the displayed unit: 1e9 for nanoseconds as seconds.
#[allow(clippy::cast_precision_loss)] // 53 bits are precise enough.
fn write_histogram(encoder: &mut MetricEncoder<'_>, snapshot: &HistogramSnapshot, values_per_unit: f64) -> fmt::Result {
    let bounds = snapshot.bounds.iter().map(|bound| *bound as f64 / values_per_unit).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(snapshot.counts.iter().copied()).collect();
    encoder.encode_histogram::<NoLabelSet>(snapshot.sum as f64 / values_per_unit, snapshot.count(), &buckets, None)
}
