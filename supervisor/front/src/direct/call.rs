//! Follows one call of an AI client to a directly exposed server: forwards progress, log messages and questions until
//! the call ends.

use std::collections::BTreeMap;

use lockhouse_link::{Exchange, ExchangeStep};
use lockhouse_mcp::server::RequestContext;
use lockhouse_messages::{
    Answer, AskError, CallDigest, DirectTarget, Event, ForwardedNotification, Input, OpenQuestion, Question,
    Response,
};
use rmcp::model::{
    CustomNotification, ErrorData, InputRequiredResult, InputResponses, ProgressNotification,
    ProgressNotificationParam, ServerNotification,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::elicitation;
use crate::elicitation_queue::ElicitationQueue;

/// The error for an answer that resumes no call.
const NO_CALL: &str = "no request waits for this answer: it came too late, or twice, its requestState was changed, or the host that asked \
    the question has ended. The call may have been made: check its effects before you call again";
/// Prefix of the `requestState` of a call that Lockhouse suspended. Any other state belongs to the upstream server.
const STATE_PREFIX: &str = "lockhouse:";

/// The outcome of an AI client's call to a directly exposed upstream server.
pub(super) enum CallAnswer {
    Response(Response),
    /// A question to the user. The AI client asks it, and then repeats the request with the answer.
    InputRequired(InputRequiredResult),
    Error(ErrorData),
}

/// Returns the handle in the `requestState` of a call that Lockhouse suspended. `None` for any other state.
pub(super) fn suspended_call(state: &str) -> Option<&str> {
    state.strip_prefix(STATE_PREFIX)
}

/// Answers the questions of a suspended call with the answers that its AI client has sent. A question without an answer counts as
/// cancelled.
///
/// # Errors
/// The response, if the call cannot be resumed or has ended.
pub(super) async fn answer_questions(
    call: &mut Exchange,
    mut responses: InputResponses,
) -> Result<(), Response> {
    let questions = loop {
        match call.next().await {
            ExchangeStep::Event(Event::Questions(questions)) => break questions,
            ExchangeStep::Event(_) => {}
            ExchangeStep::Finished(Response::NotFound) => return Err(Response::Invalid(NO_CALL.to_owned())),
            ExchangeStep::Finished(response) => return Err(response),
        }
    };
    for OpenQuestion { key, question, .. } in questions {
        let answer = match responses.remove(&key) {
            None => Answer::Cancel,
            Some(message) if matches!(question, Question::Sampling(_)) => Answer::Accept(Some(message)),
            Some(answer) => elicitation::parse_answer(answer),
        };
        call.send(Input::Answer(key, Ok(answer)));
    }
    Ok(())
}

/// Returns the digest of a call, by which the engine knows that the AI client repeats it.
pub(super) fn digest(target: &DirectTarget, arguments: &Value) -> CallDigest {
    let mut call = json!([target, arguments]);
    call.sort_all_objects();
    Sha256::digest(call.to_string()).into()
}

/// Forwards the events of an AI client's call to a directly exposed upstream server until the call ends, or until questions to the
/// user suspend it.
pub(super) async fn follow_call(
    mut call: Exchange,
    (target, arguments): (&DirectTarget, &Value),
    context: &RequestContext,
    log_threshold: Option<u8>,
) -> CallAnswer {
    let mut questions = ElicitationQueue::new(&context.channel);
    // Those that the AI client is asked when the call is suspended.
    let mut input_requests = BTreeMap::new();
    loop {
        let event = tokio::select! {
            biased;
            answered = questions.next_answer(), if questions.has_active() => {
                call.send(Input::Answer(answered.key, answered.answer));
                continue;
            }
            step = call.next() => match step {
                ExchangeStep::Finished(response) => return CallAnswer::Response(response),
                ExchangeStep::Event(event) => event,
            },
            () = context.cancelled.cancelled() => return cancelled_answer(),
        };
        match event {
            Event::Question(OpenQuestion { key, question, .. }) if context.is_modern() => {
                match elicitation::to_input_request(question) {
                    Ok(request) => {
                        if input_requests.is_empty() {
                            call.send(Input::Suspend(digest(target, arguments)));
                        }
                        input_requests.insert(key, request);
                    }
                    Err(unasked) => call.send(Input::Answer(key, Err(unasked))),
                }
            }
            Event::Detached(Some(handle)) => {
                let state = format!("{STATE_PREFIX}{handle}");
                return CallAnswer::InputRequired(InputRequiredResult::new(
                    Some(input_requests),
                    Some(state),
                ));
            }
            Event::Detached(None) => {
                for key in std::mem::take(&mut input_requests).into_keys() {
                    call.send(Input::Answer(key, Err(AskError::Busy)));
                }
            }
            Event::Question(question) => questions.add(question),
            event => forward(event, context, log_threshold).await,
        }
    }
}

/// Returns the error for a cancelled request. It is a placeholder: a cancelled request has no answer.
fn cancelled_answer() -> CallAnswer {
    CallAnswer::Error(ErrorData::internal_error("cancelled", None))
}

/// Forwards progress notifications and log messages of an upstream server to the AI client. Progress notifications get
/// the progress token of the AI client's request. Log messages below the severity `log_threshold` are dropped, and all
/// of them if it is `None`.
async fn forward(event: Event, context: &RequestContext, log_threshold: Option<u8>) {
    match event {
        Event::Notification(ForwardedNotification::Progress(progress)) => {
            let progress = serde_json::from_value::<ProgressNotificationParam>(progress);
            if let (Ok(mut progress), Some(token)) = (progress, context.meta.get_progress_token()) {
                progress.progress_token = token;
                let notification = ProgressNotification::new(progress);
                context.notify(ServerNotification::ProgressNotification(notification)).await;
            }
        }
        Event::Notification(ForwardedNotification::Log(line)) => {
            if log_threshold.is_some_and(|threshold| severity(&line) >= threshold) {
                let notification = CustomNotification::new("notifications/message", Some(line));
                context.notify(ServerNotification::CustomNotification(notification)).await;
            }
        }
        // The others are not about direct calls, and `follow_call` handles questions.
        Event::Question(_)
        | Event::Questions(_)
        | Event::Following(_)
        | Event::View(_)
        | Event::Detached(_)
        | Event::ProgressMessage(_)
        | Event::Changed(_)
        | Event::Approval(_) => {}
    }
}

/// The severities of MCP log messages, in ascending order.
pub(crate) const SEVERITIES: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

fn severity(line: &Value) -> u8 {
    let level = line.get("level").and_then(Value::as_str);
    let number = SEVERITIES.iter().position(|severity| Some(*severity) == level);
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or_default()
}
