//! Which build this is.

/// The version of the release.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit of this build; `unknown` if the build was not given one and did not read it from git.
pub const COMMIT: &str = env!("BUILD_COMMIT");

/// The date of [`COMMIT`]; `unknown` if the build was not given one and did not read it from git.
pub const BUILT: &str = env!("BUILD_DATE");

/// Version and commit, for people.
pub const LONG: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("BUILD_COMMIT"), ")");
