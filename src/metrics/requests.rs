//! Requests by route, method and status, with their response times.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hotline_persistence::histogram::{Histogram, HistogramSnapshot};

use super::routes::Routes;

/// Bucket bounds of the response time, in nanoseconds: 0.5 ms to 10 s.
pub(super) const LATENCY_NS_BOUNDS: &[u64] = &[
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Methods that are counted separately; the last one stands for all others.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "DELETE", "other"];

/// Statuses that are counted separately, sorted. All others are counted together.
const STATUSES: [u16; 19] =
    [200, 201, 202, 204, 302, 304, 307, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503];

/// The route of requests to unknown paths.
const NO_ROUTE: &str = "none";

/// The counters of answered requests.
#[derive(Debug)]
pub struct Requests {
    routes: Routes,
    /// The paths of the route table, then [`NO_ROUTE`].
    route_names: Vec<String>,
    /// The operations by route; for each route, one per method in [`METHODS`].
    operations: Vec<OperationCounters>,
}

/// The index of an operation's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationIndex(usize);

#[derive(Debug)]
struct OperationCounters {
    /// One per status in [`STATUSES`], and one for all others.
    statuses: [AtomicU64; STATUSES.len() + 1],
    latency_ns: Histogram,
}

/// The requests of one operation.
#[derive(Debug)]
pub(super) struct OperationSample<'a> {
    pub(super) route: &'a str,
    pub(super) method: &'static str,
    /// Requests by status, without zeros; `None` stands for all other statuses.
    pub(super) statuses: Vec<(Option<u16>, u64)>,
    pub(super) latency_ns: HistogramSnapshot,
}

impl Requests {
    pub(super) fn new(paths: Vec<String>) -> Self {
        let routes = Routes::of(&paths);
        let mut route_names = paths;
        route_names.push(NO_ROUTE.to_owned());
        let new_counters = || OperationCounters {
            statuses: std::array::from_fn(|_| AtomicU64::new(0)),
            latency_ns: Histogram::new(LATENCY_NS_BOUNDS),
        };
        let operations = std::iter::repeat_with(new_counters).take(route_names.len() * METHODS.len()).collect();
        Self { routes, route_names, operations }
    }

    /// The operation of a request, by its path and its method.
    pub fn find(&self, path: &str, method: &str) -> OperationIndex {
        let route = self.routes.find(path).unwrap_or(self.route_names.len() - 1);
        let method = METHODS.iter().position(|candidate| *candidate == method).unwrap_or(METHODS.len() - 1);
        OperationIndex(route * METHODS.len() + method)
    }

    /// The declared route of an operation.
    pub fn route(&self, operation: OperationIndex) -> &str {
        self.route_names.get(operation.0 / METHODS.len()).map_or(NO_ROUTE, String::as_str)
    }

    /// Counts a response.
    pub fn add_response(&self, operation: OperationIndex, status: u16, latency: Duration) {
        let Some(operation) = self.operations.get(operation.0) else { return };
        let status_index = STATUSES.binary_search(&status).unwrap_or(STATUSES.len());
        operation.statuses[status_index].fetch_add(1, Ordering::Relaxed);
        operation.latency_ns.add(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Every operation with requests.
    pub(super) fn samples(&self) -> impl Iterator<Item = OperationSample<'_>> {
        self.operations.iter().enumerate().filter_map(|(index, operation)| {
            let statuses = operation.statuses.iter().enumerate();
            let statuses = statuses.map(|(index, count)| (STATUSES.get(index).copied(), count.load(Ordering::Relaxed)));
            let statuses: Vec<_> = statuses.filter(|(_, count)| *count > 0).collect();
            (!statuses.is_empty()).then(|| OperationSample {
                route: &self.route_names[index / METHODS.len()],
                method: METHODS[index % METHODS.len()],
                statuses,
                latency_ns: operation.latency_ns.read(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_under_its_route_method_and_status() {
        let requests = Requests::new(vec!["/tickets".to_owned(), "/tickets/{id}".to_owned()]);
        let ms = Duration::from_millis;
        for (path, method, status, latency) in [
            ("/tickets", "GET", 200, ms(3)),
            ("/tickets/7", "GET", 200, ms(3)),
            ("/tickets/8", "GET", 404, ms(20_000)),
            ("/tickets/8", "PATCH", 418, ms(3)),
            ("/elsewhere", "GET", 404, ms(3)),
        ] {
            requests.add_response(requests.find(path, method), status, latency);
        }
        let counts: Vec<_> =
            requests.samples().map(|sample| (sample.route, sample.method, sample.statuses.clone())).collect();
        assert_eq!(
            counts,
            [
                ("/tickets", "GET", vec![(Some(200), 1)]),
                ("/tickets/{id}", "GET", vec![(Some(200), 1), (Some(404), 1)]),
                ("/tickets/{id}", "other", vec![(None, 1)]),
                ("none", "GET", vec![(Some(404), 1)]),
            ]
        );
        let latencies: Vec<_> = requests.samples().map(|sample| sample.latency_ns).collect();
        assert_eq!(latencies[1].counts.first(), Some(&0));
        assert_eq!(latencies[1].counts.last(), Some(&1));
        assert_eq!(latencies[1].sum, 20_003_000_000);
    }

    #[test]
    fn statuses_are_sorted() {
        assert!(STATUSES.is_sorted());
    }
}
