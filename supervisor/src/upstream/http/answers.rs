//! What a server's messages become on their way to rmcp: results stay raw, except those that rmcp itself needs.

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerResult,
};
use rmcp::service::RxJsonRpcMessage;
use serde_json::Value;

use super::annotated;
use super::load::Load;
use crate::upstream::transport::{Envelope, NOT_JSON, TOO_LARGE, TYPED_BYTES_MAX, failed, id_in};

pub(super) type Received = RxJsonRpcMessage<RoleClient>;

/// A request that is under way.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) what: What,
}

/// What was asked for, as far as that changes how the answer is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Initialize,
    Discover,
    Tools,
    Other,
}

impl Asked {
    /// `None` for messages that nobody answers.
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Option<Self> {
        let JsonRpcMessage::Request(request) = message else { return None };
        let what = match &request.request {
            ClientRequest::InitializeRequest(_) => What::Initialize,
            ClientRequest::DiscoverRequest(_) => What::Discover,
            ClientRequest::ListToolsRequest(_) => What::Tools,
            _ => What::Other,
        };
        Some(Self { id: request.id.clone(), what })
    }

    pub(super) fn failed(&self, message: &'static str) -> Received {
        failed(message, self.id.clone())
    }

    fn is_handshake(&self) -> bool {
        matches!(self.what, What::Initialize | What::Discover)
    }

    /// The body of an answer. Whatever it says of itself, it is the answer to this request.
    pub(super) fn answered(&self, body: &[u8], load: &Load) -> Received {
        let message = serde_json::from_slice::<Envelope<'_>>(body).ok();
        let received = message.and_then(|message| self.received(&message, body, load));
        match received {
            Some(JsonRpcMessage::Response(mut response)) => {
                response.id = self.id.clone();
                JsonRpcMessage::Response(response)
            }
            Some(JsonRpcMessage::Error(mut error)) => {
                error.id = Some(self.id.clone());
                JsonRpcMessage::Error(error)
            }
            _ => self.failed(NOT_JSON),
        }
    }

    /// As [`answered`](Self::answered) for a status that is not a success: `None` unless it is an error.
    pub(super) fn refused(&self, body: &str, load: &Load) -> Option<Received> {
        match self.answered(body.as_bytes(), load) {
            JsonRpcMessage::Error(error) if error.error.message != NOT_JSON => {
                Some(JsonRpcMessage::Error(error))
            }
            _ => None,
        }
    }

    /// A refusal of the probe in terms of HTTP alone: an older server that wants a session first.
    pub(super) fn is_older(&self) -> Received {
        let error = ErrorData::new(ErrorCode::INVALID_REQUEST, "the probe was refused", None);
        Received::error(error, Some(self.id.clone()))
    }

    fn received(&self, message: &Envelope<'_>, text: &[u8], load: &Load) -> Option<Received> {
        match message.result {
            Some(result) if message.method.is_none() && !self.is_handshake() => {
                let result = match self.what {
                    What::Tools => annotated::listed(result, load),
                    _ => raw(result.get()),
                };
                Some(Received::response(result, self.id.clone()))
            }
            _ => typed(text),
        }
    }
}

/// The data of an event. `asked` is what the stream answers, if it does.
pub(super) fn event(data: &str, asked: Option<&Asked>, load: &Load) -> Option<Received> {
    let text = data.as_bytes();
    let Ok(message) = serde_json::from_str::<Envelope<'_>>(data) else {
        // Where it names a request, that one must not hang.
        return id_in(text).map(|id| failed(NOT_JSON, id));
    };
    let id = message.id.and_then(|id| serde_json::from_str::<RequestId>(id.get()).ok());
    if message.method.is_some() {
        return typed(text);
    }
    let id = id?;
    match asked.filter(|asked| asked.id == id) {
        Some(asked) => asked.received(&message, text, load),
        None => Asked { id, what: What::Other }.received(&message, text, load),
    }
}

/// As text: parsed in full, a hostile result would take a hundred times its size.
fn raw(result: &str) -> ServerResult {
    ServerResult::CustomResult(CustomResult(Value::String(result.to_owned())))
}

fn typed(text: &[u8]) -> Option<Received> {
    if text.len() > TYPED_BYTES_MAX {
        return id_in(text).map(|id| failed(TOO_LARGE, id));
    }
    serde_json::from_slice(text).ok()
}

#[cfg(test)]
mod tests {
    use super::super::Broken;
    use super::*;

    fn asked(what: What) -> Asked {
        Asked { id: RequestId::Number(7), what }
    }

    fn told(received: &Received) -> String {
        serde_json::to_string(received).expect("JSON")
    }

    #[test]
    fn a_body_is_the_answer_whatever_it_says_of_itself() {
        let load = Load::new(Broken::default());
        for (body, told_as) in [
            (r#"{"id": 8, "result": {"a": 1.0}}"#, r#""id":7,"result":"{\"a\": 1.0}""#),
            (
                r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -5, "message": "no"}}"#,
                r#""id":7,"error":{"code":-5,"message":"no"}"#,
            ),
            (r#"{"method": "ping", "id": 1}"#, NOT_JSON),
            ("[1]", NOT_JSON),
            ("<html>", NOT_JSON),
        ] {
            let told = told(&asked(What::Other).answered(body.as_bytes(), &load));
            assert!(told.contains(told_as) && told.contains(r#""id":7"#), "{body}: {told}");
        }
    }

    #[test]
    fn an_event_answers_the_request_that_it_names() {
        let load = Load::new(Broken::default());
        let other = event(r#"{"id": 8, "result": {}}"#, Some(&asked(What::Tools)), &load).expect("an answer");
        assert!(told(&other).contains(r#""id":8,"result":"{}""#));
        assert!(event(r#"{"result": {}}"#, Some(&asked(What::Other)), &load).is_none());
        let torn = event(r#"{"id":7, "result": {"#, None, &load).expect("a failure");
        assert!(told(&torn).contains(NOT_JSON) && told(&torn).contains(r#""id":7"#));
    }
}
