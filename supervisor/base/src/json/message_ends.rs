//! Finds the top-level members of a JSON object at the beginning and the end of its text, which may be too long to be
//! parsed, truncated or invalid.

use memchr::memmem;
use serde::de::{DeserializeOwned, IgnoredAny};

/// Number of bytes that are searched at the beginning of a text, and also at its end.
const END_BYTES: usize = 256;

/// The beginning and the end of the text of a message, which is a JSON object.
#[derive(Clone, Copy, Debug)]
pub struct MessageEnds<'t> {
    head: &'t [u8],
    tail: &'t [u8],
}

impl<'t> MessageEnds<'t> {
    /// Returns the ends of a whole text, which may overlap.
    pub fn of(text: &'t [u8]) -> Self {
        let (head, tail) = (text.len().min(END_BYTES), text.len().saturating_sub(END_BYTES));
        Self { head: &text[..head], tail: &text[tail..] }
    }

    pub fn new(head: &'t [u8], tail: &'t [u8]) -> Self {
        Self { head, tail }
    }

    /// Finds the members with the name `key` (with its quotation marks), first those at the beginning. Returns for each
    /// the text that follows its name. Members of nested objects and text within strings do not count.
    pub fn members(self, key: &'static [u8]) -> impl Iterator<Item = &'t [u8]> {
        let Self { head, tail } = self;
        let at_start = memmem::find_iter(head, key).filter(move |at| is_member_at_start(head, *at));
        let at_end = memmem::find_iter(tail, key).filter(move |at| is_member_at_end(tail, *at));
        let after_key = move |text: &'t [u8], at: usize| &text[at + key.len()..];
        at_start.map(move |at| after_key(head, at)).chain(at_end.map(move |at| after_key(tail, at)))
    }
}

/// Parses the value of a member that [`MessageEnds::members`] found. Returns `None` if the value is of another type or
/// not complete.
pub fn member_value<T: DeserializeOwned>(after_key: &[u8]) -> Option<T> {
    let value = after_key.trim_ascii_start().strip_prefix(b":")?;
    let mut values = serde_json::Deserializer::from_slice(value).into_iter::<T>();
    let parsed = values.next()?.ok()?;
    // A number at the end of the text may have more digits.
    (values.byte_offset() < value.len()).then_some(parsed)
}

fn is_member_at_start(head: &[u8], at: usize) -> bool {
    let before = head[..at].trim_ascii_end();
    // If the preceding text is an object once it is closed, no nested object is open in it.
    is_object(&[before.strip_suffix(b",").unwrap_or(before), b"}"].concat())
}

fn is_member_at_end(tail: &[u8], at: usize) -> bool {
    // If the text is an object once it is opened here, it closes no other object.
    !tail[..at].ends_with(b"\\") && is_object(&[b"{", &tail[at..]].concat())
}

fn is_object(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<i64> {
        MessageEnds::of(text.as_bytes()).members(b"\"id\"").filter_map(member_value).collect()
    }

    #[test]
    fn only_complete_members_of_the_outermost_object_count() {
        let long = "x".repeat(1_000);
        for (text, expected) in [
            (format!(r#"{{"id":1,"a":{{"id":2}},"b":"\"id\":3","c":"{long}"}}"#), vec![1]),
            (format!(r#"{{"c":"{long}","a":{{"id":2}},"b":"\"id\":3","id":1}}"#), vec![1]),
            (format!(r#"{{"id":1,"c":"{long}","id":2}}"#), vec![1, 2]),
            (r#"{"id":1,"a":"\ud83d"}"#.to_owned(), vec![1]),
            (r#"{"a":"\ud83d","id":1}"#.to_owned(), vec![1]),
            (format!(r#"{{"id":1,"c":"{long}"#), vec![1]),
            (r#"{"id":12"#.to_owned(), vec![]),
            (r#"{"id":"one"}"#.to_owned(), vec![]),
            (r#"{"id"}"#.to_owned(), vec![]),
            (r#"{"id":"#.to_owned(), vec![]),
            (r#"["id",1]"#.to_owned(), vec![]),
            (String::new(), vec![]),
        ] {
            let mut found = ids(&text);
            // Both ends of a short text are the same.
            found.dedup();
            assert_eq!(found, expected, "{}", text.chars().take(60).collect::<String>());
        }
    }
}
