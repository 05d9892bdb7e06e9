//! Shows pending questions on a terminal, one at a time, and reads the approver's answers.

use std::collections::VecDeque;

use lockhouse_messages::{Approval, ApprovalEvent, ApprovalQuestion, ApproverAnswer, ApproverDecision};
use tokio::sync::mpsc;

use super::keyboard::Keyboard;
use crate::cli::terminal::{sanitize, sanitize_lines};

/// A message from the supervisor with the process id `supervisor`. `message` is `None` when the supervisor has
/// disconnected.
#[derive(Debug)]
pub(in crate::cli) struct SupervisorEvent {
    pub(in crate::cli) supervisor: u32,
    pub(in crate::cli) message: Option<ApprovalEvent>,
}

/// An approver's answer, with the process id of the supervisor that asked the question.
#[derive(Debug)]
pub(in crate::cli) struct ApproverReply {
    pub(in crate::cli) supervisor: u32,
    pub(in crate::cli) answer: ApproverAnswer,
}

/// The prompt on a terminal and its queue of pending questions. Only the first question of the queue is shown.
#[derive(Debug)]
pub(in crate::cli) struct TerminalPrompt {
    keyboard: Keyboard,
    pending: VecDeque<(u32, Box<ApprovalQuestion>)>,
}

impl TerminalPrompt {
    pub(in crate::cli) fn new(keyboard: Keyboard) -> Self {
        Self { keyboard, pending: VecDeque::new() }
    }

    /// Shows pending questions and sends the answers until `events` or the terminal's input is closed. The terminal is
    /// only read while a question is shown, because other programs may read from the terminal too.
    pub(in crate::cli) async fn converse(
        mut self,
        mut events: mpsc::Receiver<SupervisorEvent>,
        replies: mpsc::Sender<ApproverReply>,
    ) {
        while self.keyboard.is_readable() {
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.handle_event(event),
                    None => return,
                },
                line = self.keyboard.next_line(), if !self.pending.is_empty() => {
                    let Some(line) = line else { return };
                    let Some((supervisor, ask)) = self.pending.pop_front() else { continue };
                    let answer = parse_answer(&ask, &line);
                    if replies.send(ApproverReply { supervisor, answer }).await.is_err() {
                        return;
                    }
                    self.show_first();
                }
            }
        }
    }

    fn handle_event(&mut self, SupervisorEvent { supervisor, message }: SupervisorEvent) {
        let is =
            |id: u64| move |(owner, ask): &(u32, Box<ApprovalQuestion>)| *owner == supervisor && ask.id == id;
        match message {
            Some(ApprovalEvent::Ask(ask)) => {
                self.pending.push_back((supervisor, ask));
                if self.pending.len() == 1 {
                    self.show_first();
                }
            }
            Some(ApprovalEvent::Gone(id)) => {
                if let Some(at) = self.pending.iter().position(is(id)) {
                    self.remove_question(at);
                }
            }
            Some(ApprovalEvent::Refused { reason, .. }) => {
                eprintln!("lockhouse: the answer was not accepted: {}", sanitize(&reason));
            }
            Some(ApprovalEvent::Watching | ApprovalEvent::Taken(_)) => {}
            None => {
                while let Some(at) = self.pending.iter().position(|(owner, _)| *owner == supervisor) {
                    self.remove_question(at);
                }
            }
        }
    }

    fn remove_question(&mut self, at: usize) {
        self.pending.remove(at);
        if at == 0 {
            eprintln!(
                "\n(This question is closed: it was answered elsewhere, it timed out, or its run has ended.)"
            );
            self.show_first();
        }
    }

    fn show_first(&mut self) {
        let Some((supervisor, ask)) = self.pending.front() else { return };
        let by = ask.client.as_ref().map(|client| format!(", for {client}")).unwrap_or_default();
        let head = format!("── Lockhouse {supervisor}{by}, run {} ──", ask.execution);
        eprint!("{}", sanitize_lines(&format!("\n{head}\n{}{}", ask.text, ask.scopes_text)));
        // Input typed before the question was shown must not count as an answer to it.
        self.keyboard.discard_input();
        eprint!("Approve? [{}] ", choices(ask));
    }
}

/// Renders the answers that the question accepts, such as `y=once/N=no`. The capital letter marks the default.
fn choices(ask: &ApprovalQuestion) -> String {
    let key = |scope: &Approval| match scope {
        Approval::Once => "y=once/N=no",
        Approval::Execution => "e=execution",
        Approval::Always => "a=always",
    };
    ask.scopes.iter().map(key).collect::<Vec<_>>().join("/")
}

/// Parses the approver's typed answer. Any text that is not one of the approvals that the question offers counts as a
/// decline.
fn parse_answer(ask: &ApprovalQuestion, line: &str) -> ApproverAnswer {
    let scope = match line.to_lowercase().as_str() {
        "y" | "yes" | "once" => Some(Approval::Once),
        "e" | "execution" => Some(Approval::Execution),
        "a" | "always" => Some(Approval::Always),
        _ => None,
    };
    let (decision, scope) = match scope.filter(|scope| ask.scopes.contains(scope)) {
        Some(scope) => (ApproverDecision::Approve, scope),
        None => (ApproverDecision::Decline, Approval::Once),
    };
    ApproverAnswer { id: ask.id, digest: ask.digest.clone(), decision, scope }
}
