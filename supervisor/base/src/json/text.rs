//! A look into JSON text that is known to be valid, without making anything of it.
//!
//! Values of workers have millions of parts if they like. What reads them here takes time in proportion to the text, keeps
//! a bounded number of places, and does not recurse.

use std::ops::Range;

/// Levels of nesting at which the ends of long values are remembered.
const LEVELS_MAX: usize = 64;

/// JSON text, and where its long values end, so that no reader passes over them twice.
pub struct JsonText<'t> {
    text: &'t str,
    /// More bytes than these make a value long.
    long: usize,
    /// Start and end of each long value, in the order of their starts.
    ends: Vec<(usize, usize)>,
}

/// One item of a list, or one member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A member's name as it is written, in quotation marks; empty in a list.
    pub key: Range<usize>,
    pub value: Range<usize>,
}

impl<'t> JsonText<'t> {
    /// For valid JSON. What is said of other text is nonsense.
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
                    if at - start > long && depth <= LEVELS_MAX {
                        ends.push((start, at));
                    }
                }
                b'[' | b'{' => {
                    depth += 1;
                    if depth <= LEVELS_MAX {
                        open.push(start);
                    }
                }
                b']' | b'}' => {
                    if depth <= LEVELS_MAX
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

    /// The whole value, without the white space around it.
    pub fn whole(&self) -> Range<usize> {
        let start = after_space(self.text.as_bytes(), 0);
        start..start.max(self.text.trim_end().len())
    }

    /// The text of a part.
    pub fn part(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    /// The entries of a list or an object; none of anything else.
    pub fn entries(&self, container: Range<usize>) -> impl Iterator<Item = Entry> {
        let bytes = self.text.as_bytes();
        let named = bytes.get(container.start) == Some(&b'{');
        let listed = bytes.get(container.start) == Some(&b'[');
        let end = if named || listed { container.end.saturating_sub(1).min(bytes.len()) } else { 0 };
        let mut at = after_space(bytes, container.start + 1);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let key = if named { at..end_of_string(bytes, at) } else { at..at };
            if named {
                // The colon.
                at = after_space(bytes, after_space(bytes, key.end) + 1);
            }
            let value = at..self.end_of_value(at);
            // The comma.
            at = after_space(bytes, after_space(bytes, value.end) + 1);
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
            // Of exactly that many bytes, or too deep to be remembered.
            Err(_) if bytes.get(start) == Some(&b'"') => end_of_string(bytes, start),
            Err(_) => end_of_container(bytes, start),
        }
    }
}

/// How deep a piece of valid JSON nests.
pub fn depth(text: &str) -> usize {
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

fn after_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// Behind the string that begins here; the end of the text if it does not end.
pub(super) fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
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
            assert_eq!(depth(text), expected, "{text}");
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
