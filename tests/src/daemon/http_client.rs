//! An AI client for tests, over HTTP and of any MCP protocol version, that sends only the requests that a test makes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::{Method, RequestBuilder};
use serde_json::{Map, Value, json};

use super::{Daemon, Events, Reply, in_time};

/// The newest MCP protocol version, which has no MCP sessions.
pub const LATEST_VERSION: &str = "2026-07-28";
/// All MCP protocol versions that Lockhouse supports, oldest first.
pub const ALL_VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", LATEST_VERSION];

const NAME: &str = "lockhouse-tests";

/// An AI client with an endpoint, a token and an optional MCP session. A clone acts as the same client and shares the
/// connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: reqwest::Client,
    url: String,
    token: Option<String>,
    headers: BTreeMap<String, String>,
    /// The MCP protocol version that the client speaks.
    version: String,
    /// The id of the MCP session; `None` if the client has no MCP session.
    session: Option<String>,
    capabilities: Value,
    last_id: Arc<AtomicU64>,
}

impl HttpClient {
    pub(super) fn new(daemon: &Daemon, token: Option<&str>) -> Self {
        let mut client = reqwest::Client::builder().no_proxy();
        if let Some(path) = daemon.listening_at().strip_prefix("unix:") {
            client = client.unix_socket(path);
        }
        Self::with_client(client.build().expect("a client"), &daemon.url("/mcp"), token)
    }

    /// Creates an AI client from an HTTP client of the test, such as one with its own certificates.
    #[must_use]
    pub fn with_client(client: reqwest::Client, url: &str, token: Option<&str>) -> Self {
        Self {
            client,
            url: url.to_owned(),
            token: token.map(str::to_owned),
            headers: BTreeMap::new(),
            version: LATEST_VERSION.to_owned(),
            session: None,
            capabilities: json!({}),
            last_id: Arc::default(),
        }
    }

    pub(super) async fn initialized(daemon: &Daemon, token: Option<&str>, version: &str) -> Self {
        let http_client = Self::new(daemon, token);
        let (http_client, reply) = http_client.initialize(version).await;
        assert_eq!(reply.answer()["result"]["protocolVersion"], version, "{reply:?}");
        http_client
    }

    /// Sends `initialize` for the protocol version `version`. Returns this client, in the new MCP session if the
    /// server opened one, and the server's answer.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn initialize(mut self, version: &str) -> (Self, Reply) {
        self.version = version.to_owned();
        self.session = None;
        let parameters = json!({
            "protocolVersion": version, "capabilities": self.capabilities,
            "clientInfo": {"name": NAME, "version": "0"},
        });
        let message = self.message("initialize", parameters);
        let reply = self.post(&message).await;
        self.session = Some(reply.header("mcp-session-id").to_owned()).filter(|id| !id.is_empty());
        if self.session.is_some() {
            self.notify("notifications/initialized", json!({})).await;
        }
        (self, reply)
    }

    /// Returns this client, in the same MCP session, with another endpoint.
    #[must_use]
    pub fn at(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// Sets an HTTP header that every request of this client carries.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_lowercase(), value.to_owned());
        self
    }

    /// Sets the MCP client capabilities that this client announces.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Returns this client with another bearer token; `None` removes the token.
    #[must_use]
    pub fn with_token(mut self, token: Option<&str>) -> Self {
        self.token = token.map(str::to_owned);
        self
    }

    /// Returns the id of the client's MCP session; `None` if it has no MCP session.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Returns this client in the MCP session `id`, which has the protocol version `version` and may belong to another
    /// client.
    #[must_use]
    pub fn in_session(mut self, id: &str, version: &str) -> Self {
        (self.session, self.version) = (Some(id.to_owned()), version.to_owned());
        self
    }

    /// Creates a JSON-RPC request with a new id, and with the `_meta` that the client's protocol version requires.
    #[must_use]
    pub fn message(&self, method: &str, mut parameters: Value) -> Value {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        if self.version == LATEST_VERSION {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": self.version,
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
                "io.modelcontextprotocol/clientInfo": {"name": NAME, "version": "0"},
            });
            let own = parameters.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default();
            let mut meta: Map<String, Value> = meta.as_object().cloned().unwrap_or_default();
            meta.extend(own);
            parameters["_meta"] = meta.into();
        }
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters})
    }

    /// Creates an HTTP request with the headers of this client. The test adds the body and sends the request.
    pub fn http(&self, method: Method) -> RequestBuilder {
        let accept = "application/json, text/event-stream".to_owned();
        let mut headers = BTreeMap::from([("accept".to_owned(), accept)]);
        // Before there is a session, the version is negotiated in `initialize` and not sent as a header.
        if self.session.is_some() || self.version == LATEST_VERSION {
            headers.insert("mcp-protocol-version".to_owned(), self.version.clone());
        }
        headers.extend(self.token.iter().map(|token| ("authorization".into(), format!("Bearer {token}"))));
        headers.extend(self.session.iter().map(|id| ("mcp-session-id".into(), id.clone())));
        headers.extend(self.headers.clone());
        let request = self.client.request(method, &self.url);
        headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    /// Returns the HTTP request that posts a JSON-RPC message.
    pub fn posting(&self, message: &Value) -> RequestBuilder {
        let mut request = self.http(Method::POST);
        let method = message["method"].as_str();
        if let Some(method) = method.filter(|_| self.version == LATEST_VERSION) {
            let parameters = &message["params"];
            let names = [&parameters["name"], &parameters["uri"], &parameters["taskId"]];
            let name = names.into_iter().find_map(Value::as_str);
            request = request.header("mcp-method", method);
            request = name.into_iter().fold(request, |request, name| request.header("mcp-name", name));
        }
        if !self.headers.contains_key("content-type") {
            request = request.header("content-type", "application/json");
        }
        request.body(message.to_string())
    }

    /// Posts a JSON-RPC message and returns the complete HTTP answer.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn post(&self, message: &Value) -> Reply {
        self.open(message).await.whole().await
    }

    /// Posts a JSON-RPC message and returns the HTTP answer as a stream of events.
    ///
    /// # Panics
    /// If no answer begins.
    pub async fn open(&self, message: &Value) -> Events {
        let response = in_time("an answer", self.posting(message).send()).await;
        Events::new(response.expect("an answer"))
    }

    /// Posts a JSON-RPC message and returns the complete HTTP answer, or `Err` if the connection fails.
    ///
    /// # Errors
    /// A failure of the connection.
    ///
    /// # Panics
    /// If the server does not answer in time.
    pub async fn try_post(&self, message: &Value) -> Result<Reply, reqwest::Error> {
        let response = in_time("an answer", self.posting(message).send()).await?;
        Ok(Events::new(response).whole().await)
    }

    /// Sends a JSON-RPC request and returns the complete HTTP answer.
    pub async fn request(&self, method: &str, parameters: Value) -> Reply {
        self.post(&self.message(method, parameters)).await
    }

    /// Sends a JSON-RPC notification and returns the HTTP status.
    pub async fn notify(&self, method: &str, parameters: Value) -> u16 {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": parameters});
        self.post(&message).await.status
    }

    /// Opens the GET stream of the MCP session, on which the server sends its own messages.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn listen(&self) -> Events {
        Events::new(in_time("an answer", self.http(Method::GET).send()).await.expect("an answer"))
    }

    /// Ends the MCP session (DELETE) and returns the HTTP status.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn end_session(&self) -> u16 {
        let response = in_time("an answer", self.http(Method::DELETE).send()).await;
        response.expect("an answer").status().as_u16()
    }

    /// Creates the `tools/call` request for a tool, without sending it.
    #[must_use]
    pub fn calling(&self, tool: &str, arguments: Value) -> Value {
        self.message("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool and returns the structured content of its result.
    ///
    /// # Panics
    /// If the call fails or has no structured content.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let reply = self.post(&self.calling(tool, arguments)).await;
        let mut answer = reply.answer();
        let content = answer["result"]["structuredContent"].take();
        assert!(!content.is_null(), "no structured content: {reply:?}");
        content
    }

    /// Runs code with `run_code` and returns the structured content of the result.
    pub async fn run_code(&self, language: &str, code: &str) -> Value {
        self.call("run_code", json!({"language": language, "code": code})).await
    }
}
