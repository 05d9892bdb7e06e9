//! Finds the ID of a server's response that is too large to be parsed, at the beginning or the end of its text.
//!
//! Only the top-level `id` of the message counts, since the result in the message can contain members with the same
//! name.

use lockhouse_base::json::{MessageEnds, member_value};
use rmcp::model::RequestId;

const ID: &[u8] = b"\"id\"";
/// The key of the member `method`. Only requests and notifications have this member, so a message with it is not a
/// response to a request of Lockhouse.
const METHOD: &[u8] = b"\"method\"";

/// Finds the ID of a JSON-RPC response in a text that may be truncated or invalid; `None` if no ID is found.
pub fn find_id(text: &[u8]) -> Option<RequestId> {
    find_ids(MessageEnds::of(text)).next()
}

/// Finds the ID of a JSON-RPC response in `head`, the beginning of its text; `None` if `head` contains no ID.
pub fn find_id_at_start(head: &[u8]) -> Option<RequestId> {
    find_ids_at_ends(head, b"").next()
}

/// Finds the IDs in the beginning (`head`) and the end (`tail`) of a response's text. Returns no IDs if one of these
/// parts contains a top-level `method`, since the message is then a request or a notification.
pub fn find_ids_at_ends<'t>(head: &'t [u8], tail: &'t [u8]) -> impl Iterator<Item = RequestId> + 't {
    find_ids(MessageEnds::new(head, tail))
}

/// The IDs of Lockhouse's requests are numbers.
fn find_ids(ends: MessageEnds<'_>) -> impl Iterator<Item = RequestId> + '_ {
    let is_answer = ends.members(METHOD).next().is_none();
    let numbers = ends.members(ID).filter(move |_| is_answer).filter_map(member_value::<u32>);
    numbers.map(|number| RequestId::Number(number.into()))
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
