//! Sets the commit and date that a binary shows as its version. They come from `HOTLINE_COMMIT` and `HOTLINE_BUILT` if
//! set, else from git in a release build. Other builds do not ask git, because they would be compiled again after each
//! commit.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=HOTLINE_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let configured = std::env::var("HOTLINE_COMMIT").ok().filter(|commit| is_valid_value(commit));
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = configured.or_else(|| if is_release { head_commit() } else { None });
    println!("cargo::rerun-if-env-changed=HOTLINE_BUILT");
    let date = std::env::var("HOTLINE_BUILT").ok().filter(|date| is_valid_value(date));
    let date = date.or_else(|| if is_release { git(&["show", "-s", "--format=%cs", "HEAD"]) } else { None });
    println!("cargo::rustc-env=BUILD_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo::rustc-env=BUILD_DATE={}", date.as_deref().unwrap_or("unknown"));
}

/// The commit of the work tree; cargo asks again when it changes.
fn head_commit() -> Option<String> {
    let folder = git(&["rev-parse", "--absolute-git-dir"])?;
    println!("cargo::rerun-if-changed={folder}/logs/HEAD");
    git(&["rev-parse", "--short=12", "HEAD"]).filter(|commit| is_valid_value(commit))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn is_valid_value(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}
