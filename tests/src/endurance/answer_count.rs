//! Counts the answers in the lines that a Lockhouse server wrote to its client.

use std::collections::BTreeMap;

use serde_json::Value;

/// Returns, for the lines `wire` that the server wrote, the number of requests that were answered, and the number of
/// surplus answers: second and further answers to the same request.
pub(super) fn answers_by_request(wire: &[String]) -> (usize, usize) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in wire {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        if message.pointer("/result/structuredContent").is_some() || message.get("error").is_some() {
            *counts.entry(message["id"].to_string()).or_default() += 1;
        }
    }
    (counts.len(), counts.values().map(|count| count - 1).sum())
}

#[cfg(test)]
mod tests {
    use super::answers_by_request;

    #[test]
    fn a_second_answer_to_a_request_is_counted() {
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{"structuredContent":{"status":"ok"}}}"#;
        let other = r#"{"jsonrpc":"2.0","id":8,"error":{"code":-32603,"message":"lost"}}"#;
        let handshake = r#"{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{}}}"#;
        let wire = [handshake, answer, other].map(str::to_owned);
        assert_eq!(answers_by_request(&wire), (2, 0));
        assert_eq!(answers_by_request(&[&wire[..], &wire[1..2]].concat()), (2, 1));
    }
}
