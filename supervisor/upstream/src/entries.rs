//! The entries of a list that a server sends, up to a limit: what is over it is read and not kept.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Entries of one page that are looked at. A list of the smallest values would take many times its size.
const ENTRIES_MAX: usize = 10_000;

/// The first entries of a list, each as its JSON.
#[derive(Default)]
pub(super) struct Entries<'a> {
    pub(super) kept: Vec<&'a RawValue>,
    /// Whether there are more than are kept.
    pub(super) has_more: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reader(PhantomData))
    }
}

struct Reader<'a>(PhantomData<&'a ()>);

impl<'de> Visitor<'de> for Reader<'de> {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut entries = Entries::default();
        while entries.kept.len() < ENTRIES_MAX {
            match sequence.next_element()? {
                Some(entry) => entries.kept.push(entry),
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
            let entries: Entries<'_> = serde_json::from_str(&list).expect("a list");
            assert_eq!((entries.kept.len(), entries.has_more), (kept, has_more), "{count} entries");
            assert!(entries.kept.capacity() <= 2 * ENTRIES_MAX, "{count} entries");
            let torn = list.trim_end_matches(']');
            assert!(serde_json::from_str::<Entries<'_>>(torn).is_err(), "{count} entries without an end");
        }
        assert!(serde_json::from_str::<Entries<'_>>("{}").is_err());
    }
}
