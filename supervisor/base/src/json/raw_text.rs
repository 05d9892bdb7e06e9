//! Finds the items of lists and the members of objects in valid JSON text, without parsing the text into a tree.
//!
//! Workers can produce JSON with millions of values. The functions here take time linear in the length of the text,
//! store a bounded number of positions, and do not recurse.

use std::ops::Range;

use lockhouse_protocol::json_text::end_of_string;

/// Maximum nesting depth of values whose ends are stored in the index of [`JsonText`].
const INDEXED_LEVELS_MAX: usize = 64;

/// JSON text with an index of the positions at which its long values end. With the index, a reader can skip a long
/// value without scanning all of it again.
pub struct JsonText<'t> {
    text: &'t str,
    /// Number of bytes above which a value counts as long.
    long: usize,
    /// The start and the end of each long value as byte positions, ordered by start.
    ends: Vec<(usize, usize)>,
}

/// One item of a list, or one member of an object, as byte ranges in the JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of the member as written in the text, with quotation marks; an empty range for an item of a list.
    pub key: Range<usize>,
    pub value: Range<usize>,
}

impl<'t> JsonText<'t> {
    /// Indexes a valid JSON text. A value of more than `long` bytes counts as long. For invalid text, the methods
    /// return meaningless results, but do not panic.
    pub fn new(text: &'t str, long: usize) -> Self {
        let (mut open, mut depth, mut ends) = (Vec::new(), 0_usize, Vec::new());
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let start = at;
            at += 1;
            match byte {
                b'"' => {
                    at = end_of_string(bytes, start);
                    if at - start > long && depth <= INDEXED_LEVELS_MAX {
                        ends.push((start, at));
                    }
                }
                b'[' | b'{' => {
                    depth += 1;
                    if depth <= INDEXED_LEVELS_MAX {
                        open.push(start);
                    }
                }
                b']' | b'}' => {
                    if depth <= INDEXED_LEVELS_MAX
                        && let Some(start) = open.pop()
                        && at - start > long
                    {
                        ends.push((start, at));
                    }
                    depth = depth.saturating_sub(1);
                }
                _ => {}
            }
        }
        ends.sort_unstable();
        Self { text, long, ends }
    }

    /// Returns the byte range of the whole text without surrounding white space.
    pub fn whole(&self) -> Range<usize> {
        let start = skip_whitespace(self.text.as_bytes(), 0);
        start..start.max(self.text.trim_end().len())
    }

    /// Returns the text in a byte range.
    pub fn part(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    /// Iterates over the entries of the list or object at the byte range `container`. Yields nothing if the value there
    /// is neither.
    pub fn entries(&self, container: Range<usize>) -> impl Iterator<Item = Entry> {
        let bytes = self.text.as_bytes();
        let named = bytes.get(container.start) == Some(&b'{');
        let listed = bytes.get(container.start) == Some(&b'[');
        let end = if named || listed { container.end.saturating_sub(1).min(bytes.len()) } else { 0 };
        let mut at = skip_whitespace(bytes, container.start + 1);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let key = if named { at..end_of_string(bytes, at) } else { at..at };
            if named {
                // Skip the colon.
                at = skip_whitespace(bytes, skip_whitespace(bytes, key.end) + 1);
            }
            let value = at..self.end_of_value(at);
            // Skip the comma.
            at = skip_whitespace(bytes, skip_whitespace(bytes, value.end) + 1);
            Some(Entry { key, value })
        })
    }

    fn end_of_value(&self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let near = &bytes[..bytes.len().min(start.saturating_add(self.long))];
        let end = match bytes.get(start) {
            Some(b'"') => end_of_string(near, start),
            Some(b'[' | b'{') => end_of_container(near, start),
            _ => return end_of_scalar(bytes, start),
        };
        if end < near.len() {
            return end;
        }
        match self.ends.binary_search_by_key(&start, |(start, _)| *start) {
            Ok(found) => self.ends[found].1,
            // The value has exactly `long` bytes, or is nested too deeply to be indexed.
            Err(_) if bytes.get(start) == Some(&b'"') => end_of_string(bytes, start),
            Err(_) => end_of_container(bytes, start),
        }
    }
}

/// Returns the nesting depth of valid JSON text: 0 for a number, string, boolean or null, and 1 for a list of such
/// values.
pub fn nesting_depth(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut deepest, mut at) = (0_usize, 0, 0);
    while let Some(&byte) = bytes.get(at) {
        at = if byte == b'"' { end_of_string(bytes, at) } else { at + 1 };
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn skip_whitespace(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

fn end_of_container(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0_usize, start);
    while let Some(&byte) = bytes.get(at) {
        at = if byte == b'"' { end_of_string(bytes, at) } else { at + 1 };
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

pub(super) fn end_of_scalar(bytes: &[u8], start: usize) -> usize {
    let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
    let rest = bytes.get(start..).unwrap_or_default();
    rest.iter().position(ends).map_or(bytes.len(), |length| start + length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn entries(text: &str, long: usize) -> Vec<(&str, &str)> {
        let json = JsonText::new(text, long);
        let entries: Vec<Entry> = json.entries(json.whole()).collect();
        entries.into_iter().map(|entry| (json.part(entry.key), json.part(entry.value))).collect()
    }

    #[test]
    fn entries_are_found_whatever_stands_between() {
        for long in [0, 1, 3, 100] {
            assert_eq!(
                entries(" [ 1 ,\"a,]\\\"\" , [2,{}] ]\n", long),
                [("", "1"), ("", "\"a,]\\\"\""), ("", "[2,{}]")]
            );
            assert_eq!(
                entries("{ \"a\" : null,\"b}\":{\"c\":[]} }", long),
                [("\"a\"", "null"), ("\"b}\"", "{\"c\":[]}")]
            );
            for none in ["[]", "{ }", "1", "\"[1]\"", "null"] {
                assert_eq!(entries(none, long), []);
            }
        }
    }

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        for (text, expected) in [("1", 0), ("[]", 1), ("[\"[[[\",{\"[\":[]}]", 3), ("[[],[]]", 2)] {
            assert_eq!(nesting_depth(text), expected, "{text}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::hash_map(".{0,4}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn entries_are_those_of_the_value(value in any_json(), long in 0_usize..40, pretty: bool) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let found: Vec<Value> = entries(&text, long)
                .iter()
                .map(|(_, value)| serde_json::from_str(value).expect("JSON"))
                .collect();
            let expected: Vec<Value> = match value {
                Value::Array(items) => items,
                Value::Object(members) => members.into_iter().map(|(_, value)| value).collect(),
                _ => Vec::new(),
            };
            prop_assert_eq!(found, expected);
        }
    }
}
