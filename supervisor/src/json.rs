//! How much a piece of JSON will cost, before it is paid, and a look into its text.

mod integers;
mod text;

pub(crate) use integers::exact;
pub(crate) use text::{Entry, JsonText, depth};

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// How many values a piece of JSON holds, itself included; `None` when it is not JSON, or nested too deeply.
pub(crate) fn nodes(json: &[u8]) -> Option<usize> {
    let mut count = 0;
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    Counter(&mut count).deserialize(&mut deserializer).ok()?;
    Some(count)
}

/// Counts while it parses, and keeps nothing.
struct Counter<'a>(&'a mut usize);

impl<'de> DeserializeSeed<'de> for Counter<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        *self.0 += 1;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counter<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while sequence.next_element_seed(Counter(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Counter(self.0))?;
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::nodes;

    #[test]
    fn every_value_counts_once() {
        assert_eq!(nodes(b"null"), Some(1));
        assert_eq!(nodes(br#"{"a": [1, 2.5, "x"], "b": {"c": true}}"#), Some(7));
        assert_eq!(nodes(b"[1,"), None);
        assert_eq!(nodes("[".repeat(100_000).as_bytes()), None);
    }
}
