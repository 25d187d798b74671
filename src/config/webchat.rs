//! The options of the webchat and its visitors.

use std::time::Duration;

use clap::Args;

use super::units::{self, ANY, MIB, SECOND, Size};
use crate::visitors::{UploadOptions, VisitorOptions};

/// The default limits of visitors.
const VISITORS: VisitorOptions = VisitorOptions::DEFAULT;

/// Upper bound of the data per hour: about 4 TiB, because the limiter counts KiB in a `u32`.
const BYTES_PER_HOUR_MAX: Size = Size((u32::MAX as u64 / 1024) << 20);

/// Sessions and limits of visitors.
#[derive(Args, Clone, Debug)]
pub struct WebchatArgs {
    /// Absence of a visitor after which a webchat session ends
    #[arg(long, alias = "session-idle-after-s", env = "HOTLINE_SESSION_IDLE_AFTER", default_value = "30m",
        value_name = "DURATION", value_parser = units::durations(SECOND, ANY))]
    pub session_idle_after: Duration,
    /// Maximum webchat sessions opened per visitor address and minute; 0 for no limit
    #[arg(long, env = "HOTLINE_VISITOR_SESSIONS_PER_MINUTE", default_value_t = VISITORS.sessions_per_minute,
        value_name = "COUNT")]
    pub visitor_sessions_per_minute: u32,
    /// Maximum messages per visitor address and minute; 0 for no limit
    #[arg(long, env = "HOTLINE_VISITOR_MESSAGES_PER_MINUTE", default_value_t = VISITORS.messages_per_minute,
        value_name = "COUNT")]
    pub visitor_messages_per_minute: u32,
    /// Maximum other requests per visitor address and minute, including opened sockets; 0 for no limit
    #[arg(long, env = "HOTLINE_VISITOR_REQUESTS_PER_MINUTE", default_value_t = VISITORS.requests_per_minute,
        value_name = "COUNT")]
    pub visitor_requests_per_minute: u32,
    /// Maximum open sockets per visitor address; 0 for no limit
    #[arg(long, env = "HOTLINE_VISITOR_SOCKETS_PER_ADDRESS", default_value_t = VISITORS.sockets_per_address,
        value_name = "COUNT")]
    pub visitor_sockets_per_address: u32,
    /// Maximum data sent per visitor session and hour, in whole MiB; 0 for no limit
    #[arg(long, alias = "visitor-session-mib-per-hour", env = "HOTLINE_VISITOR_SESSION_BYTES_PER_HOUR",
        default_value_t = size(VISITORS.uploads.session_mib_per_hour), value_name = "SIZE",
        value_parser = units::mebibytes(Size(0)..=BYTES_PER_HOUR_MAX))]
    pub visitor_session_bytes_per_hour: Size,
    /// Maximum data sent per visitor address and hour, in whole MiB; 0 for no limit
    #[arg(long, alias = "visitor-address-mib-per-hour", env = "HOTLINE_VISITOR_ADDRESS_BYTES_PER_HOUR",
        default_value_t = size(VISITORS.uploads.address_mib_per_hour), value_name = "SIZE",
        value_parser = units::mebibytes(Size(0)..=BYTES_PER_HOUR_MAX))]
    pub visitor_address_bytes_per_hour: Size,
    /// Maximum data sent by all visitors of a company per hour, in whole MiB; 0 for no limit
    #[arg(long, alias = "visitor-company-mib-per-hour", env = "HOTLINE_VISITOR_COMPANY_BYTES_PER_HOUR",
        default_value_t = size(VISITORS.uploads.company_mib_per_hour), value_name = "SIZE",
        value_parser = units::mebibytes(Size(0)..=BYTES_PER_HOUR_MAX))]
    pub visitor_company_bytes_per_hour: Size,
}

impl WebchatArgs {
    /// The limits of visitors.
    pub(super) fn visitors(&self) -> VisitorOptions {
        VisitorOptions {
            sessions_per_minute: self.visitor_sessions_per_minute,
            messages_per_minute: self.visitor_messages_per_minute,
            requests_per_minute: self.visitor_requests_per_minute,
            sockets_per_address: self.visitor_sockets_per_address,
            uploads: UploadOptions {
                session_mib_per_hour: mebibytes(self.visitor_session_bytes_per_hour),
                address_mib_per_hour: mebibytes(self.visitor_address_bytes_per_hour),
                company_mib_per_hour: mebibytes(self.visitor_company_bytes_per_hour),
            },
            ..VISITORS
        }
    }
}

fn size(mebibytes: u32) -> Size {
    Size(u64::from(mebibytes) * MIB.0)
}

/// The size in MiB. It fits, because the parser has refused more than [`BYTES_PER_HOUR_MAX`].
fn mebibytes(size: Size) -> u32 {
    u32::try_from(size.0 / MIB.0).unwrap_or(u32::MAX)
}
