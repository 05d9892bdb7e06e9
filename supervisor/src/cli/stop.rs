//! `lockhouse stop`: ends the running Lockhouse processes of this user, or of all users.

use std::process::ExitCode;

use lockhouse_link::OperatorError;
use lockhouse_messages::{OperatorRequest, OperatorResponse};
use serde_json::Value;

use super::all_users;
use super::command_audit_log::CommandAuditLog;
use super::control_client::{request_one, request_reachable};
use super::process_stop::{Outcome, ProcessStop};
use super::{UNAVAILABLE, USAGE, print_error};
use lockhouse_config::Files;

/// Options of `lockhouse stop`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// End only the process with this id, as `lockhouse status` shows it [default: all]
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// End the processes of all users; for root only. Those that do not answer are ended with signals
    #[arg(long)]
    all_users: bool,
    /// Why, for the AI clients and the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `lockhouse stop`. The exit status is 0 if all processes end, and 7 if one does not, or none is running.
pub(super) async fn stop(files: &Files, arguments: &Arguments) -> ExitCode {
    let Arguments { pid, all_users, reason, json } = arguments;
    let stops = if *all_users {
        if let Err(error) = all_users::require_root() {
            return print_error(&error, USAGE);
        }
        // Processes that are ended with signals cannot record it. Ending them takes permissions away, so it needs no record.
        CommandAuditLog::warn(CommandAuditLog::open(files).and_then(|log| log.stop_all(reason.as_deref())));
        all_users::stop::stop(*pid, reason.as_deref()).await
    } else {
        stop_own(*pid, reason.as_deref()).await
    };
    if *json {
        println!("{:#}", stops.iter().map(ProcessStop::to_json).collect::<Value>());
    } else {
        stops.iter().for_each(ProcessStop::print);
    }
    match pid {
        Some(pid) if stops.is_empty() => {
            eprintln!("lockhouse: there is no Lockhouse process {pid}; `lockhouse status` lists them");
        }
        None if stops.is_empty() && !json => println!("No Lockhouse is running."),
        _ => {}
    }
    let is_ended = |stop: &ProcessStop| stop.failure().is_none();
    if !stops.is_empty() && stops.iter().all(is_ended) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(UNAVAILABLE)
    }
}

/// How often the processes of this user are asked: a thin process whose engine has ended may have started another one.
const ROUNDS: usize = 2;

/// Asks the processes of this user to stop, and ends the thin processes of a shared engine, when the engine has ended.
async fn stop_own(wanted: Option<u32>, reason: Option<&str>) -> Vec<ProcessStop> {
    let mut stops: Vec<ProcessStop> = Vec::new();
    for _ in 0..ROUNDS {
        let mut ending = Vec::new();
        for (pid, health) in request_reachable(&OperatorRequest::Health).await {
            let is_known = stops.iter().any(|stop| stop.pid == pid);
            if is_known || wanted.is_some_and(|wanted| wanted != pid) {
                continue;
            }
            let outcome = request_stop(pid, reason).await;
            if matches!(outcome, Outcome::Ending) {
                ending.push((pid, health));
            }
            stops.push(ProcessStop { pid, uid: None, outcome });
        }
        for (pid, health) in ending {
            let has_ended = all_users::stop::wait_ended(pid).await;
            if let Some(stop) = stops.iter_mut().find(|stop| stop.pid == pid && has_ended) {
                stop.outcome = Outcome::Ended;
            }
            if let Ok(OperatorResponse::Health(health)) = health {
                stops.extend(all_users::stop::end_clients(&health).await);
            }
        }
    }
    stops
}

async fn request_stop(pid: u32, reason: Option<&str>) -> Outcome {
    let request = OperatorRequest::Stop { reason: reason.map(str::to_owned) };
    match request_one(pid, &request).await {
        Ok(OperatorResponse::Stopping) => Outcome::Ending,
        Ok(OperatorResponse::Refused { reason }) | Err(OperatorError::Refused(reason)) => {
            Outcome::Refused(reason)
        }
        Ok(_) | Err(OperatorError::OtherVersion) => Outcome::UnknownRequest,
        Err(OperatorError::NoAnswer) => Outcome::NoAnswer,
    }
}
