//! nginx or Caddy as a process, with the configuration that is shipped: only names, ports and the certificate are
//! replaced, as an operator would.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hotline_persistence::tables::tokens::KEY_PREFIX;
use reqwest::Client;
use reqwest::redirect::Policy;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

use crate::support::{Api, empty_folder, eventually, patience};

/// Which proxy it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Nginx,
    Caddy,
}

impl Kind {
    fn program(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Caddy => "caddy",
        }
    }

    /// Debian's nginx is in a folder that only root has in its `PATH`.
    fn path() -> String {
        format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default())
    }

    fn command(self) -> Command {
        let mut command = Command::new(self.program());
        command.env("PATH", Self::path());
        command
    }

    pub fn is_installed(self) -> bool {
        std::env::split_paths(&Self::path()).any(|folder| folder.join(self.program()).is_file())
    }
}

/// A running proxy.
pub struct Proxy {
    child: Child,
    /// `https://localhost:port`.
    pub base: String,
    http: SocketAddr,
    certificate: PathBuf,
    folder: TempDir,
}

/// Maximum time until an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

fn shipped(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(path)
}

/// The text with `from` replaced, which it must contain.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the configuration has no {from}");
    text.replace(from, to)
}

impl Proxy {
    /// Starts a proxy in front of this service.
    pub async fn start(kind: Kind, upstream: SocketAddr) -> Self {
        let folder = empty_folder();
        // `localhost` is 127.0.0.1, so the ports must be free at that address.
        let [http, https] = [(); 2].map(|()| SocketAddr::from(([127, 0, 0, 1], free_port())));
        let (mut command, certificate) = match kind {
            Kind::Nginx => nginx(folder.path(), upstream, http, https),
            Kind::Caddy => caddy(folder.path(), upstream, http, https),
        };
        let log = std::fs::File::create(folder.path().join("proxy.log")).expect("a log");
        let errors = log.try_clone().expect("a log");
        let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().expect("the proxy runs");
        let proxy = Self { child, base: format!("https://localhost:{}", https.port()), http, certificate, folder };
        eventually("the proxy answers", || async {
            if !proxy.certificate.is_file() {
                return false;
            }
            let live = proxy.client(None).get(format!("{}/health/live", proxy.base)).send().await;
            live.is_ok_and(|live| live.status() == 200)
        })
        .await;
        proxy
    }

    /// A client that trusts only the proxy's certificate, and speaks HTTP/1.1.
    #[allow(clippy::disallowed_methods)] // It trusts only the proxy's certificate.
    fn client(&self, from: Option<IpAddr>) -> Client {
        hotline::tls::install();
        let mut roots = RootCertStore::empty();
        let pem = std::fs::read(&self.certificate).expect("the certificate");
        roots.add(CertificateDer::from_pem_slice(&pem).expect("a certificate")).expect("a root");
        let trust = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let client = Client::builder().tls_backend_preconfigured(trust).http1_only().redirect(Policy::none());
        let client = client.resolve("localhost", SocketAddr::from(([127, 0, 0, 1], 0)));
        client.local_address(from).timeout(patience(ANSWER_TIME_MAX)).build().expect("a client")
    }

    /// The API through the proxy.
    pub fn api(&self, key: &str) -> Api {
        assert!(key.starts_with(KEY_PREFIX), "no token");
        Api::through(self.client(None), &self.base, key)
    }

    /// The API through the proxy, called from another address of this machine.
    pub fn api_from(&self, address: &str, key: &str) -> Api {
        Api::through(self.client(Some(address.parse().expect("an address"))), &self.base, key)
    }

    /// The address to which the proxy redirects a request over http.
    pub async fn redirect_target(&self) -> String {
        let url = format!("http://localhost:{}/docs/?a=b", self.http.port());
        let response = self.client(None).get(url).send().await.expect("a response");
        assert!(response.status().is_redirection(), "{}", response.status());
        response.headers()["location"].to_str().expect("an address").to_owned()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("proxy.log")).expect("the log")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Runs after a failed test too. On SIGTERM, unlike SIGKILL, nginx ends its workers.
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).expect("a process"));
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    // The system chooses it at the address that the proxy listens on. Another process could take it only in the short
    // time until then.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// A self-signed certificate of `localhost`.
fn certificate(folder: &Path) -> PathBuf {
    let (certificate, key) = (folder.join("fullchain.pem"), folder.join("privkey.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    certificate
}

fn nginx(folder: &Path, upstream: SocketAddr, http: SocketAddr, https: SocketAddr) -> (Command, PathBuf) {
    let certificate = certificate(folder);
    let text = std::fs::read_to_string(shipped("nginx/hotline.conf")).expect("the configuration");
    let text = replaced(&text, "127.0.0.1:8080;", &format!("{upstream};"));
    let text = replaced(&text, "listen 80;", &format!("listen {http};"));
    let text = replaced(&text, "listen 443 ssl", &format!("listen {https} ssl"));
    // This machine may have no IPv6.
    let text = replaced(&text, "    listen [::]:80;\n", "");
    let text = replaced(&text, "    listen [::]:443 ssl http2;\n", "");
    let text = replaced(&text, "https://$host$request_uri", &format!("https://$host:{}$request_uri", https.port()));
    let text = replaced(&text, "/etc/letsencrypt/live/support.example.com", &folder.display().to_string());
    let text = replaced(&text, "server_name support.example.com;", "server_name localhost;");
    std::fs::write(folder.join("hotline.conf"), text).expect("written");
    let of = |name: &str| folder.join(name).display().to_string();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|part| format!("{part}_temp_path {};\n", of(part)))
        .collect();
    // Started by root, nginx would run its workers as another user, who may not enter this folder.
    let user = if nix::unistd::geteuid().is_root() { "user root;\n" } else { "" };
    let main = format!(
        "{user}daemon off;\nworker_processes 1;\npid {};\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n\
         {temporary}include {};\n}}\n",
        of("nginx.pid"),
        of("hotline.conf")
    );
    std::fs::write(folder.join("nginx.conf"), main).expect("written");
    let mut command = Kind::Nginx.command();
    command.arg("-e").arg("stderr").arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
    (command, certificate)
}

fn caddy(folder: &Path, upstream: SocketAddr, http: SocketAddr, https: SocketAddr) -> (Command, PathBuf) {
    // The main file of a package leaves these settings at their defaults. The test needs its own ports, and must not
    // change the machine.
    let main = format!(
        "{{\n\thttp_port {}\n\thttps_port {}\n\tdefault_bind 127.0.0.1\n\tadmin off\n\tskip_install_trust\n}}\nimport {}\n",
        http.port(),
        https.port(),
        shipped("caddy/Caddyfile").display()
    );
    std::fs::write(folder.join("Caddyfile"), main).expect("written");
    let mut command = Kind::Caddy.command();
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(folder.join("Caddyfile"));
    command.env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder).env("HOME", folder);
    command.env("HOTLINE_SITE", "localhost").env("HOTLINE_UPSTREAM", upstream.to_string());
    (command, folder.join("caddy/pki/authorities/local/root.crt"))
}
