//! Asks the user of a command to confirm a change that the command has shown.

use std::io::{BufRead, IsTerminal, Write};

/// The options `--dry-run` and `--yes` of commands that show a change before they make it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Confirmation {
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
}

impl Confirmation {
    /// Whether the command may ask a question that `--yes` does not answer: standard input is a terminal, and
    /// `--dry-run` was not given.
    pub(super) fn is_interactive(self) -> bool {
        !self.dry_run && std::io::stdin().is_terminal()
    }

    /// Whether the command may ask a question that has a default: standard input is a terminal, and neither `--yes` nor
    /// `--dry-run` was given.
    pub(super) fn asks(self) -> bool {
        !self.yes && self.is_interactive()
    }

    /// Whether `--dry-run` was given.
    pub(super) fn is_dry_run(self) -> bool {
        self.dry_run
    }

    /// Whether `--yes` was given.
    pub(super) fn is_yes(self) -> bool {
        self.yes
    }

    /// Returns whether the user confirms the change. Asks `question` on the terminal. With `--yes` the answer is true
    /// without a question; with `--dry-run`, or without a terminal, it is false.
    pub(super) fn confirm(self, question: &str) -> bool {
        if self.yes || self.dry_run {
            return self.yes;
        }
        if !std::io::stdin().is_terminal() {
            eprintln!("lockhouse: nothing was written: confirmation needs a terminal; use --yes to skip it");
            return false;
        }
        let yes = ask_yes_no(question);
        if !yes {
            eprintln!("lockhouse: nothing was written");
        }
        yes
    }
}

/// Asks a yes/no question on the terminal. Any answer other than `y` or `yes` means no.
pub(super) fn ask_yes_no(question: &str) -> bool {
    matches!(ask(&format!("{question} [y/N]")).trim().to_lowercase().as_str(), "y" | "yes")
}

/// Asks a yes/no question whose default is yes on the terminal. Any answer other than `n` or `no` means yes.
pub(super) fn ask_no_yes(question: &str) -> bool {
    !matches!(ask(&format!("{question} [Y/n]")).trim().to_lowercase().as_str(), "n" | "no")
}

/// The maximum length in bytes of an answer that is a single word.
const WORD_BYTES_MAX: u64 = 64;
/// The maximum length in bytes of an answer that is a list of words.
const WORDS_BYTES_MAX: u64 = 4096;

/// Asks a question on the terminal and returns the answer, a single word, which is empty if none can be read.
pub(super) fn ask(question: &str) -> String {
    ask_at_most(question, WORD_BYTES_MAX)
}

/// Asks for several words on the terminal, which are separated by spaces or commas.
pub(super) fn ask_words(question: &str) -> Vec<String> {
    let answer = ask_at_most(question, WORDS_BYTES_MAX);
    let words = answer.split([' ', ',', '\t', '\r', '\n']).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn ask_at_most(question: &str, bytes_max: u64) -> String {
    eprint!("{question} ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    let read = std::io::Read::take(std::io::stdin().lock(), bytes_max).read_line(&mut answer);
    read.map_or_else(|_| String::new(), |_| answer)
}
