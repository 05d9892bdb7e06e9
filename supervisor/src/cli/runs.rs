//! `lockhouse runs`: lists and ends running code in all Lockhouse processes of this user.

use std::process::ExitCode;

use lockhouse_messages::{EndedRuns, OperatorRequest, OperatorResponse, RunListing};
use lockhouse_policies::printable;

use super::control_client;
use super::id_prefix::{Match, find_by_prefix, list_candidates};
use super::table;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the runs that are waiting or running
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// End a run: its worker is stopped, and the AI client receives the output so far and a note that the user ended
    /// the run
    #[command(arg_required_else_help = true)]
    End {
        /// The id of the run, or a prefix of it
        #[arg(required_unless_present = "all")]
        execution: Option<String>,
        /// End all runs
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

async fn running() -> Vec<(u32, RunListing)> {
    let mut runs = Vec::new();
    for (pid, answer) in control_client::request_all(&OperatorRequest::ListRuns).await {
        if let OperatorResponse::Runs(listed) = answer {
            runs.extend(listed.into_iter().map(|run| (pid, run)));
        }
    }
    runs
}

async fn list(as_json: bool) -> ExitCode {
    let runs = running().await;
    let of_others = control_client::elsewhere(|activity| activity.runs).await;
    if as_json {
        let mut all = control_client::to_json(&runs);
        control_client::add_elsewhere(&mut all, of_others);
        println!("{all:#}");
    } else if runs.is_empty() && of_others.is_empty() {
        println!("No code is running.");
    } else {
        let own = runs.iter().map(|(pid, run)| row(run, pid.to_string()));
        let others = of_others.iter().map(|(host, run)| row(run, format!("on {host}")));
        let head = ["execution", "client", "language", "session", "state", "age", "lockhouse"];
        println!("{}", table::render(&head, &own.chain(others).collect::<Vec<_>>()));
    }
    ExitCode::SUCCESS
}

/// Returns a row of the list. `process` says where the run is.
fn row(run: &RunListing, process: String) -> Vec<String> {
    let RunListing { execution, client, language, session, state, waiting_for, waiting_s, age_s, .. } = run;
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
        process,
    ]
}

async fn end(execution: Option<String>) -> ExitCode {
    let Some(requested) = execution else { return end_all().await };
    let runs = running().await;
    let id = |(_, run): &(u32, RunListing)| run.execution.clone();
    let (pid, run) = match find_by_prefix(&runs, &requested.to_lowercase(), id) {
        Match::One(one) => one,
        Match::None => return not_found(&requested),
        Match::Ambiguous(several) => {
            let ids: Vec<String> = several.into_iter().map(|(_, run)| run.execution).collect();
            eprintln!("lockhouse: several runs match, and none was ended: {}", list_candidates(&ids));
            return ExitCode::FAILURE;
        }
    };
    let request = OperatorRequest::EndRuns(EndedRuns::One(run.execution));
    match control_client::request_one(pid, &request).await {
        Ok(OperatorResponse::EndedRuns(ended)) if control_client::print_ended(pid, &ended) > 0 => {
            ExitCode::SUCCESS
        }
        _ => not_found(&requested),
    }
}

fn not_found(execution: &str) -> ExitCode {
    let execution = printable(execution);
    eprintln!("lockhouse: there is no run {execution}; `lockhouse runs list` lists the runs");
    ExitCode::FAILURE
}

async fn end_all() -> ExitCode {
    for (pid, answer) in control_client::request_all(&OperatorRequest::EndRuns(EndedRuns::All)).await {
        if let OperatorResponse::EndedRuns(ended) = answer {
            control_client::print_ended(pid, &ended);
        }
    }
    ExitCode::SUCCESS
}
