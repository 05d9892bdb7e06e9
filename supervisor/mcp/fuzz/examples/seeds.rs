//! Writes seeds for the fuzzer into the corpus: an example of each kind of line, event, list and request. Run this program after a change of what is
//! read: `cargo run --example seeds`.
#![allow(clippy::unwrap_used, reason = "a program of a developer, which ends with a panic")]

use std::path::Path;

fn main() {
    let long = "x".repeat(2_000);
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let name = "m".repeat(300);
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"é\n"}],"isError":false}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":2,"result":{"a":1e400,"a":[null]}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no","data":[1]}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(),
        "not json\nagain {\n\n[]".to_owned(),
        deep,
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{name}"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{long}"}}"#),
        format!(r#"{{"result":"{long}","jsonrpc":"2.0","id":8}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"x","params":"{long}"}}"#),
    ];
    write("server_lines", "line", &lines);
    let message = r#"data: {"jsonrpc":"2.0","id":1,"#;
    let events = [
        format!(
            "\u{feff}: hi\r\n\r\nid: 1\rretry: 5\r\rdata: a\ndata: b\n\n{message}\ndata: \"result\":{{}}}}\n\n"
        ),
        "event: endpoint\ndata: /messages\n\nid: 2\n\n".to_owned(),
        format!("{message}\"result\":\"{long}\"}}\n\ndata: {{\"method\":\"notifications/message\"}}\n\n"),
        format!("{}{message}\n\n", "data\n".repeat(70)),
    ];
    write("server_events", "event", &events);
    let tool =
        |schema: &str| format!(r#"{{"tools":[{{"name":"t","inputSchema":{{{schema}}}}}],"nextCursor":"n"}}"#);
    let lists = [
        tool(""),
        tool(r#""properties":{"a":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}"#),
        tool(r#""anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]"#),
        tool(r#""$defs":{"d":{"default":{"x-mcp-header":1}}},"x-mcp-header":"B""#),
        tool(
            r#""properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"integer","x-mcp-header":"a"}}"#,
        ),
    ];
    write("tool_list", "list", &lists);
    let accept = "accept: application/json, text/event-stream\ncontent-type: application/json\n";
    let version = |version: &str| format!("{accept}mcp-protocol-version: {version}\n");
    let newest = |method: &str, name: &str| {
        format!("{}mcp-method: {method}\nmcp-name: {name}\n\n", version("2026-07-28"))
    };
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"é","arguments":{{"a":1}},{meta}}}}}"#
    );
    let requests = [
        format!("{}{call}", newest("tools/call", "=?base64?w6k=?=")),
        format!("{}{call}", newest("tools/call", "a")),
        format!("{}\n{call}", version("2025-11-25")),
        format!(
            "{accept}\n{}",
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#
        ),
        format!("{accept}\n{}", r#"{"jsonrpc":"2.0","id":"x","method":"nowhere","params":[]}"#),
        format!(
            "{accept}\n{}",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#
        ),
        format!(
            "accept: text/event-stream;q=0.0\n\n{}",
            r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}"#
        ),
        "accept: */*\n\n{".to_owned(),
    ];
    write("client_requests", "request", &requests);
}

/// Writes the seeds of one target. The first byte of what a server sends is a size of pieces.
fn write(target: &str, name: &str, inputs: &[String]) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&directory).unwrap();
    for (index, input) in inputs.iter().enumerate() {
        let has_pieces = target.starts_with("server_");
        let size = if has_pieces { vec![(index * 7) as u8] } else { vec![] };
        std::fs::write(directory.join(format!("{name}-{index:02}")), [&size, input.as_bytes()].concat())
            .unwrap();
    }
}
