//! The exit codes of the binary, by which service managers and scripts can tell why it ended. The numbers are
//! those of `sysexits.h`; a number never changes its meaning.

/// Why the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The process did what it was started for.
    Success,
    /// A check found a problem.
    Finding,
    /// The command line is wrong.
    Usage,
    /// Data is wrong.
    Data,
    /// The database or another service is unavailable.
    Unavailable,
    /// An internal error.
    Internal,
    /// A file or folder cannot be created.
    CannotCreate,
    /// A disk failed or is full.
    Io,
    /// Another process is active, the machine is not ready yet, or only a restart can continue.
    Retry,
    /// Access was denied.
    AccessDenied,
    /// The configuration is wrong, or the database does not fit this release.
    Configuration,
}

impl Exit {
    /// All exit codes, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Success,
        Self::Finding,
        Self::Usage,
        Self::Data,
        Self::Unavailable,
        Self::Internal,
        Self::CannotCreate,
        Self::Io,
        Self::Retry,
        Self::AccessDenied,
        Self::Configuration,
    ];

    /// The number.
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Finding => 1,
            Self::Usage => 64,
            Self::Data => 65,
            Self::Unavailable => 69,
            Self::Internal => 70,
            Self::CannotCreate => 73,
            Self::Io => 74,
            Self::Retry => 75,
            Self::AccessDenied => 77,
            Self::Configuration => 78,
        }
    }

    /// What it means, for `--help` and the documentation.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Success => "success, or a clean stop",
            Self::Finding => "a check found a problem",
            Self::Usage => "wrong command line: an option, a value, or a record that does not exist",
            Self::Data => {
                "wrong data: a damaged journal, backup or export, or a journal and a database that do not belong together"
            }
            Self::Unavailable => "the database or another service is unavailable; it may come back",
            Self::Internal => "an internal error",
            Self::CannotCreate => "a file or folder cannot be created",
            Self::Io => "a disk failed or is full",
            Self::Retry => {
                "try again: another process is active, the clock or an address is not set yet, or only a restart can continue"
            }
            Self::AccessDenied => "access denied by a file, an address or the database",
            Self::Configuration => {
                "wrong configuration: a file, a key, the database's settings, or a schema that needs `hotline migrate`"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn each_code_has_a_number_of_its_own_in_ascending_order() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:?}");
        assert_eq!(codes, [0, 1, 64, 65, 69, 70, 73, 74, 75, 77, 78]);
    }
}
