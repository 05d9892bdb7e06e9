//! The part of MCP that every server has: the handshake, and which requests a protocol version permits.

use std::sync::Arc;

use rmcp::model::{
    DiscoverResult, ErrorCode, ErrorData, InitializeRequestParams, ProtocolVersion, ServerConfig,
    ServerResult,
};

use super::client_message::{self, Parameters};
use super::connection::ClientConnection;
use super::context::RequestContext;

/// Serves the requests of AI clients.
pub trait RequestHandler: Clone + Send + Sync + 'static {
    /// Returns what the server says of itself.
    fn info(&self) -> ServerConfig;

    /// Serves a request besides the handshake and `ping`. Returns its result as JSON text on one line. If the request is
    /// cancelled, the result is not sent.
    fn serve(
        &self,
        parameters: Parameters,
        context: &RequestContext,
    ) -> impl Future<Output = Result<String, ErrorData>> + Send;

    /// Handles the end of the handshake with `initialize`. `http` is the head of the HTTP request that tells it, if one does.
    fn begin(&self, connection: &ClientConnection, http: Option<&Arc<http::request::Parts>>);
}

/// Returns the error for a method that MCP, or the client's version of it, does not have.
pub fn method_not_found(method: &str) -> ErrorData {
    client_message::method_not_found(method)
}

/// The methods that self-contained requests do not have.
const ONLY_AFTER_HANDSHAKE: [&str; 5] =
    ["initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"];
const ONLY_SELF_CONTAINED: &str = "subscriptions/listen";

/// Whether a request depends on a handshake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lifecycle {
    /// Until protocol version 2025-11-25: the client says what it is in `initialize`.
    Handshake,
    /// From protocol version 2026-07-28 on: the client says what it is in each request.
    SelfContained,
}

impl Lifecycle {
    fn of(method: &str, context: &RequestContext) -> Self {
        match context.meta.protocol_version() {
            None if matches!(method, "initialize" | "ping") => Self::Handshake,
            Some(version) if !version.has_initialize() => Self::SelfContained,
            _ if method == "server/discover" || context.connection().client().is_none() => {
                Self::SelfContained
            }
            _ => Self::Handshake,
        }
    }

    fn has(self, method: &str) -> bool {
        match self {
            Self::Handshake => method != ONLY_SELF_CONTAINED,
            Self::SelfContained => !ONLY_AFTER_HANDSHAKE.contains(&method),
        }
    }
}

/// Serves a request.
pub(super) async fn answer(
    handler: &impl RequestHandler,
    method: &str,
    parameters: Result<Parameters, ErrorData>,
    context: &RequestContext,
) -> Result<String, ErrorData> {
    let lifecycle = Lifecycle::of(method, context);
    check_metadata(lifecycle, context)?;
    if !lifecycle.has(method) {
        return Err(method_not_found(method));
    }
    let answer = match parameters? {
        Parameters::Initialize(client) => Ok(initialize(handler.info(), client, context)),
        Parameters::Discover => {
            let versions = ProtocolVersion::KNOWN_VERSIONS.to_vec();
            let result = DiscoverResult::from_server_info(versions, handler.info());
            Ok(context.to_text(ServerResult::DiscoverResult(result)))
        }
        Parameters::Ping => Ok("{}".to_owned()),
        parameters => Box::pin(handler.serve(parameters, context)).await,
    };
    answer.map_err(|mut error| {
        // The newest protocol version has no error code of its own for this.
        if error.code == ErrorCode::RESOURCE_NOT_FOUND && context.is_modern() {
            error.code = ErrorCode::INVALID_PARAMS;
        }
        error
    })
}

/// Checks what a request says of its protocol version and its client.
fn check_metadata(lifecycle: Lifecycle, context: &RequestContext) -> Result<(), ErrorData> {
    let known = ProtocolVersion::KNOWN_VERSIONS;
    match context.meta.protocol_version() {
        Some(version) if !known.contains(&version) => {
            return Err(ErrorData::unsupported_protocol_version(version, known));
        }
        _ if lifecycle == Lifecycle::Handshake => return Ok(()),
        _ => {}
    }
    let missing = context.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28);
    if missing.is_empty() { Ok(()) } else { Err(missing_metadata(&missing)) }
}

/// Returns the error for a request whose metadata lacks these keys.
pub(super) fn missing_metadata(keys: &[&str]) -> ErrorData {
    let keys = keys.join(", ");
    ErrorData::invalid_params(
        format!("request _meta is missing or has malformed required fields: {keys}"),
        None,
    )
}

/// Agrees on a protocol version: the client's, or else the newest that has a handshake.
fn initialize(
    mut info: ServerConfig,
    mut client: Box<InitializeRequestParams>,
    context: &RequestContext,
) -> String {
    let mut with_handshake =
        ProtocolVersion::KNOWN_VERSIONS.iter().filter(|version| version.has_initialize());
    if !with_handshake.clone().any(|version| *version == client.protocol_version)
        && let Some(newest) = with_handshake.next_back()
    {
        client.protocol_version = newest.clone();
    }
    info.protocol_version = client.protocol_version.clone();
    context.connection().set_client(client);
    context.to_text(ServerResult::InitializeResult(info))
}
