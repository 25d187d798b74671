//! TLS of outgoing calls: `rustls` with `ring`, which compiles in seconds. No dependency links a TLS backend, so every
//! client must be created here; `clippy.toml` enforces this.

use rustls::crypto::ring::default_provider;

/// Installs `ring` as the process's crypto provider. Further calls have no effect.
pub fn install() {
    // An error means that it is already installed.
    let _ = default_provider().install_default();
}

/// A builder for an HTTP client.
#[allow(clippy::disallowed_methods)] // The one place.
pub fn client() -> reqwest::ClientBuilder {
    install();
    reqwest::Client::builder()
}
