//! The signed header of a request that one process of a cluster forwards to another: the target life and the client's
//! address. It is signed with a key of the installation, so that the listener for peers trusts only its members.
//!
//! The signature also covers the method and the target. It does not cover the body, and nothing is encrypted: the
//! network between the processes must be private.

use std::net::SocketAddr;

use actix_http::RequestHead;
use actix_web::http::header::HeaderName;
use hmac::{Hmac, KeyInit, Mac};
use hotline_persistence::cluster::LifeId;
use hotline_persistence::tables::installation_keys::InstallationKey;
use sha2::Sha256;

/// The name of the header.
pub(super) const FORWARDED: HeaderName = HeaderName::from_static("hotline-forwarded");

/// Stands for an unknown address.
const UNKNOWN: &str = "-";

/// Creates and verifies signatures. Cheap to clone.
#[derive(Clone)]
pub(super) struct Signer(Hmac<Sha256>);

/// The content of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forwarded {
    /// The life that the request is for.
    pub(super) life: LifeId,
    /// The address of the client's connection.
    pub(super) client: Option<SocketAddr>,
}

impl Signer {
    pub(super) fn new(key: &InstallationKey) -> Self {
        Self(Hmac::new(key.into()))
    }

    /// The value of the header: life, address, signature.
    pub(super) fn sign(&self, head: &RequestHead, content: Forwarded) -> String {
        let text = content.text();
        let signature = hex::encode(self.mac(head, &text).finalize().into_bytes());
        format!("{text} {signature}")
    }

    /// The content of the header, if its signature is valid.
    pub(super) fn read(&self, head: &RequestHead) -> Option<Forwarded> {
        let mut headers = head.headers.get_all(FORWARDED);
        let (Some(header), None) = (headers.next(), headers.next()) else { return None };
        let (text, signature) = header.to_str().ok()?.rsplit_once(' ')?;
        let signature = hex::decode(signature).ok()?;
        self.mac(head, text).verify_slice(&signature).ok()?;
        let (life, client) = text.split_once(' ')?;
        let client = if client == UNKNOWN { None } else { Some(client.parse().ok()?) };
        Some(Forwarded { life: LifeId::new(life.parse().ok()?), client })
    }

    fn mac(&self, head: &RequestHead, text: &str) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        let target = head.uri.path_and_query().map_or("", |target| target.as_str());
        // Each part is prefixed with its length, so that no byte can move from one part to the next.
        for part in [head.method.as_str(), target, text] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

impl Forwarded {
    fn text(self) -> String {
        match self.client {
            Some(client) => format!("{} {client}", self.life),
            None => format!("{} {UNKNOWN}", self.life),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_http::Method;
    use actix_http::header::HeaderValue;

    use super::*;

    fn set_header(head: &mut RequestHead, value: &str) {
        head.headers.insert(FORWARDED, HeaderValue::from_str(value).expect("a value"));
    }

    fn head(method: Method, target: &str) -> RequestHead {
        let mut head = RequestHead::default();
        head.method = method;
        head.uri = target.parse().expect("a target");
        head
    }

    #[test]
    fn a_signature_is_valid_for_its_own_request_only() {
        let signer = Signer::new(&[7; 64]);
        for client in [None, Some("192.0.2.1:4711"), Some("[2001:db8::1]:80")] {
            let client = client.map(|client| client.parse().expect("an address"));
            let content = Forwarded { life: LifeId::new(12), client };
            let value = signer.sign(&head(Method::POST, "/api/v1/tickets?a=b"), content);
            let read = |signer: &Signer, method, target, value: &str| {
                let mut head = head(method, target);
                set_header(&mut head, value);
                signer.read(&head)
            };
            let read_own = |value: &str| read(&signer, Method::POST, "/api/v1/tickets?a=b", value);
            assert_eq!(read_own(&value), Some(content));
            assert_eq!(read(&signer, Method::GET, "/api/v1/tickets?a=b", &value), None, "another method");
            assert_eq!(read(&signer, Method::POST, "/api/v1/tickets?a=c", &value), None, "another target");
            assert_eq!(read(&Signer::new(&[8; 64]), Method::POST, "/api/v1/tickets?a=b", &value), None);
            assert_eq!(read_own(&value.replacen("12", "13", 1)), None, "another life");
            assert_eq!(read_own(&value[..value.len() - 2]), None, "a shorter signature");
            assert_eq!(read_own(""), None);
        }
        let mut get = head(Method::GET, "/");
        let value = signer.sign(&get, Forwarded { life: LifeId::new(1), client: None });
        set_header(&mut get, &value);
        assert!(signer.read(&get).is_some());
        get.headers.append(FORWARDED, HeaderValue::from_static("1 -"));
        assert_eq!(signer.read(&get), None, "with two headers, neither is trusted");
        assert_eq!(signer.read(&head(Method::GET, "/")), None);
    }
}
