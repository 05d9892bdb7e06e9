//! JSON mode of `lockhouse approvals`: prints the messages of all supervisors as JSON lines, each with the
//! supervisor's process id, and reads answers in the same format.

use lockhouse_messages::{ApprovalEvent, ApproverAnswer, WatcherRole};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::stdin_lines::StdinLines;
use super::terminal_prompt::{ApproverReply, SupervisorEvent};
use crate::cli::output;

/// Version of the lines.
const VERSION: u32 = 1;

/// One line of standard input: an approver's answer, and the process id of the supervisor that asked the question.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerLine {
    supervisor: u32,
    answer: ApproverAnswer,
}

/// Prints the supervisors' messages and relays the approver's answers until standard output is closed. When
/// standard input ends, nobody can answer any more, and the command only observes.
pub(super) async fn converse(
    mut lines: StdinLines,
    mut events: mpsc::Receiver<SupervisorEvent>,
    replies: mpsc::Sender<ApproverReply>,
    role: &watch::Sender<WatcherRole>,
) {
    let mut input_is_open = true;
    while !output::is_closed() {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => println!("{}", event_to_json(event)),
                None => return,
            },
            line = lines.next(), if input_is_open => match line.as_deref().map(serde_json::from_str) {
                None => {
                    input_is_open = false;
                    role.send_replace(WatcherRole::Observer);
                }
                Some(Ok(AnswerLine { supervisor, answer })) => {
                    if replies.send(ApproverReply::answer(supervisor, answer)).await.is_err() {
                        return;
                    }
                }
                Some(Err(error)) => {
                    println!("{}", json!({"refused": {"id": null, "reason": format!("not a valid answer: {error}")}}));
                }
            },
        }
    }
}

fn event_to_json(SupervisorEvent { supervisor, message }: SupervisorEvent) -> Value {
    let mut line = match message {
        None => json!({"left": true}),
        Some(ApprovalEvent::Watching) => json!({"watching": VERSION}),
        Some(message) => json!(message),
    };
    line["supervisor"] = supervisor.into();
    line
}
