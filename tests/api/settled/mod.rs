//! Sentences of the contract that hold for many endpoints at once.

mod authors;
mod conflicts;
mod contract;
mod documents;
mod heads;
mod packed;
mod values;
