//! A scripted upstream server over HTTP+SSE, the deprecated transport of MCP 2024-11-05.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use serde_json::{Value, json};

use crate::{HttpAnswer, HttpRequest, HttpServer};

/// The path of the event stream.
const STREAM_PATH: &str = "/sse";
/// The beginning of the path and query to which messages are posted. The number of the stream follows.
const POST_PATH: &str = "/messages?stream=";

/// The event stream of one connection to the server.
#[derive(Clone, Debug)]
pub struct SseStream(Sender<Option<String>>);

impl SseStream {
    /// Opens a stream. Returns it with the answer to the request for it.
    #[must_use]
    pub fn open() -> (Self, HttpAnswer) {
        let (sender, events) = channel();
        (Self(sender), HttpAnswer::Stream(Arc::new(Mutex::new(events))))
    }

    /// Writes text to the stream.
    pub fn write(&self, text: &str) {
        // Nobody reads a stream that was closed.
        let _ = self.0.send(Some(text.to_owned()));
    }

    /// Writes a JSON-RPC message to the stream.
    pub fn message(&self, message: &Value) {
        self.write(&format!("event: message\ndata: {message}\n\n"));
    }

    /// Ends the stream.
    pub fn end(&self) {
        let _ = self.0.send(None);
    }

    /// Accepts a posted message as an MCP server of this protocol version does, with the tool `look` of
    /// [`HttpRequest::as_mcp`], whose result is the text of its argument `at`.
    #[must_use]
    pub fn accept(&self, request: &HttpRequest, version: &str) -> HttpAnswer {
        let at = &request.message()["params"]["arguments"]["at"];
        match request.as_mcp(true) {
            Some(HttpAnswer::Full(202, ..)) => {}
            Some(HttpAnswer::Full(.., body)) => {
                let mut message: Value = serde_json::from_str(&body).unwrap_or_default();
                if request.rpc() == "initialize" {
                    message["result"]["protocolVersion"] = version.into();
                }
                self.message(&message);
            }
            _ => self.message(&request.result(&json!({"content": [{"type": "text", "text": at}]}))),
        }
        accepted()
    }
}

/// Returns the answer to a message whose response follows on the stream.
#[must_use]
pub fn accepted() -> HttpAnswer {
    HttpAnswer::Full(202, vec![("Content-Type".into(), "text/plain".into())], "Accepted".into())
}

/// A scripted server over HTTP+SSE, which runs until the test process exits.
#[derive(Clone, Debug)]
pub struct SseServer {
    http: HttpServer,
    streams: Arc<Mutex<Vec<SseStream>>>,
}

impl SseServer {
    /// Starts the server. `answer` gets each message that is posted, and the stream of its session.
    ///
    /// # Panics
    /// If no port can be bound.
    pub fn start(answer: impl Fn(&HttpRequest, &SseStream) -> HttpAnswer + Send + Sync + 'static) -> Self {
        let begin = |stream: &SseStream, path: &str, _: &str| {
            stream.write(&format!("event: endpoint\ndata: {path}\n\n"));
        };
        Self::start_with(begin, answer)
    }

    /// Starts the server. `begin` begins each stream. Its arguments are the stream, the path for posts of this session,
    /// and the server's own URL.
    ///
    /// # Panics
    /// If no port can be bound.
    pub fn start_with(
        begin: impl Fn(&SseStream, &str, &str) + Send + Sync + 'static,
        answer: impl Fn(&HttpRequest, &SseStream) -> HttpAnswer + Send + Sync + 'static,
    ) -> Self {
        let streams = Arc::<Mutex<Vec<SseStream>>>::default();
        let opened = streams.clone();
        let http = HttpServer::start_knowing(|own_url| {
            move |request: &HttpRequest| {
                if request.method == "GET" && request.path == STREAM_PATH {
                    let (stream, answer) = SseStream::open();
                    let mut opened = opened.lock();
                    begin(&stream, &format!("{POST_PATH}{}", opened.len()), &own_url);
                    opened.push(stream);
                    return answer;
                }
                let number = request.path.strip_prefix(POST_PATH).filter(|_| request.method == "POST");
                let number = number.and_then(|number| number.parse::<usize>().ok());
                let stream = number.and_then(|number| opened.lock().get(number).cloned());
                stream.map_or_else(|| HttpAnswer::status(405), |stream| answer(request, &stream))
            }
        });
        Self { http, streams }
    }

    /// Returns the URL of the event stream.
    #[must_use]
    pub fn url(&self) -> String {
        self.http.url(STREAM_PATH)
    }

    /// Returns the requests that the server has received so far.
    #[must_use]
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.http.requests()
    }

    /// Returns the number of streams that were opened so far.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.lock().len()
    }
}
