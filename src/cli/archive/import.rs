//! Reads a company from a folder. Nothing in the folder is trusted.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hotline_persistence::archive::{ArchivedTable, COMPANY, Import, ImportError, LINE_BYTES_MAX, TABLES};
use hotline_persistence::tables::campaigns::UNFINISHED_MAX;
use hotline_persistence::tables::channels::CHANNELS_MAX;
use hotline_persistence::tables::global_variables::GlobalVariable;
use hotline_persistence::tables::media::{FileKey, MediaId};
use hotline_persistence::tables::queues::Queue;
use hotline_persistence::tables::users::User;
use hotline_persistence::tables::webhooks::WEBHOOKS_MAX;
use hotline_persistence::tables::wrapup_types::WrapupType;
use hotline_persistence::{CompanyId, Error};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;

use super::{
    ArchiveManifest, FILE_LIST, FILES, FORMAT, FileChecksum, ImportArgs, ListedFile, MANIFEST, VERSION, failure_at,
    file_name_of, open_files,
};
use crate::api::directory::LINKS_OF_COMPANY_MAX;
use crate::api::plain::Plain;
use crate::cli::audit::{AuditedAction, Target};
use crate::cli::database::with_secrets;
use crate::cli::{Failure, GlobalArgs, Refusal};
use crate::exit_code::Exit;
use crate::media::{FileArchive, Unavailable};
use crate::webhooks::new_secret;

/// Maximum size of a manifest: it has a line for each noun.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// Maximum records of a company by noun, for the nouns that every process has in memory: the limits that also apply to
/// their creation.
const RECORDS_MAX: [(&str, i64); 8] = [
    ("users", User::IN_DIRECTORY_MAX),
    ("queues", Queue::IN_DIRECTORY_MAX),
    ("queueUsers", LINKS_OF_COMPANY_MAX),
    ("wrapupTypes", WrapupType::IN_DIRECTORY_MAX),
    ("wrapupTypeQueues", LINKS_OF_COMPANY_MAX),
    ("channels", CHANNELS_MAX),
    ("globalVariables", GlobalVariable::IN_DIRECTORY_MAX),
    ("webhooks", WEBHOOKS_MAX),
];

/// Bytes of a file that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Maximum size of a message file: more than any service accepts by default.
const FILE_BYTES_MAX: u64 = 1 << 30;

pub async fn run(args: ImportArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let manifest = read_manifest(&args.dir)?;
    for table in every_table() {
        let checksum =
            manifest.nouns.get(table.noun).ok_or_else(|| damaged(format!("{MANIFEST} lacks {}", table.noun)))?;
        verify_checksum(&args.dir.join(file_name_of(table.noun)), checksum)?;
    }
    verify_checksum(&args.dir.join(FILE_LIST), &manifest.files)?;
    // An import is complete or fails: this release must know every noun.
    if let Some(noun) = manifest.nouns.keys().find(|noun| every_table().all(|table| table.noun != **noun)) {
        let release = &manifest.release;
        return Err(damaged(format!(
            "{MANIFEST}: has the unknown noun `{noun}`; it was exported by release {release}"
        )));
    }
    check_counts(&args.dir, &manifest)?;
    let store = open_files()?;
    let import = with_secrets(&global.database, async |db, keys| {
        let work = async || {
            let mut import = Import::begin(db, keys, new_secret).await.map_err(begin_failure)?;
            for table in every_table() {
                let lines = manifest.nouns.get(table.noun).map_or(0, |checksum| checksum.lines);
                import_table(&mut import, &args.dir, table, lines).await?;
            }
            check_campaigns(&mut import, &args.dir).await?;
            let company = import.company();
            let stored = import_files(&args.dir, &store, company).await;
            match stored.outcome {
                Ok(()) => match import.finish().await {
                    Ok(company) => Ok((company, stored.files.len())),
                    Err(error) => Err(remove_files(&store, &stored.files, error.into()).await),
                },
                Err(failure) => Err(remove_files(&store, &stored.files, failure).await),
            }
        };
        AuditedAction::of_installation("importCompany").run(db, work, |(company, _)| Target::of(company)).await
    });
    let (company, file_count) = import.await?;
    global.output.one(json!({"companyId": company, "files": file_count, "exportedFrom": manifest.company_id}))
}

fn every_table() -> impl Iterator<Item = &'static ArchivedTable> {
    std::iter::once(&COMPANY).chain(TABLES)
}

/// The failure of an import that could not begin.
fn begin_failure(error: Error) -> Failure {
    match error {
        Error::NotOwner => {
            Refusal::new(Exit::Retry, "a service runs on this database; stop it during the import").into()
        }
        error => error.into(),
    }
}

/// The failure of an import whose folder has wrong content.
fn damaged(message: String) -> Failure {
    Refusal::new(Exit::Data, message).into()
}

/// Opens a regular file. A link is refused, because it could lead out of the folder.
fn open_file(path: &Path) -> Result<File, Failure> {
    let file = File::options().read(true).custom_flags(nix::libc::O_NOFOLLOW).open(path).map_err(failure_at(path))?;
    if !file.metadata().map_err(failure_at(path))?.is_file() {
        return Err(damaged(format!("{}: is not a file", path.display())));
    }
    Ok(file)
}

fn read_manifest(dir: &Path) -> Result<ArchiveManifest, Failure> {
    let path = dir.join(MANIFEST);
    let mut text = String::new();
    open_file(&path)?.take(MANIFEST_BYTES_MAX).read_to_string(&mut text).map_err(failure_at(&path))?;
    let manifest: ArchiveManifest = serde_json::from_str(&text)
        .map_err(|error| damaged(format!("{}: is not a manifest: {error}", path.display())))?;
    if manifest.format != FORMAT {
        return Err(damaged(format!("{}: has the format `{}`, not `{FORMAT}`", path.display(), manifest.format)));
    }
    if manifest.version > VERSION {
        let reason =
            format!("was exported by release {}; import it with that release or a newer one", manifest.release);
        return Err(damaged(format!("{}: {reason}", path.display())));
    }
    Ok(manifest)
}

/// Compares the numbers of records with the limits of a company. The lines of the files are counted when they are read.
fn check_counts(dir: &Path, manifest: &ArchiveManifest) -> Result<(), Failure> {
    for (noun, max) in RECORDS_MAX {
        let lines = manifest.nouns.get(noun).map_or(0, |checksum| checksum.lines);
        if lines > max.unsigned_abs() {
            let path = dir.join(file_name_of(noun));
            return Err(damaged(format!(
                "{}: has {lines} records, and a company can have at most {max}: delete some of them before the export",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Compares the number of unfinished campaigns with their limit; a company can have any number of finished ones.
async fn check_campaigns(import: &mut Import, dir: &Path) -> Result<(), Failure> {
    if !import.has_too_many_campaigns().await? {
        return Ok(());
    }
    let path = dir.join(file_name_of("campaigns"));
    Err(damaged(format!(
        "{}: has more than {UNFINISHED_MAX} unfinished campaigns, the maximum of a company: cancel some of them before the export",
        path.display()
    )))
}

/// Compares a file with its checksum.
fn verify_checksum(path: &Path, expected: &FileChecksum) -> Result<(), Failure> {
    let mut file = open_file(path)?;
    let (mut hash, mut bytes, mut chunk) = (Sha256::new(), 0_u64, vec![0; CHUNK_BYTES]);
    loop {
        let bytes_read = file.read(&mut chunk).map_err(failure_at(path))?;
        if bytes_read == 0 {
            break;
        }
        hash.update(&chunk[..bytes_read]);
        bytes += bytes_read as u64;
    }
    if bytes != expected.bytes || hex::encode(hash.finalize()) != expected.sha256 {
        return Err(damaged(format!("{}: was changed after the export: its checksum differs", path.display())));
    }
    Ok(())
}

async fn import_table(
    import: &mut Import,
    dir: &Path,
    table: &'static ArchivedTable,
    lines: u64,
) -> Result<(), Failure> {
    let path = dir.join(file_name_of(table.noun));
    let to_failure = |error: ImportError| match error {
        ImportError::Database(error) => Failure::from(error),
        content_error => damaged(format!("{}: {content_error}", path.display())),
    };
    import.begin_table(table).await?;
    let mut reader = BufReader::new(open_file(&path)?);
    let mut line_number = 0_u64;
    while let Some(line) = next_line(&mut reader, &path, line_number + 1)? {
        line_number += 1;
        import.add_line(&line).await.map_err(to_failure)?;
    }
    import.flush().await.map_err(to_failure)?;
    let lines = if table.name == COMPANY.name { 1 } else { lines };
    if line_number != lines {
        return Err(damaged(format!("{}: has {line_number} lines instead of {lines}", path.display())));
    }
    Ok(())
}

/// The next line, of at most [`LINE_BYTES_MAX`] bytes with its line end; `None` at the end of the file.
fn next_line(reader: &mut impl BufRead, path: &Path, number: u64) -> Result<Option<String>, Failure> {
    let mut line = String::new();
    let limit = LINE_BYTES_MAX as u64 + 1;
    let bytes_read = reader.by_ref().take(limit).read_line(&mut line).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => damaged(format!("{}: line {number} is not UTF-8", path.display())),
        _ => failure_at(path)(error),
    })?;
    if bytes_read as u64 >= limit {
        return Err(damaged(format!("{}: line {number} is longer than {LINE_BYTES_MAX} bytes", path.display())));
    }
    if line.ends_with('\n') {
        line.pop();
    }
    Ok((bytes_read > 0).then_some(line))
}

/// The outcome of storing an archive's files, and the files that may be stored even if it failed.
struct StoredFiles {
    files: Vec<FileKey>,
    outcome: Result<(), Failure>,
}

async fn import_files(dir: &Path, store: &FileArchive, company: CompanyId) -> StoredFiles {
    let mut files = Vec::new();
    let outcome = store_files(dir, store, company, &mut files).await;
    StoredFiles { files, outcome }
}

async fn store_files(
    dir: &Path,
    store: &FileArchive,
    company: CompanyId,
    stored: &mut Vec<FileKey>,
) -> Result<(), Failure> {
    let path = dir.join(FILE_LIST);
    let mut reader = BufReader::new(open_file(&path)?);
    let mut line_number = 0;
    while let Some(line) = next_line(&mut reader, &path, line_number + 1)? {
        line_number += 1;
        let damaged_line = |reason: String| damaged(format!("{}: line {line_number} {reason}", path.display()));
        let listed: ListedFile = serde_json::from_str(&line).map_err(|error| damaged_line(error.to_string()))?;
        // Only an id becomes a part of a path.
        let id: MediaId = listed.id.parse().map_err(|reason: &str| damaged_line(format!("has {reason}")))?;
        if listed.bytes > FILE_BYTES_MAX {
            return Err(damaged_line(format!("has a file of more than {FILE_BYTES_MAX} bytes")));
        }
        let file = dir.join(FILES).join(id.as_str());
        let content = tokio::fs::File::from_std(open_file(&file)?).take(listed.bytes + 1);
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        // Listed before it is written: if the write fails or the checksum differs, it is removed with the others.
        stored.push((company, id.clone()));
        let add_to_checksum = |chunk: &[u8]| {
            hash.update(chunk);
            bytes += chunk.len() as u64;
        };
        store.write(company, &id, content, add_to_checksum).await?;
        if bytes != listed.bytes || hex::encode(hash.finalize()) != listed.sha256 {
            return Err(damaged(format!("{}: was changed after the export: its checksum differs", file.display())));
        }
    }
    Ok(())
}

/// Removes the files of an import that failed, and returns its failure.
async fn remove_files(store: &FileArchive, files: &[FileKey], failure: Failure) -> Failure {
    match store.remove(files).await {
        Ok(()) => failure,
        Err(error) => LeftoverFiles { count: files.len(), error, failure }.into(),
    }
}

/// A failed import whose files could not be removed.
#[derive(Debug, thiserror::Error)]
#[error("{failure}; {count} files of it are left in the store: {error}")]
struct LeftoverFiles {
    count: usize,
    error: Unavailable,
    #[source]
    failure: Failure,
}
