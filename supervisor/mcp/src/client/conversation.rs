//! The conversation with an upstream server: the handshake, the server's requests and its notifications.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::json::{self, JsonFault};
use rmcp::model::{
    ClientConfig, ClientRequest, ClientResult, DiscoverRequest, DiscoverRequestParams, DiscoverResult,
    ErrorCode, ErrorData, InitializeRequest, InitializeResult, JsonRpcMessage, ProtocolVersion, RequestId,
    RequestMetaObject, ServerNotification, ServerPeerInfo, ServerRequest,
};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::answer_error::ResponseError;
use crate::client::http_error::HttpError;
use crate::client::inbound_message::{NOT_JSON, RxMessage, TOO_LARGE, TYPED_BYTES_MAX, TYPED_NODES_MAX};
use crate::client::message_sender::MessageSender;
use crate::client::{Client, request_line, to_line};

/// Maximum number of requests of the server that are not answered yet, such as questions to a person. Further ones are
/// refused.
/// Bound: upstream servers.
const REQUESTS_MAX: usize = 256;
/// Maximum number of answers and refusals that are not sent yet, because the server does not read them.
/// Bound: upstream servers.
const UNSENT_MAX: usize = 512;
const UNREAD_ANSWERS: &str = "it sends requests and does not read the answers";
const TOO_MANY: &str = "256 requests of the server are not answered yet";
const START_FAILED: &str = "the start of the server failed";
/// Error codes that only servers of the newest protocol version return.
const NEWEST: [ErrorCode; 3] = [
    ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
    ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
    ErrorCode::HEADER_MISMATCH,
];

/// Handles what a server asks and tells.
pub trait ServerMessages: Send + Sync + 'static {
    /// Handles a request. The future is dropped if the server cancels the request, or if the connection ends.
    fn handle_request(
        &self,
        request: ServerRequest,
    ) -> impl Future<Output = Result<ClientResult, ErrorData>> + Send;

    fn handle_notification(&self, notification: ServerNotification);
}

/// What comes from a server besides answers.
#[derive(Debug)]
pub enum ServerInput {
    /// A request or a notification.
    Message(Box<RxMessage>),
    /// A new MCP session is begun. An answer to a request of the session before must not reach it, since a request there may
    /// have the same id.
    SessionReplaced,
}

/// Receives what comes from a server besides answers.
pub trait MessageReader: Send {
    /// Returns the next one; `None` if the connection has ended. Cancel-safe.
    fn receive(&mut self) -> impl Future<Output = Option<ServerInput>> + Send;
}

/// Handles the server's messages until the connection ends or its client ends it.
pub async fn converse<M: ServerMessages>(mut messages: impl MessageReader, client: Client, handler: Arc<M>) {
    let (sender, closing) = (client.sender(), client.closing());
    let mut requests = ServerRequests {
        handler,
        sender: sender.clone(),
        tasks: JoinSet::new(),
        cancellations: HashMap::new(),
    };
    loop {
        if requests.tasks.len() > UNSENT_MAX {
            client.fail_for_violation(UNREAD_ANSWERS);
            break;
        }
        let inbound = tokio::select! {
            biased;
            () = closing.cancelled() => break,
            Some(answered) = requests.tasks.join_next() => {
                if let Ok(id) = answered {
                    requests.cancellations.remove(&id);
                }
                continue;
            }
            inbound = messages.receive() => inbound,
        };
        let message = match inbound {
            Some(ServerInput::Message(message)) => *message,
            Some(ServerInput::SessionReplaced) => {
                requests.abandon();
                continue;
            }
            None => break,
        };
        match message {
            JsonRpcMessage::Request(request) => requests.begin(request.id, request.request),
            JsonRpcMessage::Notification(notification) => {
                if let Some(notification) = client.pending().deliver(notification.notification) {
                    requests.handle_notification(notification);
                }
            }
            // The reader has taken all answers.
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }
    client.pending().close();
    drop((messages, requests));
    sender.close().await;
}

/// The requests of the server that are not answered yet. Dropping this abandons them.
struct ServerRequests<M> {
    handler: Arc<M>,
    sender: Arc<dyn MessageSender>,
    tasks: JoinSet<RequestId>,
    cancellations: HashMap<RequestId, CancellationToken>,
}

impl<M: ServerMessages> ServerRequests<M> {
    fn begin(&mut self, id: RequestId, request: ServerRequest) {
        let (handler, sender) = (self.handler.clone(), self.sender.clone());
        let is_refused = self.tasks.len() >= REQUESTS_MAX;
        let cancellation = CancellationToken::new();
        self.cancellations.insert(id.clone(), cancellation.clone());
        self.tasks.spawn(async move {
            let result = tokio::select! {
                biased;
                () = cancellation.cancelled() => return id,
                () = std::future::ready(()), if is_refused => Err(ErrorData::internal_error(TOO_MANY, None)),
                result = handler.handle_request(request) => result,
            };
            let answer = match result {
                Ok(result) => JsonRpcMessage::response(result, id.clone()),
                Err(error) => JsonRpcMessage::error(error, Some(id.clone())),
            };
            if let Ok(line) = to_line(&answer) {
                let _ = sender.send(line).await;
            }
            id
        });
    }

    /// Abandons all requests without an answer.
    fn abandon(&mut self) {
        self.tasks.abort_all();
        self.cancellations.clear();
    }

    fn handle_notification(&mut self, notification: ServerNotification) {
        match notification {
            ServerNotification::CancelledNotification(cancelled) => {
                let id = cancelled.params.request_id;
                if let Some(cancellation) = id.and_then(|id| self.cancellations.remove(&id)) {
                    cancellation.cancel();
                }
            }
            other => self.handler.handle_notification(other),
        }
    }
}

/// Why a handshake failed.
#[derive(Debug)]
pub enum HandshakeError {
    /// The connection ended.
    Closed,
    /// The server answered with a JSON-RPC error, or with a result over the limits.
    Refused(ErrorData),
    /// An HTTP request failed.
    Http(HttpError),
    /// An answer is missing, or not valid MCP. The text says why, and may quote the server.
    Invalid(String),
}

impl From<ResponseError> for HandshakeError {
    fn from(error: ResponseError) -> Self {
        match error {
            ResponseError::Refused(error) => Self::Refused(error),
            ResponseError::Http(error) => Self::Http(error),
            ResponseError::Closed => Self::Closed,
            error => Self::Invalid(error.to_string()),
        }
    }
}

/// How the handshake with a server begins.
#[derive(Clone, Copy)]
pub enum Handshake {
    /// With `initialize`.
    Initialize,
    /// With a probe for the newest protocol version. If the server does not know it, `initialize` follows. The duration is
    /// the time limit of the probe: some older servers neither answer it nor exit.
    Probe(Duration),
}

/// Performs the handshake. [`converse`] must run meanwhile.
pub async fn shake_hands(
    client: &Client,
    config: ClientConfig,
    handshake: Handshake,
) -> Result<(), HandshakeError> {
    let (name, capabilities) = (config.client_info.clone(), config.capabilities.clone());
    if let Handshake::Probe(limit) = handshake
        && let Some(server) = discover(client, &config, limit).await?
    {
        return Ok(client.begin(server, name, capabilities).await?);
    }
    let initialize = InitializeRequest::new(config);
    let result = ask(client, ClientRequest::InitializeRequest(initialize), None).await?;
    Ok(client.begin(typed::<InitializeResult>(&result)?.into(), name, capabilities).await?)
}

/// Asks for the newest protocol version. Returns `None` if the server supports only an older one.
async fn discover(
    client: &Client,
    config: &ClientConfig,
    limit: Duration,
) -> Result<Option<ServerPeerInfo>, HandshakeError> {
    let newest = ProtocolVersion::V_2026_07_28;
    let (name, capabilities) = (config.client_info.clone(), config.capabilities.clone());
    let meta = RequestMetaObject::with_client_context(newest.clone(), name, capabilities);
    let probe = || {
        let request = ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {}));
        ask(client, request, Some(meta.clone()))
    };
    let asked = async {
        match probe().await {
            Err(ResponseError::Refused(error)) if lists(&error, &newest) => probe().await,
            answer => answer,
        }
    };
    let Ok(answer) = timeout(limit, asked).await else {
        return Err(HandshakeError::Invalid("it did not answer server/discover".into()));
    };
    match answer {
        Ok(result) => {
            let result = typed::<DiscoverResult>(&result)?;
            if !result.supported_versions.contains(&newest) {
                return Err(HandshakeError::Invalid(format!(
                    "it supports {:?} only",
                    result.supported_versions
                )));
            }
            Ok(Some(ServerPeerInfo::from_discover_result(newest, result)))
        }
        Err(ResponseError::Refused(error)) if !NEWEST.contains(&error.code) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a server that refused a protocol version lists `version` among those that it supports.
fn lists(error: &ErrorData, version: &ProtocolVersion) -> bool {
    let supported = error.data.as_ref().and_then(|data| data.get("supported")?.as_array());
    error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        && supported.is_some_and(|all| all.iter().any(|one| one == version.as_str()))
}

async fn ask(
    client: &Client,
    request: ClientRequest,
    meta: Option<RequestMetaObject>,
) -> Result<String, ResponseError> {
    let mut pending = client.send(|id, meta| request_line(request, id, meta), meta, START_FAILED)?;
    pending.answer().await
}

/// Parses a result of the handshake.
fn typed<T: DeserializeOwned>(result: &str) -> Result<T, HandshakeError> {
    let refused = |why: &'static str| HandshakeError::Refused(ErrorData::internal_error(why, None));
    if result.len() > TYPED_BYTES_MAX {
        return Err(refused(TOO_LARGE));
    }
    match json::count(result.as_bytes(), TYPED_NODES_MAX).fault {
        Some(JsonFault::TooManyValues) => Err(refused(TOO_LARGE)),
        Some(JsonFault::TooDeep | JsonFault::Invalid | JsonFault::ReservedKey) => Err(refused(NOT_JSON)),
        None => serde_json::from_str(result).map_err(|error| HandshakeError::Invalid(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use tokio::sync::{Notify, mpsc};

    use super::*;
    use crate::client::connection_failure::FailureSignal;
    use crate::client::line_transport::LineTransport;
    use crate::client::traffic_limits::TrafficLimiter;
    use crate::pending_requests::PendingRequests;

    /// Answers pings with an empty result, and all other requests with the error for an unknown method.
    struct Pings;

    impl ServerMessages for Pings {
        async fn handle_request(&self, request: ServerRequest) -> Result<ClientResult, ErrorData> {
            match request {
                ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
                ServerRequest::CustomRequest(request) => {
                    Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
                }
                _ => std::future::pending().await,
            }
        }

        fn handle_notification(&self, _notification: ServerNotification) {}
    }

    /// Converses with a server that sends `lines`, reads `count` lines and exits. Returns the lines that it has read, in the
    /// order of their ids.
    async fn answers_to(lines: &[Value], count: usize) -> Vec<Value> {
        let directory = tempfile::tempdir().expect("a directory");
        let (sent, read) = (directory.path().join("sent"), directory.path().join("read"));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&sent, text).expect("written");
        let mut server = tokio::process::Command::new("sh");
        server.args(["-c", "cat \"$0\"; head -n \"$1\" >\"$2\""]).arg(&sent);
        server.arg(count.to_string()).arg(&read);
        server.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut server = server.spawn().expect("sh");
        let (stdout, stdin) = (server.stdout.take().expect("a pipe"), server.stdin.take().expect("a pipe"));
        let transport = LineTransport::new(stdout, stdin, 1 << 20, FailureSignal::default());
        let client = transport.client();
        converse(transport, client, Arc::new(Pings)).await;
        server.wait().await.expect("ended");
        let read = std::fs::read_to_string(read).expect("lines");
        let mut answers: Vec<Value> =
            read.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        answers.sort_by_key(|answer| answer["id"].to_string());
        answers
    }

    #[tokio::test]
    async fn each_request_of_the_server_is_answered_once_unless_the_server_cancels_it() {
        let request = |id: Value, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
        let requests = [
            request(json!(1), "nowhere", json!({})),
            request(json!(2), "roots/list", json!({})),
            cancelled,
            request(json!("3"), "ping", json!({})),
        ];
        let expected = [
            json!({"jsonrpc": "2.0", "id": "3", "result": {}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "nowhere"}}),
        ];
        assert_eq!(answers_to(&requests, expected.len()).await, expected);
    }

    /// Records the answers to the server.
    #[derive(Clone, Default)]
    struct Answers(Arc<Mutex<Vec<Value>>>);

    impl MessageSender for Answers {
        fn send_request(&self, _: i64, _: Vec<u8>) -> Result<(), ResponseError> {
            Ok(())
        }

        fn cancel_request(&self, _: i64, _: Vec<u8>) {}

        fn send(&self, line: Vec<u8>) -> BoxFuture<'_, Result<(), ResponseError>> {
            self.0.lock().push(serde_json::from_slice(&line).expect("JSON"));
            std::future::ready(Ok(())).boxed()
        }

        fn close(&self) -> BoxFuture<'_, ()> {
            std::future::ready(()).boxed()
        }
    }

    impl MessageReader for mpsc::Receiver<ServerInput> {
        async fn receive(&mut self) -> Option<ServerInput> {
            self.recv().await
        }
    }

    /// Answers each request when it is told to.
    struct OnCue(Notify);

    impl ServerMessages for OnCue {
        async fn handle_request(&self, _: ServerRequest) -> Result<ClientResult, ErrorData> {
            self.0.notified().await;
            Ok(ClientResult::empty(()))
        }

        fn handle_notification(&self, _: ServerNotification) {}
    }

    #[tokio::test]
    async fn a_request_of_a_session_that_was_replaced_is_not_answered() {
        let request = || {
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"});
            ServerInput::Message(serde_json::from_value(request).expect("a request"))
        };
        for (is_replaced, expected) in [(true, 1), (false, 2)] {
            let (sender, messages) = mpsc::channel(1);
            let (answers, handler) = (Answers::default(), Arc::new(OnCue(Notify::new())));
            let traffic = TrafficLimiter::new(FailureSignal::default());
            let client = Client::new(Arc::new(answers.clone()), traffic, PendingRequests::default());
            let conversation = tokio::spawn(converse(messages, client, handler.clone()));
            let send = async |inbound| sender.send(inbound).await.expect("received");
            send(request()).await;
            if is_replaced {
                send(ServerInput::SessionReplaced).await;
            }
            send(request()).await;
            while answers.0.lock().len() < expected {
                handler.0.notify_one();
                tokio::task::yield_now().await;
            }
            drop(sender);
            conversation.await.expect("ended");
            let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
            assert_eq!(*answers.0.lock(), vec![answer; expected], "{is_replaced}");
        }
    }
}
