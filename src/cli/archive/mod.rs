//! `hotline export` and `hotline import`: a company as files, from one installation to another.

mod export;
mod import;

use std::collections::BTreeMap;
use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};

use clap::Args;
use hotline_persistence::CompanyId;
use serde::{Deserialize, Serialize};

use super::{Cli, Failure, Refusal};
use crate::exit_code::Exit;
use crate::media::FileArchive;
use crate::service::ServiceError;
pub(super) use export::run as export;
pub(super) use import::run as import;

/// The format that the manifest names.
const FORMAT: &str = "hotline-company";

/// The version of the format. A release refuses later versions.
const VERSION: u32 = 1;

/// Names in the folder of an export: the manifest, the folder of message files, and the list of these files.
const MANIFEST: &str = "manifest.json";
const FILES: &str = "files";
const FILE_LIST: &str = "files.jsonl";

#[derive(Args)]
#[command(
    override_usage = "hotline export <DIR> --company <ID> [OPTIONS]",
    after_help = "\
The folder gets a file of JSON lines for each noun, the files of messages, and a manifest with the number of lines and the \
checksum of each file. It shows the company as of one moment, also while the service runs. Changes that only the journal has \
are not left out: until a service has written them, the export is refused.

Secrets are not exported: tokens, passwords, sessions, credentials of channels and secrets of webhooks. Neither are events, \
deliveries and the audit log.

Example:
  hotline export acme --company 1"
)]
pub struct ExportArgs {
    /// Folder to create
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Company ID
    #[arg(long, value_name = "ID")]
    company: CompanyId,
}

#[derive(Args)]
#[command(after_help = "\
Stop the service first. The company gets a new ID; the IDs of its records stay, except of webhooks and of channels whose ID \
exists here. Everything is imported, or nothing: a folder that was changed after the export is refused.

Afterwards invite the users, create tokens, and enter the credentials of channels and the secrets of webhooks. Messages that \
were not sent before the export are marked as failed.

Example:
  hotline import acme")]
pub struct ImportArgs {
    /// Folder of an export
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// What an export contains.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArchiveManifest {
    format: String,
    version: u32,
    /// The release that exported it.
    release: String,
    /// The last migration of its database.
    schema: i64,
    company_id: CompanyId,
    exported_at: String,
    /// The file of each noun, by the noun.
    nouns: BTreeMap<String, FileChecksum>,
    /// The list of message files.
    files: FileChecksum,
    /// Message files that were missing from the store.
    missing_files: u64,
}

/// The checksum of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct FileChecksum {
    /// Lines in it.
    lines: u64,
    bytes: u64,
    sha256: String,
}

/// A message file in the list.
#[derive(Debug, Serialize, Deserialize)]
struct ListedFile {
    id: String,
    bytes: u64,
    sha256: String,
}

/// The name of a noun's file.
fn file_name_of(noun: &str) -> String {
    format!("{noun}.jsonl")
}

/// The store of files that a service with the same configuration would use.
fn open_files() -> Result<FileArchive, Failure> {
    let service = Cli::read_service()?;
    let settings = service.args.settings(&service.database)?;
    // A `ServiceError`, so that a failure exits with the same status as at the start of a service.
    FileArchive::open(&settings.media).map_err(|error| ServiceError::Media(error).into())
}

/// Adds the path to an error of an existing file. The exit code is [`Exit::Io`], unless the error's kind has its own.
fn failure_at(path: &Path) -> impl Fn(IoError) -> Failure {
    failure_with_path(path, Exit::Io)
}

/// Adds the path to an error of a file or folder to be created. The exit code is [`Exit::CannotCreate`], unless the
/// error's kind has its own.
fn failure_at_new(path: &Path) -> impl Fn(IoError) -> Failure {
    failure_with_path(path, Exit::CannotCreate)
}

fn failure_with_path(path: &Path, default: Exit) -> impl Fn(IoError) -> Failure {
    let path = path.display().to_string();
    move |error| {
        let exit = match error.kind() {
            ErrorKind::PermissionDenied => Exit::AccessDenied,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Exit::Io,
            _ => default,
        };
        Refusal::new(exit, format!("{path}: {error}")).into()
    }
}
