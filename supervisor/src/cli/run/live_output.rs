//! Prints what a program writes to its standard output and standard error, while the program runs.

use std::io::IsTerminal;
use std::sync::Arc;

use lockhouse_engine::execution::{OutputFollower, OutputPart};
use lockhouse_protocol::Stream;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::cli::terminal::{for_stderr, for_stdout};

/// The thread that prints the output of one running program.
#[derive(Debug)]
pub(super) struct LiveOutput {
    printing: JoinHandle<()>,
    terminal: SharedTerminal,
}

impl LiveOutput {
    /// Starts to print the output that the returned follower receives. The channel has no bound of its own: it holds at
    /// most the output that the limits of the run permit.
    pub(super) fn start(terminal: SharedTerminal) -> (OutputFollower, Self) {
        let (follower, mut parts) = mpsc::unbounded_channel::<OutputPart>();
        let shared = terminal.clone();
        // On a thread of its own: a slow reader of the output must not delay the limits of the run.
        let printing = tokio::task::spawn_blocking(move || {
            while let Some(part) = parts.blocking_recv() {
                shared.print(&part);
            }
        });
        (follower, Self { printing, terminal })
    }

    /// Waits until all output of the run is printed. The run has ended, so its questions are closed.
    pub(super) async fn finish(self) {
        self.terminal.end_questions();
        let _ = self.printing.await;
    }
}

/// The terminal that the output of a program and the questions about its calls share. While a question is open, no
/// output is printed there: a program could otherwise print a false question below the real one.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedTerminal(Arc<TerminalInner>);

#[derive(Debug, Default)]
struct TerminalInner {
    questions: Mutex<Questions>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Questions {
    open: usize,
    /// Whether no more questions are asked on this terminal.
    have_ended: bool,
}

impl SharedTerminal {
    /// Holds back output from now on. Returns after output that is being printed is complete.
    pub(super) fn open_question(&self) {
        let mut questions = self.0.questions.lock();
        if !questions.have_ended {
            questions.open += 1;
        }
    }

    /// Prints output again if no other question is open.
    pub(super) fn close_question(&self) {
        let mut questions = self.0.questions.lock();
        questions.open = questions.open.saturating_sub(1);
        self.0.changed.notify_all();
    }

    /// Prints output again, and holds back no more.
    pub(super) fn end_questions(&self) {
        *self.0.questions.lock() = Questions { open: 0, have_ended: true };
        self.0.changed.notify_all();
    }

    /// Waits until no question is open. No question opens until the returned guard is dropped.
    fn wait_for_answers(&self) -> MutexGuard<'_, Questions> {
        let mut questions = self.0.questions.lock();
        self.0.changed.wait_while(&mut questions, |questions| questions.open > 0);
        questions
    }

    fn print(&self, OutputPart { stream, text }: &OutputPart) {
        match stream {
            Stream::Stdout => {
                let _turn = std::io::stdout().is_terminal().then(|| self.wait_for_answers());
                print!("{}", for_stdout(text));
            }
            Stream::Stderr => {
                let _turn = std::io::stderr().is_terminal().then(|| self.wait_for_answers());
                eprint!("{}", for_stderr(text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_waits_until_the_last_question_is_closed() {
        let (terminal, events) = (SharedTerminal::default(), Arc::new(Mutex::new(Vec::new())));
        drop(terminal.wait_for_answers());
        terminal.open_question();
        terminal.open_question();
        let (printing, printed) = (terminal.clone(), events.clone());
        let printer = std::thread::spawn(move || {
            let _turn = printing.wait_for_answers();
            printed.lock().push("output");
        });
        terminal.close_question();
        events.lock().push("one is closed");
        {
            let mut questions = terminal.0.questions.lock();
            events.lock().push("both are closed");
            questions.open -= 1;
            terminal.0.changed.notify_all();
        }
        printer.join().expect("no panic");
        assert_eq!(*events.lock(), ["one is closed", "both are closed", "output"]);
    }

    #[test]
    fn the_end_of_questions_releases_output_that_was_held_back() {
        let terminal = SharedTerminal::default();
        terminal.open_question();
        let printing = terminal.clone();
        let printer = std::thread::spawn(move || drop(printing.wait_for_answers()));
        terminal.end_questions();
        printer.join().expect("no panic");
        terminal.open_question();
        drop(terminal.wait_for_answers());
    }
}
