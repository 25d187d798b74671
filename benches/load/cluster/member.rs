//! One process of the cluster, with its share of the processors.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use crate::cluster::share::Share;
use crate::outcome::Outcome;
use crate::service::{Binary, NEVER_S, Service};
use crate::usage;

/// Settings of every member that is measured: what a cluster needs, and no limit on connections, as all come from one
/// address.
const OPTIONS: [&str; 6] = ["--durability", "database", "--connections-per-address", "0", "--cluster-notice-s", "0"];

pub struct Member {
    pub name: String,
    service: Service,
    /// Dropped after the process has ended, as its group must be empty.
    _share: Share,
}

/// Values that all members have in common.
pub struct Common<'a> {
    pub binary: &'a Binary,
    pub folder: &'a Path,
    pub database_url: &'a str,
    /// Each member's share of one processor, in percent.
    pub percent: u64,
}

impl Member {
    pub fn start(common: &Common<'_>, number: usize) -> Outcome<Self> {
        let name = format!("node-{number}");
        let folder: PathBuf = common.folder.join(&name);
        std::fs::create_dir_all(&folder)?;
        let share = Share::create(&name, common.percent)?;
        let peers = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let at = |name: &str| common.folder.join(name).display().to_string();
        let database =
            ["--database-url".to_owned(), common.database_url.to_owned(), "--key-file".to_owned(), at("secrets.key")];
        let mut options: Vec<String> = OPTIONS.map(str::to_owned).to_vec();
        options.extend(["--idle-after-s".to_owned(), NEVER_S.to_string()]);
        options.extend(["--media-shared".to_owned(), at("media")]);
        options.extend(["--cluster-listen".to_owned(), peers.to_string(), "--cluster-node".to_owned(), name.clone()]);
        let service = Service::start_on(common.binary, &folder, &database, &options)?;
        share.add_process(service.pid())?;
        Ok(Self { name, service, _share: share })
    }

    pub fn address(&self) -> SocketAddr {
        self.service.address
    }

    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Processor time it has used so far.
    pub fn processor_s(&self) -> Outcome<f64> {
        usage::processor_s(self.service.pid())
    }

    /// Lets the member hand its companies to the others, and end.
    pub fn stop(self) -> Outcome<()> {
        let Self { name: _, service, _share: share } = self;
        let stopped = service.stop();
        drop(share);
        stopped
    }
}
