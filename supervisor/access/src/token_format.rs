//! The format of Lockhouse's bearer tokens.
//!
//! A token is `lh_`, 43 letters and digits with 256 bits of randomness, and a checksum of 6 characters. The prefix and
//! the checksum let secret scanners recognise leaked tokens without false alarms.

use std::fmt::{self, Debug, Formatter};

use sha2::{Digest as _, Sha256};

/// The prefix of every Lockhouse bearer token.
pub(super) const PREFIX: &str = "lh_";
/// Number of characters of the secret part of a token. 62^43 is more than 2^256, so 43 letters and digits suffice for
/// 256 random bits.
const SECRET_CHARS: usize = 43;
const CHECKSUM_CHARS: usize = 6;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A bearer token in plain text.
pub struct Token(String);

/// The SHA-256 of a token, which the token file stores. A slow password hash is not needed, because a token has 256
/// random bits.
pub(super) type Digest = [u8; 32];

impl Token {
    /// Generates a token with random numbers from the kernel.
    pub fn new() -> Result<Self, getrandom::Error> {
        let mut secret = String::with_capacity(SECRET_CHARS);
        while secret.len() < SECRET_CHARS {
            let mut bytes = [0; 64];
            getrandom::fill(&mut bytes)?;
            // 248 is 4 * 62. Bytes from 248 on are dropped, because they would make some characters likelier than
            // others.
            let even = bytes.iter().filter(|byte| **byte < 248);
            let room = SECRET_CHARS - secret.len();
            secret.extend(even.take(room).map(|byte| char::from(ALPHABET[usize::from(byte % 62)])));
        }
        let checksum = checksum(&secret);
        Ok(Self(format!("{PREFIX}{secret}{checksum}")))
    }

    /// Parses a token. Returns `None` if the format or the checksum is wrong, for example after an incomplete copy.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let has_form = rest.len() == SECRET_CHARS + CHECKSUM_CHARS
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let (secret, sum) = rest.split_at_checked(SECRET_CHARS).filter(|_| has_form)?;
        (checksum(secret) == sum).then(|| Self(text.to_owned()))
    }

    pub(super) fn digest(&self) -> Digest {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// Returns the plain text, to show it once to the user who created the token.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Debug for Token {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

fn checksum(secret: &str) -> String {
    let digest = Sha256::digest(format!("lockhouse token {secret}").as_bytes());
    let mut rest = digest[..8].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let mut digit = || {
        let digit = ALPHABET[(rest % 62) as usize];
        rest /= 62;
        char::from(digit)
    };
    (0..CHECKSUM_CHARS).map(|_| digit()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tokens_round_trip_and_debug_output_redacts_them() {
        let tokens: Vec<Token> = (0..200).map(|_| Token::new().expect("randomness")).collect();
        let texts: BTreeSet<&str> = tokens.iter().map(Token::reveal).collect();
        assert_eq!(texts.len(), 200);
        for token in &tokens {
            assert_eq!(token.reveal().len(), 52);
            assert_eq!(Token::parse(token.reveal()).expect("the same").digest(), token.digest());
            assert_eq!(format!("{token:?}"), "Token(…)");
        }
    }

    #[test]
    fn tokens_with_a_wrong_checksum_are_rejected() {
        let token = Token::new().expect("randomness");
        let text = token.reveal();
        for at in PREFIX.len()..text.len() {
            let other = if text.as_bytes()[at] == b'x' { "y" } else { "x" };
            let slip = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            assert!(Token::parse(&slip).is_none(), "{at}");
        }
        let longer = format!("{text}x");
        for slip in ["", "lh_", "lh_é", &text[1..], &text[..51], &longer, " lh_", "Bearer lh_"] {
            assert!(Token::parse(slip).is_none(), "{slip:?}");
        }
    }
}
