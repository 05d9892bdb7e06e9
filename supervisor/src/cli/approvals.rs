//! `lockhouse approvals`: shows the approval requests and questions of running code and sends the answers.

mod json;
pub(super) mod keyboard;
mod keys;
pub(super) mod password;
mod stdin_lines;
pub(super) mod supervisors;
pub(super) mod terminal_prompt;

use std::io::IsTerminal;
use std::process::ExitCode;

use lockhouse_messages::WatcherRole;
use tokio::sync::{mpsc, watch};

use super::USAGE;
use keyboard::Keyboard;
use stdin_lines::StdinLines;
use terminal_prompt::TerminalPrompt;

/// The capacity of the channel for messages from supervisors that are not displayed yet.
pub(super) const EVENTS_MAX: usize = 256;
/// The capacity of the channel for an approver's answers that are not sent to the supervisor yet.
pub(super) const ANSWERS_MAX: usize = 16;

/// Options of `lockhouse approvals`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    /// Exchange JSON lines on standard input and output, for programs that ask the user themselves
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Option<keys::Command>,
}

impl Arguments {
    /// Whether the command is about the keys with which people prove that they are there.
    pub(super) fn is_about_keys(&self) -> bool {
        self.command.is_some()
    }
}

/// Runs `lockhouse approvals`: shows the pending questions of every running supervisor of this user and sends the
/// answers, until Ctrl-C. Also connects to supervisors that start later.
pub(super) async fn approvals(arguments: Arguments) -> ExitCode {
    if let Some(command) = arguments.command {
        return keys::run(command).await;
    }
    let on_a_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !arguments.json && !on_a_terminal {
        eprintln!(
            "lockhouse: `approvals` needs a terminal to show questions and read answers; from a program, use --json"
        );
        return ExitCode::from(USAGE);
    }
    let (events, received_events) = mpsc::channel(EVENTS_MAX);
    let (answers, to_send) = mpsc::channel(ANSWERS_MAX);
    let role = watch::Sender::new(WatcherRole::Approver);
    let conversing = async {
        if arguments.json {
            json::converse(StdinLines::new(), received_events, answers, &role).await;
        } else {
            eprintln!("Waiting for approval requests and questions of running code. Press Ctrl-C to stop.");
            TerminalPrompt::new(Keyboard::new()).converse(received_events, answers).await;
        }
    };
    tokio::select! {
        () = conversing => {}
        () = supervisors::watch(events, to_send, role.subscribe()) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    ExitCode::SUCCESS
}
