//! TLS of the calls this process makes: `rustls` over `ring`, which is built in seconds. Nobody else links a backend
//! in, so every client is made here; `clippy.toml` enforces it.

use rustls::crypto::ring::default_provider;

/// Makes `ring` the process's backend. A second time changes nothing.
pub fn install() {
    // Refused when it is there already.
    let _ = default_provider().install_default();
}

/// A client to be set up.
#[allow(clippy::disallowed_methods)] // The one place.
pub fn client() -> reqwest::ClientBuilder {
    install();
    reqwest::Client::builder()
}
