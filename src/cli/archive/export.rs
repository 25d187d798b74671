//! Writes a company into a folder.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use futures_util::TryStreamExt;
use hotline_actors::clock;
use hotline_persistence::archive::{ArchivedTable, COMPANY, CompanySnapshot, TABLES};
use hotline_persistence::backup::State;
use hotline_persistence::tables::media::MediaId;
use hotline_persistence::writer_lock::is_served;
use hotline_persistence::{CompanyId, PgPool, Timestamp, schema};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::{
    ArchiveManifest, ExportArgs, FILE_LIST, FILES, FORMAT, FileChecksum, ListedFile, MANIFEST, VERSION, failure_at,
    failure_at_new, file_name_of, open_files,
};
use crate::cli::audit::{AuditedAction, Target};
use crate::cli::database::with_database;
use crate::cli::{Failure, GlobalArgs, Refusal, data_folder};
use crate::config::DatabaseArgs;
use crate::exit_code::Exit;
use crate::media::{FileArchive, ReadError};

/// How long an export waits for a running service to write acknowledged changes; that usually takes less than a second.
const WRITE_TIME_MAX: Duration = Duration::from_secs(10);

/// The interval at which an export checks the tables while it waits.
const POLL_EVERY: Duration = Duration::from_millis(200);

pub async fn run(args: ExportArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let export = with_database(&global.database, async |db| {
        let audited = AuditedAction::of_company(Some(args.company), "exportCompany").on(args.company);
        let work = async || {
            wait_for_tables(&global.database, db).await?;
            write_archive(&args, db, &open_files()?).await
        };
        audited.run(db, work, |_| Target::of(args.company)).await
    });
    let manifest = export.await?;
    if manifest.missing_files > 0 {
        eprintln!("hotline: warning: {} files of messages are missing from the store", manifest.missing_files);
    }
    let lines: BTreeMap<&String, u64> = manifest.nouns.iter().map(|(noun, checksum)| (noun, checksum.lines)).collect();
    global.output.one(json!({
        "companyId": args.company, "dir": args.dir, "lines": lines, "files": manifest.files.lines,
        "missingFiles": manifest.missing_files,
    }))
}

/// Waits until the tables have all changes that were acknowledged before: a running service writes them soon. If it was
/// killed, or stopped while PostgreSQL was unavailable, only the journal has them until the next start. A data folder
/// without that journal is refused: it does not show whether any are missing.
async fn wait_for_tables(database: &DatabaseArgs, db: &PgPool) -> Result<(), Failure> {
    let journal = data_folder::check(database, db).await?;
    let Some((journal_id, last)) = journal.and_then(|journal| Some((journal.id, journal.last?))) else { return Ok(()) };
    let deadline = Instant::now() + WRITE_TIME_MAX;
    loop {
        let mut connection = db.acquire().await?;
        let state = State::read(&mut connection).await?;
        drop(connection);
        let missing_changes = last.saturating_sub(state.watermark(&journal_id).unwrap_or(0));
        if missing_changes == 0 {
            return Ok(());
        }
        let reason = format!("the journal has {missing_changes} changes that the tables lack");
        if !is_served(db).await? {
            let message = format!("{reason}: start the service once, and export again");
            return Err(Refusal::new(Exit::Retry, message).into());
        }
        if Instant::now() >= deadline {
            let message = format!("{reason}, and the service has not written them yet; export again later");
            return Err(Refusal::new(Exit::Retry, message).into());
        }
        sleep(POLL_EVERY).await;
    }
}

async fn write_archive(args: &ExportArgs, db: &PgPool, store: &FileArchive) -> Result<ArchiveManifest, Failure> {
    let mut snapshot = CompanySnapshot::take(db, args.company).await?;
    create_folder(&args.dir)?;
    let mut nouns = BTreeMap::new();
    for table in std::iter::once(&COMPANY).chain(TABLES) {
        nouns.insert(table.noun.to_owned(), write_table(&args.dir, &mut snapshot, table).await?);
    }
    let (list_checksum, missing_files) = write_files(args, &mut snapshot, store).await?;
    let manifest = ArchiveManifest {
        format: FORMAT.to_owned(),
        version: VERSION,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        schema: schema::newest_migration(),
        company_id: args.company,
        exported_at: serde_json::to_value(Timestamp(clock::now()))?.as_str().unwrap_or_default().to_owned(),
        nouns,
        files: list_checksum,
        missing_files,
    };
    // The manifest is written last, so that an incomplete export has none.
    let mut file = ChecksummedFile::create(&args.dir.join(MANIFEST))?;
    file.write(serde_json::to_string_pretty(&manifest)?.as_bytes())?;
    file.finish()?;
    Ok(manifest)
}

/// Creates the folder, for this user only. It may exist if it is empty.
fn create_folder(dir: &Path) -> Result<(), Failure> {
    let is_occupied = std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if is_occupied {
        return Err(format!("{} is not empty; name a new folder", dir.display()).into());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(dir.join(FILES)).map_err(failure_at_new(dir))
}

async fn write_table(
    dir: &Path,
    snapshot: &mut CompanySnapshot,
    table: &ArchivedTable,
) -> Result<FileChecksum, Failure> {
    let mut file = ChecksummedFile::create(&dir.join(file_name_of(table.noun)))?;
    let mut rows = snapshot.rows(table).await?;
    while let Some(row) = rows.try_next().await? {
        file.write(row.as_bytes())?;
        file.write(b"\n")?;
        file.checksum.lines += 1;
    }
    file.finish()
}

/// Copies the files of messages; returns the checksum of their list, and how many files are missing.
async fn write_files(
    args: &ExportArgs,
    snapshot: &mut CompanySnapshot,
    store: &FileArchive,
) -> Result<(FileChecksum, u64), Failure> {
    let mut list = ChecksummedFile::create(&args.dir.join(FILE_LIST))?;
    let mut missing_files = 0;
    let mut page = snapshot.file_ids_after("").await?;
    while let Some(last) = page.last().cloned() {
        for name in page {
            let Ok(id) = name.parse::<MediaId>() else { continue };
            match write_file(args.company, &args.dir.join(FILES).join(id.as_str()), store, &id).await? {
                Some(FileChecksum { bytes, sha256, .. }) => {
                    list.write(serde_json::to_string(&ListedFile { id: name, bytes, sha256 })?.as_bytes())?;
                    list.write(b"\n")?;
                    list.checksum.lines += 1;
                }
                None => missing_files += 1,
            }
        }
        page = snapshot.file_ids_after(&last).await?;
    }
    Ok((list.finish()?, missing_files))
}

/// Copies a file; `None` if the store does not have it.
async fn write_file(
    company: CompanyId,
    path: &Path,
    store: &FileArchive,
    id: &MediaId,
) -> Result<Option<FileChecksum>, Failure> {
    let mut content = match store.read(company, id).await {
        Err(ReadError::NotFound) => return Ok(None),
        content => content?,
    };
    let mut file = ChecksummedFile::create(path)?;
    while let Some(bytes) = content.try_next().await? {
        file.write(&bytes)?;
    }
    Ok(Some(file.finish()?))
}

/// A new file whose checksum is computed while it is written.
struct ChecksummedFile {
    path: std::path::PathBuf,
    file: BufWriter<File>,
    hash: Sha256,
    checksum: FileChecksum,
}

impl ChecksummedFile {
    fn create(path: &Path) -> Result<Self, Failure> {
        // Readable by this user only: the folder may have existed, with other permissions.
        let file = File::options().write(true).create_new(true).mode(0o600).open(path).map_err(failure_at_new(path))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            hash: Sha256::new(),
            checksum: FileChecksum::default(),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.hash.update(bytes);
        self.checksum.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(failure_at(&self.path))
    }

    fn finish(mut self) -> Result<FileChecksum, Failure> {
        self.file.flush().map_err(failure_at(&self.path))?;
        self.file.get_ref().sync_all().map_err(failure_at(&self.path))?;
        Ok(FileChecksum { sha256: hex::encode(self.hash.finalize()), ..self.checksum })
    }
}
