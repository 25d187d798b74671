//! The machine: its ports, and the disk of the data folder.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::RequestBuilder;

use crate::api::health::Liveness;
use crate::cli::findings::Finding;
use crate::service::Settings;

/// Number of syncs that are measured.
const SYNCS: usize = 20;

/// Maximum time of a sync: every change waits for at least one.
const SYNC_TIME_MAX: Duration = Duration::from_millis(20);

/// Bytes per sync: those of a few changes.
const SYNC_BYTES: usize = 4096;

/// Timeout for an answer at an address that is in use.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);

/// How much of an answer is read: its first lines identify a Hotline, and another program may never stop sending.
const ANSWER_BYTES_MAX: usize = 64 << 10;

pub async fn check(settings: &Settings) -> Vec<Finding> {
    let mut findings = vec![check_port("port", "--listen", settings.listen).await];
    if let Some(address) = settings.metrics_listen {
        findings.push(check_port("metrics port", "--metrics-listen", address).await);
    }
    if settings.data_dir.is_dir() {
        findings.push(check_space(settings));
        findings.push(check_sync(&settings.data_dir));
    } else {
        let found = format!("`{}` does not exist", settings.data_dir.display());
        findings.push(Finding::note("data folder", found, "the first start creates it"));
    }
    findings
}

async fn check_port(check: &'static str, option: &str, address: SocketAddr) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(check, format!("{address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match is_hotline(address).await {
            true => Finding::ok(check, format!("{address} is served by a Hotline")),
            false => {
                let next = format!("stop the other program, or choose another address with {option}");
                Finding::problem(check, format!("{address} is in use by another program"), next)
            }
        },
        Err(error) => Finding::problem(check, format!("{address}: {error}"), format!("correct {option}")),
    }
}

/// Whether a Hotline answers at this address: its health check, or metrics with its names.
async fn is_hotline(address: SocketAddr) -> bool {
    let Ok(client) = crate::tls::client().timeout(ANSWER_TIME_MAX).build() else { return false };
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    let liveness = format!(r#""status":"{}""#, Liveness::LIVE.status);
    for (path, expected_text) in [("/health/live", liveness.as_str()), ("/metrics", "hotline_")] {
        let text = read_start(client.get(format!("http://{address}{path}"))).await;
        if text.is_some_and(|text| text.contains(expected_text)) {
            return true;
        }
    }
    false
}

/// The start of the answer to a request; `None` if the request fails.
async fn read_start(request: RequestBuilder) -> Option<String> {
    let mut response = request.send().await.ok().filter(|response| response.status().is_success())?;
    let mut bytes = Vec::new();
    while bytes.len() < ANSWER_BYTES_MAX
        && let Some(chunk) = response.chunk().await.ok()?
    {
        bytes.extend_from_slice(&chunk);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn check_space(settings: &Settings) -> Finding {
    const SPACE: &str = "disk space";
    let statistics = match nix::sys::statvfs::statvfs(&settings.data_dir) {
        Ok(statistics) => statistics,
        Err(error) => return Finding::problem(SPACE, error.to_string(), "check the data folder's permissions"),
    };
    let fragments: u64 = statistics.blocks_available();
    let free = fragments.saturating_mul(statistics.fragment_size());
    let found = format!("{} MiB free", free >> 20);
    if free < settings.media.free_bytes_min {
        let next = "files are refused below --min-free-space: free some space, or use a larger disk";
        return Finding::problem(SPACE, found, next);
    }
    if free < settings.journal.max_bytes {
        let next = "while the database is unavailable the journal may need up to --journal-max-size";
        return Finding::note(SPACE, found, next);
    }
    Finding::ok(SPACE, found)
}

fn check_sync(folder: &Path) -> Finding {
    const SYNC: &str = "disk sync";
    match median_sync_time(folder) {
        Ok(time) => {
            let found = format!("{:.1} ms", time.as_secs_f64() * 1000.0);
            match time > SYNC_TIME_MAX {
                true => {
                    Finding::problem(SYNC, found, "each change waits for it: use a faster disk for the data folder")
                }
                false => Finding::ok(SYNC, found),
            }
        }
        Err(error) => Finding::problem(SYNC, error.to_string(), "run this command as the service's user"),
    }
}

/// The median time of a sync, measured in a temporary file.
fn median_sync_time(folder: &Path) -> io::Result<Duration> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let started_at = Instant::now();
        file.write_all(&[0x5a; SYNC_BYTES])?;
        file.sync_data()?;
        times.push(started_at.elapsed());
    }
    times.sort_unstable();
    Ok(times[SYNCS / 2])
}
