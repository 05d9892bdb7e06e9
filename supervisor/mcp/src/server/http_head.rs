//! Checks the head of an HTTP request against its message.

use data_encoding::BASE64;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use rmcp::model::{ErrorData, ProtocolVersion, RequestId};

use super::client_message::{ClientMessage, ClientRequest, Parameters};
use super::http_response::HttpReply;
use super::lifecycle::missing_metadata;

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
pub const SESSION_ID: &str = "mcp-session-id";
pub const LAST_EVENT_ID: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
const NO_JSON: &str = "Unsupported Media Type: Content-Type must be application/json";
const NO_BOTH: &str = "Not Acceptable: Client must accept both application/json and text/event-stream";
const NO_EVENTS: &str = "Not Acceptable: Client must accept text/event-stream";

/// Whether a message belongs to an MCP session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpLifecycle {
    /// An MCP session, which `initialize` begins: until protocol version 2025-11-25.
    Session,
    /// Nothing: from protocol version 2026-07-28 on.
    SelfContained,
}

/// Whether the body of a request is JSON.
pub fn has_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON)
}

/// Checks what a POST request sends and accepts.
///
/// # Errors
/// The response that refuses it.
pub fn check_post(headers: &HeaderMap) -> Result<(), HttpReply> {
    if !accepts(headers, JSON) || !accepts(headers, EVENT_STREAM) {
        return Err(HttpReply::Text(StatusCode::NOT_ACCEPTABLE, NO_BOTH.into()));
    }
    match has_json(headers) {
        true => Ok(()),
        false => Err(HttpReply::Text(StatusCode::UNSUPPORTED_MEDIA_TYPE, NO_JSON.into())),
    }
}

/// Checks that the client of a GET request accepts events.
///
/// # Errors
/// The response that refuses it.
pub fn check_get(headers: &HeaderMap) -> Result<(), HttpReply> {
    match accepts(headers, EVENT_STREAM) {
        true => Ok(()),
        false => Err(HttpReply::Text(StatusCode::NOT_ACCEPTABLE, NO_EVENTS.into())),
    }
}

/// Whether the client accepts a media type that it names, with a weight above 0.
fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(media_type));
        is_named && !parts.any(is_zero_weight)
    })
}

fn is_zero_weight(parameter: &str) -> bool {
    let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
    weight.is_some_and(|weight| weight.parse() == Ok(0.0_f64))
}

/// Checks the protocol version that a request without a message names, and returns what it depends on.
///
/// # Errors
/// The response that refuses it.
pub fn check_version(headers: &HeaderMap) -> Result<HttpLifecycle, HttpReply> {
    check_known(headers)?;
    let version = header_version(headers);
    Ok(lifecycle_of(version.is_none_or(|version| version < ProtocolVersion::NO_INITIALIZE.as_str())))
}

fn lifecycle_of(has_handshake: bool) -> HttpLifecycle {
    if has_handshake { HttpLifecycle::Session } else { HttpLifecycle::SelfContained }
}

/// Whether the headers say that the message is a call of a tool in no session. [`check_message`] refuses a request for which this is
/// not true.
pub fn is_call_without_session(headers: &HeaderMap) -> bool {
    matches!(single(headers, METHOD), Ok(Some("tools/call")))
        && check_version(headers).is_ok_and(|lifecycle| lifecycle == HttpLifecycle::SelfContained)
}

/// Checks the headers of MCP against the message, and returns what the message depends on.
///
/// # Errors
/// The response that refuses it.
pub fn check_message(headers: &HeaderMap, message: &ClientMessage) -> Result<HttpLifecycle, HttpReply> {
    let ClientMessage::Request(request) = message else { return check_version(headers) };
    let named = request.meta.protocol_version();
    if named.is_none() {
        check_known(headers)?;
    }
    let header = header_version(headers);
    if let (Ok(Parameters::Initialize(client)), None) = (&request.parameters, &named) {
        let version = client.protocol_version.as_str();
        if let Some(header) = header.filter(|header| *header != version) {
            let words = format!(
                "Invalid Request: MCP-Protocol-Version header ({header}) does not match initialize params.protocolVersion ({version})"
            );
            return Err(bad_request(request, ErrorData::invalid_request(words, None)));
        }
        check_names(headers, request)?;
        return Ok(HttpLifecycle::Session);
    }
    let is_newest = header.is_some_and(|header| header >= ProtocolVersion::NO_INITIALIZE.as_str());
    let is_discover = request.method == "server/discover";
    match (&named, header) {
        (None, _) if is_newest || is_discover => {
            let missing = request.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28);
            return Err(bad_request(request, missing_metadata(&missing)));
        }
        (Some(_), None) => {
            let words = "request _meta protocolVersion requires MCP-Protocol-Version header";
            return Err(mismatch(request, words.to_owned()));
        }
        (Some(named), Some(header)) if named.as_str() != header => {
            return Err(mismatch(
                request,
                format!(
                    "MCP-Protocol-Version header ({header}) does not match request _meta protocolVersion ({named})"
                ),
            ));
        }
        _ => {}
    }
    check_names(headers, request)?;
    let is_complete = request.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty();
    let has_handshake = named.as_ref().is_none_or(ProtocolVersion::has_initialize);
    Ok(lifecycle_of(has_handshake && !is_complete && !is_discover))
}

fn header_version(headers: &HeaderMap) -> Option<&str> {
    headers.get(VERSION)?.to_str().ok()
}

/// Checks that the protocol version in the header is known.
fn check_known(headers: &HeaderMap) -> Result<(), HttpReply> {
    let Some(value) = headers.get(VERSION) else { return Ok(()) };
    let version = value.to_str().unwrap_or("not ASCII");
    if ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version) {
        return Ok(());
    }
    let words = format!("Bad Request: Unsupported MCP-Protocol-Version: {version}");
    Err(HttpReply::Text(StatusCode::BAD_REQUEST, words.into()))
}

/// Checks that the headers `Mcp-Method` and `Mcp-Name` say what the message says, since proxies route by them. Required from
/// protocol version 2026-07-28 on.
fn check_names(headers: &HeaderMap, request: &ClientRequest) -> Result<(), HttpReply> {
    if header_version(headers).is_none_or(|version| version < ProtocolVersion::STANDARD_HEADERS.as_str()) {
        return Ok(());
    }
    let method = &request.method;
    match single(headers, METHOD).map_err(|fault| mismatch(request, fault))? {
        // The version is not agreed on yet.
        None if method == "initialize" => {}
        None => return Err(mismatch(request, "missing required Mcp-Method header")),
        Some(header) if header != method => {
            let words = format!("Mcp-Method header `{header}` does not match body method `{method}`");
            return Err(mismatch(request, words));
        }
        Some(_) => {}
    }
    let Some(name) = request.parameters.as_ref().ok().and_then(Parameters::name) else { return Ok(()) };
    let header = single(headers, NAME).map_err(|fault| mismatch(request, fault))?;
    let header = header
        .ok_or_else(|| mismatch(request, format!("missing required Mcp-Name header for `{method}`")))?;
    let header = decode(header).ok_or_else(|| mismatch(request, "Mcp-Name header is not valid Base64"))?;
    if header == name {
        return Ok(());
    }
    Err(mismatch(request, format!("Mcp-Name header `{header}` does not match body value `{name}`")))
}

/// Why a header has no value that can be compared.
#[derive(Debug, thiserror::Error)]
enum HeaderFault {
    #[error("duplicate {0} header")]
    Duplicate(&'static str),
    #[error("{0} header contains invalid characters")]
    InvalidCharacters(&'static str),
}

/// Returns the only value of a header, if it has one.
fn single<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<Option<&'h str>, HeaderFault> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => Err(HeaderFault::Duplicate(name)),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| HeaderFault::InvalidCharacters(name)),
        (None, _) => Ok(None),
    }
}

/// Decodes the value of a header that may be Base64.
fn decode(value: &str) -> Option<String> {
    let encoded = value.strip_prefix("=?base64?").and_then(|value| value.strip_suffix("?="));
    match encoded {
        Some(encoded) => String::from_utf8(BASE64.decode(encoded.as_bytes()).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

fn mismatch(request: &ClientRequest, fault: impl std::fmt::Display) -> HttpReply {
    bad_request(request, ErrorData::header_mismatch(fault.to_string(), None))
}

fn bad_request(request: &ClientRequest, error: ErrorData) -> HttpReply {
    let id: RequestId = request.id.clone();
    HttpReply::error(StatusCode::BAD_REQUEST, Some(id), error)
}
