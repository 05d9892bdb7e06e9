//! The large values in messages. A link sends them beside the message, as bytes: JSON would escape them, and a long value
//! would delay other messages.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::{
    DirectReply, FinishedRun, McpSessionRequest, OperatorResponse, Request, Response, SessionMessage,
    ToEngine, ToFront,
};

/// A body that is missing, or whose bytes are not of the type of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidBody;

/// A large value in a message.
pub enum LargeValue<'m> {
    Text(&'m mut String),
    Json(&'m mut Box<RawValue>),
    Bytes(&'m mut Vec<u8>),
}

/// A message that may have large values.
pub trait Bodies {
    /// Returns the large values of the message, in a fixed order. Their number depends only on the rest of the message.
    fn large_values(&mut self) -> Vec<LargeValue<'_>>;

    /// Takes the large values out of the message, and leaves empty ones.
    fn take_bodies(&mut self) -> Vec<Vec<u8>> {
        self.large_values().into_iter().map(LargeValue::take).collect()
    }

    /// Puts the large values back into the message.
    ///
    /// # Errors
    /// There are more or fewer bodies than the message has large values, or one has the wrong type.
    fn put_bodies(&mut self, bodies: Vec<Vec<u8>>) -> Result<(), InvalidBody> {
        let values = self.large_values();
        if values.len() != bodies.len() {
            return Err(InvalidBody);
        }
        values.into_iter().zip(bodies).try_for_each(|(value, body)| value.put(body))
    }
}

impl LargeValue<'_> {
    fn take(self) -> Vec<u8> {
        match self {
            Self::Text(text) => std::mem::take(text).into_bytes(),
            Self::Json(json) => {
                let text: Box<str> = std::mem::replace(json, RawValue::NULL.to_owned()).into();
                text.into_string().into_bytes()
            }
            Self::Bytes(bytes) => std::mem::take(bytes),
        }
    }

    fn put(self, body: Vec<u8>) -> Result<(), InvalidBody> {
        match self {
            Self::Text(text) => *text = String::from_utf8(body).map_err(|_| InvalidBody)?,
            Self::Json(json) => {
                let text = String::from_utf8(body).map_err(|_| InvalidBody)?;
                *json = RawValue::from_string(text).map_err(|_| InvalidBody)?;
            }
            Self::Bytes(bytes) => *bytes = body,
        }
        Ok(())
    }
}

impl Bodies for ToEngine {
    fn large_values(&mut self) -> Vec<LargeValue<'_>> {
        match self {
            Self::Request(_, _, request) => of_request(request),
            Self::Input(..)
            | Self::Credit(..)
            | Self::Close(_)
            | Self::Listening
            | Self::InFlight { .. }
            | Self::McpSessionEnded(_)
            | Self::ConnectionClosed(_)
            | Self::Counters(_)
            | Self::BeginSpan(..)
            | Self::EndSpan(..)
            | Self::Goodbye => Vec::new(),
        }
    }
}

fn of_request(request: &mut Request) -> Vec<LargeValue<'_>> {
    match request {
        Request::RunCode(run) => vec![LargeValue::Text(&mut run.code)],
        Request::Call(call) => vec![LargeValue::Text(&mut call.arguments)],
        Request::McpSession(McpSessionRequest::Deliver { message, .. }) => vec![LargeValue::Text(message)],
        Request::FollowRun(_)
        | Request::ResumeCall(_)
        | Request::McpSession(_)
        | Request::Search(_)
        | Request::DescribeCatalogue
        | Request::GetResult { .. }
        | Request::ReadFile { .. }
        | Request::List(_)
        | Request::FollowChanges
        | Request::Health
        | Request::ServiceHealth
        | Request::Authenticate(_)
        | Request::Readiness
        | Request::SharedState
        | Request::Operator(_)
        | Request::WatchApprovals(_)
        | Request::UserLogin(_)
        | Request::Metrics => Vec::new(),
    }
}

impl Bodies for ToFront {
    fn large_values(&mut self) -> Vec<LargeValue<'_>> {
        match self {
            Self::Response(_, response) => of_response(response),
            Self::SessionMessage(SessionMessage { message, .. }) => vec![LargeValue::Text(message)],
            Self::Event(..)
            | Self::Begun(_)
            | Self::Settings(_)
            | Self::Lifecycle(_)
            | Self::AccessEnded { .. } => Vec::new(),
        }
    }
}

fn of_response(response: &mut Response) -> Vec<LargeValue<'_>> {
    match response {
        // A run that further requests follow is cloned.
        Response::Run(run) => of_run(Arc::make_mut(run)),
        Response::Call(_, DirectReply::Result(result)) => vec![LargeValue::Text(result)],
        Response::File(file) => vec![LargeValue::Bytes(&mut file.content)],
        Response::Operator(OperatorResponse::ResultPart { text, .. }) => vec![LargeValue::Text(text)],
        Response::Operator(OperatorResponse::FilePart { content, .. }) => vec![LargeValue::Bytes(content)],
        Response::Call(_, DirectReply::Error(_) | DirectReply::Failure(_))
        | Response::Json(_)
        | Response::Entries(_)
        | Response::Reasons(_)
        | Response::Text(_)
        | Response::Access(_)
        | Response::Operator(_)
        | Response::Refused(_)
        | Response::NotFound
        | Response::Invalid(_)
        | Response::Error(_)
        | Response::EngineFailed
        | Response::DeadlineExceeded
        | Response::Unavailable(_) => Vec::new(),
    }
}

fn of_run(run: &mut FinishedRun) -> Vec<LargeValue<'_>> {
    let FinishedRun { answer, files, .. } = run;
    let texts = [&mut answer.stdout.text, &mut answer.stderr.text];
    let value = answer.value.as_mut().map(|value| LargeValue::Json(&mut value.json));
    let contents = files.iter_mut().filter_map(|file| file.content.as_mut());
    value.into_iter().chain(texts.map(LargeValue::Text)).chain(contents.map(LargeValue::Bytes)).collect()
}
