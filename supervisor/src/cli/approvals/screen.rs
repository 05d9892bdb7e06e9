//! Questions on a terminal, one after the other.

use std::collections::VecDeque;

use lockhouse_gate::{Approval, Ask, FromSupervisor, PersonsAnswer, PersonsDecision};
use tokio::sync::mpsc;

use super::keyboard::Keyboard;
use crate::cli::terminal::harmless;

/// Something from a supervisor, known by its process; nothing when it has left.
#[derive(Debug)]
pub(in crate::cli) struct Event {
    pub(in crate::cli) supervisor: u32,
    pub(in crate::cli) message: Option<FromSupervisor>,
}

/// An answer to one.
#[derive(Debug)]
pub(in crate::cli) struct Reply {
    pub(in crate::cli) supervisor: u32,
    pub(in crate::cli) answer: PersonsAnswer,
}

/// The questions that wait, of which the first is shown.
#[derive(Debug)]
pub(in crate::cli) struct Screen {
    keyboard: Keyboard,
    open: VecDeque<(u32, Box<Ask>)>,
}

impl Screen {
    pub(in crate::cli) fn new(keyboard: Keyboard) -> Self {
        Self { keyboard, open: VecDeque::new() }
    }

    /// Until nothing more comes, or the person closes their input. It is read while a question is open and not otherwise: the
    /// terminal may be another program's too.
    pub(in crate::cli) async fn converse(
        mut self,
        mut events: mpsc::Receiver<Event>,
        replies: mpsc::Sender<Reply>,
    ) {
        while self.keyboard.is_there() {
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.take(event),
                    None => return,
                },
                line = self.keyboard.line(), if !self.open.is_empty() => {
                    let Some(line) = line else { return };
                    let Some((supervisor, ask)) = self.open.pop_front() else { continue };
                    let answer = answer(&ask, &line);
                    if replies.send(Reply { supervisor, answer }).await.is_err() {
                        return;
                    }
                    self.show();
                }
            }
        }
    }

    fn take(&mut self, Event { supervisor, message }: Event) {
        let is = |id: u64| move |(of, ask): &(u32, Box<Ask>)| *of == supervisor && ask.id == id;
        match message {
            Some(FromSupervisor::Ask(ask)) => {
                self.open.push_back((supervisor, ask));
                if self.open.len() == 1 {
                    self.show();
                }
            }
            Some(FromSupervisor::Gone(id)) => {
                if let Some(at) = self.open.iter().position(is(id)) {
                    self.leave(at);
                }
            }
            Some(FromSupervisor::Refused { reason, .. }) => {
                eprintln!("lockhouse: the answer was not taken: {}", harmless(&reason));
            }
            Some(FromSupervisor::Watching(_) | FromSupervisor::Taken(_)) => {}
            None => {
                while let Some(at) = self.open.iter().position(|(of, _)| *of == supervisor) {
                    self.leave(at);
                }
            }
        }
    }

    fn leave(&mut self, at: usize) {
        self.open.remove(at);
        if at == 0 {
            eprintln!(
                "\n(This question is over: it was answered elsewhere, its time was up, or its run has ended.)"
            );
            self.show();
        }
    }

    fn show(&mut self) {
        let Some((supervisor, ask)) = self.open.front() else { return };
        let by = ask.client.as_ref().map(|client| format!(", for {client}")).unwrap_or_default();
        let head = format!("── Lockhouse {supervisor}{by}, run {} ──", ask.execution);
        eprint!("{}", harmless(&format!("\n{head}\n{}{}", ask.text, ask.scopes_text)));
        // What was typed before somebody could read the question is no answer to it.
        self.keyboard.forget();
        eprint!("Approve? [{}] ", keys(ask));
    }
}

/// The keys that mean something, the capital one if nothing is typed.
fn keys(ask: &Ask) -> String {
    let key = |scope: &Approval| match scope {
        Approval::Once => "y=once/N=no",
        Approval::Execution => "e=execution",
        Approval::Always => "a=always",
    };
    ask.scopes.iter().map(key).collect::<Vec<_>>().join("/")
}

/// What is none of the keys declines.
fn answer(ask: &Ask, line: &str) -> PersonsAnswer {
    let scope = match line.to_lowercase().as_str() {
        "y" | "yes" | "once" => Some(Approval::Once),
        "e" | "execution" => Some(Approval::Execution),
        "a" | "always" => Some(Approval::Always),
        _ => None,
    };
    let (decision, scope) = match scope.filter(|scope| ask.scopes.contains(scope)) {
        Some(scope) => (PersonsDecision::Approve, scope),
        None => (PersonsDecision::Decline, Approval::Once),
    };
    PersonsAnswer { id: ask.id, digest: ask.digest.clone(), decision, scope }
}
