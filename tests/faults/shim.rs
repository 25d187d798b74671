//! Controls the shim, a library that makes the faults of disk and clock in the service: see `shim.c`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fault, or a count, in the order of `enum knob` in `shim.c`.
#[derive(Clone, Copy, Debug)]
pub enum Knob {
    SyncDelayUs,
    SyncErrno,
    GrowErrno,
    ChangeErrno,
    PowerCut,
    ClockOffsetS,
    Syncs,
}

const KNOBS: u64 = 7;
const KNOB_BYTES: u64 = size_of::<i64>() as u64;

/// The shim of one data folder. It takes effect at the next start, and its faults may be changed at any time.
pub struct Shim {
    library: PathBuf,
    control: PathBuf,
    knobs: File,
    journal: PathBuf,
}

impl Shim {
    /// Compiles the shim, which affects only the service's files below `<data_dir>/journal`.
    pub fn compile(data_dir: &Path) -> Self {
        // The shim sees paths as the kernel names them.
        let data_dir = data_dir.canonicalize().expect("the data folder");
        let library = data_dir.join("shim.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/shim.c");
        let options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"];
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let compiled = Command::new(compiler).args(options).arg(&library).arg(source).output().expect("a C compiler");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let control = data_dir.join("shim.control");
        let knobs = File::options().create_new(true).read(true).write(true).open(&control).expect("the control file");
        knobs.set_len(KNOBS * KNOB_BYTES).expect("the control file");
        Self { library, control, knobs, journal: data_dir.join("journal") }
    }

    /// Gives the shim to a service that is about to start. The service's PostgreSQL gets none of its environment.
    pub fn preload(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library);
        command.env("HOTLINE_FAULTS", &self.control);
        command.env("HOTLINE_FAULTS_FOLDER", &self.journal);
    }

    pub fn set(&self, knob: Knob, value: i64) {
        self.knobs.write_all_at(&value.to_ne_bytes(), knob as u64 * KNOB_BYTES).expect("the control file");
    }

    pub fn get(&self, knob: Knob) -> i64 {
        let mut bytes = [0; KNOB_BYTES as usize];
        self.knobs.read_exact_at(&mut bytes, knob as u64 * KNOB_BYTES).expect("the control file");
        i64::from_ne_bytes(bytes)
    }
}
