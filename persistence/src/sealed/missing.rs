//! Keys that the database needs and the key file does not contain: the service runs without what they seal.
//!
//! While the key that seals is missing, nothing is sealed for the database, so that the file can be put back without
//! losing a value. What is not stored there (cookies) is sealed with a key that exists only in memory.

use std::sync::Arc;

use super::{Key, KeyError, Keyring, Location, encrypt};

/// What a keyring knows about missing keys.
#[derive(Default)]
pub(super) struct MissingKeys {
    /// The ids of all missing keys.
    ids: Vec<String>,
    /// The key that seals, if it is missing.
    sealing: Option<MissingSealingKey>,
}

struct MissingSealingKey {
    id: String,
    /// The id of the file's first key when the sealing key was found missing. A different first key replaces the
    /// missing one.
    first_id: Option<String>,
    /// The key, only in memory, that seals unstored values in its place.
    stand_in: Arc<Key>,
}

impl Keyring {
    /// Runs without these keys. `sealing_id` is the id of the key that seals, if it is among them.
    ///
    /// # Errors
    /// When no key can be created in memory.
    pub(crate) fn run_without(&self, ids: Vec<String>, sealing_id: Option<String>) -> Result<(), KeyError> {
        let with_stand_in = |id| {
            let first_id = self.ids().into_iter().next();
            Ok::<_, KeyError>(MissingSealingKey { id, first_id, stand_in: Arc::new(Key::random()?) })
        };
        let sealing = sealing_id.map(with_stand_in).transpose()?;
        *self.inner.missing_keys.write() = MissingKeys { ids, sealing };
        Ok(())
    }

    /// Whether an error is due to a key that was reported as missing at startup.
    pub(crate) fn is_reported(&self, error: &KeyError) -> bool {
        error.missing_key().is_some_and(|id| self.inner.missing_keys.read().ids.iter().any(|missing| missing == id))
    }

    /// Seals a value that is not stored, such as a cookie. Works also while the key that seals is missing.
    ///
    /// # Errors
    /// When there is no key.
    pub fn seal_unstored(&self, location: &Location<'_>, plain: &[u8]) -> Result<String, KeyError> {
        match (self.seal(location, plain), self.stand_in()) {
            (Err(error), Some(stand_in)) if error.missing_key().is_some() => encrypt(&stand_in, location, "", plain),
            (sealed, _) => sealed,
        }
    }

    /// Refuses to seal for the database while the sealing key is missing and no new first key replaces it.
    pub(super) fn check_sealing(&self, keys: &[Key]) -> Result<(), KeyError> {
        let missing = self.inner.missing_keys.read();
        let Some(MissingSealingKey { id, first_id, .. }) = &missing.sealing else { return Ok(()) };
        let is_replaced = keys.first().map(|key| &key.id) != first_id.as_ref();
        if is_replaced || keys.iter().any(|key| key.id == *id) { Ok(()) } else { Err(self.missing_key_error(id)) }
    }

    /// The key in memory that replaces the missing key that seals; `None` if no sealing key was missing at the start.
    pub(super) fn stand_in(&self) -> Option<Arc<Key>> {
        self.inner.missing_keys.read().sealing.as_ref().map(|missing| missing.stand_in.clone())
    }
}

impl KeyError {
    /// The id of the missing key; `None` for errors of another kind.
    pub fn missing_key(&self) -> Option<&str> {
        match self {
            Self::NoFile { id, .. } | Self::OtherKey { id, .. } => Some(id),
            Self::File { .. } | Self::NoKey { .. } | Self::Unwritable { .. } | Self::Damaged | Self::Unsealable(_) => {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CompanyId;

    const HERE: Location<'static> = Location { column: "channels.settings", company: CompanyId::new(1), row: "7" };

    #[test]
    fn without_its_key_a_keyring_seals_only_what_is_not_stored() {
        let folder = tempfile::TempDir::new().expect("folder");
        let (path, aside) = (folder.path().join("secrets.key"), folder.path().join("aside.key"));
        let earlier_keys = Keyring::at(&path);
        earlier_keys.load_or_create().expect("a key file");
        let (id, sealed) = (earlier_keys.ids().remove(0), earlier_keys.seal(&HERE, b"token").expect("sealed"));
        std::fs::rename(&path, &aside).expect("moved");

        let keys = Keyring::at(&path);
        keys.run_without(vec![id.clone()], Some(id.clone())).expect("a key in memory");
        let error = keys.seal(&HERE, b"token").expect_err("the key is missing");
        assert_eq!(error.missing_key(), Some(id.as_str()), "{error}");
        assert!(keys.is_reported(&keys.open(&HERE, &sealed).expect_err("the key is missing")));
        let cookie = keys.seal_unstored(&HERE, b"cookie").expect("sealed");
        assert_eq!(keys.open(&HERE, &cookie).expect("opened"), b"cookie");
        assert!(keys.has_sealed(&HERE, &cookie) && !path.exists());

        // Once the file is put back, its key opens what it sealed, and seals again.
        std::fs::rename(&aside, &path).expect("moved");
        assert_eq!(keys.open(&HERE, &sealed).expect("opened"), b"token");
        assert!(keys.seal(&HERE, b"token").expect("sealed").contains(&id));
        assert!(keys.has_sealed(&HERE, &cookie), "what was sealed meanwhile is still valid");
    }

    #[test]
    fn a_new_first_key_seals_in_place_of_the_missing_one() {
        let folder = tempfile::TempDir::new().expect("folder");
        let keys = Keyring::at(folder.path().join("secrets.key"));
        keys.load_or_create().expect("a key file");
        let missing = "00112233445566aa".to_owned();
        keys.run_without(vec![missing.clone()], Some(missing)).expect("a key in memory");
        assert!(keys.seal(&HERE, b"token").is_err(), "a key of another installation seals");
        let command_keys = Keyring::at(keys.path());
        let new_id = command_keys.add_key().expect("another key");
        assert!(keys.seal(&HERE, b"token").expect("sealed").contains(&new_id));
    }
}
