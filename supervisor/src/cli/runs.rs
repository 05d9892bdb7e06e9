//! `lockhouse runs`: what runs now, in every Lockhouse of this user.

use std::process::ExitCode;

use lockhouse_engine::control::{Order, Told, VERSION};
use lockhouse_engine::executions::ListedRun;
use lockhouse_policies::printable;

use super::orders::{self, Meant, meant};
use super::table;

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
        /// Its id, or the beginning of it
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

async fn open() -> Vec<(u32, ListedRun)> {
    let mut runs = Vec::new();
    for (pid, told) in orders::ask_all(&Order::ListRuns(VERSION)).await {
        if let Told::Runs(listed) = told {
            runs.extend(listed.into_iter().map(|run| (pid, run)));
        }
    }
    runs
}

async fn list(as_json: bool) -> ExitCode {
    let runs = open().await;
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
    let Some(wanted) = execution else { return end_all().await };
    let runs = open().await;
    let id = |(_, run): &(u32, ListedRun)| run.execution.clone();
    let (pid, run) = match meant(&runs, &wanted.to_lowercase(), id) {
        Meant::One(one) => one,
        Meant::None => return none_of(&wanted),
        Meant::Several(several) => {
            let ids: Vec<String> = several.into_iter().map(|(_, run)| run.execution).collect();
            eprintln!("lockhouse: several executions begin so, and none was ended: {}", ids.join(", "));
            return ExitCode::FAILURE;
        }
    };
    match orders::ask_one(pid, &Order::EndRun(run.execution)).await {
        Some(Told::EndedRuns(ended)) if orders::tell_ended(pid, &ended) > 0 => ExitCode::SUCCESS,
        _ => none_of(&wanted),
    }
}

fn none_of(execution: &str) -> ExitCode {
    let execution = printable(execution);
    eprintln!("lockhouse: no execution {execution} runs; `lockhouse runs list` shows those that do");
    ExitCode::FAILURE
}

async fn end_all() -> ExitCode {
    for (pid, told) in orders::ask_all(&Order::EndRuns(VERSION)).await {
        if let Told::EndedRuns(ended) = told {
            orders::tell_ended(pid, &ended);
        }
    }
    ExitCode::SUCCESS
}
