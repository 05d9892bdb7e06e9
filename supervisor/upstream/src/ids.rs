//! Whose answer a message is that is not read in full: its id, where it stands at one of the two ends of its text.
//!
//! Only the `id` of the message itself counts. Data of a result have members of that name as well.

use memchr::memmem;
use rmcp::model::RequestId;
use serde::de::IgnoredAny;

/// Bytes at each end in which the id is looked for.
const END_BYTES: usize = 256;

const ID: &[u8] = b"\"id\"";
/// What only a server's own requests and notifications have. Their ids are not ours.
const METHOD: &[u8] = b"\"method\"";

/// The id of the answer in a text that may be torn or invalid.
pub(super) fn id_in(text: &[u8]) -> Option<RequestId> {
    let (head, tail) = (&text[..text.len().min(END_BYTES)], &text[text.len().saturating_sub(END_BYTES)..]);
    ids_at_ends(head, tail).next()
}

/// The id in the beginning of an answer.
pub(super) fn id_at_start(head: &[u8]) -> Option<RequestId> {
    ids_at_ends(head, b"").next()
}

/// The ids in both ends of an answer, none where an end says that it is a request.
pub(super) fn ids_at_ends(head: &[u8], tail: &[u8]) -> impl Iterator<Item = RequestId> {
    let is_answer = members(head, METHOD).chain(members_at_end(tail, METHOD)).next().is_none();
    let id_at_start = members(head, ID).find_map(number);
    let id_at_end = members_at_end(tail, ID).find_map(number);
    [id_at_start, id_at_end].into_iter().flatten().filter(move |_| is_answer)
}

/// What begins with a member of the message, in its beginning.
fn members<'a>(head: &'a [u8], key: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let is_member = move |at: &usize| {
        let before = head[..*at].trim_ascii_end();
        // What is before it is an object if it is ended here, and so nothing in that object is open.
        is_object(&[before.strip_suffix(b",").unwrap_or(before), b"}"].concat())
    };
    memmem::find_iter(head, key).filter(is_member).map(move |at| &head[at..])
}

/// As [`members`], in its end.
fn members_at_end<'a>(tail: &'a [u8], key: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    // What begins with it is an object if it begins here, and so it ends no other one.
    let is_member =
        move |at: &usize| !tail[..*at].ends_with(b"\\") && is_object(&[b"{", &tail[*at..]].concat());
    memmem::find_iter(tail, key).filter(is_member).map(move |at| &tail[at..])
}

fn is_object(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// The number of a member, unless it is cut off. Our own ids are numbers.
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
            // Requests of the server's own, which number from anywhere.
            (format!(r#"{{"jsonrpc":"2.0","method":"ping","id":7,"params":{data}"#), None),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{data}"#), None),
            (format!(r#"{{"jsonrpc":"2.0","id":7,"params":{data},"method":"ping"}}"#), None),
            (format!(r#"{{"params":{data},"method":"ping","id":7}}"#), None),
            (format!(r#"{{"method":"ping","params":{data},"id":7}}"#), None),
            // A result may have such a member as well, and text.
            (format!(r#"{{"id":7,"result":{{"method":"GET","x":{data},"method":"GET"}}}}"#), Some(7)),
            (format!(r#"{{"id":7,"result":"\"method\":{}\"method\":1"}}"#, "x".repeat(1_000)), Some(7)),
            (r#"{"id":"7","result":1}"#.into(), None),
            ("no message".into(), None),
            (String::new(), None),
        ] {
            let shown: String = text.chars().take(60).collect();
            assert_eq!(id_in(text.as_bytes()), expected.map(RequestId::Number), "{shown}");
        }
    }
}
