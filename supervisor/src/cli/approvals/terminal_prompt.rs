//! Shows pending questions on a terminal, one at a time, and reads the approver's answers.

use std::collections::VecDeque;

use lockhouse_messages::{
    Approval, ApprovalEvent, ApprovalInput, ApprovalQuestion, ApproverAnswer, ApproverDecision, Presence,
};
use nix::unistd::geteuid;
use tokio::sync::mpsc;

use super::keyboard::Keyboard;
use super::password::{self, PasswordSubject};
use crate::cli::terminal::{sanitize, sanitize_lines};

/// A message from the supervisor with the process id `supervisor`. `message` is `None` when the supervisor has
/// disconnected.
#[derive(Debug)]
pub(in crate::cli) struct SupervisorEvent {
    pub(in crate::cli) supervisor: u32,
    pub(in crate::cli) message: Option<ApprovalEvent>,
}

/// An approver's message about a question, such as the answer, with the process id of the supervisor that asked it.
#[derive(Debug)]
pub(in crate::cli) struct ApproverReply {
    pub(in crate::cli) supervisor: u32,
    /// The number of the question.
    pub(in crate::cli) question: u64,
    pub(in crate::cli) input: ApprovalInput,
}

impl ApproverReply {
    pub(in crate::cli) fn answer(supervisor: u32, answer: ApproverAnswer) -> Self {
        Self { supervisor, question: answer.id, input: ApprovalInput::Answer(answer) }
    }
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
                    match prove(supervisor, &ask, &answer).await {
                        Proof::NotNeeded => {
                            if replies.send(ApproverReply::answer(supervisor, answer)).await.is_err() {
                                return;
                            }
                        }
                        Proof::Sent => {}
                        Proof::Missing => self.pending.push_front((supervisor, ask)),
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
            Some(ApprovalEvent::Watching | ApprovalEvent::Taken(_) | ApprovalEvent::Challenge { .. }) => {}
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

/// Whether an answer can be sent.
enum Proof {
    /// The answer needs no proof that a person is there, or this process is of root.
    NotNeeded,
    /// The question was approved with a password.
    Sent,
    /// The person gave no proof.
    Missing,
}

/// Lets a person prove that they are there, if the answer approves and the question requires it.
async fn prove(supervisor: u32, ask: &ApprovalQuestion, answer: &ApproverAnswer) -> Proof {
    let is_password = match ask.presence {
        _ if answer.decision == ApproverDecision::Decline => return Proof::NotNeeded,
        Presence::None => return Proof::NotNeeded,
        Presence::Password if geteuid().is_root() => return Proof::NotNeeded,
        presence => presence == Presence::Password,
    };
    if !is_password {
        eprintln!(
            "An approval needs a registered key: approve on the page that `lockhouse page` opens, or decline here."
        );
        return Proof::Missing;
    }
    let subject = PasswordSubject::Calls { process: supervisor, question: ask, scope: answer.scope };
    match password::approve_on_terminal(subject).await {
        Ok(()) => Proof::Sent,
        Err(error) => {
            eprintln!("lockhouse: {}", sanitize(&error.to_string()));
            Proof::Missing
        }
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

/// Parses the approver's typed answer. `break glass REASON` approves alone what requires more people. Any text that is not one of the approvals that the question offers counts as a
/// decline.
fn parse_answer(ask: &ApprovalQuestion, line: &str) -> ApproverAnswer {
    if let Some(reason) = line.strip_prefix("break glass ") {
        let (decision, scope) = (ApproverDecision::Approve, Approval::Once);
        let (id, digest, break_glass) = (ask.id, ask.digest.clone(), Some(reason.trim().to_owned()));
        return ApproverAnswer { id, digest, decision, scope, proof: None, break_glass, token: None };
    }
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
    let (id, digest) = (ask.id, ask.digest.clone());
    ApproverAnswer { id, digest, decision, scope, proof: None, break_glass: None, token: None }
}
