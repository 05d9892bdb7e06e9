//! A small HTTP server for tests, whose answers the test scripts. It can also give invalid answers, which a server
//! library would not send.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde_json::{Value, json};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
const STREAM_HEAD: &str = "HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// A received HTTP request.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// The HTTP method of the request, such as `GET`.
    pub method: String,
    /// The target of the request: path and query.
    pub path: String,
    /// The headers of the request, by name in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body of the request as text.
    pub body: String,
}

/// A scripted answer to an HTTP request.
#[derive(Clone, Debug)]
pub enum HttpAnswer {
    /// A complete answer: HTTP status, headers and body.
    Full(u16, Vec<(String, String)>, String),
    /// The beginning of an event stream with the status 200, after which the server closes the connection.
    CutOff(String),
    /// An event stream with the status 200, whose text comes from a channel. The server closes the connection at `None`.
    Stream(Arc<Mutex<Receiver<Option<String>>>>),
    /// The server sends no answer and keeps the connection open.
    NoAnswer,
}

impl HttpAnswer {
    /// Creates an answer with this HTTP status, without headers and body.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Full(status, Vec::new(), String::new())
    }

    /// Creates an answer with this HTTP status and a JSON body.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self::Full(status, vec![("Content-Type".into(), "application/json".into())], body.to_string())
    }

    /// Creates an answer that is an event stream of these JSON-RPC messages.
    #[must_use]
    pub fn events(messages: &[Value]) -> Self {
        let events: String = messages.iter().map(|message| format!("data: {message}\n\n")).collect();
        Self::Full(200, vec![("Content-Type".into(), "text/event-stream".into())], events)
    }

    /// Adds a header to the answer.
    ///
    /// # Panics
    /// If the answer is not [`HttpAnswer::Full`]: other answers have no headers.
    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        match self {
            Self::Full(status, mut headers, body) => {
                headers.push((name.to_owned(), value.to_owned()));
                Self::Full(status, headers, body)
            }
            Self::CutOff(_) | Self::Stream(_) | Self::NoAnswer => panic!("{self:?} has no headers"),
        }
    }
}

impl HttpRequest {
    /// Returns the body of the request as JSON, or `null` if the body is not JSON.
    #[must_use]
    pub fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns the JSON-RPC method in the body of the request; empty if there is none.
    #[must_use]
    pub fn rpc(&self) -> String {
        self.message()["method"].as_str().unwrap_or_default().to_owned()
    }

    /// Creates the JSON-RPC response to this request, with this result.
    #[must_use]
    pub fn result(&self, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.message()["id"], "result": result})
    }

    /// Returns the answer of an MCP server with one tool, `look`, to this request. The server has protocol version
    /// 2026-07-28, or 2025-06-18 if `is_older`. Returns `None` for `tools/call`, which the test has to answer itself.
    #[must_use]
    pub fn as_mcp(&self, is_older: bool) -> Option<HttpAnswer> {
        let us = json!({"name": "fixture", "version": "1"});
        let capabilities = json!({"tools": {}});
        let tool = json!({"name": "look", "inputSchema": {"type": "object", "properties": {"at": {}}}});
        let result = match (self.method.as_str(), self.rpc().as_str()) {
            ("POST", "server/discover") if !is_older => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
                "serverInfo": us, "ttlMs": 0, "cacheScope": "private",
            }),
            ("POST", "initialize") if is_older => {
                json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": us})
            }
            ("POST", "tools/list") => {
                json!({"resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private"})
            }
            ("POST", "tools/call") => return None,
            ("POST", rpc) if rpc.starts_with("notifications/") => return Some(HttpAnswer::status(202)),
            ("POST", _) => {
                let error = json!({"code": -32601, "message": "no such method"});
                let body = json!({"jsonrpc": "2.0", "id": self.message()["id"], "error": error});
                return Some(HttpAnswer::json(if is_older { 400 } else { 404 }, &body));
            }
            _ => return Some(HttpAnswer::status(405)),
        };
        Some(HttpAnswer::json(200, &self.result(&result)))
    }
}

/// A scripted HTTP server on a free port of 127.0.0.1, which runs until the test process exits.
#[derive(Clone, Debug)]
pub struct HttpServer {
    port: u16,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
}

impl HttpServer {
    /// Starts the server, which answers each request with the result of `answer`.
    ///
    /// # Panics
    /// If no port can be bound.
    pub fn start(answer: impl Fn(&HttpRequest) -> HttpAnswer + Send + Sync + 'static) -> Self {
        Self::start_knowing(|_| answer)
    }

    /// Starts the server. `answer` receives the server's own URL and returns the function that answers requests.
    ///
    /// # Panics
    /// If no port can be bound.
    pub fn start_knowing<A>(answer: impl FnOnce(String) -> A) -> Self
    where
        A: Fn(&HttpRequest) -> HttpAnswer + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests = Arc::<Mutex<Vec<HttpRequest>>>::default();
        let server = Self { port, requests: requests.clone() };
        let answer = Arc::new(answer(server.url("")));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, requests) = (answer.clone(), requests.clone());
                std::thread::spawn(move || drop(serve(stream, &*answer, &requests)));
            }
        });
        server
    }

    /// Returns the URL of a path on this server.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the requests that the server has received so far.
    #[must_use]
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.requests.lock().clone()
    }

    /// Sends a GET request to a server on this host as a browser does. The returned value has the answer's headers
    /// and body, and the HTTP status in `path`.
    ///
    /// # Panics
    /// If the server does not answer.
    #[must_use]
    pub fn browse(url: &str) -> HttpRequest {
        let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a URL");
        let mut stream = TcpStream::connect(host).expect("a connection");
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).expect("a timeout");
        let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut reader = BufReader::new(stream);
        read(&mut reader).expect("an answer")
    }
}

fn serve(
    stream: TcpStream,
    answer: &impl Fn(&HttpRequest) -> HttpAnswer,
    requests: &Mutex<Vec<HttpRequest>>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    while let Ok(request) = read(&mut reader) {
        requests.lock().push(request.clone());
        match answer(&request) {
            HttpAnswer::Full(status, headers, body) => {
                let headers: String =
                    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                let head = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
                stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
            }
            HttpAnswer::CutOff(beginning) => {
                stream.write_all(format!("{STREAM_HEAD}{beginning}").as_bytes())?;
                return stream.shutdown(std::net::Shutdown::Both);
            }
            HttpAnswer::Stream(events) => {
                stream.write_all(STREAM_HEAD.as_bytes())?;
                while let Ok(Some(text)) = events.lock().recv() {
                    stream.write_all(text.as_bytes())?;
                }
                return stream.shutdown(std::net::Shutdown::Both);
            }
            HttpAnswer::NoAnswer => std::thread::sleep(RESPONSE_TIMEOUT),
        }
    }
    Ok(())
}

/// Reads an HTTP request or an HTTP answer. For an answer, `method` is the HTTP version and `path` the status.
fn read(reader: &mut impl BufRead) -> std::io::Result<HttpRequest> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(HttpRequest { method, path, headers, body: String::from_utf8_lossy(&body).into_owned() })
}
