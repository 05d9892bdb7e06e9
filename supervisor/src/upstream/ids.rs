//! Whose answer a message is that is not read in full: its id, where it stands at one of the two ends of its text.
//!
//! Only the `id` of the message itself counts. Data of a result have members of that name as well.

use memchr::memmem;
use rmcp::model::RequestId;
use serde::de::IgnoredAny;

/// Bytes at each end in which the id is looked for.
const END_BYTES: usize = 256;

const KEY: &[u8] = b"\"id\"";

/// The id in the text of a message that may be torn or invalid.
pub(super) fn id_in(text: &[u8]) -> Option<RequestId> {
    let (head, tail) = (&text[..text.len().min(END_BYTES)], &text[text.len().saturating_sub(END_BYTES)..]);
    id_at_start(head).or_else(|| id_at_end(tail))
}

/// The id in the beginning of a message.
pub(super) fn id_at_start(head: &[u8]) -> Option<RequestId> {
    let is_member = |at: &usize| {
        let before = head[..*at].trim_ascii_end();
        // What is before it is an object if it is ended here, and so nothing in that object is open.
        is_object(&[before.strip_suffix(b",").unwrap_or(before), b"}"].concat())
    };
    memmem::find_iter(head, KEY).filter(is_member).find_map(|at| number(&head[at..]))
}

/// The id in the end of a message.
pub(super) fn id_at_end(tail: &[u8]) -> Option<RequestId> {
    // What begins with it is an object if it begins here, and so it ends no other one.
    let is_member = |at: &usize| !tail[..*at].ends_with(b"\\") && is_object(&[b"{", &tail[*at..]].concat());
    memmem::find_iter(tail, KEY).filter(is_member).find_map(|at| number(&tail[at..]))
}

fn is_object(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// The number of a member, unless it is cut off. Our own ids are numbers.
fn number(member: &[u8]) -> Option<RequestId> {
    let value = member[KEY.len()..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = value.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&value[..digits]).ok()?.parse().ok().map(RequestId::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_the_message_counts_and_none_of_its_data() {
        let data = format!(r#"{{"id":12345,"of":[{{"id":8}}],"text":"{}"}}"#, "x".repeat(1_000));
        for (text, expected) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{data}}}"#), Some(7)),
            (format!(r#" {{ "id" : 7 , "result":{data}}}"#), Some(7)),
            (format!(r#"{{"result":{data},"jsonrpc":"2.0","id":7}}"#), Some(7)),
            (format!("{{\"result\":{data}, \"id\": 7, \"jsonrpc\": \"2.0\"}}\n"), Some(7)),
            (format!(r#"{{"result":[{data},{{"id":8}}],"id":7}}"#), Some(7)),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{data}"#), Some(7)),
            (r#"debug{"jsonrpc":"2.0","id":7,"result":"\"id\":8"}"#.into(), Some(7)),
            (format!(r#"{{"result":{data}}}"#), None),
            (format!(r#"{{"result":"\"id\":8,{}","x":"\"id\":8"}}"#, "x".repeat(1_000)), None),
            (format!(r#"{{"result":[{data},{{"id":8}}]"#), None),
            (r#"{"id":7"#.into(), None),
            (r#"{"id":"7","result":1}"#.into(), None),
            ("no message".into(), None),
            (String::new(), None),
        ] {
            let shown: String = text.chars().take(60).collect();
            assert_eq!(id_in(text.as_bytes()), expected.map(RequestId::Number), "{shown}");
        }
    }
}
