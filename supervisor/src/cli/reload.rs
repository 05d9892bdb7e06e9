//! `lockhouse reload`: reloads the configuration in the running Lockhouse processes of this user.

use std::process::ExitCode;

use lockhouse_messages::{OperatorRequest, OperatorResponse};
use serde_json::Value;

use super::all_users;
use super::control_client::{request_one, request_reachable};
use super::process_reload::{Outcome, ProcessReload};
use super::{UNAVAILABLE, USAGE, print_error};

/// Options of `lockhouse reload`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Reload only in the process with this id, as `lockhouse status` shows it [default: all]
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Reload in the processes of all users; for root only
    #[arg(long)]
    all_users: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `lockhouse reload`. The exit status is 0 if the files as they are now are in force in all processes, 2 if a
/// process refused them, and 7 if a process did not reload for another reason, or none is running.
pub(super) async fn reload(arguments: &Arguments) -> ExitCode {
    let reloads = match arguments.all_users {
        true => match all_users::require_root() {
            Ok(()) => all_users::reload::reload(arguments.pid).await,
            Err(error) => return print_error(&error, USAGE),
        },
        false => reload_selected(arguments.pid).await,
    };
    if arguments.json {
        println!("{:#}", reloads.iter().map(ProcessReload::to_json).collect::<Value>());
    } else {
        reloads.iter().for_each(ProcessReload::print);
    }
    match arguments.pid {
        Some(pid) if reloads.is_empty() => {
            eprintln!(
                "lockhouse: process {pid} is no `lockhouse serve` of this user; `lockhouse status` lists them"
            );
        }
        None if reloads.is_empty() && !arguments.json => println!("No Lockhouse is running."),
        _ => {}
    }
    exit_status(&reloads)
}

/// Reloads the configuration in all Lockhouse processes of this user, and returns the outcome of each as JSON.
pub(super) async fn reload_all() -> Vec<Value> {
    reload_selected(None).await.iter().map(ProcessReload::to_json).collect()
}

/// Reloads the configuration in all Lockhouse processes of this user after a command has changed it, and prints what each
/// reports.
pub(super) async fn reload_all_and_print() {
    reload_selected(None).await.iter().for_each(ProcessReload::print);
}

/// Reloads the configuration in the process with this id, or in all.
async fn reload_selected(wanted: Option<u32>) -> Vec<ProcessReload> {
    let mut reloads = Vec::new();
    // The health comes first: `lockhouse run` has a control socket too, but reads its configuration only once.
    for (pid, health) in request_reachable(&OperatorRequest::Health).await {
        if wanted.is_some_and(|wanted| wanted != pid) {
            continue;
        }
        let (version, serving) = match &health {
            Ok(OperatorResponse::Health(health)) => (health["version"].as_str(), health["serving"] == true),
            Ok(_) => (None, true),
            Err(error) => {
                reloads.push(ProcessReload { pid, uid: None, version: None, outcome: error.clone().into() });
                continue;
            }
        };
        let (version, outcome) = (version.map(str::to_owned), reload_process(pid).await);
        // A process that does not serve yet, but will, answers the request.
        if !serving && !matches!(outcome, Outcome::Answered(_)) {
            continue;
        }
        reloads.push(ProcessReload { pid, uid: None, version, outcome });
    }
    reloads
}

async fn reload_process(pid: u32) -> Outcome {
    match request_one(pid, &OperatorRequest::Reload).await {
        Ok(OperatorResponse::Reloaded(report)) => Outcome::Answered(report),
        Ok(OperatorResponse::Refused { reason }) => Outcome::Refused(reason),
        Ok(_) => Outcome::UnknownRequest,
        Err(error) => error.into(),
    }
}

fn exit_status(reloads: &[ProcessReload]) -> ExitCode {
    let is_in_force =
        |reload: &ProcessReload| matches!(&reload.outcome, Outcome::Answered(report) if report.in_force);
    let is_invalid =
        |reload: &ProcessReload| matches!(&reload.outcome, Outcome::Answered(report) if !report.in_force);
    if reloads.iter().any(is_invalid) {
        ExitCode::from(USAGE)
    } else if !reloads.is_empty() && reloads.iter().all(is_in_force) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(UNAVAILABLE)
    }
}
