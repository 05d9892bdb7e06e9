//! What a server's messages become on their way to rmcp: results stay raw, except those that rmcp itself needs.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerResult,
};
use serde_json::value::RawValue;

use super::annotated;
use super::load::Load;
use crate::inbound::{self, Envelope, Inbound, NOT_JSON, Received, TYPED_BYTES_MAX, TYPED_NODES_MAX, failed};

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

    /// The body of an answer. Whatever it says of itself, it is the answer to this request.
    pub(super) fn answered(&self, body: &[u8], load: &Load) -> Received {
        let message = serde_json::from_slice::<Envelope<'_>>(body).ok();
        let Some(message) = message else { return self.failed(NOT_JSON) };
        let result = message.result.filter(|_| message.method.is_none());
        let received = match result.and_then(|result| self.converted(result, load)) {
            Some(result) => Ok(Received::response(result, self.id.clone())),
            None => inbound::typed(body, TYPED_BYTES_MAX, TYPED_NODES_MAX).1,
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

    /// What rmcp gets of a result, unless it needs it typed.
    fn converted(&self, result: &RawValue, load: &Load) -> Option<ServerResult> {
        match self.what {
            What::Initialize | What::Discover => None,
            What::Tools => Some(annotated::listed(result, load)),
            What::Other => Some(inbound::raw(result)),
        }
    }
}

/// The data of an event, and what it costs. `asked` is what the stream answers, if it does.
pub(super) fn event(data: &str, asked: Option<&Asked>, load: &Load) -> (usize, Inbound) {
    inbound::read(data.as_bytes(), |id, result| match asked.filter(|asked| asked.id == *id) {
        Some(asked) => asked.converted(result, load),
        None => Some(inbound::raw(result)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broken::Broken;

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
        let answer = |data: &str, asked: Option<&Asked>| match event(data, asked, &load).1 {
            Inbound::Answer(id, message) => format!("{id} {}", told(&message)),
            Inbound::Unsolicited(_) | Inbound::Violation(_) => "none".into(),
        };
        let other = answer(r#"{"id": 8, "result": {}}"#, Some(&asked(What::Tools)));
        assert!(other.starts_with("8 ") && other.contains(r#""id":8,"result":"{}""#), "{other}");
        assert_eq!(answer(r#"{"result": {}}"#, Some(&asked(What::Other))), "none");
        let torn = answer(r#"{"id":7, "result": {"#, None);
        assert!(torn.starts_with("7 ") && torn.contains(NOT_JSON), "{torn}");
    }
}
