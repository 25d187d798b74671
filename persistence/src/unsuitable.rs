//! Why Hotline cannot work with a database, and what corrects it.

use std::fmt;

/// Something that is wrong, and what corrects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) what: String,
    pub(crate) remedy: String,
}

/// A database that Hotline cannot work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsuitable {
    place: String,
    problems: Vec<Problem>,
}

impl Unsuitable {
    pub(crate) fn new(place: String, problems: Vec<Problem>) -> Self {
        Self { place, problems }
    }
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hotline cannot use PostgreSQL at {}: ", self.place)?;
        for (index, Problem { what, remedy }) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{what} ({remedy})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Unsuitable {}
