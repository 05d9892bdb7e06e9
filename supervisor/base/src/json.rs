//! Limits the cost of JSON from untrusted peers before it is parsed, and reads or truncates JSON text without parsing
//! it into a tree.

mod message_ends;
mod raw_text;
mod truncate;

pub use message_ends::{MessageEnds, member_value};
pub use raw_text::{Entry, JsonText, nesting_depth};
pub use truncate::{decode_string, group_thousands, truncate, truncate_text};

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Maximum nesting depth of lists and objects that [`count`] permits. The limit of serde_json's parser is 128.
/// Bound: AI clients.
pub const DEPTH_MAX: usize = 100;

/// A key that serde_json reserves. When serde_json parses an object that begins with this key into a [`Value`], it
/// parses the string after the key as JSON and replaces the object by the result. One string could thus become any
/// number of values, at any depth.
const RESERVED_KEY: &str = "$serde_json::private::RawValue";

/// The number of values in a JSON text, and the reason why counting stopped. Lists, objects, and the values in them all
/// count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The number of values in the text. If there is a fault, the number of values that were counted before it.
    pub values: usize,
    pub fault: Option<JsonFault>,
}

/// The reason why a JSON text is refused, or is not counted to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFault {
    Invalid,
    TooDeep,
    TooManyValues,
    /// An object has the key [`RESERVED_KEY`].
    ReservedKey,
}

/// Parses untrusted JSON that has at most `values_max` values. The nesting depth is limited only by serde_json's
/// parser.
///
/// # Errors
///
/// [`JsonFault`] if the JSON is invalid, has too many values, is nested too deeply or has the key [`RESERVED_KEY`]. No
/// value is allocated then.
pub fn parse_bounded(json: &[u8], values_max: usize) -> Result<Value, JsonFault> {
    parse_counted(json, values_max).map(|(tree, _)| tree)
}

/// Parses untrusted JSON like [`parse_bounded`], and also returns the number of values in the text. If an object has
/// several members with the same name, all of them are counted, but the tree contains only one.
///
/// # Errors
///
/// [`JsonFault`], as for [`parse_bounded`].
pub fn parse_counted(json: &[u8], values_max: usize) -> Result<(Value, usize), JsonFault> {
    let Count { values, fault } = count_values(json, values_max, usize::MAX);
    match fault {
        Some(fault) => Err(fault),
        None => Ok((serde_json::from_slice(json).map_err(|_| JsonFault::Invalid)?, values)),
    }
}

/// Returns the fault for which [`parse_bounded`] would refuse the text, without parsing it into a tree; `None` if
/// [`parse_bounded`] would accept it.
pub fn check_bounded(json: &[u8], values_max: usize) -> Option<JsonFault> {
    count_values(json, values_max, usize::MAX).fault
}

/// Counts the values of a JSON text in linear time without storing them. Stops with a fault if there are more than
/// `values_max` values, if they are nested more deeply than [`DEPTH_MAX`], if an object has the key [`RESERVED_KEY`],
/// or if the text is not valid JSON.
pub fn count(json: &[u8], values_max: usize) -> Count {
    count_values(json, values_max, DEPTH_MAX)
}

fn count_values(json: &[u8], values_max: usize, depth_max: usize) -> Count {
    let mut total = Count { values: 0, fault: None };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let counter = Counter { total: &mut total, values_max, depth_max, depth: 0 };
    let read = counter.deserialize(&mut deserializer).and_then(|()| deserializer.end());
    if read.is_err() {
        total.fault.get_or_insert(JsonFault::Invalid);
    }
    total
}

/// Counts the values that a deserializer reads, without storing them.
struct Counter<'a> {
    total: &'a mut Count,
    values_max: usize,
    depth_max: usize,
    /// The nesting depth of the next value to count.
    depth: usize,
}

impl Counter<'_> {
    /// Returns the counter for a value inside the list or object that is being counted.
    fn inner(&mut self) -> Counter<'_> {
        Counter {
            total: self.total,
            values_max: self.values_max,
            depth_max: self.depth_max,
            depth: self.depth + 1,
        }
    }

    fn fail<E: Error>(&mut self, fault: JsonFault) -> E {
        self.total.fault = Some(fault);
        E::custom("a limit was reached")
    }

    fn enter<E: Error>(&mut self) -> Result<(), E> {
        if self.depth < self.depth_max { Ok(()) } else { Err(self.fail(JsonFault::TooDeep)) }
    }
}

impl<'de> DeserializeSeed<'de> for Counter<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        if self.total.values == self.values_max {
            return Err(self.fail(JsonFault::TooManyValues));
        }
        self.total.values += 1;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counter<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<(), A::Error> {
        self.enter()?;
        while sequence.next_element_seed(self.inner())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        self.enter()?;
        while let Some(is_reserved) = map.next_key_seed(ReservedKey)? {
            if is_reserved {
                return Err(self.fail(JsonFault::ReservedKey));
            }
            map.next_value_seed(self.inner())?;
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

/// Deserializes the key of a JSON object to a `bool`: whether the key, after its escapes are resolved, is
/// [`RESERVED_KEY`].
struct ReservedKey;

impl<'de> DeserializeSeed<'de> for ReservedKey {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for ReservedKey {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        Ok(key == RESERVED_KEY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(json: &[u8]) -> Option<JsonFault> {
        count(json, 1_000).fault
    }

    #[test]
    fn every_value_counts_once() {
        for (json, values) in [("null", 1), (r#"{"a": [1, 2.5, "x"], "b": {"c": true}}"#, 7)] {
            assert_eq!(count(json.as_bytes(), 7), Count { values, fault: None }, "{json}");
        }
        assert_eq!([fault(b"[1,"), fault(b"1 2"), fault(b"")], [Some(JsonFault::Invalid); 3]);
    }

    #[test]
    fn counting_stops_at_the_limits() {
        let (list, nested) = (format!("[0{}", ",0".repeat(100_000)), |levels| {
            format!("{}{}", "[".repeat(levels), "]".repeat(levels))
        });
        // Nothing after the limit is read, so the missing end of the list is not detected.
        let expected = Count { values: 50, fault: Some(JsonFault::TooManyValues) };
        assert_eq!(count(list.as_bytes(), 50), expected);
        assert_eq!(fault(nested(DEPTH_MAX).as_bytes()), None);
        for levels in [DEPTH_MAX + 1, 100_000] {
            assert_eq!(count(nested(levels).as_bytes(), 200_000).fault, Some(JsonFault::TooDeep));
        }
    }

    #[test]
    fn a_string_that_a_parser_would_read_as_json_is_never_made_a_tree() {
        let many = format!("[{}0]", "0,".repeat(10_000));
        for key in [RESERVED_KEY, "\\u0024serde_json::private::RawValue"] {
            let inner = format!(r#"{{"{key}": "{many}"}}"#);
            // Control: shows the behaviour of serde_json because of which the reserved key is refused.
            let read: Value = serde_json::from_str(&inner).expect("JSON");
            assert_eq!(read.as_array().map(Vec::len), Some(10_001), "{key}");
            for json in [&inner, &format!("[{inner}]"), &format!(r#"{{"a": 1, "b": {inner}}}"#)] {
                assert_eq!(parse_bounded(json.as_bytes(), 1_000), Err(JsonFault::ReservedKey), "{key}");
            }
        }
        let honest = r#"{"$serde_json": 1, "x": "$serde_json::private::RawValue"}"#;
        assert_eq!(
            parse_bounded(honest.as_bytes(), 10).map(|tree| tree.to_string().len()),
            Ok(honest.len() - 3)
        );
    }
}
