//! Signed URLs of files: each gives access to one file for a limited time and cannot be forged.
//!
//! `/media/{company}/{id}?name=…&type=…&expires=…&signature=…`. The signature (HMAC-SHA-256) covers everything else, so
//! files are served without a database look-up, even during an outage, and no URL can be turned into one for another
//! file. The name is in the query because paths are logged and names may be private.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use hotline_persistence::CompanyId;
use hotline_persistence::tables::installation_keys::InstallationKey;
use hotline_persistence::tables::media::StoredMedia;
use sha2::Sha256;

/// The path of files.
pub const PATH: &str = "/media/{company}/{id}";

/// Expiry times are rounded up to a multiple of this many seconds: a file's URL, and thus its entry in a browser's
/// cache, changes only once in that time.
const STEP_S: i64 = 3600;

/// Creates and verifies URLs. Cheap to clone.
#[derive(Clone)]
pub struct Links {
    inner: Arc<Inner>,
    /// The origin before the path; if empty, URLs are relative.
    public_url: Arc<str>,
}

struct Inner {
    /// Initialized with the key.
    mac: Hmac<Sha256>,
    valid_for: TimeDelta,
}

/// The signed content of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedLink {
    /// The company of the file.
    pub company: CompanyId,
    /// The file's id.
    pub id: String,
    /// The file's name.
    pub name: String,
    /// The file's type.
    pub mime_type: String,
    /// The expiry of the URL, in seconds since 1970.
    pub expires: i64,
}

/// Why a URL is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidLink {
    /// The signature is invalid.
    Forged,
    /// The URL has expired.
    Expired,
}

impl Links {
    /// The public URL of the service, if configured.
    pub(super) fn public_url(&self) -> Option<&str> {
        Some(&*self.public_url).filter(|url| !url.is_empty())
    }

    pub(super) fn new(key: InstallationKey, public_url: Option<&str>, valid_for: TimeDelta) -> Self {
        let public_url = public_url.unwrap_or_default().trim_end_matches('/').into();
        Self { inner: Arc::new(Inner { mac: Hmac::new(&key.into()), valid_for }), public_url }
    }

    /// The links with this origin before the path, unless a public URL is configured.
    pub fn with_origin(&self, origin: impl FnOnce() -> Option<String>) -> Self {
        if !self.public_url.is_empty() {
            return self.clone();
        }
        Self { public_url: origin().unwrap_or_default().into(), ..self.clone() }
    }

    /// The origin of URLs; if empty, they are relative.
    pub fn origin(&self) -> &str {
        &self.public_url
    }

    /// A URL of a file, valid from `now` for the configured time and up to `STEP_S` longer.
    pub fn url(&self, company: CompanyId, media: &StoredMedia, now: DateTime<Utc>) -> String {
        let link = SignedLink {
            company,
            id: media.id.to_string(),
            name: media.file_name.clone(),
            mime_type: media.mime_type.clone(),
            expires: (now + self.inner.valid_for).timestamp().div_euclid(STEP_S) * STEP_S + STEP_S,
        };
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("name", &link.name)
            .append_pair("type", &link.mime_type)
            .append_pair("expires", &link.expires.to_string())
            .append_pair("signature", &hex::encode(self.mac(&link).finalize().into_bytes()))
            .finish();
        format!("{}/media/{company}/{}?{query}", self.public_url, link.id)
    }

    /// Verifies a URL. The signature is compared in constant time.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn check(&self, link: &SignedLink, signature: &str, now: DateTime<Utc>) -> Result<(), InvalidLink> {
        let signature = hex::decode(signature).map_err(|_| InvalidLink::Forged)?;
        self.mac(link).verify_slice(&signature).map_err(|_| InvalidLink::Forged)?;
        if now.timestamp() < link.expires { Ok(()) } else { Err(InvalidLink::Expired) }
    }

    fn mac(&self, link: &SignedLink) -> Hmac<Sha256> {
        let mut mac = self.inner.mac.clone();
        let (company, expires) = (link.company.to_string(), link.expires.to_string());
        // Each part is prefixed with its length, so that no byte can move from one part to the next.
        for part in [company.as_str(), &link.id, &link.name, &link.mime_type, &expires] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use hotline_persistence::tables::media::MediaId;

    use super::*;

    fn parse(url: &str) -> (SignedLink, String) {
        let url = url::Url::parse(&format!("http://host{url}")).expect("a URL");
        let path: Vec<&str> = url.path().split('/').collect();
        let query: std::collections::HashMap<String, String> = url.query_pairs().into_owned().collect();
        let link = SignedLink {
            company: path[2].parse().expect("company"),
            id: path[3].to_owned(),
            name: query["name"].clone(),
            mime_type: query["type"].clone(),
            expires: query["expires"].parse().expect("a number"),
        };
        (link, query["signature"].clone())
    }

    #[test]
    fn a_url_is_valid_only_for_its_file_and_its_time() {
        let now = DateTime::from_timestamp(1_766_000_000, 0).expect("a time");
        let links = Links::new([7; 64], None, TimeDelta::hours(24));
        let media = StoredMedia {
            id: MediaId::new(now),
            mime_type: "image/png".to_owned(),
            file_name: "a & b?.png".to_owned(),
            size: 1,
            voice: false,
        };
        let url = links.url(CompanyId::new(1), &media, now);
        let (link, signature) = parse(&url);
        assert_eq!(link.name, media.file_name);
        assert_eq!(links.check(&link, &signature, now), Ok(()));
        assert_eq!(links.check(&link, &signature, now + TimeDelta::hours(24)), Ok(()));
        assert_eq!(links.check(&link, &signature, now + TimeDelta::hours(25)), Err(InvalidLink::Expired));
        assert_eq!(
            links.url(CompanyId::new(1), &media, now + TimeDelta::seconds(1)),
            url,
            "the URL stays the same, for the browser's cache"
        );

        let forged_links = [
            SignedLink { company: CompanyId::new(2), ..link.clone() },
            SignedLink { id: format!("{}a", link.id), ..link.clone() },
            SignedLink { name: "a".to_owned(), ..link.clone() },
            SignedLink { mime_type: "text/html".to_owned(), ..link.clone() },
            SignedLink { expires: link.expires + 1, ..link.clone() },
            SignedLink { name: "a & b?.pngi".to_owned(), mime_type: "mage/png".to_owned(), ..link.clone() },
        ];
        for forged_link in forged_links {
            assert_eq!(links.check(&forged_link, &signature, now), Err(InvalidLink::Forged), "{forged_link:?}");
        }
        for forged_signature in ["", "00", "zz", &signature[2..], &signature.to_uppercase()[..62]] {
            assert_eq!(links.check(&link, forged_signature, now), Err(InvalidLink::Forged), "{forged_signature}");
        }
        let other_installation = Links::new([8; 64], None, TimeDelta::hours(24));
        assert_eq!(
            other_installation.check(&link, &signature, now),
            Err(InvalidLink::Forged),
            "another installation's"
        );
    }

    #[test]
    fn urls_begin_with_the_public_url() {
        let links = Links::new([7; 64], Some("https://support.example/"), TimeDelta::hours(1));
        let media = StoredMedia {
            id: MediaId::new(DateTime::UNIX_EPOCH),
            mime_type: "image/png".to_owned(),
            file_name: "a.png".to_owned(),
            size: 1,
            voice: false,
        };
        let url = links.url(CompanyId::new(1), &media, DateTime::UNIX_EPOCH);
        assert!(url.starts_with("https://support.example/media/1/"), "{url}");
    }
}
