//! The conversation with a worker: every message in every phase, and any conversation against a model of it.
#![allow(missing_docs, clippy::unwrap_used)]

mod history;
mod phases;
mod rules;
mod steps;

use lockhouse_protocol::{
    Action, CallId, Conversation, ConversationLimits, ExceededLimit, FromWorker, Outcome, Request,
    ServerName, Stream, ToolName,
};

const AMPLE: ConversationLimits =
    ConversationLimits { calls: 100, parallel_calls: 100, output_bytes: 100, frame_bytes: 1024 };

fn call() -> Request {
    let (server, tool) = (ServerName::new("s").unwrap(), ToolName::new("t").unwrap());
    Request::Call { server, tool, arguments: b"{}".to_vec(), timeout_ms: None, line: None }
}

fn request(id: u32, request: Request) -> FromWorker {
    FromWorker::Request { call: CallId(id), request }
}

fn output(text: &str) -> FromWorker {
    FromWorker::Output { stream: Stream::Stdout, text: text.into() }
}

fn done() -> FromWorker {
    FromWorker::Done(Outcome::Value(None))
}

/// A conversation that has come so far.
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
    assert!(conversation.run(false));
    conversation
}

fn refused() -> Conversation {
    let mut conversation = sealing();
    let refused = FromWorker::Refused { reason: "no Landlock".into() };
    assert_eq!(conversation.receive(refused), Ok(Action::GiveUp("no Landlock".into())));
    conversation
}

fn finished() -> Conversation {
    let mut conversation = running(AMPLE);
    assert_eq!(conversation.receive(done()), Ok(Action::Finish(Outcome::Value(None))));
    conversation
}

fn resting() -> Conversation {
    let mut conversation = idle();
    assert!(conversation.run(true));
    assert_eq!(conversation.receive(done()), Ok(Action::Finish(Outcome::Value(None))));
    conversation
}

fn stopped() -> Conversation {
    let mut conversation = running(AMPLE);
    let much = output(&"x".repeat(101));
    assert_eq!(conversation.receive(much), Ok(Action::Stop(ExceededLimit::Output)));
    conversation
}

/// How a conversation comes to a phase.
type Beginning = (&'static str, fn() -> Conversation);

/// Every phase, and every way into the last one.
const PHASES: [Beginning; 7] = [
    ("sealing", sealing),
    ("idle", idle),
    ("running", || running(AMPLE)),
    ("resting", resting),
    ("refused", refused),
    ("finished", finished),
    ("stopped", stopped),
];

/// What a message means where it is in its place. It carries on what the message said, unchanged.
fn in_place(phase: &str, message: &FromWorker) -> Option<Action> {
    Some(match (phase, message.clone()) {
        ("sealing", FromWorker::Ready) => Action::Verify,
        ("sealing", FromWorker::Refused { reason }) => Action::GiveUp(reason),
        ("running" | "resting", FromWorker::Output { stream, text }) => Action::Append(stream, text),
        ("running" | "resting", FromWorker::Request { call, request }) => Action::Answer(call, request),
        ("running", FromWorker::Done(outcome)) => Action::Finish(outcome),
        _ => return None,
    })
}
