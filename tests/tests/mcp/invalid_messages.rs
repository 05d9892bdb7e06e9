//! Tests of messages of AI clients that are invalid: each has an answer, with its id where one can be read.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use crate::direct_tools::raw_client::Pipe;

const NOT_JSON: &str = "the message is not valid JSON: ";
const PARAMETERS: &str = "the parameters are not valid JSON: ";
const NO_MESSAGE: &str = "the message is not a valid JSON-RPC 2.0 message";

/// Returns a `tools/call` of `run_code` with the id 7 as text. `arguments` is JSON text, or something else in its place.
fn call(arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"run_code","arguments":{arguments}}}}}"#
    )
}

/// Returns the error that answers an invalid message: its id, code and message.
fn error(answer: &Value) -> Value {
    json!([answer.get("id"), answer["error"]["code"], answer["error"]["message"]])
}

#[tokio::test]
async fn every_invalid_line_is_answered_with_its_id_if_one_can_be_read() {
    let surrogate = r#"{"language":"python","code":"'\ud83d'"}"#;
    let text = r#""{\"language\":\"python\",\"code\":\"1\"}""#;
    let rows = [
        (
            "half of a surrogate pair",
            call(surrogate),
            json!([7, -32_700, format!("{PARAMETERS}unexpected end of hex escape at line 1 column 68")]),
        ),
        (
            "the same before the id",
            format!(
                r#"{{"params":{{"arguments":{surrogate}}},"method":"tools/call","id":"seven","jsonrpc":"2.0"}}"#
            ),
            json!(["seven", -32_700, format!("{PARAMETERS}unexpected end of hex escape at line 1 column 50")]),
        ),
        (
            "no JSON",
            "hello".into(),
            json!([null, -32_700, format!("{NOT_JSON}expected value at line 1 column 1")]),
        ),
        (
            "arguments as text",
            call(text),
            json!([
                7,
                -32_602,
                "`arguments` of tools/call must be an object, not a string: send the object itself, not its JSON text"
            ]),
        ),
        (
            "parameters of another form",
            r#"{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":1}}"#.into(),
            json!([7, -32_602, "the parameters of resources/read do not have the form that MCP defines"]),
        ),
        (
            "no parameters",
            r#"{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{}}"#.into(),
            json!([7, -32_602, "the parameters of logging/setLevel do not have the form that MCP defines"]),
        ),
        (
            "a method that the protocol version of the request does not have any more",
            r#"{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}"#.into(),
            json!([7, -32_601, "logging/setLevel"]),
        ),
        ("no version", r#"{"id":7,"method":"ping"}"#.into(), json!([7, -32_600, NO_MESSAGE])),
        (
            "a batch",
            r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#.into(),
            json!([null, -32_600, NO_MESSAGE]),
        ),
        (
            "a method of another protocol",
            r#"{"jsonrpc":"2.0","id":7,"method":"textDocument/hover"}"#.into(),
            json!([7, -32_601, "textDocument/hover"]),
        ),
        (
            "more than 32 MiB",
            call(&format!(r#"{{"language":"python","code":"{}"}}"#, "#".repeat(32 * 1024 * 1024))),
            json!([7, -32_600, "the message has more than 33554432 bytes"]),
        ),
    ];
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("invalid lines over standard input");
    let mut pipe = Pipe::initialized(lockhouse.command(&["serve"]), json!({})).await;
    for (name, line, expected) in rows {
        pipe.send_line(&line).await;
        let answer: Value = serde_json::from_str(&pipe.line().await).expect("JSON");
        table.row(name, equal(error(&answer), expected));
    }
    // A notification has no answer, so the next line answers the call after it.
    pipe.send_line(r#"{"jsonrpc":"1.0","method":"textDocument/didOpen"}"#).await;
    pipe.send_line(&call(r#"{"language":"python","code":"1+1"}"#)).await;
    let answer: Value = serde_json::from_str(&pipe.line().await).expect("JSON");
    let value = &answer["result"]["structuredContent"]["value"];
    table.row("control: a valid call after them", ensure(answer["id"] == 7 && *value == 2, &answer));
    table.finish();
}

#[tokio::test]
async fn invalid_parameters_are_reported_over_http_too() {
    let daemon = Lockhouse::new().config("[http]\nauth = \"none\"\n").daemon().await;
    let client = daemon.http_client(None);
    let mut message = client.calling("run_code", json!({}));
    message["params"]["arguments"] = json!(r#"{"language":"python","code":"1"}"#);
    let answer = client.post(&message).await.answer();
    let expected = "`arguments` of tools/call must be an object, not a string: send the object itself, not its JSON text";
    assert_eq!(error(&answer), json!([message["id"], -32_602, expected]), "{answer}");
    let control = client.run_code("python", "1+1").await;
    assert_eq!(control["value"], 2, "{control}");
}
