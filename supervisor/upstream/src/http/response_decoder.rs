//! Decodes messages from an upstream server for the library rmcp. Results remain raw text, except those that rmcp needs
//! to interpret.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerResult,
};
use serde_json::value::RawValue;

use super::backlog_limits::BacklogLimiter;
use super::header_parameters;
use lockhouse_mcp::inbound_message::{
    self, Envelope, InboundMessage, NOT_JSON, RxMessage, TYPED_BYTES_MAX, TYPED_NODES_MAX, error_response,
};

/// A request to an upstream server that has been sent and is not answered yet.
#[derive(Clone)]
pub(super) struct PendingRequest {
    pub(super) id: RequestId,
    pub(super) method: RequestMethod,
}

/// The method of a request. Only the methods that affect how the result is decoded are distinguished.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestMethod {
    Initialize,
    Discover,
    Tools,
    Other,
}

impl RequestMethod {
    /// Whether the request belongs to the handshake, which has no session yet.
    pub(super) fn is_handshake(self) -> bool {
        matches!(self, Self::Initialize | Self::Discover)
    }
}

impl PendingRequest {
    /// Returns the request that a message to the server contains; `None` for notifications and responses.
    pub(super) fn from_message(message: &ClientJsonRpcMessage) -> Option<Self> {
        let JsonRpcMessage::Request(request) = message else { return None };
        let method = match &request.request {
            ClientRequest::InitializeRequest(_) => RequestMethod::Initialize,
            ClientRequest::DiscoverRequest(_) => RequestMethod::Discover,
            ClientRequest::ListToolsRequest(_) => RequestMethod::Tools,
            _ => RequestMethod::Other,
        };
        Some(Self { id: request.id.clone(), method })
    }

    pub(super) fn failed(&self, message: &'static str) -> RxMessage {
        error_response(message, self.id.clone())
    }

    /// Decodes the body of an HTTP response as the answer to this request, even if the body contains another ID.
    pub(super) fn decode_body(&self, body: &[u8], load: &BacklogLimiter) -> RxMessage {
        let message = serde_json::from_slice::<Envelope<'_>>(body).ok();
        let Some(message) = message else { return self.failed(NOT_JSON) };
        let result = message.result.filter(|_| message.method.is_none());
        let received = match result.and_then(|result| self.convert_result(result, load)) {
            Some(result) => Ok(RxMessage::response(result, self.id.clone())),
            None => inbound_message::parse_typed(body, TYPED_BYTES_MAX, TYPED_NODES_MAX).1,
        };
        match received {
            Ok(JsonRpcMessage::Response(mut response)) => {
                response.id = self.id.clone();
                JsonRpcMessage::Response(response)
            }
            Ok(JsonRpcMessage::Error(mut error)) => {
                error.id = Some(self.id.clone());
                JsonRpcMessage::Error(error)
            }
            Ok(_) => self.failed(NOT_JSON),
            Err(why) => self.failed(why),
        }
    }

    /// Decodes the body of a response with an HTTP error status; `None` unless the body is a JSON-RPC error.
    pub(super) fn decode_error_body(&self, body: &str, load: &BacklogLimiter) -> Option<RxMessage> {
        match self.decode_body(body.as_bytes(), load) {
            JsonRpcMessage::Error(error) if error.error.message != NOT_JSON => {
                Some(JsonRpcMessage::Error(error))
            }
            _ => None,
        }
    }

    /// Returns the error that rmcp gets if a server refuses `server/discover` with an HTTP status. Such a server uses
    /// an older protocol version. The error makes rmcp send `initialize`.
    pub(super) fn legacy_error(&self) -> RxMessage {
        let error = ErrorData::new(ErrorCode::INVALID_REQUEST, "the probe was refused", None);
        RxMessage::error(error, Some(self.id.clone()))
    }

    /// Converts the result of this request to a result of rmcp that contains it as raw text; `None` if rmcp needs the
    /// result parsed into its own types.
    fn convert_result(&self, result: &RawValue, load: &BacklogLimiter) -> Option<ServerResult> {
        match self.method {
            RequestMethod::Initialize | RequestMethod::Discover => None,
            RequestMethod::Tools => Some(header_parameters::tool_list(result, load)),
            RequestMethod::Other => Some(inbound_message::raw_result(result)),
        }
    }
}

/// Decodes the message in an event's data. Returns the number of bytes to charge to the server's traffic allowance, and
/// the message. `asked` is the request that the event stream answers; `None` for a stream of the server's own messages.
pub(super) fn decode_event(
    data: &str,
    asked: Option<&PendingRequest>,
    load: &BacklogLimiter,
) -> (usize, InboundMessage) {
    inbound_message::parse(data.as_bytes(), |id, result| match asked.filter(|asked| asked.id == *id) {
        Some(asked) => asked.convert_result(result, load),
        None => Some(inbound_message::raw_result(result)),
    })
}

/// Decodes the message in an event's data, in a stream that has all messages of the server. If `is_raw`, results remain
/// raw text. Returns the number of bytes to charge to the server's traffic allowance, and the message.
pub(super) fn decode_any_event(data: &str, is_raw: bool) -> (usize, InboundMessage) {
    inbound_message::parse(data.as_bytes(), |_, result| is_raw.then(|| inbound_message::raw_result(result)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockhouse_mcp::FailureSignal;

    fn asked(method: RequestMethod) -> PendingRequest {
        PendingRequest { id: RequestId::Number(7), method }
    }

    fn rendered(received: &RxMessage) -> String {
        serde_json::to_string(received).expect("JSON")
    }

    #[test]
    fn a_body_is_the_answer_whatever_it_says_of_itself() {
        let load = BacklogLimiter::new(FailureSignal::default());
        for (body, expected) in [
            (r#"{"id": 8, "result": {"a": 1.0}}"#, r#""id":7,"result":"{\"a\": 1.0}""#),
            (
                r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -5, "message": "no"}}"#,
                r#""id":7,"error":{"code":-5,"message":"no"}"#,
            ),
            (r#"{"method": "ping", "id": 1}"#, NOT_JSON),
            ("[1]", NOT_JSON),
            ("<html>", NOT_JSON),
        ] {
            let rendered = rendered(&asked(RequestMethod::Other).decode_body(body.as_bytes(), &load));
            assert!(rendered.contains(expected) && rendered.contains(r#""id":7"#), "{body}: {rendered}");
        }
    }

    #[test]
    fn an_event_answers_the_request_that_it_names() {
        let load = BacklogLimiter::new(FailureSignal::default());
        let answer = |data: &str, asked: Option<&PendingRequest>| match decode_event(data, asked, &load).1 {
            InboundMessage::Answer(id, message) => format!("{id} {}", rendered(&message)),
            InboundMessage::Unsolicited(_) | InboundMessage::Violation(_) => "none".into(),
        };
        let other = answer(r#"{"id": 8, "result": {}}"#, Some(&asked(RequestMethod::Tools)));
        assert!(other.starts_with("8 ") && other.contains(r#""id":8,"result":"{}""#), "{other}");
        assert_eq!(answer(r#"{"result": {}}"#, Some(&asked(RequestMethod::Other))), "none");
        let torn = answer(r#"{"id":7, "result": {"#, None);
        assert!(torn.starts_with("7 ") && torn.contains(NOT_JSON), "{torn}");
    }
}
