//! `lockhouse approvals`: a person answers what running code asks for.

mod json;
pub(super) mod keyboard;
mod lines;
pub(super) mod screen;
mod supervisors;

use std::io::IsTerminal;
use std::process::ExitCode;

use tokio::sync::mpsc;

use super::USAGE;
use keyboard::Keyboard;
use lines::Lines;
use screen::Screen;

/// Messages of all supervisors that wait to be shown.
pub(super) const EVENTS_MAX: usize = 256;
/// Answers on their way.
pub(super) const ANSWERS_MAX: usize = 16;

/// How to speak.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// JSON lines on standard input and output, for a program that asks people itself
    #[arg(long)]
    json: bool,
}

/// Watches every supervisor of this user, and those that start meanwhile, until Ctrl-C.
pub(super) async fn approvals(arguments: &Arguments) -> ExitCode {
    let on_a_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !arguments.json && !on_a_terminal {
        eprintln!(
            "lockhouse: this needs a terminal, to show questions and read answers; programs use --json"
        );
        return ExitCode::from(USAGE);
    }
    let (events, shown) = mpsc::channel(EVENTS_MAX);
    let (answers, to_send) = mpsc::channel(ANSWERS_MAX);
    let conversing = async {
        if arguments.json {
            json::converse(Lines::new(), shown, answers).await;
        } else {
            eprintln!("Waiting for questions of running code; Ctrl-C ends this.");
            Screen::new(Keyboard::new()).converse(shown, answers).await;
        }
    };
    tokio::select! {
        () = conversing => {}
        () = supervisors::watch(events, to_send) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    ExitCode::SUCCESS
}
