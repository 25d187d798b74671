//! IP addresses and ranges that a token may be used from.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde_json::{Value, json};

use super::values::FromField;

/// Maximum number of addresses and ranges in a token's list.
pub const ALLOWED_IPS_MAX: usize = 50;

/// An IPv4 address (a range of one), or a CIDR range whose address part is the network address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange(pub Ipv4Net);

impl FromField for AddressRange {
    fn from_json(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or("must be a string")?.trim();
        let range = text.parse::<Ipv4Net>().or_else(|_| text.parse::<Ipv4Addr>().map(Ipv4Net::from));
        let range = range.map_err(|_| "must be an IPv4 address or range; IPv6 is not supported")?;
        Ok(Self(range.trunc()))
    }

    fn schema() -> Value {
        json!({"type": "string", "description": "An IPv4 address or range", "example": "203.0.113.0/24"})
    }
}

/// The ranges as they are stored, without duplicates.
///
/// # Errors
/// A phrase that follows the field's name, when there are too many ranges.
pub fn allowed_ips(ranges: &[AddressRange]) -> Result<Vec<String>, String> {
    let mut entries: Vec<String> = Vec::new();
    for AddressRange(range) in ranges {
        let entry = if range.prefix_len() == 32 { range.addr().to_string() } else { range.to_string() };
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    if entries.len() > ALLOWED_IPS_MAX {
        return Err(format!("must have at most {ALLOWED_IPS_MAX} addresses and ranges"));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Result<AddressRange, String> {
        AddressRange::from_text(text)
    }

    #[test]
    fn ranges_are_stored_as_networks_without_duplicates() {
        let texts = ["10.1.2.3/8", "10.0.0.0/8", " 203.0.113.7", "203.0.113.7/32"];
        let ranges: Vec<AddressRange> = texts.iter().map(|text| range(text).expect(text)).collect();
        assert_eq!(allowed_ips(&ranges).expect("entries"), ["10.0.0.0/8", "203.0.113.7"]);
        for bad in ["::1", "::ffff:10.0.0.1", "10.0.0.0/33", "10.0.0", "010.0.0.1", ""] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn fifty_ranges_are_allowed_and_no_more() {
        let ranges: Vec<AddressRange> =
            (0..=50).map(|last| range(&format!("10.0.0.{last}")).expect("address")).collect();
        assert!(allowed_ips(&ranges[..50]).is_ok());
        assert!(allowed_ips(&ranges).is_err());
        assert!(allowed_ips(&[&ranges[..50], &ranges[..50]].concat()).is_ok(), "duplicates count once");
    }
}
