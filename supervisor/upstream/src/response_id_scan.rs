//! Finds the ID of a server's response that is too large to be parsed, at the beginning or the end of its text.
//!
//! Only the top-level `id` of the message counts, since the result in the message can contain members with the same
//! name.

use memchr::memmem;
use rmcp::model::RequestId;
use serde::de::IgnoredAny;

/// Number of bytes that are searched for the ID at the beginning of a message, and also at its end.
const END_BYTES: usize = 256;

const ID: &[u8] = b"\"id\"";
/// The key of the member `method`. Only requests and notifications have this member, so a message with it is not a
/// response to a request of Lockhouse.
const METHOD: &[u8] = b"\"method\"";

/// Finds the ID of a JSON-RPC response in a text that may be truncated or invalid; `None` if no ID is found.
pub(super) fn find_id(text: &[u8]) -> Option<RequestId> {
    let (head, tail) = (&text[..text.len().min(END_BYTES)], &text[text.len().saturating_sub(END_BYTES)..]);
    find_ids_at_ends(head, tail).next()
}

/// Finds the ID of a JSON-RPC response in `head`, the beginning of its text; `None` if `head` contains no ID.
pub(super) fn find_id_at_start(head: &[u8]) -> Option<RequestId> {
    find_ids_at_ends(head, b"").next()
}

/// Finds the IDs in the beginning (`head`) and the end (`tail`) of a response's text. Returns no IDs if one of these
/// parts contains a top-level `method`, since the message is then a request or a notification.
pub(super) fn find_ids_at_ends(head: &[u8], tail: &[u8]) -> impl Iterator<Item = RequestId> {
    let is_answer = members(head, METHOD).chain(members_at_end(tail, METHOD)).next().is_none();
    let find_id_at_start = members(head, ID).find_map(number);
    let id_at_end = members_at_end(tail, ID).find_map(number);
    [find_id_at_start, id_at_end].into_iter().flatten().filter(move |_| is_answer)
}

/// Finds the top-level members with the name `key` in `head`, the beginning of a message. Returns the text from each of
/// these members to the end of `head`.
fn members<'a>(head: &'a [u8], key: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let is_member = move |at: &usize| {
        let before = head[..*at].trim_ascii_end();
        // If the preceding text is an object once it is closed, no nested object is open in it.
        is_object(&[before.strip_suffix(b",").unwrap_or(before), b"}"].concat())
    };
    memmem::find_iter(head, key).filter(is_member).map(move |at| &head[at..])
}

/// Finds the top-level members with the name `key` in `tail`, the end of a message. Returns the text from each of these
/// members to the end of `tail`.
fn members_at_end<'a>(tail: &'a [u8], key: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    // If the text is an object once it is opened here, it closes no other object.
    let is_member =
        move |at: &usize| !tail[..*at].ends_with(b"\\") && is_object(&[b"{", &tail[*at..]].concat());
    memmem::find_iter(tail, key).filter(is_member).map(move |at| &tail[at..])
}

fn is_object(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// Returns the value of an `id` member if it is a complete number; otherwise `None`. The IDs of Lockhouse's requests
/// are numbers.
fn number(member: &[u8]) -> Option<RequestId> {
    let value = member[ID.len()..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
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
            // Requests of the server, with any ID.
            (format!(r#"{{"jsonrpc":"2.0","method":"ping","id":7,"params":{data}"#), None),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{data}"#), None),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"params":{data},"method":"ping"}}"#), None),
            (format!(r#"{{"params":{data},"method":"ping","id":7}}"#), None),
            (format!(r#"{{"method":"ping","params":{data},"id":7}}"#), None),
            // A result may contain members and text of that name.
            (format!(r#"{{"id":7,"result":{{"method":"GET","x":{data},"method":"GET"}}}}"#), Some(7)),
            (format!(r#"{{"id":7,"result":"\"method\":{}\"method\":1"}}"#, "x".repeat(1_000)), Some(7)),
            (r#"{"id":"7","result":1}"#.into(), None),
            ("no message".into(), None),
            (String::new(), None),
        ] {
            let shown: String = text.chars().take(60).collect();
            assert_eq!(find_id(text.as_bytes()), expected.map(RequestId::Number), "{shown}");
        }
    }
}
