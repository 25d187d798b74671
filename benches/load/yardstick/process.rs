//! The yardsticks' process, as the measuring process starts and ends it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::Settings;
use crate::outcome::Outcome;

/// The running process; dropping it ends it.
pub struct Process {
    child: Child,
    pub address: SocketAddr,
}

impl Process {
    pub fn start(folder: &Path, settings: &Settings) -> Outcome<Self> {
        let path = folder.join("yardstick.json");
        std::fs::write(&path, serde_json::to_vec(settings)?)?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg("yardstick")
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        match line.trim().parse() {
            Ok(address) => Ok(Self { child, address }),
            Err(_) => {
                let _ = child.kill();
                child.wait()?;
                Err("the yardsticks did not start".into())
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
