//! Which era a stdio server is of, asked before the conversation begins.
//!
//! rmcp can ask as well, but gives the answer ten seconds from the start of the process, and takes a server that needs longer
//! to load for an older one.

use std::time::Duration;

use rmcp::model::{ErrorCode, ProtocolVersion};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::transport::LineTransport;

const ID: &str = "lockhouse-probe";
/// Errors of the newest era: whoever gives them knows it.
const NEWEST: [ErrorCode; 3] = [
    ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
    ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
    ErrorCode::HEADER_MISMATCH,
];

/// What a server makes of the question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Probed {
    /// It knows the era without `initialize`.
    Newest,
    /// It says that it does not know the method.
    Older,
    /// It ended.
    Closed,
    /// It said nothing in time.
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

/// Asks. Whatever else the server writes meanwhile is passed over.
pub(super) async fn probe(transport: &mut LineTransport, limit: Duration) -> Probed {
    timeout(limit, ask(transport)).await.unwrap_or(Probed::Silent)
}

async fn ask(transport: &mut LineTransport) -> Probed {
    let question = json!({
        "jsonrpc": "2.0", "id": ID, "method": "server/discover",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": ProtocolVersion::V_2026_07_28.as_str(),
            "io.modelcontextprotocol/clientInfo": {"name": "lockhouse", "version": env!("CARGO_PKG_VERSION")},
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    });
    if transport.write_line(&question.to_string()).await.is_err() {
        return Probed::Closed;
    }
    while let Some(line) = transport.line().await {
        match serde_json::from_slice::<Answer<'_>>(&line) {
            Ok(Answer { id: Some(ID), result: Some(_), .. }) => return Probed::Newest,
            Ok(Answer { id: Some(ID), error: Some(Error { code }), .. }) => {
                let is_newest = NEWEST.iter().any(|newest| newest.0 == code);
                return if is_newest { Probed::Newest } else { Probed::Older };
            }
            _ => {}
        }
    }
    Probed::Closed
}
