//! Secrets at rest: credentials in the database are sealed with a key that is not in the database.
//!
//! - A [`Secret`] is a credential in memory. It is never logged, and `serde` refuses to serialize it except through
//!   [`Keyring::seal_json`]. So a new field of type `Secret`, at any depth of a JSON column, is either sealed or cannot
//!   be stored.
//! - A [`Keyring`] has the keys of an installation, from a file (`secrets.key` in the data folder, or `--key-file`).
//!   The first key of the file seals, all of them open.
//! - A [`Location`] says where a value is stored. The value is bound to it: copied to another row, company or field it
//!   cannot be opened.
//!
//! For a JSON column (see [`crate::tables::channels`]), call `keys.seal_json(&location, &settings)` before writing, and
//! `keys.open_json(&location, &mut stored)` after reading; deserializing then yields the secrets. For any other column,
//! use [`Keyring::seal`] and [`Keyring::open`]. A table with sealed values must be listed in
//! [`crate::tables::secret_keys`], so that they are resealed when the key is rotated.
//!
//! The cipher is AES-256-GCM with a random nonce, from the library also used for TLS
//! ([decision 23](../../../docs/decisions/0023-credentials-are-encrypted-with-a-key-file.md)).

mod file;
mod json;
mod missing;
mod secret;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest, Sha256};

pub use json::{LostSecret, without_secrets};
pub(crate) use json::{count_sealed, count_unsealed, mark_as_unsealed, remove_sealed};
pub use secret::Secret;

use self::missing::MissingKeys;
use crate::CompanyId;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// Prefix of a sealed value: the scheme version.
const SCHEME: &str = "v1";

/// Why a value cannot be sealed or opened, for the operator.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error(
        "the credentials in this database are encrypted with the key {id}, but the key file {} does not exist; \
         use --key-file (HOTLINE_KEY_FILE) for the file that contains this key. If the key is lost, \
         `hotline secret abandon {id}` gives these credentials up", path.display()
    )]
    NoFile { id: String, path: PathBuf },
    #[error(
        "the credentials in this database are encrypted with the key {id}, which is not in {} (it contains {key_ids}); \
         use --key-file (HOTLINE_KEY_FILE) for the file that contains this key, or add the key to this file. If the key is \
         lost, `hotline secret abandon {id}` gives these credentials up", path.display()
    )]
    OtherKey { id: String, key_ids: String, path: PathBuf },
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("{}: cannot be written: {source}", path.display())]
    Unwritable { path: PathBuf, source: std::io::Error },
    #[error(
        "no key to encrypt credentials with: {} does not exist. On another machine than the service, copy the key file \
         of the service, and use --key-file (HOTLINE_KEY_FILE)", path.display()
    )]
    NoKey { path: PathBuf },
    #[error("could not decrypt a value: it was modified or belongs to another record")]
    Damaged,
    #[error("could not encrypt a value: {0}")]
    Unsealable(String),
}

/// Where a sealed value is stored: a column of a company's row.
#[derive(Clone, Copy, Debug)]
pub struct Location<'a> {
    /// `table.column`.
    pub column: &'static str,
    /// The company; 0 for the installation.
    pub company: CompanyId,
    /// The row's id, as text.
    pub row: &'a str,
}

impl Location<'_> {
    /// The associated data of a value. No part contains a line break, so no two locations have the same text.
    fn associated_data(&self, field: &str) -> String {
        format!("hotline\n{}\n{}\n{}\n{field}", self.column, self.company, self.row)
    }
}

/// The keys of an installation. Clones share the same keyring.
#[derive(Clone, Default)]
pub struct Keyring {
    inner: Arc<KeyringState>,
}

#[derive(Default)]
struct KeyringState {
    path: PathBuf,
    /// The first key seals.
    keys: RwLock<Arc<[Key]>>,
    missing_keys: RwLock<MissingKeys>,
}

struct Key {
    id: String,
    bytes: [u8; KEY_BYTES],
    cipher: LessSafeKey,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("path", &self.inner.path).field("keys", &self.ids()).finish()
    }
}

impl Key {
    fn new(bytes: [u8; KEY_BYTES]) -> Result<Self, KeyError> {
        let cipher = UnboundKey::new(&AES_256_GCM, &bytes)
            .map_err(|_| KeyError::Unsealable("the cipher does not take the key".to_owned()))?;
        let cipher = LessSafeKey::new(cipher);
        // A fingerprint that identifies a key without revealing it.
        let digest = Sha256::new().chain_update(b"hotline key id\n").chain_update(bytes).finalize();
        Ok(Self { id: hex::encode(&digest[..8]), bytes, cipher })
    }

    fn random() -> Result<Self, KeyError> {
        Self::new(random())
    }
}

/// Random bytes from a cryptographic generator.
fn random<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    // `rand::rng` is a cryptographic generator, seeded and reseeded by the operating system.
    rand::Rng::fill_bytes(&mut rand::rng(), &mut bytes);
    bytes
}

impl Keyring {
    /// A keyring for this file, which is not read yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { inner: Arc::new(KeyringState { path: path.into(), ..KeyringState::default() }) }
    }

    /// The path of the key file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Reads the file. If it does not exist, the keys in memory stay and false is returned.
    ///
    /// # Errors
    /// When the file cannot be read, belongs to another user, is accessible to others, or contains anything but keys.
    pub fn load(&self) -> Result<bool, KeyError> {
        let Some(file) = file::read(&self.inner.path)? else { return Ok(false) };
        self.set_keys(file.keys);
        Ok(true)
    }

    /// As [`Keyring::load`], for a running service. It refuses a file that neither contains the key that seals now nor
    /// names it as deleted: such a file belongs to another installation or is incomplete, and values sealed with its
    /// first key could not be opened after the next start.
    ///
    /// # Errors
    /// As [`Keyring::load`], and [`KeyError::OtherKey`] for such a file. The previous keys stay.
    pub fn reload(&self) -> Result<bool, KeyError> {
        let Some(file) = file::read(&self.inner.path)? else { return Ok(false) };
        // A service whose sealing key was missing at the start accepts any file.
        let sealing_id = self.ids().into_iter().next().filter(|_| self.stand_in().is_none());
        if let Some(id) = sealing_id.filter(|id| !file.succeeds(id)) {
            let ids: Vec<&str> = file.keys.iter().map(|key| key.id.as_str()).collect();
            return Err(KeyError::OtherKey { id, key_ids: ids.join(", "), path: self.inner.path.clone() });
        }
        self.set_keys(file.keys);
        Ok(true)
    }

    /// Reads the file if it contains this key.
    fn load_with(&self, id: &str) -> Result<bool, KeyError> {
        let Some(file) = file::read(&self.inner.path)?.filter(|file| file.contains(id)) else { return Ok(false) };
        self.set_keys(file.keys);
        Ok(true)
    }

    /// Reads the file, and creates it with a new key if it does not exist.
    ///
    /// # Errors
    /// As [`Keyring::load`], and when it cannot be written.
    pub fn load_or_create(&self) -> Result<(), KeyError> {
        if self.load()? {
            return Ok(());
        }
        file::create(&self.inner.path, &Key::random()?)?;
        // The file that exists now, ours or that of a concurrent start.
        self.load().map(|_| ())
    }

    /// Inserts a new key at the front of the file, so that it seals from now on; returns its id.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn add_key(&self) -> Result<String, KeyError> {
        self.load()?;
        let new_key = Key::random()?;
        let id = new_key.id.clone();
        let existing = self.keys();
        file::write(&self.inner.path, std::iter::once(&new_key).chain(existing.iter()), &self.deleted_ids()?)?;
        self.load()?;
        Ok(id)
    }

    /// Removes a key from the file, which names it as deleted from then on.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn remove_key(&self, id: &str) -> Result<(), KeyError> {
        self.load()?;
        let mut deleted_ids = self.deleted_ids()?;
        deleted_ids.push(id.to_owned());
        file::write(&self.inner.path, self.keys().iter().filter(|key| key.id != id), &deleted_ids)?;
        self.load().map(|_| ())
    }

    /// The deleted keys that the file names.
    fn deleted_ids(&self) -> Result<Vec<String>, KeyError> {
        Ok(file::read(&self.inner.path)?.unwrap_or_default().deleted_ids)
    }

    /// The ids of the keys, the sealing one first.
    pub fn ids(&self) -> Vec<String> {
        self.keys().iter().map(|key| key.id.clone()).collect()
    }

    /// Seals a value for its location.
    ///
    /// # Errors
    /// When there is no key.
    pub fn seal(&self, location: &Location<'_>, plain: &[u8]) -> Result<String, KeyError> {
        self.seal_field(location, "", plain)
    }

    /// Opens a value that was sealed for this location.
    ///
    /// # Errors
    /// When its key is missing, or the text was not sealed for this location.
    pub fn open(&self, location: &Location<'_>, sealed: &str) -> Result<Vec<u8>, KeyError> {
        self.open_field(location, "", sealed)
    }

    /// Whether a text was sealed for this location with one of the keys in memory. It never reads the file, because
    /// anyone can cause this check.
    pub fn has_sealed(&self, location: &Location<'_>, sealed: &str) -> bool {
        let Some((id, bytes)) = split_sealed(sealed) else { return false };
        let (keys, stand_in) = (self.keys(), self.stand_in());
        let Some(key) = keys.iter().chain(stand_in.as_deref()).find(|key| key.id == id) else { return false };
        hex::decode(bytes).is_ok_and(|bytes| decrypt(key, location, "", bytes).is_ok())
    }

    fn seal_field(&self, location: &Location<'_>, field: &str, plain: &[u8]) -> Result<String, KeyError> {
        // Sealing is rare, and the command line may have rotated the key meanwhile.
        if let Err(error) = self.reload() {
            if self.keys().is_empty() {
                return Err(error);
            }
            tracing::warn!(%error, "could not read the key file again; encrypting with the previous key");
        }
        let keys = self.keys();
        self.check_sealing(&keys)?;
        let key = keys.first().ok_or_else(|| KeyError::NoKey { path: self.inner.path.clone() })?;
        encrypt(key, location, field, plain)
    }

    fn open_field(&self, location: &Location<'_>, field: &str, sealed: &str) -> Result<Vec<u8>, KeyError> {
        let (id, bytes) = split_sealed(sealed).ok_or(KeyError::Damaged)?;
        let bytes = hex::decode(bytes).map_err(|_| KeyError::Damaged)?;
        let mut keys = self.keys();
        let is_known = keys.iter().chain(self.stand_in().as_deref()).any(|key| key.id == id);
        if !is_known && self.load_with(id).unwrap_or(false) {
            // The key was rotated while this process ran.
            keys = self.keys();
        }
        let stand_in = self.stand_in();
        let key = keys.iter().chain(stand_in.as_deref()).find(|key| key.id == id);
        decrypt(key.ok_or_else(|| self.missing_key_error(id))?, location, field, bytes)
    }

    /// The error for a missing key.
    pub(crate) fn missing_key_error(&self, id: &str) -> KeyError {
        let (id, path) = (id.to_owned(), self.inner.path.clone());
        let key_ids = self.ids();
        if key_ids.is_empty() {
            KeyError::NoFile { id, path }
        } else {
            KeyError::OtherKey { id, key_ids: key_ids.join(", "), path }
        }
    }

    fn keys(&self) -> Arc<[Key]> {
        self.inner.keys.read().clone()
    }

    fn set_keys(&self, keys: Vec<Key>) {
        *self.inner.keys.write() = keys.into();
    }
}

/// Whether a value is sealed with the key of this id.
pub(crate) fn is_sealed_with(sealed: &str, id: &str) -> bool {
    split_sealed(sealed).is_some_and(|(key, _)| key == id)
}

/// The key's id, and the nonce and ciphertext, of a sealed value; `None` if the text is not one.
fn split_sealed(sealed: &str) -> Option<(&str, &str)> {
    sealed.strip_prefix(SCHEME)?.strip_prefix('.')?.split_once('.')
}

/// Encrypts a value for this location.
fn encrypt(key: &Key, location: &Location<'_>, field: &str, plain: &[u8]) -> Result<String, KeyError> {
    let mut sealed = plain.to_vec();
    // 96 random bits: a key can seal billions of values before two are likely to share a nonce.
    let nonce: [u8; NONCE_LEN] = random();
    let (data, unique_nonce) = (Aad::from(location.associated_data(field)), Nonce::assume_unique_for_key(nonce));
    let result = key.cipher.seal_in_place_append_tag(unique_nonce, data, &mut sealed);
    result.map_err(|_| KeyError::Unsealable("the cipher refuses it".to_owned()))?;
    Ok(format!("{SCHEME}.{}.{}{}", key.id, hex::encode(nonce), hex::encode(sealed)))
}

/// Decrypts a value that this key has sealed for this location.
fn decrypt(key: &Key, location: &Location<'_>, field: &str, mut bytes: Vec<u8>) -> Result<Vec<u8>, KeyError> {
    if bytes.len() < NONCE_LEN {
        return Err(KeyError::Damaged);
    }
    let (nonce, sealed) = bytes.split_at_mut(NONCE_LEN);
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| KeyError::Damaged)?;
    let plain = key.cipher.open_in_place(nonce, Aad::from(location.associated_data(field)), sealed);
    plain.map(|plain| plain.to_vec()).map_err(|_| KeyError::Damaged)
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    fn keyring() -> (tempfile::TempDir, Keyring) {
        let folder = tempfile::TempDir::new().expect("folder");
        let keys = Keyring::at(folder.path().join("secrets.key"));
        keys.load_or_create().expect("a key file");
        (folder, keys)
    }

    const HERE: Location<'static> = Location { column: "channels.settings", company: CompanyId::new(1), row: "7" };

    #[test]
    fn a_value_opens_only_at_its_location() {
        let (_folder, keys) = keyring();
        let sealed = keys.seal(&HERE, b"token").expect("sealed");
        assert_eq!(keys.open(&HERE, &sealed).expect("opened"), b"token");
        assert_ne!(keys.seal(&HERE, b"token").expect("sealed"), sealed, "a nonce was used twice");
        let other_locations = [
            Location { column: "webhooks.secret", ..HERE },
            Location { company: CompanyId::new(2), ..HERE },
            Location { row: "8", ..HERE },
        ];
        for location in other_locations {
            assert!(matches!(keys.open(&location, &sealed), Err(KeyError::Damaged)), "{location:?}");
        }
        for end in 0..sealed.len() {
            assert!(keys.open(&HERE, &sealed[..end]).is_err(), "opened when cut at {end}");
        }
        let mut changed = sealed.clone().into_bytes();
        let last = changed.last_mut().expect("a byte");
        *last = if *last == b'0' { b'1' } else { b'0' };
        assert!(keys.open(&HERE, &String::from_utf8(changed).expect("text")).is_err());
    }

    /// Sealed values can be opened with any implementation of AES-256-GCM.
    #[test]
    fn a_value_sealed_by_another_library_opens() {
        let folder = tempfile::TempDir::new().expect("folder");
        let path = folder.path().join("secrets.key");
        file::create(&path, &Key::new([7; KEY_BYTES]).expect("a key")).expect("a file");
        let keys = Keyring::at(path);
        assert!(keys.load().expect("a key file"));
        // AES-256-GCM of `token` under that key, with the nonce 000102030405060708090a0b.
        let sealed = "v1.0f508207cf6fefd8.000102030405060708090a0b6cee821573b6403d8200d8ac988134efa568d731f8";
        assert_eq!(keys.open(&HERE, sealed).expect("opened"), b"token");
    }

    #[test]
    fn a_new_key_seals_and_a_running_process_opens_values_of_both_keys() {
        let (folder, keys) = keyring();
        let running_keys = Keyring::at(folder.path().join("secrets.key"));
        assert!(running_keys.load().expect("a key file"));
        let old = keys.seal(&HERE, b"token").expect("sealed");
        let new_id = keys.add_key().expect("another key");
        let sealed = keys.seal(&HERE, b"token").expect("sealed");
        assert!(sealed.contains(&new_id) && !old.contains(&new_id), "{sealed}");
        assert_eq!(running_keys.open(&HERE, &sealed).expect("the file is read again"), b"token");
        assert_eq!(running_keys.open(&HERE, &old).expect("opened"), b"token");
        let retired_id = keys.ids()[1].clone();
        keys.remove_key(&retired_id).expect("removed");
        let message = keys.open(&HERE, &old).expect_err("the key is gone").to_string();
        assert!(message.contains("--key-file"), "{message}");
        assert!(message.contains(&retired_id) && message.contains(&new_id), "{message}");
    }

    #[test]
    fn a_running_service_takes_no_key_of_another_installation() {
        let (folder, keys) = keyring();
        let (path, aside) = (folder.path().join("secrets.key"), folder.path().join("aside.key"));
        let id = keys.ids().remove(0);
        let cookie = keys.seal_unstored(&HERE, b"cookie").expect("sealed");
        std::fs::rename(&path, &aside).expect("moved");
        Keyring::at(&path).load_or_create().expect("another installation's file");
        assert!(keys.seal_unstored(&HERE, b"cookie").expect("sealed").contains(&id));
        let sealed = keys.seal(&HERE, b"token").expect("sealed");
        assert!(sealed.contains(&id) && keys.has_sealed(&HERE, &cookie));
        assert!(matches!(keys.reload(), Err(KeyError::OtherKey { .. })));
        std::fs::rename(&aside, &path).expect("moved");
        assert!(keys.reload().expect("its own file"));
        assert_eq!(keys.open(&HERE, &sealed).expect("opened"), b"token");
    }

    #[test]
    fn a_running_service_takes_a_file_whose_rotation_has_ended() {
        let (folder, keys) = keyring();
        let command_keys = Keyring::at(folder.path().join("secrets.key"));
        assert!(command_keys.load().expect("a key file"));
        for _ in 0..2 {
            let retired_id = command_keys.ids().remove(0);
            command_keys.add_key().expect("another key");
            command_keys.remove_key(&retired_id).expect("removed");
        }
        // It has seen none of these keys.
        assert!(keys.seal(&HERE, b"token").expect("sealed").contains(&command_keys.ids()[0]));
        assert_eq!(keys.ids(), command_keys.ids());
    }

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Settings {
        token: Option<Secret>,
        more: Vec<Secret>,
        title: String,
    }

    #[test]
    fn every_secret_of_a_json_value_is_sealed_at_any_depth() {
        let (_folder, keys) = keyring();
        let secret = |text: &str| Secret(text.to_owned());
        let settings =
            Settings { token: Some(secret("hidden-1")), more: vec![secret("hidden-2")], title: "Shop".to_owned() };
        assert!(serde_json::to_value(&settings).is_err(), "a secret was serialized without being sealed");
        let mut stored = keys.seal_json(&HERE, &settings).expect("sealed");
        assert!(!stored.to_string().contains("hidden"), "{stored}");
        assert_eq!(stored["title"], "Shop");
        assert!(serde_json::from_value::<Settings>(stored.clone()).is_err(), "a secret was read without being opened");
        assert_eq!(without_secrets(&stored), json!({"more": [], "title": "Shop"}));

        let mut swapped = stored.clone();
        swapped["token"] = stored["more"][0].clone();
        let lost = keys.open_json(&HERE, &mut swapped);
        assert_eq!(lost.len(), 1, "a secret was opened in another field: {lost:?}");
        assert_eq!(swapped.get("token"), None, "a secret that cannot be opened is removed");

        assert!(keys.open_json(&HERE, &mut stored).is_empty());
        assert_eq!(serde_json::from_value::<Settings>(stored).expect("settings"), settings);
        // As stored before secrets were sealed.
        let plain = json!({"token": "hidden-1", "more": ["hidden-2"], "title": "Shop"});
        assert_eq!(serde_json::from_value::<Settings>(plain).expect("settings"), settings);
    }

    #[test]
    fn a_keyring_without_a_file_seals_nothing() {
        let folder = tempfile::TempDir::new().expect("folder");
        let keys = Keyring::at(folder.path().join("secrets.key"));
        let message = keys.seal(&HERE, b"token").expect_err("no key").to_string();
        assert!(message.contains("--key-file"), "{message}");
        assert!(Keyring::default().seal(&HERE, b"token").is_err());
    }
}
