//! Credentials on the command line: read from a file or standard input, where no other user can see them. Arguments are
//! visible in the process list and in the shell's history.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::Failure;
use crate::web::request::channel_values::CREDENTIAL_BYTES_MAX;

/// Maximum length of a line with a credential, in bytes: a few spaces around the longest one are accepted.
const LINE_BYTES_MAX: usize = CREDENTIAL_BYTES_MAX + 64;

pub(super) const PROVIDER: &str = "WhatsApp, Messenger and Instagram";

/// Where credentials are read from.
#[derive(Args, Default)]
pub struct SecretFiles {
    /// Read the access token from the first line of this file, or of standard input with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "access_token", help_heading = PROVIDER)]
    access_token_file: Option<PathBuf>,
    /// Read the app secret from the first line of this file, or of standard input with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "app_secret", help_heading = PROVIDER)]
    app_secret_file: Option<PathBuf>,
    /// Read the verify token from the first line of this file, or of standard input with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "verify_token", help_heading = PROVIDER)]
    verify_token_file: Option<PathBuf>,
}

impl SecretFiles {
    /// Reads the given files into `credentials`: access token, app secret, verify token. Warns about a credential that
    /// is given as an argument.
    pub fn read(self, credentials: [&mut Option<String>; 3]) -> Result<(), Failure> {
        let files = [
            ("--access-token", self.access_token_file),
            ("--app-secret", self.app_secret_file),
            ("--verify-token", self.verify_token_file),
        ];
        if files.iter().filter(|(_, file)| file.as_deref() == Some(Path::new("-"))).count() > 1 {
            return Err("only one credential can be read from standard input; read the others from files".into());
        }
        for ((option, file), credential) in files.into_iter().zip(credentials) {
            match file {
                Some(file) => *credential = Some(first_line(option, &file)?),
                None if credential.as_ref().is_some_and(|value| !value.trim().is_empty()) => {
                    eprintln!("hotline: warning: {option} is visible in the process list; use {option}-file instead");
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// The first line, which must not be empty: an empty file is a mistake, and must not clear the credential.
fn first_line(option: &str, file: &Path) -> Result<String, Failure> {
    let error_text = |reason: String| format!("{option}-file {}: {reason}", file.display());
    let input: Box<dyn Read> = match file {
        file if file == Path::new("-") => Box::new(std::io::stdin().lock()),
        file => Box::new(File::open(file).map_err(|error| error_text(error.to_string()))?),
    };
    let mut line = Vec::new();
    // One byte more, so that a longer line is refused instead of cut.
    let result = BufReader::new(input.take(LINE_BYTES_MAX as u64 + 1)).read_until(b'\n', &mut line);
    result.map_err(|error| error_text(error.to_string()))?;
    if line.len() > LINE_BYTES_MAX {
        return Err(error_text(format!("the first line has more than {LINE_BYTES_MAX} bytes")).into());
    }
    let line = std::str::from_utf8(&line).map_err(|_| error_text("not UTF-8 text".to_owned()))?.trim();
    if line.is_empty() {
        return Err(error_text("the first line is empty".to_owned()).into());
    }
    Ok(line.to_owned())
}
