//! Asks the user of a command to confirm a change that the command has shown.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use super::UNAVAILABLE;

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

    /// Returns the exit status of a command whose change was not confirmed: success after `--dry-run` and a no, and
    /// otherwise [`UNAVAILABLE`], because nobody could be asked and nobody wanted a preview alone.
    pub(super) fn unconfirmed(self) -> ExitCode {
        let could_answer = self.dry_run || std::io::stdin().is_terminal();
        if could_answer { ExitCode::SUCCESS } else { ExitCode::from(UNAVAILABLE) }
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
        let yes = ask_valid(&format!("{question} [y/n]"), |answer| parse_yes_no(answer, None));
        if !matches!(yes, Ok(true)) {
            eprintln!("lockhouse: nothing was written");
        }
        matches!(yes, Ok(true))
    }
}

/// A question on the terminal was not answered, because its input has ended (Ctrl-D).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing was written: the input ended before the question was answered")]
pub(super) struct NoAnswer;

/// The maximum length of an answer in bytes. A longer one is invalid.
const ANSWER_BYTES_MAX: usize = 4096;

/// Asks a yes/no question whose default is no on the terminal. Without an answer, returns false.
pub(super) fn ask_yes_no(question: &str) -> bool {
    let answer = ask_valid(&format!("{question} [y/N]"), |answer| parse_yes_no(answer, Some(false)));
    matches!(answer, Ok(true))
}

/// Asks a yes/no question whose default is yes on the terminal.
///
/// # Errors
/// [`NoAnswer`].
pub(super) fn ask_no_yes(question: &str) -> Result<bool, NoAnswer> {
    ask_valid(&format!("{question} [Y/n]"), |answer| parse_yes_no(answer, Some(true)))
}

/// Asks a question on the terminal until the answer is valid. `parse` receives a line without whitespace around it, and
/// returns why it is invalid.
///
/// # Errors
/// [`NoAnswer`].
pub(super) fn ask_valid<T, E: std::fmt::Display>(
    question: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, NoAnswer> {
    loop {
        eprint!("{question} ");
        let _ = std::io::stderr().flush();
        let line = read_line(&mut std::io::stdin().lock()).ok_or(NoAnswer)?;
        match parse(line.trim()) {
            Ok(answer) => return Ok(answer),
            Err(fault) => eprintln!("{fault}"),
        }
    }
}

/// Splits an answer into words, which are separated by spaces or commas.
pub(super) fn words(answer: &str) -> Vec<&str> {
    answer.split([' ', ',', '\t']).filter(|word| !word.is_empty()).collect()
}

fn parse_yes_no(answer: &str, default: Option<bool>) -> Result<bool, &'static str> {
    match (answer.to_lowercase().as_str(), default) {
        ("", Some(default)) => Ok(default),
        ("y" | "yes", _) => Ok(true),
        ("n" | "no", _) => Ok(false),
        _ => Err("answer y or n"),
    }
}

/// Reads a whole line; of a line that is too long, more than [`ANSWER_BYTES_MAX`] bytes, so that it is not valid. `None`
/// at the end of the input.
fn read_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    loop {
        let part = input.fill_buf().ok()?;
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(part.len(), |end| end + 1);
        if taken == 0 {
            return None;
        }
        if line.len() <= ANSWER_BYTES_MAX {
            line.extend_from_slice(&part[..taken]);
        }
        input.consume(taken);
        if end.is_some() {
            break;
        }
    }
    let is_valid = line.len() <= ANSWER_BYTES_MAX;
    Some(if is_valid { String::from_utf8_lossy(&line).into_owned() } else { "\u{fffd}".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_and_no_answer_a_question() {
        for (answer, default, expected) in [
            ("y", None, Some(true)),
            ("YES", Some(false), Some(true)),
            ("n", Some(true), Some(false)),
            ("no", None, Some(false)),
            ("", Some(true), Some(true)),
            ("", Some(false), Some(false)),
            ("", None, None),
            ("maybe", Some(true), None),
            ("yess", Some(false), None),
            ("ye", Some(true), None),
        ] {
            assert_eq!(parse_yes_no(answer, default).ok(), expected, "{answer:?} {default:?}");
        }
    }

    #[test]
    fn a_line_is_one_answer_whatever_its_length() {
        let long = "y".repeat(ANSWER_BYTES_MAX + 10_000);
        let typed = format!("yes\n\n{long}\nno\ny");
        // A small buffer splits lines.
        let mut input = std::io::BufReader::with_capacity(7, typed.as_bytes());
        let lines: Vec<String> = std::iter::from_fn(|| read_line(&mut input)).collect();
        assert_eq!(lines, ["yes\n", "\n", "\u{fffd}", "no\n"]);
    }
}
