//! Tests of a connection with its tool calls.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio_util::sync::CancellationToken;

use super::line_transport::LineTransport;
use super::tool_calls::ToolCalls;

/// A server whose tool `wait` ends when its call is cancelled. Any other tool answers at once; `unknown` fails.
#[derive(Clone)]
struct Server;

impl ServerHandler for Server {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.as_ref() {
            "unknown" => return Err(ErrorData::method_not_found::<CallToolRequestMethod>()),
            "wait" => context.ct.cancelled().await,
            _ => {}
        }
        Ok(CallToolResult::structured(json!(context.ct.is_cancelled())).into())
    }
}

/// The AI client's end of a connection to [`Server`].
struct Client {
    write: DuplexStream,
    lines: Lines<BufReader<DuplexStream>>,
}

impl Client {
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

    async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.expect("read").expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }
}

/// Connects a client to [`Server`], and completes the MCP handshake. Returns the calls in flight too.
async fn connect() -> (Client, Arc<ToolCalls<Server>>) {
    let (write, input) = tokio::io::duplex(4096);
    let (output, read) = tokio::io::duplex(4096);
    let mut client = Client { write, lines: BufReader::new(read).lines() };
    let calls = Arc::new(ToolCalls::new(Server, CancellationToken::new()));
    let transport = LineTransport::new(input, output, 4096, calls.clone());
    let serving = tokio::spawn(Server.serve(transport));
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"},
    });
    client.send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
    assert_eq!(client.next().await["id"], 0);
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let running = serving.await.expect("ended").expect("served");
    calls.begin(running.peer().clone());
    tokio::spawn(running.waiting());
    (client, calls)
}

#[tokio::test]
async fn each_call_is_answered_once_and_a_cancelled_call_never() {
    let (mut client, calls) = connect().await;
    client.call(1, "now").await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["result"]["structuredContent"]), (&json!(1), &json!(false)));
    client.call(2, "unknown").await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32_601)));
    client.call(3, "wait").await;
    client.call(4, "now").await;
    assert_eq!(client.next().await["id"], 4, "calls do not wait for each other");
    client.cancel(3).await;
    client.call(5, "now").await;
    assert_eq!(client.next().await["id"], 5, "a cancelled call has no answer");
    assert_eq!(calls.count_in_flight(), 0);
}

#[tokio::test]
async fn rmcp_serves_calls_that_name_a_protocol_version() {
    let (mut client, calls) = connect().await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2031-01-01"});
    let params = json!({"name": "wait", "_meta": meta});
    client.send(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})).await;
    assert!(client.next().await["error"]["message"].as_str().is_some_and(|text| text.contains("version")));
    assert_eq!(calls.count_in_flight(), 0);
}
