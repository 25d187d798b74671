//! The file with the ids that the scripts use.

use std::fmt::Write as _;
use std::path::Path;

use crate::outcome::Outcome;
use crate::seed::Company;

/// Two of every ten tickets change their state in the mix; messages are sent to the others, and they are read.
const CHANGING: (usize, usize) = (2, 10);

/// Writes the file. `contacts` have no open ticket; `closing` are tickets to be closed.
pub fn write(path: &Path, company: &Company, contacts: &[i64], closing: &[i64]) -> Outcome<()> {
    let (changing, steady) = split(&company.tickets);
    let mut lua = String::from("return {\n");
    writeln!(lua, "host = \"localhost\", key = {:?},", company.key)?;
    writeln!(lua, "channel = {}, wrapup_type = {}, user = {},", company.channel, company.wrapup_type, company.user)?;
    for (name, ids) in [("tickets", steady), ("changing", changing), ("contacts", contacts), ("closing", closing)] {
        write_list(&mut lua, name, ids.iter())?;
    }
    write_list(&mut lua, "sessions", company.sessions.iter().map(|id| format!("{id:?}")))?;
    lua.push_str("}\n");
    Ok(std::fs::write(path, lua)?)
}

/// Writes the file for tickets of many companies, each with its company's key.
pub fn write_tickets(path: &Path, tickets: &[(i64, &str)]) -> Outcome<()> {
    let mut lua = String::from("return {\nhost = \"localhost\", key = \"\",\n");
    write_list(&mut lua, "tickets", tickets.iter().map(|(ticket, _)| ticket))?;
    write_list(&mut lua, "keys", tickets.iter().map(|(_, key)| format!("{key:?}")))?;
    lua.push_str("}\n");
    Ok(std::fs::write(path, lua)?)
}

/// The tickets whose state changes in the mix, and the others.
pub fn split(tickets: &[i64]) -> (&[i64], &[i64]) {
    tickets.split_at(tickets.len() * CHANGING.0 / CHANGING.1)
}

fn write_list(lua: &mut String, name: &str, items: impl Iterator<Item = impl std::fmt::Display>) -> std::fmt::Result {
    write!(lua, "{name} = {{")?;
    for item in items {
        write!(lua, "{item},")?;
    }
    lua.write_str("},\n")
}
