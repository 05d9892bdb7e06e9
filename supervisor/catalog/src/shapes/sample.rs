//! Samples the JSON result of a tool call: keeps the first elements of each list and a limited number of
//! values, and skips the rest.

use std::collections::HashSet;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Maximum number of elements of each list that are sampled.
/// Bound: tools and searches.
pub(super) const ELEMENTS_MAX: usize = 24;
/// Maximum number of keys of each object that are sampled.
/// Bound: tools and searches.
const KEYS_MAX: usize = 64;
/// Maximum number of values in one result that are sampled.
/// Bound: tools and searches.
const VALUES_MAX: usize = 8_000;
/// Maximum length, in bytes, of strings that are stored for the comparison with keys. Longer strings are
/// skipped, because no field name is longer.
const TEXT_BYTES_MAX: usize = 64;
/// Maximum nesting depth of a result that is sampled.
/// Bound: tools and searches.
const DEPTH_MAX: usize = 12;

/// A sample of a JSON value. Short strings are stored so that they can be compared with object keys. Of
/// all other values, only the type is stored.
#[derive(Debug, PartialEq)]
pub(super) enum Sample {
    Null,
    Bool,
    Integer,
    Number,
    Text(Option<Box<str>>),
    List(Vec<Sample>),
    /// The sampled members of an object, and whether the object has more members.
    Object(Vec<(Box<str>, Sample)>, bool),
    /// A value that was not sampled because a limit was reached.
    Unknown,
}

impl Sample {
    /// Samples JSON text. Returns `None` if the text is invalid.
    pub(super) fn parse(json: &[u8]) -> Option<Self> {
        let mut left = VALUES_MAX;
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        SampleVisitor { left: &mut left, depth: 0 }.deserialize(&mut deserializer).ok()
    }
}

impl Sample {
    /// Samples a text result in the way in which programs receive it: a text that contains a JSON object,
    /// array or `null` becomes that value, and any other text stays text.
    pub(super) fn of_text(text: &str) -> Self {
        let trimmed = text.trim_matches([' ', '\t', '\r', '\n']);
        let is_json = trimmed.starts_with(['{', '[']) || trimmed == "null";
        is_json.then(|| Self::parse(text.as_bytes())).flatten().unwrap_or(Self::Text(None))
    }
}

/// Adds the strings that are stored in a sample to the set `found`, in lower case.
pub(super) fn strings(sample: &Sample, found: &mut HashSet<String>) {
    match sample {
        Sample::Text(Some(text)) => {
            found.insert(text.to_ascii_lowercase());
        }
        Sample::List(elements) => elements.iter().for_each(|element| strings(element, found)),
        Sample::Object(members, _) => members.iter().for_each(|(_, member)| strings(member, found)),
        _ => {}
    }
}

struct SampleVisitor<'a> {
    left: &'a mut usize,
    depth: usize,
}

impl SampleVisitor<'_> {
    fn below(&mut self) -> SampleVisitor<'_> {
        SampleVisitor { left: self.left, depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for SampleVisitor<'_> {
    type Value = Sample;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Sample, D::Error> {
        if *self.left == 0 || self.depth > DEPTH_MAX {
            IgnoredAny.deserialize_ignored(deserializer)?;
            return Ok(Sample::Unknown);
        }
        *self.left -= 1;
        deserializer.deserialize_any(self)
    }
}

trait Ignored {
    fn deserialize_ignored<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error>;
}

impl Ignored for IgnoredAny {
    fn deserialize_ignored<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_ignored_any(self).map(drop)
    }
}

impl<'de> Visitor<'de> for SampleVisitor<'_> {
    type Value = Sample;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<Sample, A::Error> {
        let mut elements = Vec::new();
        while elements.len() < ELEMENTS_MAX {
            match sequence.next_element_seed(self.below())? {
                Some(element) => elements.push(element),
                None => return Ok(Sample::List(elements)),
            }
        }
        while sequence.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Sample::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Sample, A::Error> {
        let mut members: Vec<(Box<str>, Sample)> = Vec::new();
        while members.len() < KEYS_MAX {
            let Some(key) = map.next_key::<Box<str>>()? else { return Ok(Sample::Object(members, false)) };
            members.push((key, map.next_value_seed(self.below())?));
        }
        let mut more = false;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            more = true;
        }
        Ok(Sample::Object(members, more))
    }

    fn visit_unit<E: Error>(self) -> Result<Sample, E> {
        Ok(Sample::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Sample, E> {
        Ok(Sample::Bool)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Sample, E> {
        Ok(Sample::Integer)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Sample, E> {
        Ok(Sample::Integer)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Sample, E> {
        Ok(Sample::Number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Sample, E> {
        Ok(Sample::Text((text.len() <= TEXT_BYTES_MAX).then(|| text.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_bounded_for_any_result() {
        let long = format!("[{}1]", "{\"a\": [1, 2.5, null, true]},".repeat(100_000));
        let Some(Sample::List(elements)) = Sample::parse(long.as_bytes()) else { panic!("a list") };
        assert_eq!(elements.len(), ELEMENTS_MAX);
        let wide =
            format!("{{{}\"z\": 1}}", (0..10_000).map(|n| format!("\"k{n}\": 1,")).collect::<String>());
        assert!(
            matches!(Sample::parse(wide.as_bytes()), Some(Sample::Object(members, true)) if members.len() == KEYS_MAX)
        );
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(Sample::parse(deep.as_bytes()).is_some());
        assert_eq!(Sample::parse("[".repeat(100_000).as_bytes()), None);
        assert_eq!(Sample::parse(b"{\"a\": "), None);
    }
}
