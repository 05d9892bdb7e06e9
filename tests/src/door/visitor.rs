//! An AI client over HTTP, of either era, that does nothing but what the test asks for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::{Method, RequestBuilder};
use serde_json::{Map, Value, json};

use super::{Door, Events, Reply, in_time};

/// The version without sessions.
pub const LATEST_VERSION: &str = "2026-07-28";
/// Every version, the oldest first.
pub const ALL_VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", LATEST_VERSION];

const NAME: &str = "lockhouse-tests";

/// Where it comes to, as whom, and in which session. Copies are the same client, on the same connections.
#[derive(Clone, Debug)]
pub struct Visitor {
    client: reqwest::Client,
    url: String,
    token: Option<String>,
    headers: BTreeMap<String, String>,
    /// Of the version, and of the session if there is one.
    version: String,
    session: Option<String>,
    capabilities: Value,
    last_id: Arc<AtomicU64>,
}

impl Visitor {
    pub(super) fn new(door: &Door, token: Option<&str>) -> Self {
        let mut client = reqwest::Client::builder().no_proxy();
        if let Some(path) = door.place().strip_prefix("unix:") {
            client = client.unix_socket(path);
        }
        Self::with_client(client.build().expect("a client"), &door.url("/mcp"), token)
    }

    /// Somebody who comes over a client that the test made, such as one with certificates of its own.
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

    pub(super) async fn initialized(door: &Door, token: Option<&str>, version: &str) -> Self {
        let visitor = Self::new(door, token);
        let (visitor, reply) = visitor.initialize(version).await;
        assert_eq!(reply.answer()["result"]["protocolVersion"], version, "{reply:?}");
        visitor
    }

    /// Asks for a session of this protocol version: the same client in it, if it got one, and the answer.
    ///
    /// # Panics
    /// If there is no answer.
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

    /// With one more header on every request, or another value of it.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_lowercase(), value.to_owned());
        self
    }

    /// With MCP capabilities of a client.
    #[must_use]
    pub fn able(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The same client with another token.
    #[must_use]
    pub fn as_other(mut self, token: Option<&str>) -> Self {
        self.token = token.map(str::to_owned);
        self
    }

    /// The id of the session.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// In a session of this id, whoever it belongs to.
    #[must_use]
    pub fn in_session(mut self, id: &str, version: &str) -> Self {
        (self.session, self.version) = (Some(id.to_owned()), version.to_owned());
        self
    }

    /// A request as a message, with an id of its own and what the era wants in `_meta`.
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

    /// An HTTP request with the headers of this client, for what a test shapes itself.
    pub fn http(&self, method: Method) -> RequestBuilder {
        let accept = "application/json, text/event-stream".to_owned();
        let mut headers = BTreeMap::from([("accept".to_owned(), accept)]);
        // A version is only offered until there is a session.
        if self.session.is_some() || self.version == LATEST_VERSION {
            headers.insert("mcp-protocol-version".to_owned(), self.version.clone());
        }
        headers.extend(self.token.iter().map(|token| ("authorization".into(), format!("Bearer {token}"))));
        headers.extend(self.session.iter().map(|id| ("mcp-session-id".into(), id.clone())));
        headers.extend(self.headers.clone());
        let request = self.client.request(method, &self.url);
        headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    fn posting(&self, message: &Value) -> RequestBuilder {
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

    /// Posts a message: the answer, whole.
    ///
    /// # Panics
    /// If there is none.
    pub async fn post(&self, message: &Value) -> Reply {
        self.open(message).await.whole().await
    }

    /// Posts a message: the answer while it comes.
    ///
    /// # Panics
    /// If none begins.
    pub async fn open(&self, message: &Value) -> Events {
        let response = in_time("an answer", self.posting(message).send()).await;
        Events::of(response.expect("an answer"))
    }

    /// Posts a message, and fails where the connection does.
    ///
    /// # Errors
    /// What the connection came to.
    ///
    /// # Panics
    /// If it hangs.
    pub async fn try_post(&self, message: &Value) -> Result<Reply, reqwest::Error> {
        let response = in_time("an answer", self.posting(message).send()).await?;
        Ok(Events::of(response).whole().await)
    }

    /// Asks for something: the answer, whole.
    pub async fn request(&self, method: &str, parameters: Value) -> Reply {
        self.post(&self.message(method, parameters)).await
    }

    /// Says something that has no answer: the HTTP status.
    pub async fn notify(&self, method: &str, parameters: Value) -> u16 {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": parameters});
        self.post(&message).await.status
    }

    /// The stream of what the server says by itself, in a session.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn listen(&self) -> Events {
        Events::of(in_time("an answer", self.http(Method::GET).send()).await.expect("an answer"))
    }

    /// Ends the session: the HTTP status.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn end_session(&self) -> u16 {
        let response = in_time("an answer", self.http(Method::DELETE).send()).await;
        response.expect("an answer").status().as_u16()
    }

    /// The `tools/call` message of a tool.
    #[must_use]
    pub fn calling(&self, tool: &str, arguments: Value) -> Value {
        self.message("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The structured content that a tool answers.
    ///
    /// # Panics
    /// If there is none.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let reply = self.post(&self.calling(tool, arguments)).await;
        let mut answer = reply.answer();
        let content = answer["result"]["structuredContent"].take();
        assert!(!content.is_null(), "no structured content: {reply:?}");
        content
    }

    /// The answer to a program.
    pub async fn run_code(&self, language: &str, code: &str) -> Value {
        self.call("run_code", json!({"language": language, "code": code})).await
    }
}
