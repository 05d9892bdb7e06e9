//! One hash for the files that something was read from.

use super::line::hash;
use data_encoding::HEXLOWER;

/// The SHA-256 of one text.
pub fn of_text(text: &str) -> String {
    HEXLOWER.encode(&hash(text.as_bytes()))
}

/// What stands for several files: of one its own hash, of several the hash of their hashes, one a line in their order.
pub fn of_files(digests: &[String]) -> Option<String> {
    match digests {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(of_text(&several.iter().map(|digest| format!("{digest}\n")).collect::<String>())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_the_hash_that_sha256sum_prints() {
        let one = of_text("abc");
        assert_eq!(one, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(of_files(&[]), None);
        assert_eq!(of_files(std::slice::from_ref(&one)), Some(one.clone()));
        let both = of_files(&[one.clone(), of_text("")]).expect("a hash");
        assert!(both != one && Some(both) != of_files(&[of_text(""), one]), "the order counts");
    }
}
