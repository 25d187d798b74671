//! Data folders whose database already has the schema, as a first start leaves them.

use std::path::Path;

use hotline_postgres::template;
use tempfile::TempDir;

use super::database::{self, fingerprint};
use super::process::data_folder;

/// A data folder whose private PostgreSQL has the schema of this release, and nothing else: a copy of one that is made
/// once for all tests.
pub fn prepared_folder() -> TempDir {
    let folder = data_folder();
    prepare(folder.path());
    folder
}

/// Copies such a data folder into `folder`, which must be empty or not exist.
pub fn prepare(folder: &Path) {
    // On a thread of its own, since the test may already run in a runtime.
    std::thread::scope(|scope| scope.spawn(|| copy(folder)).join()).expect("a prepared PostgreSQL");
}

#[tokio::main(flavor = "current_thread")]
async fn copy(folder: &Path) {
    let version = format!("{:016x}", fingerprint());
    let copying = template::copy("schema", &version, folder, async |cluster| {
        let db = database::pool(cluster.connect_options());
        hotline_persistence::pool::migrate(&db).await.expect("migrate");
        db.close().await;
        Ok(())
    });
    copying.await.expect("the prepared PostgreSQL is copied");
}
