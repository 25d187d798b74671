//! Rules of the contract that hold for many endpoints at once.

mod authors;
mod conflicts;
mod contract;
mod documents;
mod hardened;
mod heads;
mod packed;
mod values;
