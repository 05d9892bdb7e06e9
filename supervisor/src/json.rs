//! How much a piece of JSON will cost, before it is paid, and a look into its text.

mod cut;
mod integers;
mod text;

pub(crate) use cut::{cut, cut_text, grouped, text_of};
pub(crate) use integers::exact;
pub(crate) use text::{Entry, JsonText, depth};

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Levels of lists and objects in each other. The parser's own limit is 128.
pub(crate) const DEPTH_MAX: usize = 100;

/// How many values a piece of JSON holds, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// Up to the fault, if there is one.
    pub(crate) values: usize,
    pub(crate) fault: Option<JsonFault>,
}

/// Why JSON was not counted to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonFault {
    Invalid,
    TooDeep,
    TooManyValues,
}

/// Counts the values of a piece of JSON, in time in proportion to its length and without keeping any. Stops above `values_max`.
pub(crate) fn count(json: &[u8], values_max: usize) -> Count {
    let mut counted = Count { values: 0, fault: None };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let counter = Counter { counted: &mut counted, values_max, depth: 0 };
    let read = counter.deserialize(&mut deserializer).and_then(|()| deserializer.end());
    if read.is_err() {
        counted.fault.get_or_insert(JsonFault::Invalid);
    }
    counted
}

/// Counts while it parses, and keeps nothing.
struct Counter<'a> {
    counted: &'a mut Count,
    values_max: usize,
    /// Of lists and objects around the next value.
    depth: usize,
}

impl Counter<'_> {
    /// For a value in the one that is being read.
    fn inner(&mut self) -> Counter<'_> {
        Counter { counted: self.counted, values_max: self.values_max, depth: self.depth + 1 }
    }

    fn fail<E: Error>(&mut self, fault: JsonFault) -> E {
        self.counted.fault = Some(fault);
        E::custom("a limit was reached")
    }

    fn enter<E: Error>(&mut self) -> Result<(), E> {
        if self.depth < DEPTH_MAX { Ok(()) } else { Err(self.fail(JsonFault::TooDeep)) }
    }
}

impl<'de> DeserializeSeed<'de> for Counter<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        if self.counted.values == self.values_max {
            return Err(self.fail(JsonFault::TooManyValues));
        }
        self.counted.values += 1;
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
        while map.next_key::<IgnoredAny>()?.is_some() {
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
        // What comes after the limit is not read: the list has no end.
        let expected = Count { values: 50, fault: Some(JsonFault::TooManyValues) };
        assert_eq!(count(list.as_bytes(), 50), expected);
        assert_eq!(fault(nested(DEPTH_MAX).as_bytes()), None);
        for levels in [DEPTH_MAX + 1, 100_000] {
            assert_eq!(count(nested(levels).as_bytes(), 200_000).fault, Some(JsonFault::TooDeep));
        }
    }
}
