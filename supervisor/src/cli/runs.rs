//! `lockhouse runs`: what runs now, in every Lockhouse of this user.

use std::process::ExitCode;

use super::{orders, table};
use crate::control::{Order, Told, VERSION};
use crate::executions::ListedRun;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the executions that are not over
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// End an execution: its worker is stopped, and its AI client gets an answer with what it printed, which says that a person
    /// ended it
    #[command(arg_required_else_help = true)]
    End {
        /// Its id
        #[arg(required_unless_present = "all")]
        execution: Option<String>,
        /// All of them
        #[arg(long, conflicts_with = "execution")]
        all: bool,
    },
}

pub(super) async fn runs(command: Command) -> ExitCode {
    match command {
        Command::List { json } => list(json).await,
        Command::End { execution, .. } => end(execution).await,
    }
}

async fn list(as_json: bool) -> ExitCode {
    let mut runs: Vec<(u32, ListedRun)> = Vec::new();
    for (pid, told) in orders::ask_all(&Order::ListRuns(VERSION)).await {
        if let Told::Runs(listed) = told {
            runs.extend(listed.into_iter().map(|run| (pid, run)));
        }
    }
    if as_json {
        println!("{:#}", orders::to_json(&runs));
    } else if runs.is_empty() {
        println!("Nothing runs.");
    } else {
        let row = |(pid, run): &(u32, ListedRun)| {
            let ListedRun { execution, client, language, session, state, waiting_for, waiting_s, age_s } =
                run;
            let state = match (waiting_for, waiting_s) {
                (Some(about), Some(seconds)) => format!("{state}: {about}, {seconds:.0} s"),
                _ => state.clone(),
            };
            let or_none = |word: &Option<String>| word.clone().unwrap_or_else(|| "-".into());
            vec![
                execution.clone(),
                or_none(client),
                language.clone(),
                or_none(session),
                state,
                format!("{age_s:.1} s"),
                pid.to_string(),
            ]
        };
        let head = ["execution", "client", "language", "session", "state", "age", "lockhouse"];
        println!("{}", table::render(&head, &runs.iter().map(row).collect::<Vec<_>>()));
    }
    ExitCode::SUCCESS
}

async fn end(execution: Option<String>) -> ExitCode {
    let order = match &execution {
        None => Order::EndRuns(VERSION),
        Some(execution) => Order::EndRun(execution.clone()),
    };
    let mut count = 0;
    for (pid, told) in orders::ask_all(&order).await {
        if let Told::EndedRuns(ended) = told {
            count += orders::tell_ended(pid, &ended);
        }
    }
    match execution {
        Some(execution) if count == 0 => {
            eprintln!("lockhouse: no execution {execution} runs; `lockhouse runs list` shows those that do");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
