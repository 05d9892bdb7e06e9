//! Tests of a connection over lines.

use rmcp::model::{CallToolResult, ServerConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, DuplexStream, Lines as ClientLines};
use tokio::task::JoinHandle;

use super::super::client_message::Parameters;
use super::super::context::RequestContext;
use super::super::lifecycle::method_not_found;
use super::*;

/// A server whose tool `wait` ends when its call is cancelled. Any other tool answers at once; `unknown` fails.
#[derive(Clone)]
struct Server;

impl RequestHandler for Server {
    fn info(&self) -> ServerConfig {
        ServerConfig::default()
    }

    async fn serve(
        &self,
        parameters: Parameters,
        context: &RequestContext,
    ) -> std::result::Result<String, ErrorData> {
        let Parameters::CallTool(call) = parameters else { return Err(method_not_found("another")) };
        match call.name.as_ref() {
            "unknown" => return Err(method_not_found("tools/call")),
            "wait" => context.cancelled.cancelled().await,
            "raw" => return Ok(r#"{"content": [], "é":1e400}"#.to_owned()),
            _ => {}
        }
        Ok(context.to_text(CallToolResult::structured(json!(context.cancelled.is_cancelled()))))
    }

    fn begin(&self, _: &ClientConnection, _: Option<&Arc<http::request::Parts>>) {}
}

/// The AI client's end of a connection to [`Server`].
struct Client {
    write: DuplexStream,
    lines: ClientLines<BufReader<DuplexStream>>,
    serving: JoinHandle<Result<()>>,
}

impl Client {
    /// Connects a client, and completes the MCP handshake.
    async fn connect() -> Self {
        let (write, input) = tokio::io::duplex(4096);
        let (output, read) = tokio::io::duplex(4096);
        let serving = tokio::spawn(serve_lines(input, output, 4096, Server, CancellationToken::new()));
        let mut client = Self { write, lines: BufReader::new(read).lines(), serving };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"},
        });
        client.send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
        let answer = client.next().await;
        assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!(0), &json!("2025-11-25")));
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn send(&mut self, message: Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.expect("written");
    }

    async fn call(&mut self, id: u32, tool: &str) {
        let params = json!({"name": tool, "_meta": {"progressToken": id}});
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
    }

    async fn cancel(&mut self, id: u32) {
        let params = json!({"requestId": id});
        let method = "notifications/cancelled";
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    async fn line(&mut self) -> String {
        self.lines.next_line().await.expect("read").expect("a line")
    }

    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.line().await).expect("JSON")
    }
}

#[tokio::test]
async fn each_call_is_answered_once_and_a_cancelled_call_never() {
    let mut client = Client::connect().await;
    client.call(1, "now").await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["result"]["structuredContent"]), (&json!(1), &json!(false)));
    client.call(2, "unknown").await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32_601)));
    client.call(3, "wait").await;
    client.call(3, "now").await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(3), &json!(-32_600)), "its id is in use");
    client.call(4, "now").await;
    assert_eq!(client.next().await["id"], 4, "calls do not wait for each other");
    client.cancel(3).await;
    client.call(3, "now").await;
    let answer = client.next().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["structuredContent"]),
        (&json!(3), &json!(false)),
        "the second"
    );
    client.call(5, "raw").await;
    let raw = r#"{"jsonrpc":"2.0","id":5,"result":{"content": [], "é":1e400}}"#;
    assert_eq!(client.line().await, raw, "a result is written as it is");
    drop(client.write);
    client.serving.await.expect("ended").expect("the end of the input is no error");
}

#[tokio::test]
async fn a_request_that_names_a_protocol_version_depends_on_no_handshake() {
    let mut client = Client::connect().await;
    let call = |id: u32, method: &str, meta: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"name": "now", "_meta": meta}});
    let meta = |version: &str| json!({"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}});
    for (id, message, expected) in [
        (1, call(1, "tools/call", meta("2031-01-01")), json!(-32_022)),
        (
            2,
            call(2, "tools/call", json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"})),
            json!(-32_602),
        ),
        (3, call(3, "tools/call", meta("2026-07-28")), Value::Null),
        (4, call(4, "ping", meta("2026-07-28")), json!(-32_601)),
        (5, json!({"jsonrpc": "2.0", "id": 5, "method": "ping"}), Value::Null),
        (6, call(6, "subscriptions/listen", json!({})), json!(-32_601)),
    ] {
        client.send(message.clone()).await;
        let answer = client.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &expected), "{message}: {answer}");
    }
}

#[tokio::test]
async fn lines_without_a_message_are_answered_and_do_not_end_the_connection() {
    let ping = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}");
    let input = [
        "",
        "not json",
        r#"{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\ud83d"}}"#,
        &ping(2),
        &format!("{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"params\":\"{}\"}}", "x".repeat(300)),
        &format!("{}\r", ping(4)),
        &format!("\u{feff}{}", ping(5)),
        // The last line has no end.
        &ping(6),
    ]
    .join("\n");
    for pieces in [1, 7, 4096] {
        let (mut write, input_end) = tokio::io::duplex(pieces);
        let (output, mut read) = tokio::io::duplex(4096);
        let serving = tokio::spawn(serve_lines(input_end, output, 200, Server, CancellationToken::new()));
        write.write_all(input.as_bytes()).await.expect("written");
        let mut answers = Vec::new();
        while answers.len() < 6 {
            let line = {
                let mut line = Vec::new();
                while line.last() != Some(&b'\n') {
                    line.push(read.read_u8().await.expect("an answer"));
                }
                line
            };
            let answer: Value = serde_json::from_slice(&line).expect("JSON");
            answers.push(json!([answer.get("id"), answer["error"]["code"]]).to_string());
        }
        drop(write);
        serving.await.expect("ended").expect("served");
        let mut rest = String::new();
        read.read_to_string(&mut rest).await.expect("read");
        answers.sort();
        let expected = ["[1,-32700]", "[2,null]", "[3,-32600]", "[4,null]", "[5,null]", "[null,-32700]"];
        assert_eq!((answers, rest), (expected.map(str::to_owned).to_vec(), String::new()), "{pieces}");
    }
}

#[test]
fn a_line_over_the_limit_is_answered_with_its_id() {
    let start = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"#;
    let end = br#"xxx"}},"id":8,"method":"tools/call"}"#;
    for (head, tail, expected) in [
        (&start[..], &b"xxx\"}}}"[..], "Some(Number(7)) -32600"),
        (&br#"{"params":{"name":"x"#[..], &end[..], "Some(Number(8)) -32600"),
        (b"xxxxxx", b"xxxxx", "None -32600"),
    ] {
        let line = CompleteLine::TooLong(head.to_vec(), tail.to_vec());
        let refused = parse(&line, 1_000).expect_err("it is refused");
        assert_eq!(format!("{:?} {}", refused.id, refused.error.code.0), expected);
    }
}
