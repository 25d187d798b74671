//! `hotline man`: the manual, one page per command.

use std::path::Path;

use super::{Failure, Refusal};
use crate::exit_code::Exit;

/// Writes the pages into a folder, which is created if it does not exist.
pub fn run(folder: &Path) -> Result<(), Failure> {
    let write = || {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(super::command(), folder)
    };
    write().map_err(|error| Refusal::new(Exit::CannotCreate, format!("{}: {error}", folder.display())).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the file names of the pages of a command and its subcommands.
    fn collect_page_names(command: &clap::Command, prefix: &str, names: &mut Vec<String>) {
        let name = format!("{prefix}{}", command.get_name());
        let prefix = format!("{name}-");
        command.get_subcommands().for_each(|subcommand| collect_page_names(subcommand, &prefix, names));
        names.push(format!("{name}.1"));
    }

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().expect("a folder");
        run(&folder.path().join("man1")).expect("written");
        let entries = std::fs::read_dir(folder.path().join("man1")).expect("a folder");
        let mut written: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        let mut expected = Vec::new();
        collect_page_names(&crate::cli::command(), "", &mut expected);
        written.sort();
        expected.sort();
        assert_eq!(written, expected);
        let page = std::fs::read_to_string(folder.path().join("man1/hotline-serve.1")).expect("a page");
        assert!(page.contains("HOTLINE_LISTEN") && !page.contains("no\\-events"), "{page}");
    }
}
