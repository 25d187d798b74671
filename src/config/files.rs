//! The options of message files: where they are stored, and their limits.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ipnet::IpNet;

use super::database::DatabaseArgs;
use super::units::{self, BYTE, GIB, MIB, SECOND, Size};
use super::values::network;
use crate::media::{self, StoreUrl};

/// The folder of message files in a data folder.
const MEDIA: &str = "media";

/// Upper bound of a file's size.
const SIZE_MAX: Size = Size(4 * GIB.0);

/// Upper bound of the free space that is required: an exbibyte.
const FREE_SPACE_MAX: Size = Size(1 << 60);

/// Upper bound of a URL's validity: a year.
const LINK_TTL_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Where files are stored, for the service and for every command that reads or writes them.
#[derive(Args, Clone, Debug)]
pub struct MediaPlaceArgs {
    /// Bucket for message files, with region, endpoint and credentials in the standard `AWS_…` variables; without it,
    /// files are stored in the data folder
    #[arg(long, env = "HOTLINE_MEDIA_STORE", value_name = "s3://BUCKET/DIR")]
    pub media_store: Option<StoreUrl>,
    /// Folder for message files that all processes of a cluster share; without it and --media-store, files are stored
    /// in the data folder
    #[arg(long, env = "HOTLINE_MEDIA_SHARED", value_name = "DIR")]
    pub media_shared: Option<PathBuf>,
}

/// Where files are stored, and their limits.
#[derive(Args, Clone, Debug)]
pub struct FileArgs {
    /// Where files are stored.
    #[command(flatten)]
    pub place: MediaPlaceArgs,
    /// Maximum size of a file that is uploaded
    #[arg(long, alias = "media-bytes-max", env = "HOTLINE_MEDIA_MAX_SIZE", default_value_t = Size(media::BYTES_MAX),
        value_name = "SIZE", value_parser = units::sizes(BYTE, BYTE..=SIZE_MAX))]
    pub media_max_size: Size,
    /// Maximum size of a file that is fetched from a provider, where a contact has sent it
    #[arg(long, env = "HOTLINE_MEDIA_FETCH_MAX_SIZE", default_value_t = Size(media::FETCHED_BYTES_MAX),
        value_name = "SIZE", value_parser = units::sizes(BYTE, BYTE..=SIZE_MAX))]
    pub media_fetch_max_size: Size,
    /// Time for which a file URL is valid
    #[arg(long, alias = "media-link-valid-for-s", env = "HOTLINE_MEDIA_LINK_TTL",
        default_value = units::display(media::LINK_VALID_FOR), value_name = "DURATION",
        value_parser = units::durations(SECOND, SECOND..=LINK_TTL_MAX))]
    pub media_link_ttl: Duration,
    /// Minimum free disk space; below it, files are refused. 0 disables the check
    #[arg(long, alias = "free-mib-min", env = "HOTLINE_MIN_FREE_SPACE", default_value_t = Size(media::FREE_BYTES_MIN),
        value_name = "SIZE", value_parser = units::sizes(MIB, Size(0)..=FREE_SPACE_MAX))]
    pub min_free_space: Size,
    /// Private network that files may be fetched from and that a provider URL set in the panel may point to, also
    /// over http (repeatable or comma-separated)
    #[arg(long, env = "HOTLINE_FETCH_ALLOW_NETWORK", value_delimiter = ',', value_parser = network,
        value_name = "CIDR")]
    pub fetch_allow_network: Vec<IpNet>,
}

impl MediaPlaceArgs {
    /// The folder of files; with a bucket, it contains only those that are being uploaded.
    ///
    /// # Errors
    /// When two places are given.
    pub fn folder(&self, database: &DatabaseArgs) -> Result<PathBuf, String> {
        // Checked here, because one of them may come from the configuration file.
        if self.media_shared.is_some() && self.media_store.is_some() {
            return Err("--media-shared and --media-store cannot be used together".to_owned());
        }
        Ok(self.media_shared.clone().unwrap_or_else(|| database.data_dir.join(MEDIA)))
    }
}

impl FileArgs {
    /// The settings of `media` from these options.
    ///
    /// # Errors
    /// When two places are given.
    pub(super) fn media(&self, database: &DatabaseArgs, public_url: Option<&str>) -> Result<media::Options, String> {
        Ok(media::Options {
            store: self.place.media_store.clone(),
            bytes_max: self.media_max_size.0,
            fetched_bytes_max: self.media_fetch_max_size.0,
            public_url: public_url.map(str::to_owned),
            free_bytes_min: self.min_free_space.0,
            is_shared: self.place.media_shared.is_some(),
            watched: vec![database.data_dir.clone()],
            link_valid_for: self.media_link_ttl,
            ..media::Options::in_folder(self.place.folder(database)?)
        })
    }

    /// Whether files are stored where other processes can read them.
    pub(super) fn are_shared(&self) -> bool {
        self.place.media_store.is_some() || self.place.media_shared.is_some()
    }
}
