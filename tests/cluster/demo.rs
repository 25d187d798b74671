//! `make demo-cluster`: it shows a kill without a loss, and Ctrl-C ends all of it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::process::{binary, data_folder};

/// Part of the line after a process was killed and taken over from.
const TAKEN_OVER: &str = "is started again";

#[test]
fn a_person_sees_a_takeover_without_a_loss_and_nothing_is_left_behind() {
    let folder = data_folder();
    let example = binary().with_file_name("examples").join("demo_cluster");
    let mut demo = Command::new(&example);
    // All files of the demo are in this folder.
    demo.env("TMPDIR", folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
    // A run of all tests has built it.
    let mut demo =
        demo.spawn().unwrap_or_else(|error| panic!("cargo build --example demo_cluster: {example:?}: {error}"));
    let mut printed = Vec::new();
    for line in BufReader::new(demo.stdout.take().expect("its lines")).lines().map_while(Result::ok) {
        if line.contains(TAKEN_OVER) {
            kill(Pid::from_raw(demo.id() as i32), Signal::SIGINT).expect("SIGINT");
        }
        println!("{line}");
        printed.push(line);
    }
    let status = demo.wait().expect("its end");
    assert!(status.success(), "the demo failed: {status}");
    for words in [
        "is killed (kill -9)",
        "has taken over.",
        "unaffected company",
        TAKEN_OVER,
        " and 0 of them are lost",
        "All has ended, and nothing is left behind.",
    ] {
        assert!(printed.iter().any(|line| line.contains(words)), "no line has {words:?}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").filter_map(Result::ok).collect();
    assert!(left.is_empty(), "files are left: {left:?}");
    assert_eq!(processes_of(folder.path()), Vec::<String>::new(), "processes are left");
}

/// The commands of the processes that name this folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let name = folder.to_str().expect("a path");
    let all = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let commands = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let commands = commands.map(|command| String::from_utf8_lossy(&command).replace('\0', " "));
    commands.filter(|command| command.contains(name)).collect()
}
