//! What a request contains: its path, query, body and files, read field by field.

pub mod addresses;
pub mod amounts;
pub mod body;
pub mod body_scheduler;
pub mod bounds;
pub mod calendar;
pub mod channel_settings;
pub mod channel_values;
pub mod decompression;
pub mod fields;
pub mod form;
pub mod if_match;
mod json;
pub mod meter;
pub mod origins;
pub mod params;
mod part_heads;
pub mod values;
