//! Seeds for the fuzz targets: an example of each kind of line, event, list and request.

use std::collections::BTreeMap;

/// Returns the seeds of each target.
pub fn seeds() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let bytes = |texts: Vec<String>| texts.into_iter().map(String::into_bytes).collect();
    BTreeMap::from([
        ("server_lines", in_pieces(server_lines())),
        ("server_events", in_pieces(server_events())),
        ("tool_list", bytes(tool_lists())),
        ("client_requests", bytes(client_requests())),
    ])
}

/// Returns inputs for the targets whose first byte is the size of the pieces in which the rest arrives.
fn in_pieces(texts: Vec<String>) -> Vec<Vec<u8>> {
    (0_u8..).zip(texts).map(|(index, text)| [&[index * 7], text.as_bytes()].concat()).collect()
}

fn server_lines() -> Vec<String> {
    let long = "x".repeat(2_000);
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let name = "m".repeat(300);
    [
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
    ].to_vec()
}

fn server_events() -> Vec<String> {
    let long = "x".repeat(2_000);
    let message = r#"data: {"jsonrpc":"2.0","id":1,"#;
    [
        format!(
            "\u{feff}: hi\r\n\r\nid: 1\rretry: 5\r\rdata: a\ndata: b\n\n{message}\ndata: \"result\":{{}}}}\n\n"
        ),
        "event: endpoint\ndata: /messages\n\nid: 2\n\n".to_owned(),
        format!("{message}\"result\":\"{long}\"}}\n\ndata: {{\"method\":\"notifications/message\"}}\n\n"),
        format!("{}{message}\n\n", "data\n".repeat(70)),
    ].to_vec()
}

fn tool_lists() -> Vec<String> {
    let tool =
        |schema: &str| format!(r#"{{"tools":[{{"name":"t","inputSchema":{{{schema}}}}}],"nextCursor":"n"}}"#);
    [
        tool(""),
        tool(r#""properties":{"a":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}"#),
        tool(r#""anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]"#),
        tool(r#""$defs":{"d":{"default":{"x-mcp-header":1}}},"x-mcp-header":"B""#),
        tool(
            r#""properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"integer","x-mcp-header":"a"}}"#,
        ),
    ].to_vec()
}

fn client_requests() -> Vec<String> {
    let accept = "accept: application/json, text/event-stream\ncontent-type: application/json\n";
    let version = |version: &str| format!("{accept}mcp-protocol-version: {version}\n");
    let newest = |method: &str, name: &str| {
        format!("{}mcp-method: {method}\nmcp-name: {name}\n\n", version("2026-07-28"))
    };
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"é","arguments":{{"a":1}},{meta}}}}}"#
    );
    [
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
    ].to_vec()
}
