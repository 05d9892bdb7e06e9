//! Tests of the conversation, the state machine that checks the messages of a worker: each message in each phase, and
//! random conversations that are compared with a model.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod history;
mod phases;
mod rules;
mod steps;

use lockhouse_protocol::{
    Action, CallId, Conversation, ConversationLimits, ExceededLimit, FromWorker, Outcome, ServerName, Stream,
    ToolName, WorkerRequest,
};

const AMPLE: ConversationLimits =
    ConversationLimits { calls: 100, parallel_calls: 100, output_bytes: 100, frame_bytes: 1024 };

fn call() -> WorkerRequest {
    let (server, tool) = (ServerName::new("s").unwrap(), ToolName::new("t").unwrap());
    WorkerRequest::Call {
        server,
        tool,
        arguments: b"{}".to_vec(),
        decoded: Vec::new(),
        timeout_ms: None,
        line: None,
    }
}

fn request(id: u32, request: WorkerRequest) -> FromWorker {
    FromWorker::Request { call: CallId(id), request }
}

fn output(text: &str) -> FromWorker {
    FromWorker::Output { stream: Stream::Stdout, text: text.into() }
}

fn done() -> FromWorker {
    FromWorker::Done(Outcome::Value(None))
}

/// Returns a conversation in its first phase, in which the worker enters its sandbox.
fn sealing() -> Conversation {
    Conversation::new(AMPLE)
}

fn idle() -> Conversation {
    let mut conversation = sealing();
    assert_eq!(conversation.receive(FromWorker::Ready), Ok(Action::Verify));
    conversation
}

fn running(limits: ConversationLimits) -> Conversation {
    let mut conversation = Conversation::new(limits);
    assert_eq!(conversation.receive(FromWorker::Ready), Ok(Action::Verify));
    assert!(conversation.start_run(false));
    conversation
}

fn refused() -> Conversation {
    let mut conversation = sealing();
    let refused = FromWorker::Refused { reason: "no Landlock".into() };
    assert_eq!(conversation.receive(refused), Ok(Action::SealFailed("no Landlock".into())));
    conversation
}

fn finished() -> Conversation {
    let mut conversation = running(AMPLE);
    assert_eq!(conversation.receive(done()), Ok(Action::Finish(Outcome::Value(None))));
    conversation
}

fn resting() -> Conversation {
    let mut conversation = idle();
    assert!(conversation.start_run(true));
    assert_eq!(conversation.receive(done()), Ok(Action::Finish(Outcome::Value(None))));
    conversation
}

fn stopped() -> Conversation {
    let mut conversation = running(AMPLE);
    let much = output(&"x".repeat(101));
    assert_eq!(conversation.receive(much), Ok(Action::Stop(ExceededLimit::Output)));
    conversation
}

/// The name of a phase of the conversation, and a function that returns a conversation in this phase.
type Phase = (&'static str, fn() -> Conversation);

/// All phases of the conversation, each as its name and a function. `refused`, `finished` and `stopped` are
/// three ways to enter the final phase.
const PHASES: [Phase; 7] = [
    ("sealing", sealing),
    ("idle", idle),
    ("running", || running(AMPLE)),
    ("resting", resting),
    ("refused", refused),
    ("finished", finished),
    ("stopped", stopped),
];

/// Returns the expected action of the supervisor for a message in a phase, with the contents of the message unchanged.
/// Returns `None` if the phase does not permit the message.
fn expected_action(phase: &str, message: &FromWorker) -> Option<Action> {
    Some(match (phase, message.clone()) {
        ("sealing", FromWorker::Ready) => Action::Verify,
        ("sealing", FromWorker::Refused { reason }) => Action::SealFailed(reason),
        ("running" | "resting", FromWorker::Output { stream, text }) => Action::Append(stream, text),
        ("running" | "resting", FromWorker::Request { call, request }) => Action::Answer(call, request),
        ("running", FromWorker::Done(outcome)) => Action::Finish(outcome),
        _ => return None,
    })
}
