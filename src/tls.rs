//! TLS of outgoing calls: `rustls` with `ring`, which compiles in seconds. No dependency links a TLS backend, so every
//! client must be created here; `clippy.toml` enforces this.

use std::sync::LazyLock;

use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls_platform_verifier::ConfigVerifierExt;

/// The root certificates that the clients created here trust: the system's. They are about a hundred files, so they
/// are read once per process.
static TRUST: LazyLock<Result<ClientConfig, rustls::Error>> = LazyLock::new(|| {
    install();
    ClientConfig::with_platform_verifier()
});

/// Installs `ring` as the process's crypto provider. Further calls have no effect.
pub fn install() {
    // An error means that it is already installed.
    let _ = default_provider().install_default();
}

/// A builder for an HTTP client.
pub fn client() -> reqwest::ClientBuilder {
    builder_for(&["h2", "http/1.1"])
}

/// A builder for an HTTP client that speaks HTTP/1.1 only.
pub fn http1_client() -> reqwest::ClientBuilder {
    builder_for(&["http/1.1"]).http1_only()
}

#[allow(clippy::disallowed_methods)] // The only place that may create a client.
fn builder_for(versions: &[&str]) -> reqwest::ClientBuilder {
    let trust = TRUST.clone();
    let builder = reqwest::Client::builder();
    let Ok(mut config) = trust else {
        // Building the client reports the same error.
        return builder;
    };
    config.alpn_protocols = versions.iter().map(|version| version.as_bytes().to_vec()).collect();
    builder.tls_backend_preconfigured(config)
}
