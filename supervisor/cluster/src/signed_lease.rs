//! The form of a lease in the shared state: a line of JSON, and a line with its signature by the key that the lease has. Whoever can write
//! into the table of leases, but has not the key of a host, cannot renew, change or end the lease of that host.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use bytes::Bytes;
use data_encoding::BASE64;

use crate::host_key::HostKey;
use crate::host_record::HostRecord;
use crate::settings::HostName;

/// The beginning of each text that is signed: a signature for one purpose is none for another.
const PURPOSE: &str = "lockhouse: lease of a host, version 1";

/// Returns a lease in the form in which it is stored. `None` if the key cannot sign.
pub(crate) fn sign(key: &HostKey, name: &HostName, record: &HostRecord) -> Option<Bytes> {
    let json = serde_json::to_string(record).ok()?;
    let signature = key.sign(signed_text(name.as_str(), &json).as_bytes())?;
    Some(format!("{json}\n{}", BASE64.encode(&signature)).into())
}

/// Reads the lease of the host `name`. `None` if it is none that this version understands, or is not signed with the key that it has.
pub(crate) fn verify(name: &str, value: &[u8]) -> Option<HostRecord> {
    let (json, signature) = std::str::from_utf8(value).ok()?.split_once('\n')?;
    let signature = BASE64.decode(signature.as_bytes()).ok()?;
    let record: HostRecord = serde_json::from_str(json).ok()?;
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &record.key.0);
    key.verify(signed_text(name, json).as_bytes(), &signature).ok()?;
    Some(record)
}

fn signed_text(name: &str, json: &str) -> String {
    format!("{PURPOSE}\n{name}\n{json}")
}

#[cfg(test)]
mod tests {
    use lockhouse_messages::{Base64Bytes, HostTag};

    use super::*;
    use crate::host_record::HostReport;

    #[test]
    fn a_lease_is_that_of_one_name_and_one_key() {
        let directory = tempfile::tempdir().expect("a directory");
        let [one, other] =
            ["one", "other"].map(|name| HostKey::load(&directory.path().join(name)).expect("a key"));
        let name: HostName = "h1".parse().expect("a name");
        let record = HostRecord {
            tag: HostTag::of_bits(7),
            address: ([127, 0, 0, 1], 7303).into(),
            key: Base64Bytes(one.public().to_vec()),
            version: "0".into(),
            started: 1,
            clock: 2,
            has_left: false,
            report: HostReport::default(),
        };
        let signed = sign(&one, &name, &record).expect("a lease");
        assert_eq!(verify("h1", &signed), Some(record.clone()));
        assert_eq!(verify("h2", &signed), None, "under another name");
        let by_other = sign(&other, &name, &record).expect("a lease");
        assert_eq!(verify("h1", &by_other), None, "signed with another key");
        let text = String::from_utf8(signed.to_vec()).expect("a text");
        for changed in [
            text.replace("7303", "7304"),
            text.replace('\n', ""),
            text.split_once('\n').expect("two lines").0.to_owned(),
            text.clone() + "=",
            String::new(),
        ] {
            assert_eq!(verify("h1", changed.as_bytes()), None, "{changed}");
        }
    }
}
