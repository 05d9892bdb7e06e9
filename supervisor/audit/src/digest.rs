//! SHA-256 digests of configuration and policy files.

use super::hash_chain::hash;
use data_encoding::HEXLOWER;

/// Returns the SHA-256 of a text as hexadecimal digits.
pub fn sha256_hex(text: &str) -> String {
    HEXLOWER.encode(&hash(text.as_bytes()))
}

/// Combines the SHA-256 digests of several files into one. The result for one file is the digest of that file. For
/// several files it is the SHA-256 of their digests, one per line. `None` if there are no files.
pub fn combined_sha256(digests: &[String]) -> Option<String> {
    match digests {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(sha256_hex(&several.iter().map(|digest| format!("{digest}\n")).collect::<String>())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_match_sha256sum() {
        let one = sha256_hex("abc");
        assert_eq!(one, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(combined_sha256(&[]), None);
        assert_eq!(combined_sha256(std::slice::from_ref(&one)), Some(one.clone()));
        let both = combined_sha256(&[one.clone(), sha256_hex("")]).expect("a hash");
        assert!(both != one && Some(both) != combined_sha256(&[sha256_hex(""), one]), "the order counts");
    }
}
