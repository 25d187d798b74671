//! The image's build has all that cargo needs: the Dockerfile copies it, and the ignore file leaves it in the build
//! context.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use toml::{Table, Value};

use crate::floors::CRATES;
use crate::reasons::collect_sources;

const DOCKERFILE: &str = "packaging/docker/Dockerfile";

/// What precedes the path of an embedded file. The path is relative to the folder of the source.
const EMBEDS: [&str; 3] = ["include_str!(\"", "include_bytes!(\"", "include_dir!(\""];
/// What precedes the path of migrations, which is relative to the folder of the crate.
const MIGRATIONS: &str = "migrate!(\"";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The path without `.` and `..`, from the root of the repository.
fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normalized.pop();
            }
            part => normalized.push(part),
        }
    }
    normalized
}

/// What the manifest of a crate names or cargo finds beside it: its build script and its targets.
fn manifest_paths(folder: &Path) -> BTreeSet<PathBuf> {
    let manifest: Table = read(folder.join("Cargo.toml")).parse().expect("a manifest");
    let mut found = BTreeSet::from([folder.join("Cargo.toml"), folder.join("src")]);
    let build_script = manifest.get("package").and_then(|package| package.get("build")).and_then(Value::as_str);
    found.extend(build_script.map(|script| folder.join(script)));
    found.extend(Some(folder.join("build.rs")).filter(|script| root().join(script).exists()));
    for (kind, beside) in [("bin", "src/bin"), ("test", "tests"), ("bench", "benches"), ("example", "examples")] {
        for target in manifest.get(kind).and_then(Value::as_array).into_iter().flatten() {
            let path = target.get("path").and_then(Value::as_str).map(str::to_owned);
            let path = path.or_else(|| Some(format!("{beside}/{}.rs", target.get("name")?.as_str()?)));
            found.extend(path.map(|path| folder.join(path)));
        }
    }
    found
}

/// The files that the sources of a crate embed.
fn embedded(krate: &str) -> BTreeSet<PathBuf> {
    let (mut files, mut found) = (Vec::new(), BTreeSet::new());
    collect_sources(&root().join(krate), &mut files);
    let manifest = Path::new(krate).parent().expect("the folder of its manifest");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file");
        let folder = file.strip_prefix(root()).expect("below the root").parent().expect("its folder").to_owned();
        let paths_after = |start: &str, folder: &Path| -> Vec<PathBuf> {
            let paths = text.split(start).skip(1).filter_map(|rest| rest.split('"').next());
            paths.map(|path| normalized(&folder.join(path))).collect()
        };
        EMBEDS.iter().for_each(|start| found.extend(paths_after(start, &folder)));
        found.extend(paths_after(MIGRATIONS, manifest));
    }
    found
}

/// Every path that cargo needs to build the binary.
fn needed() -> BTreeSet<PathBuf> {
    let manifest: Table = read("Cargo.toml").parse().expect("a manifest");
    let members = manifest["workspace"]["members"].as_array().expect("the members").iter();
    let members = members.map(|member| PathBuf::from(member.as_str().expect("a folder")));
    let mut needed: BTreeSet<PathBuf> = ["Cargo.lock", "rust-toolchain.toml"].map(PathBuf::from).into();
    needed.extend(members.chain([PathBuf::new()]).flat_map(|folder| manifest_paths(&folder)));
    needed.extend(CRATES.iter().flat_map(|krate| embedded(krate)));
    needed
}

/// What the first stage of the Dockerfile copies from the context.
fn copied(dockerfile: &str) -> Vec<PathBuf> {
    let stage = dockerfile.split("\nFROM ").next().unwrap_or_default();
    let lines = stage.lines().filter_map(|line| line.strip_prefix("COPY "));
    let copied = lines.flat_map(|line| {
        let mut paths: Vec<&str> = line.split_whitespace().collect();
        paths.pop();
        paths
    });
    copied.map(PathBuf::from).collect()
}

/// Whether the ignore file leaves the path in the context: its last line that is about the path decides.
fn is_in_context(ignored: &str, path: &Path) -> bool {
    let lines = ignored.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.fold(true, |is_in, line| match line.strip_prefix('!') {
        Some(kept) if path.starts_with(kept) => true,
        None if line == "*" || path.starts_with(line) => false,
        _ => is_in,
    })
}

#[test]
fn the_build_of_the_image_has_all_that_cargo_needs() {
    let dockerfile = read(DOCKERFILE);
    // Only a comment precedes the first stage.
    let copied = copied(dockerfile.split_once("\nFROM ").expect("a stage").1);
    let ignored = read(format!("{DOCKERFILE}.dockerignore"));
    let needed = needed();
    let embedded_count = needed.iter().filter(|path| path.extension().is_some_and(|ending| ending != "rs")).count();
    assert!(copied.len() > 5 && embedded_count > 15, "{copied:?}, {needed:?}");
    for path in needed {
        assert!(root().join(&path).exists(), "{} does not exist", path.display());
        assert!(copied.iter().any(|copied| path.starts_with(copied)), "{DOCKERFILE} does not copy {}", path.display());
        assert!(is_in_context(&ignored, &path), "{DOCKERFILE}.dockerignore excludes {}", path.display());
    }
}

#[test]
fn the_image_has_the_programs_of_a_backup() {
    let dockerfile = read(DOCKERFILE);
    let (_, image) = dockerfile.rsplit_once("\nFROM ").expect("the last stage");
    let client = image.split_once("postgresql-client-").and_then(|(_, rest)| rest.split_whitespace().next());
    let client: u32 = client.and_then(|major| major.parse().ok()).expect("its version");
    let compose = read("packaging/docker/compose.yml");
    let server = compose.split_once("image: postgres:").and_then(|(_, rest)| rest.split('.').next());
    let server: u32 = server.and_then(|major| major.parse().ok()).expect("its version");
    assert!(client >= server, "pg_dump {client} cannot back up PostgreSQL {server}");
    // A new volume takes its owner from the image's folder, if both have the same path.
    for (file, text) in [(DOCKERFILE, image), ("packaging/docker/compose.yml", compose.as_str())] {
        assert!(text.contains("/var/backups/hotline"), "{file}");
    }
}

#[test]
fn what_is_ignored_is_not_in_the_context() {
    let ignored = "# Comment\n*\n!tests\ntests/browser/node_modules\n";
    assert!(is_in_context(ignored, Path::new("tests/browser/run.mjs")));
    for path in ["build.rs", "tests/browser/node_modules/x.js"] {
        assert!(!is_in_context(ignored, Path::new(path)), "{path}");
    }
}
