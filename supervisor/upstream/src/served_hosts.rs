//! Serves a server of this host to the other hosts of a cluster, if all hosts use one process of it: passes their requests on to the
//! server with other ids.
//!
//! The server's questions and notices of progress belong to requests of this host alone. A change of its tools is told to all.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use lockhouse_base::line_buffer::CompleteLine;
use lockhouse_mcp::ResponseError;
use lockhouse_mcp::client::Client;
use lockhouse_mcp::server::Lines;
use parking_lot::Mutex;
use rmcp::model::{ErrorCode, ErrorData};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;

/// Maximum number of requests of one host at one time. Further ones wait.
/// Bound: hosts of a cluster.
const REQUESTS_MAX: usize = 256;
const CANCELLED: &str = "the other host has cancelled the request";
const TOOLS_CHANGED: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}";

/// A message of the other host.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancellation<'a> {
    #[serde(borrow)]
    request_id: &'a RawValue,
}

/// A request as the server gets it.
#[derive(Serialize)]
struct PassedOnRequest<'a> {
    jsonrpc: &'static str,
    id: i64,
    method: &'a str,
    params: Map<String, Value>,
}

/// A connection of another host to a server of this host.
struct ServedHost {
    client: Client,
    /// The lines that are sent to the other host.
    lines: mpsc::Sender<String>,
    /// The requests that the server has not answered, by the ids of the other host.
    requests: Mutex<HashMap<String, CancellationToken>>,
    places: Arc<Semaphore>,
}

/// Serves the server of a connection to another host, until one of them ends. The other host reads and writes lines.
///
/// # Errors
/// The server cannot be started, or the stream is broken.
pub async fn serve_host(
    connection: &Connection,
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
) -> io::Result<()> {
    let server = connection.connected_server().await.map_err(|failure| io::Error::other(failure.message))?;
    let (input, output) = tokio::io::split(stream);
    let (lines, unsent) = mpsc::channel(REQUESTS_MAX);
    let host = Arc::new(ServedHost {
        client: server.client.clone(),
        lines,
        requests: Mutex::default(),
        places: Arc::new(Semaphore::new(REQUESTS_MAX)),
    });
    let served = tokio::select! {
        read = read(&host, input, connection.limits.message_bytes_max) => read,
        written = write(unsent, output) => written,
        () = tell_changes(connection, &host.lines) => Ok(()),
        () = connection.ended(&server) => Ok(()),
    };
    host.requests.lock().drain().for_each(|(_, request)| request.cancel());
    served
}

async fn read(host: &Arc<ServedHost>, input: impl AsyncRead + Unpin, bytes_max: usize) -> io::Result<()> {
    let mut lines = Lines::new(input, bytes_max);
    while let Some(line) = lines.next().await? {
        match line {
            CompleteLine::Within(line) => host.receive(&line).await?,
            CompleteLine::TooLong(..) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Ok(())
}

async fn write(mut unsent: mpsc::Receiver<String>, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
    while let Some(line) = unsent.recv().await {
        output.write_all(line.as_bytes()).await?;
        output.write_all(b"\n").await?;
        output.flush().await?;
    }
    Ok(())
}

/// Tells the other host when the tools have changed. Returns when nobody watches the server any more.
async fn tell_changes(connection: &Connection, lines: &mpsc::Sender<String>) {
    let mut catalogue = connection.catalogue_changes();
    while catalogue.changed().await.is_ok() {
        if lines.send(TOOLS_CHANGED.to_owned()).await.is_err() {
            return;
        }
    }
}

impl ServedHost {
    async fn receive(self: &Arc<Self>, line: &[u8]) -> io::Result<()> {
        let message: Message<'_> = serde_json::from_slice(line)?;
        let Some(method) = message.method else { return Ok(()) };
        match (message.id, &*method) {
            (Some(id), "initialize") => self.answer(id.get(), &self.introduction()).await,
            (Some(id), _) => {
                let params = message.params.map(|params| serde_json::from_str(params.get())).transpose()?;
                self.pass_on(id.get().to_owned(), method.into_owned(), params.unwrap_or_default()).await;
            }
            (None, "notifications/cancelled") => {
                let params = message.params.map(RawValue::get).unwrap_or_default();
                if let Ok(Cancellation { request_id }) = serde_json::from_str(params)
                    && let Some(request) = self.requests.lock().remove(request_id.get())
                {
                    request.cancel();
                }
            }
            (None, _) => {}
        }
        Ok(())
    }

    /// Returns the answer to `initialize`: what the server has said to this host.
    fn introduction(&self) -> Result<String, ResponseError> {
        let info = self.client.info().ok_or(ResponseError::Closed)?;
        let introduction = json!({
            "protocolVersion": info.protocol_version,
            "capabilities": info.capabilities,
            "serverInfo": info.server_info,
            "instructions": info.instructions,
        });
        Ok(introduction.to_string())
    }

    /// Passes a request on to the server, and its answer back.
    async fn pass_on(self: &Arc<Self>, id: String, method: String, params: Map<String, Value>) {
        // The semaphore is never closed.
        let Ok(place) = self.places.clone().acquire_owned().await else { return };
        let cancelled = CancellationToken::new();
        self.requests.lock().insert(id.clone(), cancelled.clone());
        let host = self.clone();
        tokio::spawn(async move {
            let _place = place;
            let answer = tokio::select! {
                biased;
                () = cancelled.cancelled() => return,
                answer = host.ask(&method, params) => answer,
            };
            host.requests.lock().remove(&id);
            host.answer(&id, &answer).await;
        });
    }

    async fn ask(&self, method: &str, mut params: Map<String, Value>) -> Result<String, ResponseError> {
        let to_line = |id: i64, meta: Option<rmcp::model::RequestMetaObject>| {
            let own = params.entry("_meta").or_insert_with(|| json!({}));
            if let Value::Object(own) = own {
                if let Value::Object(meta) = serde_json::to_value(meta)? {
                    meta.into_iter().for_each(|(key, value)| _ = own.entry(key).or_insert(value));
                }
                // The token of the other host may be that of another request here.
                own.insert("progressToken".to_owned(), id.into());
            }
            let mut line = serde_json::to_vec(&PassedOnRequest { jsonrpc: "2.0", id, method, params })?;
            line.push(b'\n');
            Ok(line)
        };
        self.client.send(to_line, None, CANCELLED)?.answer().await
    }

    async fn answer(&self, id: &str, answer: &Result<String, ResponseError>) {
        let line = match answer {
            Ok(result) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"),
            Err(error) => {
                let error = match error {
                    ResponseError::Refused(error) => error.clone(),
                    error => ErrorData::new(ErrorCode::INTERNAL_ERROR, error.to_string(), None),
                };
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{}}}", json!(error))
            }
        };
        // If the stream has ended, nobody waits for it.
        let _ = self.lines.send(line).await;
    }
}
