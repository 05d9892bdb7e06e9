//! Serializes bytes as base64 text (RFC 4648, with padding), because a list of numbers is four times as long.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const PADDING: u8 = b'=';

/// Bytes that are base64 text in a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Base64Bytes(pub Vec<u8>);

impl Serialize for Base64Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        decode(&text).map(Self).ok_or_else(|| D::Error::custom("this is not base64"))
    }
}

/// Serializes bytes, for `#[serde(with = "…")]` at a member of type `Option<Vec<u8>>`.
pub(crate) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    match bytes {
        Some(bytes) => serializer.serialize_some(&encode(bytes)),
        None => serializer.serialize_none(),
    }
}

/// Parses bytes.
///
/// # Errors
/// Fails if the text is not base64.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| decode(&text).ok_or_else(|| D::Error::custom("this is not base64"))).transpose()
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * index)) as usize & 63];
            text.push(char::from(if index > chunk.len() { PADDING } else { digit }));
        }
    }
    text
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches(char::from(PADDING)).as_bytes();
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.chunks(4) {
        let mut bits = 0;
        for index in 0..4 {
            bits = bits << 6 | chunk.get(index).map_or(Some(0), |digit| value(*digit))?;
        }
        let [_, decoded @ ..] = bits.to_be_bytes();
        bytes.extend_from_slice(&decoded[..chunk.len() - 1]);
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_each_length_round_trip() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (&[0xff, 0xfe, 0xfb, 0], "//77AA=="),
        ] {
            assert_eq!((encode(bytes).as_str(), decode(text).as_deref()), (text, Some(bytes)));
        }
        let all: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    #[test]
    fn other_text_is_not_decoded() {
        for text in ["Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Z g=", "Zm9\u{e9}"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
