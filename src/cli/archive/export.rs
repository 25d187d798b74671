//! Writes a company into a folder.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use futures_util::TryStreamExt;
use hotline_actors::clock;
use hotline_persistence::archive::{ArchivedTable, COMPANY, CompanySnapshot, TABLES};
use hotline_persistence::tables::media::MediaId;
use hotline_persistence::{CompanyId, PgPool, Timestamp, schema};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    ArchiveManifest, ExportArgs, FILE_LIST, FILES, FORMAT, FileSum, ListedFile, MANIFEST, VERSION, at, at_new, file_of,
    open_files,
};
use crate::cli::audit::{AuditedAction, Target};
use crate::cli::database::with_database;
use crate::cli::{Failure, GlobalArgs};
use crate::media::{FileArchive, ReadError};

pub async fn run(args: ExportArgs, global: &GlobalArgs) -> Result<(), Failure> {
    let manifest = with_database(&global.database, async |db| {
        let audited = AuditedAction::of_company(Some(args.company), "exportCompany").on(args.company);
        audited.run(db, async || write(&args, db, &open_files()?).await, |_| Target::of(args.company)).await
    });
    let manifest = manifest.await?;
    if manifest.missing_files > 0 {
        eprintln!("hotline: warning: {} files of messages are missing from the store", manifest.missing_files);
    }
    let lines: BTreeMap<&String, u64> = manifest.nouns.iter().map(|(noun, sum)| (noun, sum.lines)).collect();
    global.output.one(json!({
        "companyId": args.company, "dir": args.dir, "lines": lines, "files": manifest.files.lines,
        "missingFiles": manifest.missing_files,
    }))
}

async fn write(args: &ExportArgs, db: &PgPool, files: &FileArchive) -> Result<ArchiveManifest, Failure> {
    let mut snapshot = CompanySnapshot::take(db, args.company).await?;
    create_folder(&args.dir)?;
    let mut nouns = BTreeMap::new();
    for table in std::iter::once(&COMPANY).chain(TABLES) {
        nouns.insert(table.noun.to_owned(), write_table(&args.dir, &mut snapshot, table).await?);
    }
    let (sum, missing_files) = write_files(args, &mut snapshot, files).await?;
    let manifest = ArchiveManifest {
        format: FORMAT.to_owned(),
        version: VERSION,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        schema: schema::known(),
        company_id: args.company,
        exported_at: serde_json::to_value(Timestamp(clock::now()))?.as_str().unwrap_or_default().to_owned(),
        nouns,
        files: sum,
        missing_files,
    };
    // Last, so that an incomplete export has none.
    let mut file = SummedFile::create(&args.dir.join(MANIFEST))?;
    file.write(serde_json::to_string_pretty(&manifest)?.as_bytes())?;
    file.finish()?;
    Ok(manifest)
}

/// Creates the folder, for this user only; an empty one is used.
fn create_folder(dir: &Path) -> Result<(), Failure> {
    let is_used = std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        return Err(format!("{} is not empty; name a new folder", dir.display()).into());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(dir.join(FILES)).map_err(at_new(dir))
}

async fn write_table(dir: &Path, snapshot: &mut CompanySnapshot, table: &ArchivedTable) -> Result<FileSum, Failure> {
    let mut file = SummedFile::create(&dir.join(file_of(table.noun)))?;
    let mut rows = snapshot.rows(table).await?;
    while let Some(row) = rows.try_next().await? {
        file.write(row.as_bytes())?;
        file.write(b"\n")?;
        file.sum.lines += 1;
    }
    file.finish()
}

/// Copies the files of messages; returns the sum of their list, and how many are missing.
async fn write_files(
    args: &ExportArgs,
    snapshot: &mut CompanySnapshot,
    files: &FileArchive,
) -> Result<(FileSum, u64), Failure> {
    let mut list = SummedFile::create(&args.dir.join(FILE_LIST))?;
    let mut missing = 0;
    for name in snapshot.files().await? {
        let Ok(id) = name.parse::<MediaId>() else { continue };
        match write_file(args.company, &args.dir.join(FILES).join(id.as_str()), files, &id).await? {
            Some(FileSum { bytes, sha256, .. }) => {
                list.write(serde_json::to_string(&ListedFile { id: name, bytes, sha256 })?.as_bytes())?;
                list.write(b"\n")?;
                list.sum.lines += 1;
            }
            None => missing += 1,
        }
    }
    Ok((list.finish()?, missing))
}

/// Copies a file; `None` if the store does not have it.
async fn write_file(
    company: CompanyId,
    path: &Path,
    files: &FileArchive,
    id: &MediaId,
) -> Result<Option<FileSum>, Failure> {
    let mut content = match files.read(company, id).await {
        Err(ReadError::NotFound) => return Ok(None),
        content => content?,
    };
    let mut file = SummedFile::create(path)?;
    while let Some(bytes) = content.try_next().await? {
        file.write(&bytes)?;
    }
    Ok(Some(file.finish()?))
}

/// A file that is written, with its checksum.
struct SummedFile {
    path: std::path::PathBuf,
    file: BufWriter<File>,
    hash: Sha256,
    sum: FileSum,
}

impl SummedFile {
    fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create_new(path).map_err(at_new(path))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), hash: Sha256::new(), sum: FileSum::default() })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.hash.update(bytes);
        self.sum.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(at(&self.path))
    }

    fn finish(mut self) -> Result<FileSum, Failure> {
        self.file.flush().map_err(at(&self.path))?;
        self.file.get_ref().sync_all().map_err(at(&self.path))?;
        Ok(FileSum { sha256: hex::encode(self.hash.finalize()), ..self.sum })
    }
}
