//! Finds out which MCP protocol version an upstream server over standard input and output supports, before the
//! handshake.
//!
//! The library rmcp has a probe as well, but it waits only ten seconds after the start of the process, and then assumes
//! that a slower server supports only an older version.

use std::time::Duration;

use rmcp::model::{ErrorCode, ProtocolVersion};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::transport::LineTransport;

const ID: &str = "lockhouse-probe";
/// Error codes that only servers of the newest protocol version return.
const NEWEST: [ErrorCode; 3] = [
    ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
    ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
    ErrorCode::HEADER_MISMATCH,
];

/// What the probe found about a server's MCP protocol version.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProbeOutcome {
    /// The server supports the newest protocol version, which has no `initialize` request.
    Newest,
    /// The server does not know the method `server/discover`, so it supports only an older protocol version.
    Older,
    /// The server exited or closed its output.
    Closed,
    /// The server did not answer the probe in time.
    Silent,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: Option<&'a str>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Error>,
}

#[derive(Deserialize)]
struct Error {
    code: i32,
}

/// Sends `server/discover` to the server and waits for the answer, at most for `limit`. Other output of the server is
/// ignored.
pub(super) async fn probe(transport: &mut LineTransport, limit: Duration) -> ProbeOutcome {
    timeout(limit, ask(transport)).await.unwrap_or(ProbeOutcome::Silent)
}

async fn ask(transport: &mut LineTransport) -> ProbeOutcome {
    let question = json!({
        "jsonrpc": "2.0", "id": ID, "method": "server/discover",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": ProtocolVersion::V_2026_07_28.as_str(),
            "io.modelcontextprotocol/clientInfo": {"name": "lockhouse", "version": env!("CARGO_PKG_VERSION")},
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    });
    if transport.write_line(&question.to_string()).await.is_err() {
        return ProbeOutcome::Closed;
    }
    while let Some(line) = transport.line().await {
        match serde_json::from_slice::<Answer<'_>>(&line) {
            Ok(Answer { id: Some(ID), result: Some(_), .. }) => return ProbeOutcome::Newest,
            Ok(Answer { id: Some(ID), error: Some(Error { code }), .. }) => {
                let is_newest = NEWEST.iter().any(|newest| newest.0 == code);
                return if is_newest { ProbeOutcome::Newest } else { ProbeOutcome::Older };
            }
            _ => {}
        }
    }
    ProbeOutcome::Closed
}
