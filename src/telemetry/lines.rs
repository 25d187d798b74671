//! How lines are written, with the request they belong to.

use std::fmt;

use chrono::{SecondsFormat, Utc};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use tracing::{Event, Subscriber};
use tracing_serde::AsSerde;
use tracing_serde::fields::AsMap;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{DefaultFields, FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

use super::request::served;

/// The fields of a line for people, behind the name of the request.
#[derive(Default)]
pub(super) struct NamedFields(DefaultFields);

impl<'writer> FormatFields<'writer> for NamedFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        if let Some(named) = served(|name| format!("[{} {} {}] ", name.id, name.method, name.path)) {
            writer.write_str(&named)?;
        }
        self.0.format_fields(writer, fields)
    }
}

/// One JSON object a line: `timestamp`, `level`, `target`, `fields`, and `request` while one is served.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let line = serde_json::to_string(&Line(event)).map_err(|_| fmt::Error)?;
        writeln!(writer, "{line}")
    }
}

struct Line<'a>(&'a Event<'a>);

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let metadata = self.0.metadata();
        let mut line = to.serialize_map(None)?;
        line.serialize_entry("timestamp", &Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true))?;
        line.serialize_entry("level", &metadata.level().as_serde())?;
        line.serialize_entry("target", metadata.target())?;
        line.serialize_entry("fields", &self.0.field_map())?;
        served(|name| line.serialize_entry("request", &name)).transpose()?;
        line.end()
    }
}
