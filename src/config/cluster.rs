//! The options of a cluster member.

use std::net::SocketAddr;

use clap::Args;
use hotline_persistence::Durability;

use super::database::DatabaseArgs;
use super::values::address;
use crate::service::ClusterSettings;

/// One of many processes on one database. Without `--cluster-listen` a process is standalone.
#[derive(Args, Clone, Debug)]
pub struct ClusterArgs {
    /// Address and port for the other processes of a cluster, on a private network; without it, this is the only
    /// process on its database. Requires --database-url, --durability database, and --media-store or --media-shared
    #[arg(long, env = "HOTLINE_CLUSTER_LISTEN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub cluster_listen: Option<SocketAddr>,
    /// Host and port at which the other processes reach --cluster-listen; by default its value
    #[arg(long, env = "HOTLINE_CLUSTER_ADDRESS", value_name = "HOST:PORT", value_parser = host_and_port)]
    pub cluster_address: Option<String>,
    /// Name of this process in `hotline cluster status`; by default its cluster address
    #[arg(long, env = "HOTLINE_CLUSTER_NODE", value_name = "NAME", value_parser = node_name)]
    pub cluster_node: Option<String>,
}

impl ClusterArgs {
    /// The settings of a cluster member; `None` for a standalone process.
    ///
    /// # Errors
    /// Every requirement of a cluster that is missing.
    pub(super) fn settings(
        &self,
        database: &DatabaseArgs,
        durability: Durability,
        are_files_shared: bool,
    ) -> Result<Option<ClusterSettings>, String> {
        let Some(listen) = self.cluster_listen else {
            return match (&self.cluster_address, &self.cluster_node) {
                (None, None) => Ok(None),
                _ => Err("--cluster-address and --cluster-node require --cluster-listen".to_owned()),
            };
        };
        let mut missing = Vec::new();
        if database.url().is_none() {
            missing.push("--database-url (the processes share one database)");
        }
        if durability != Durability::Database {
            missing.push("--durability database (the other processes cannot read a journal on this machine)");
        }
        if !are_files_shared {
            missing.push("--media-store or --media-shared (the other processes cannot read files in the data folder)");
        }
        if self.cluster_address.is_none() && (listen.ip().is_unspecified() || listen.port() == 0) {
            missing.push("--cluster-address (the other processes cannot connect to the address of --cluster-listen)");
        }
        if !missing.is_empty() {
            return Err(format!("--cluster-listen requires {}", missing.join(", and ")));
        }
        let address = self.cluster_address.clone().unwrap_or_else(|| listen.to_string());
        let node = self.cluster_node.clone().unwrap_or_else(|| address.clone());
        Ok(Some(ClusterSettings { listen, address, node }))
    }
}

/// Maximum length of a process's name, the same as that of a host name.
const NODE_CHARACTERS_MAX: usize = 253;

/// Parses the name of a process: one word.
fn node_name(text: &str) -> Result<String, String> {
    let is_word = !text.is_empty()
        && text.len() <= NODE_CHARACTERS_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte));
    is_word
        .then(|| text.to_owned())
        .ok_or_else(|| format!("must be 1 to {NODE_CHARACTERS_MAX} letters, digits, `.`, `-`, `_` or `:`"))
}

/// Parses `host:port`; the host may be a name that only the other processes can resolve.
fn host_and_port(text: &str) -> Result<String, String> {
    let error = || "must be a host with a port, for example node-1.internal:7400 or [fd00::1]:7400".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    let url = url::Url::parse(&format!("http://{text}")).map_err(|_| error())?;
    let has_only_host =
        url.path() == "/" && url.username().is_empty() && url.query().is_none() && url.fragment().is_none();
    if is_port && has_only_host && !host.is_empty() && !text.ends_with('/') {
        Ok(text.to_owned())
    } else {
        Err(error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_for_others_is_a_host_with_a_port() {
        for good in ["node-1:7400", "10.0.0.1:7400", "[fd00::1]:7400", "node-1.internal:80"] {
            assert_eq!(host_and_port(good), Ok(good.to_owned()));
        }
        for bad in ["node-1", ":7400", "node-1:0", "node-1:70000", "http://node-1:7400", "node-1:7400/", "a@b:1", ""] {
            assert!(host_and_port(bad).is_err(), "{bad}");
        }
        assert!(node_name("node-1").is_ok() && node_name("").is_err() && node_name("node 1").is_err());
    }
}
