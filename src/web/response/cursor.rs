//! Cursors: where in a list the next page begins. A cursor is the position of the last row of a page, signed together
//! with the list, its filters and its order, so that it is valid only for the list that it was created for.
//!
//! A cursor grants nothing: a request with a cursor passes the same checks as one without.

use actix_web::web::Data;
use actix_web::{HttpMessage, HttpRequest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use hotline_persistence::select::{Position, TimePosition};
use hotline_persistence::tables::installation_keys::InstallationKey;
use sha2::Sha256;

use super::error::{ApiError, ApiResult};
use crate::web::tenant::Tenant;

/// The name of the key in `installation_keys`.
pub const KEY_NAME: &str = "cursors";

/// Bytes of the signature. Half of HMAC-SHA-256 suffices: a forged position would only skip rows that the caller may
/// read anyway.
const SIGNATURE_BYTES: usize = 16;

/// The first byte of an encoded position: its kind.
const KIND_ID: u8 = b'i';
const KIND_NAME: u8 = b'n';
const KIND_TIME: u8 = b't';

/// Signs and verifies cursors.
pub struct Cursors {
    /// Initialized with the key.
    mac: Hmac<Sha256>,
}

/// The owner of a list, if its path does not name them: a visitor's session, or a person at the panel.
#[derive(Clone, Debug)]
pub struct ListOwner(pub String);

/// The list that a request reads, with its filters and order.
#[derive(Clone)]
pub struct ListRead {
    /// Covers everything but the position.
    mac: Hmac<Sha256>,
}

impl Cursors {
    /// Signs with the key of the installation, which all of its processes share.
    pub fn new(key: InstallationKey) -> Self {
        Self { mac: Hmac::new(&key.into()) }
    }

    /// The list that a request reads. `filters` are the parameters that select its rows.
    ///
    /// # Errors
    /// `500` when the service has no `Cursors`, which is a defect.
    pub fn list_of(request: &HttpRequest, filters: &[(String, String)], descending: bool) -> ApiResult<ListRead> {
        let cursors =
            request.app_data::<Data<Self>>().ok_or_else(|| ApiError::internal("the key of cursors is missing"))?;
        let mut list = ListRead { mac: cursors.mac.clone() };
        let extensions = request.extensions();
        list.add(&extensions.get::<Tenant>().map(|Tenant(company)| company.to_string()).unwrap_or_default());
        list.add(extensions.get::<ListOwner>().map_or("", |owner| &owner.0));
        list.add(&request.match_pattern().unwrap_or_else(|| request.path().to_owned()));
        // The path's parameters as the router decoded them: a cursor does not depend on how the URL encodes them.
        request.match_info().iter().for_each(|(_, id)| list.add(id));
        list.add(if descending { "desc" } else { "asc" });
        let mut filters: Vec<_> = filters.iter().collect();
        filters.sort();
        for (name, value) in filters {
            list.add(name);
            list.add(value);
        }
        Ok(list)
    }
}

impl ListRead {
    /// Adds a part, prefixed with its length, so that no byte can move from one part to the next.
    fn add(&mut self, part: &str) {
        self.mac.update(&(part.len() as u64).to_be_bytes());
        self.mac.update(part.as_bytes());
    }

    /// The cursor of a position.
    pub fn cursor(&self, position: &Position) -> String {
        let bytes = match position {
            Position::Id(id) => [&[KIND_ID], id.to_be_bytes().as_slice()].concat(),
            Position::Name(name) => [&[KIND_NAME], name.as_bytes()].concat(),
            Position::Time(TimePosition { at, id }) => {
                let micros = at.map(|at| at.timestamp_micros().to_be_bytes());
                let micros: &[u8] = micros.as_ref().map_or(&[][..], |micros| micros.as_slice());
                [&[KIND_TIME][..], id.to_be_bytes().as_slice(), micros].concat()
            }
        };
        let signature = self.mac_of(&bytes).finalize().into_bytes();
        BASE64_URL_SAFE_NO_PAD.encode([&signature[..SIGNATURE_BYTES], &bytes].concat())
    }

    /// The position of a cursor; `None` when it was not created for this list. The signature is compared in constant
    /// time.
    pub fn position(&self, cursor: &str) -> Option<Position> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (signature, bytes) = bytes.split_at_checked(SIGNATURE_BYTES)?;
        self.mac_of(bytes).verify_truncated_left(signature).ok()?;
        match bytes.split_first()? {
            (&KIND_ID, id) => Some(Position::Id(i64::from_be_bytes(id.try_into().ok()?))),
            (&KIND_NAME, name) => Some(Position::Name(std::str::from_utf8(name).ok()?.to_owned())),
            (&KIND_TIME, bytes) => {
                let (id, micros) = bytes.split_first_chunk()?;
                let id = i64::from_be_bytes(*id);
                let at = match micros {
                    [] => None,
                    micros => {
                        Some(DateTime::<Utc>::from_timestamp_micros(i64::from_be_bytes(micros.try_into().ok()?))?)
                    }
                };
                Some(Position::Time(TimePosition { at, id }))
            }
            _ => None,
        }
    }

    fn mac_of(&self, bytes: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(bytes);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(parts: &[&str]) -> ListRead {
        let mut list = ListRead { mac: Cursors::new([7; 64]).mac };
        parts.iter().for_each(|part| list.add(part));
        list
    }

    #[test]
    fn a_cursor_is_valid_for_one_list() {
        let tags = list(&["1", "/tags", "asc", "search", "a"]);
        let at = DateTime::from_timestamp_micros(1_764_000_000_123_456);
        assert!(at.is_some());
        for position in [
            Position::Id(0),
            Position::Id(i64::MAX),
            Position::Name(String::new()),
            Position::Name("é".into()),
            Position::Time(TimePosition { at: None, id: 7 }),
            Position::Time(TimePosition { at, id: i64::MAX }),
        ] {
            let cursor = tags.cursor(&position);
            assert_eq!(tags.position(&cursor), Some(position));
            for other_list in [
                list(&["2", "/tags", "asc", "search", "a"]),
                list(&["1", "/tags", "desc", "search", "a"]),
                list(&["1", "/tags", "asc", "search", "b"]),
                list(&["1", "/tags", "asc", "sear", "cha"]),
                list(&["1", "/tags", "asc"]),
            ] {
                assert_eq!(other_list.position(&cursor), None);
            }
        }
    }

    #[test]
    fn a_changed_cursor_is_refused() {
        let list = list(&["1"]);
        let cursor = list.cursor(&Position::Id(300));
        for index in 0..cursor.len() {
            for character in ['A', 'B', '_', '*', 'é'] {
                let mut changed: Vec<char> = cursor.chars().collect();
                changed[index] = character;
                let changed: String = changed.into_iter().collect();
                let is_same = changed == cursor;
                assert_eq!(list.position(&changed).is_some(), is_same, "{changed}");
            }
            assert_eq!(list.position(&cursor[..index]), None);
        }
        assert_eq!(list.position(&format!("{cursor}A")), None);
    }
}
