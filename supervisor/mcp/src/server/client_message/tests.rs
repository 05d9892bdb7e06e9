use rmcp::model::{ClientJsonRpcMessage, ClientRequest as RmcpRequest, JsonRpcMessage, JsonRpcRequest};
use serde_json::json;

use super::*;

fn parsed(text: &str) -> ClientMessage {
    ClientMessage::parse(text.as_bytes()).expect(text)
}

#[test]
fn a_tool_call_is_read_as_rmcp_reads_it() {
    let params = json!({
        "name": "run_code",
        "arguments": {"code": "1+1", "n": 1.5},
        "_meta": {"progressToken": 7, "x": [1]},
        "requestState": "s",
    });
    for params in [params, json!({"name": "a"}), json!({"name": "a", "_meta": {}})] {
        for id in [json!(1), json!("one")] {
            let line =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
            let ClientMessage::Request(ours) = parsed(&line) else { panic!("{line}") };
            let theirs: ClientJsonRpcMessage = serde_json::from_str(&line).expect(&line);
            let JsonRpcMessage::Request(JsonRpcRequest {
                id,
                request: RmcpRequest::CallToolRequest(call),
                ..
            }) = theirs
            else {
                panic!("{line}")
            };
            let Ok(Parameters::CallTool(ours_call)) = &ours.parameters else { panic!("{line}") };
            assert_eq!((&ours.id, ours_call), (&id, &call.params), "{line}");
            let meta = call.extensions.get::<RequestMetaObject>().cloned().unwrap_or_default();
            assert_eq!(ours.meta, meta, "{line}");
        }
    }
}

#[test]
fn every_method_of_rmcp_is_known_with_the_same_parameters() {
    let meta = json!({"progressToken": 1});
    for (method, params) in [
        (
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}),
        ),
        ("server/discover", json!({"_meta": meta})),
        ("ping", json!({"_meta": meta})),
        ("tools/list", json!({"cursor": "1", "_meta": meta})),
        ("tasks/get", json!({"taskId": "1"})),
        ("tasks/update", json!({"taskId": "1", "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": "1"})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "a:b"})),
        ("resources/subscribe", json!({"uri": "a:b"})),
        ("resources/unsubscribe", json!({"uri": "a:b"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "a", "arguments": {"b": "c"}})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "b", "value": "c"}}),
        ),
        ("logging/setLevel", json!({"level": "info"})),
        ("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})),
    ] {
        let text = |params: &Value| {
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
        };
        let has_parameters = |text: &str| {
            let ClientMessage::Request(ours) = parsed(text) else { panic!("{text}") };
            let theirs: ClientJsonRpcMessage = serde_json::from_str(text).expect(text);
            let JsonRpcMessage::Request(theirs) = theirs else { panic!("{text}") };
            let is_known = !matches!(theirs.request, RmcpRequest::CustomRequest(_));
            assert_eq!(ours.parameters.is_ok(), is_known, "{text}");
            is_known
        };
        assert!(has_parameters(&text(&params)), "{method}");
        let bad = text(&json!([]));
        let ClientMessage::Request(refused) = parsed(&bad) else { panic!("{bad}") };
        assert!(refused.parameters.is_err_and(|error| error.code.0 == -32_602), "{bad}");
    }
}

/// Returns what becomes of a message: the id and the code of the error that answers it, or what it is.
fn outcome(text: &str) -> String {
    let id = |id: Option<RequestId>| id.map_or("no id".to_owned(), |id| id.into_json_value().to_string());
    match ClientMessage::parse(text.as_bytes()) {
        Err(InvalidMessage { id: refused, error }) => format!("{} {}", id(refused), error.code.0),
        Ok(ClientMessage::Answer(answered, Err(_))) => format!("fails {}", id(Some(answered))),
        Ok(ClientMessage::Answer(answered, Ok(result))) => format!("answers {} {result}", id(Some(answered))),
        Ok(ClientMessage::Notification(notification)) => format!("{notification:?}"),
        Ok(ClientMessage::Request(request)) => match request.parameters {
            Ok(_) => format!("{} {}", id(Some(request.id)), request.method),
            Err(error) => format!("{} {}", id(Some(request.id)), error.code.0),
        },
    }
}

#[test]
fn every_message_but_a_notification_is_answered_with_its_id_if_one_can_be_read() {
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"a","arguments":{arguments}}}}}"#
        )
    };
    let long = "x".repeat(1_000);
    for (text, expected) in [
        (call("{}"), "7 tools/call"),
        (call(r#""{\"code\":\"1\"}""#), "7 -32602"),
        (call("[]"), "7 -32602"),
        (call(r#"{"code":"'\ud83d'"}"#), "7 -32700"),
        (call(r#"{"code":"'\ud83d'"}"#).replace("7", "\"seven\""), "\"seven\" -32700"),
        (r#"{"params":{"name":"\ud83d"},"method":"tools/call","id":7,"jsonrpc":"2.0"}"#.into(), "7 -32700"),
        (call(&format!(r#"{{"code":"{long}"#)), "7 -32700"),
        (call(&format!(r#"{{"a":{}1{}}}"#, "[".repeat(200), "]".repeat(200))), "7 -32700"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{}}"#.into(), "7 -32602"),
        // The values of the parameters, or of the message, as a list.
        (r#"{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":[null,"a"]}"#.into(), "7 -32602"),
        (r#"["2.0",7,"ping"]"#.into(), "no id -32600"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[]}"#.into(), "7 -32602"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"nowhere"}"#.into(), "7 -32601"),
        (r#"{"id":7,"method":"ping"}"#.into(), "7 -32600"),
        (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#.into(), "7 -32600"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}"#.into(), "7 -32600"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{},"method":"ping"}"#.into(), "7 -32600"),
        (r#"{"jsonrpc":"2.0","id":7,"result":null,"method":"ping"}"#.into(), "7 -32600"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.into(), "no id -32600"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.into(), "no id -32600"),
        (r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#.into(), "no id -32600"),
        (r#"{"jsonrpc":"2.0","id":7}"#.into(), "7 -32600"),
        ("no json".into(), "no id -32700"),
        // Notifications have no answer.
        (r#"{"jsonrpc":"1.0","method":"textDocument/didOpen"}"#.into(), "Other"),
        (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(), "Initialized"),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#.into(),
            "Cancelled(String(\"a\"))",
        ),
        (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}"#.into(), "Other"),
        // A response answers a request of Lockhouse, whose id the client may use too.
        (r#"{"jsonrpc":"2.0","id":7,"result":{"a":}}"#.into(), "fails 7"),
        (r#"{"jsonrpc":"2.0","id":7,"error":{"code":"x"}}"#.into(), "fails 7"),
        (r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#.into(), "fails 7"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{"a": 1.0}}"#.into(), "answers 7 {\"a\": 1.0}"),
    ] {
        let shown: String = text.chars().take(120).collect();
        assert_eq!(outcome(&text), expected, "{shown}");
    }
}
