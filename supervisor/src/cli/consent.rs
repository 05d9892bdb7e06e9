//! Whether a person agrees to what they were shown.

use std::io::{BufRead, IsTerminal, Write};

/// What is to be done after showing what would be done.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Consent {
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Do it without asking
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
}

impl Consent {
    /// Asks, where there is someone to ask. Without anyone, or with --dry-run, nothing is done.
    pub(super) fn given(self, question: &str) -> bool {
        if self.yes || self.dry_run {
            return self.yes;
        }
        if !std::io::stdin().is_terminal() {
            eprintln!(
                "lockhouse: nothing was written, since there is nobody to ask; run it again with --yes"
            );
            return false;
        }
        let yes = agrees(question);
        if !yes {
            eprintln!("lockhouse: nothing was written");
        }
        yes
    }
}

/// Asks the person at the terminal.
pub(super) fn agrees(question: &str) -> bool {
    eprint!("{question} [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    // An answer is a word: who sends more has sent no answer.
    let read = std::io::Read::take(std::io::stdin().lock(), 64).read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
