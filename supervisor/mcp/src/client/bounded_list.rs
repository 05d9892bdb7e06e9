//! Deserializes a JSON list from an upstream server, such as the list of its tools. Only the first 10,000 items are
//! kept; the others are read and discarded.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Maximum number of items that are kept of one JSON list. Without this limit, a list of very small values would take
/// many times its text size in memory.
/// Bound: upstream servers.
const ENTRIES_MAX: usize = 10_000;

/// The first items of a JSON list from an upstream server, each as its JSON text.
#[derive(Default)]
pub struct BoundedList<'a> {
    pub items: Vec<&'a RawValue>,
    /// Whether the list from the server had more than 10,000 items. The further items were dropped.
    pub has_more: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for BoundedList<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reader(PhantomData))
    }
}

struct Reader<'a>(PhantomData<&'a ()>);

impl<'de> Visitor<'de> for Reader<'de> {
    type Value = BoundedList<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut entries = BoundedList::default();
        while entries.items.len() < ENTRIES_MAX {
            match sequence.next_element()? {
                Some(entry) => entries.items.push(entry),
                None => return Ok(entries),
            }
        }
        while sequence.next_element::<IgnoredAny>()?.is_some() {
            entries.has_more = true;
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_any_length_is_kept_up_to_the_limit_and_read_to_its_end() {
        for (count, kept, has_more) in
            [(0, 0, false), (3, 3, false), (ENTRIES_MAX, ENTRIES_MAX, false), (1_000_000, ENTRIES_MAX, true)]
        {
            let list = format!("[{}]", vec!["0"; count].join(","));
            let entries: BoundedList<'_> = serde_json::from_str(&list).expect("a list");
            assert_eq!((entries.items.len(), entries.has_more), (kept, has_more), "{count} entries");
            assert!(entries.items.capacity() <= 2 * ENTRIES_MAX, "{count} entries");
            let torn = list.trim_end_matches(']');
            assert!(serde_json::from_str::<BoundedList<'_>>(torn).is_err(), "{count} entries without an end");
        }
        assert!(serde_json::from_str::<BoundedList<'_>>("{}").is_err());
    }
}
