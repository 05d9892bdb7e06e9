//! The tool calls of the AI client on standard input: each is one task, from its request to its written answer.
//!
//! In rmcp's service loop, a request crosses two tasks and three queues, which takes a fifth of the supervisor's CPU time
//! for a run. rmcp's loop handles all other messages, and rmcp's [`Service`] still checks and answers the calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientNotification, ClientRequest, JsonRpcMessage, RequestId,
    RequestMetaObject,
};
use rmcp::service::{Peer, RequestContext, RxJsonRpcMessage, Service, TxJsonRpcMessage};
use tokio::io::AsyncWrite;
use tokio_util::sync::CancellationToken;

use super::line_transport::LineWriter;

/// A `tools/call` request as it was read.
pub(super) struct ToolCall {
    pub(super) id: RequestId,
    pub(super) params: CallToolRequestParams,
    pub(super) meta: Option<RequestMetaObject>,
}

impl ToolCall {
    /// Converts the call to the message that rmcp expects, with the metadata in the extensions.
    pub(super) fn into_message(self) -> RxJsonRpcMessage<RoleServer> {
        let mut request = CallToolRequest::new(self.params);
        if let Some(meta) = self.meta {
            request.extensions.insert(meta);
        }
        JsonRpcMessage::request(ClientRequest::CallToolRequest(request), self.id)
    }
}

/// The tool calls in flight of one AI client, which `service` serves.
pub(super) struct ToolCalls<S> {
    service: S,
    /// The connection, which calls may use to reach the AI client. Empty until the MCP handshake is complete.
    peer: OnceLock<Peer<RoleServer>>,
    in_flight: Mutex<HashMap<RequestId, CancellationToken>>,
    /// Cancels all calls.
    closing: CancellationToken,
}

impl<S: Service<RoleServer>> ToolCalls<S> {
    pub(super) fn new(service: S, closing: CancellationToken) -> Self {
        Self { service, peer: OnceLock::new(), in_flight: Mutex::default(), closing }
    }

    /// From now on, calls are served here, because the MCP handshake is complete.
    pub(super) fn begin(&self, peer: Peer<RoleServer>) {
        let _ = self.peer.set(peer);
    }

    /// Starts a call, whose answer is written to `writer`. Returns the call if rmcp must serve it: before the handshake is
    /// complete, or if the request names a protocol version of its own.
    pub(super) fn start<W>(
        self: &Arc<Self>,
        call: Box<ToolCall>,
        writer: &LineWriter<W>,
    ) -> Result<(), Box<ToolCall>>
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let names_version = call.meta.as_ref().is_some_and(|meta| meta.protocol_version().is_some());
        let Some(peer) = self.peer.get().filter(|_| !names_version) else { return Err(call) };
        let ToolCall { id, params, meta } = *call;
        let mut context = RequestContext::new(id.clone(), peer.clone());
        (context.ct, context.meta) = (self.closing.child_token(), meta.unwrap_or_default());
        self.in_flight().insert(id.clone(), context.ct.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let (calls, writer) = (self.clone(), writer.clone());
        tokio::spawn(async move {
            let answer: TxJsonRpcMessage<RoleServer> =
                match calls.service.handle_request(request, context).await {
                    Ok(result) => JsonRpcMessage::response(result, id.clone()),
                    Err(error) => JsonRpcMessage::error(error, Some(id.clone())),
                };
            // A cancelled call has no answer.
            if calls.in_flight().remove(&id).is_some()
                && let Err(error) = writer.write(&answer).await
            {
                tracing::error!("an answer cannot be written: {error}");
            }
        });
        Ok(())
    }

    /// Cancels the call that a notification names. Returns `false` if the message is no such notification, or if no call
    /// of that name is in flight here.
    pub(super) fn cancel(&self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        let JsonRpcMessage::Notification(notification) = message else { return false };
        let ClientNotification::CancelledNotification(cancelled) = &notification.notification else {
            return false;
        };
        let id = cancelled.params.request_id.as_ref();
        let call = id.and_then(|id| self.in_flight().remove(id));
        call.inspect(CancellationToken::cancel).is_some()
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequestMethod, CallToolResponse, CallToolResult, ErrorData};
    use rmcp::{ServerHandler, ServiceExt};
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};

    use super::super::line_transport::LineTransport;
    use super::*;

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
        assert!(calls.in_flight().is_empty(), "{:?}", calls.in_flight());
    }

    #[tokio::test]
    async fn rmcp_serves_calls_that_name_a_protocol_version() {
        let (mut client, calls) = connect().await;
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2031-01-01"});
        let params = json!({"name": "wait", "_meta": meta});
        client.send(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})).await;
        assert!(
            client.next().await["error"]["message"].as_str().is_some_and(|text| text.contains("version"))
        );
        assert!(calls.in_flight().is_empty());
    }
}
