//! `lockhouse stop --all-users`: ends the Lockhouse processes of all accounts. A process that answers ends its runs with
//! the reason; one that does not end is ended with signals.

use futures_util::future::join_all;
use lockhouse_messages::{OperatorRequest, OperatorResponse};
use serde_json::Value;

use super::ending::{ANSWERED_TIMEOUT, Ending, ProcessHandle};
use super::processes;
use super::{State, UserProcess, find};
use crate::cli::process_stop::{Outcome, ProcessStop};

/// How often the processes are looked for: a front whose engine has ended may have started another one.
const ROUNDS: usize = 2;

/// Ends all processes, or the one with this id. The parts of a process end after it, since they pass its last answers on.
pub(in crate::cli) async fn stop(wanted: Option<u32>, reason: Option<&str>) -> Vec<ProcessStop> {
    let mut stops: Vec<ProcessStop> = Vec::new();
    for _ in 0..ROUNDS {
        let is_wanted = |process: &UserProcess| {
            wanted.is_none_or(|pid| pid == process.pid) && !stops.iter().any(|stop| stop.pid == process.pid)
        };
        let found: Vec<UserProcess> = find().await.into_iter().filter(is_wanted).collect();
        let (parts, others): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|process| matches!(process.state, State::PartOf(_)));
        for processes in [others, parts] {
            let ended = join_all(processes.into_iter().map(|process| stop_one(process, reason))).await;
            stops.extend(ended.into_iter().flatten());
        }
    }
    stops
}

async fn stop_one(process: UserProcess, reason: Option<&str>) -> Option<ProcessStop> {
    let UserProcess { pid, uid, state } = process;
    let end = |outcome| Some(ProcessStop { pid, uid: Some(uid), outcome });
    let Some(handle) = open(pid, uid, matches!(state, State::Silent | State::NotAsked | State::PartOf(_)))
    else {
        // It has ended meanwhile.
        return matches!(state, State::Answers(..)).then_some(ProcessStop {
            pid,
            uid: Some(uid),
            outcome: Outcome::Ended,
        });
    };
    let patience = match &state {
        State::Answers(asked, _) | State::Refuses(asked, _) => {
            let request = OperatorRequest::Stop { reason: reason.map(str::to_owned) };
            match asked.ask(&request).await {
                Ok(OperatorResponse::Stopping) => Some(ANSWERED_TIMEOUT),
                _ => None,
            }
        }
        // The process of which it is a part has ended, and it may look for another one.
        State::PartOf(_) | State::Silent | State::NotAsked => None,
    };
    if let Some(patience) = patience
        && handle.wait(patience).await
    {
        return end(Outcome::Ended);
    }
    end(match handle.end().await {
        Ending::Terminated => Outcome::Terminated,
        Ending::Killed => Outcome::Killed,
        Ending::Remains => Outcome::Remains,
    })
}

/// Waits until a process of this user has ended, which is ending. Returns whether it has.
pub(in crate::cli) async fn wait_ended(pid: u32) -> bool {
    match ProcessHandle::open(pid) {
        Ok(handle) => handle.wait(ANSWERED_TIMEOUT).await,
        Err(_) => true,
    }
}

/// Ends the clients that a process of this user names in its health report: they would start another one. Only those that
/// are Lockhouse processes of this user get a signal.
pub(in crate::cli) async fn end_clients(health: &Value) -> Vec<ProcessStop> {
    let clients = health["clients"].as_array().map(Vec::as_slice).unwrap_or_default();
    let pids = clients.iter().filter_map(|client| u32::try_from(client["pid"].as_u64()?).ok());
    let own = nix::unistd::geteuid().as_raw();
    let ends = pids.map(|pid| async move {
        let handle = open(pid, own, true)?;
        let outcome = match handle.end().await {
            Ending::Terminated => Outcome::Terminated,
            Ending::Killed => Outcome::Killed,
            Ending::Remains => Outcome::Remains,
        };
        Some(ProcessStop { pid, uid: None, outcome })
    });
    join_all(ends).await.into_iter().flatten().collect()
}

/// Opens the process. With `is_unknown`, it is one that has not answered, and must still be a Lockhouse of its account: the
/// number may have become that of another process.
fn open(pid: u32, uid: u32, is_unknown: bool) -> Option<ProcessHandle> {
    let handle = ProcessHandle::open(pid).ok()?;
    let is_same = !is_unknown || processes::process(pid).is_some_and(|process| process.uid == uid);
    is_same.then_some(handle)
}
