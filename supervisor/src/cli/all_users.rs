//! The options `--all-users` of `status`, `reload` and `stop`: root asks the Lockhouse processes of all accounts of this
//! machine.
//!
//! Everything that belongs to an account is untrusted: names of sockets, what answers there, and names of programs. Who a
//! process belongs to is what the kernel reports. All processes are asked at the same time, each with a time limit and a
//! limit of bytes, so that no account delays or hides another one.

mod asked_process;
mod control_sockets;
mod ending;
mod processes;
pub(super) mod reload;
pub(super) mod status;
pub(super) mod stop;

use std::collections::BTreeMap;

use futures_util::future::join_all;
use lockhouse_messages::{OperatorRequest, OperatorResponse};
use nix::unistd::Uid;
use serde_json::Value;

pub(super) use asked_process::AskedProcess;
use control_sockets::ControlSocketFile;
use processes::RunningProcess;

/// Maximum number of processes of one account that are asked. The others are listed as not asked, and `stop` ends them
/// with signals.
/// Bound: engines and fronts.
const ASKED_PER_USER_MAX: usize = 64;

/// The option is only for root.
#[derive(Debug, thiserror::Error)]
#[error("--all-users is for root only: it reaches the processes of every account of this machine")]
pub(super) struct NotRoot;

/// Checks that this process belongs to root.
pub(super) fn require_root() -> Result<(), NotRoot> {
    if Uid::effective().is_root() { Ok(()) } else { Err(NotRoot) }
}

/// A Lockhouse process of some account.
pub(super) struct UserProcess {
    pub(super) pid: u32,
    pub(super) uid: u32,
    pub(super) state: State,
}

/// What is known about a process.
pub(super) enum State {
    /// It answers, with this health report, which is its own claim.
    Answers(Box<AskedProcess>, Value),
    /// It answers, and does not know the request, because it is of another version, or refuses it.
    Refuses(Box<AskedProcess>, String),
    /// It is the front of a process that answers, or a part of it.
    PartOf(u32),
    /// It runs a program of Lockhouse, and does not answer.
    Silent,
    /// More processes of its account run than are asked.
    NotAsked,
}

/// Finds the Lockhouse processes of all accounts, and asks each for its health. The processes are in the order of their
/// accounts.
pub(super) async fn find() -> Vec<UserProcess> {
    let running = processes::running();
    let sockets = control_sockets::find(&running, ASKED_PER_USER_MAX);
    let asked = join_all(sockets.into_iter().map(ask_health)).await;
    let mut found: BTreeMap<u32, UserProcess> = BTreeMap::new();
    for process in asked.into_iter().flatten() {
        found.entry(process.pid).or_insert(process);
    }
    let answering: Vec<(u32, u32, Vec<u32>)> = found.values().map(clients_of).collect();
    let mut asked_of = BTreeMap::<u32, usize>::new();
    for RunningProcess { pid, uid, parent } in running {
        let part_of = answering.iter().find(|(owner, of, clients)| {
            *of == uid && *owner != pid && (clients.contains(&pid) || *owner == parent)
        });
        let count = asked_of.entry(uid).or_default();
        *count += 1;
        let state = match part_of {
            Some((owner, ..)) => State::PartOf(*owner),
            None if *count > ASKED_PER_USER_MAX => State::NotAsked,
            None => State::Silent,
        };
        found.entry(pid).or_insert(UserProcess { pid, uid, state });
    }
    let mut found: Vec<UserProcess> = found.into_values().collect();
    found.sort_by_key(|process| (process.uid, process.pid));
    found
}

/// Returns the process, its account, and the processes of which it says that they are its clients.
fn clients_of(process: &UserProcess) -> (u32, u32, Vec<u32>) {
    let clients = match &process.state {
        State::Answers(_, health) => health["clients"].as_array().map(Vec::as_slice).unwrap_or_default(),
        _ => &[],
    };
    let pids = clients.iter().filter_map(|client| client["pid"].as_u64()?.try_into().ok());
    (process.pid, process.uid, pids.collect())
}

/// Asks the process behind a socket for its health. `None` if the socket is not that of a Lockhouse process.
async fn ask_health(socket: ControlSocketFile) -> Option<UserProcess> {
    let process = AskedProcess::connect(socket).await?;
    let (pid, uid) = (process.pid(), process.uid());
    let state = match process.ask(&OperatorRequest::Health).await {
        Ok(OperatorResponse::Health(health)) => State::Answers(Box::new(process), health),
        Ok(_) => State::Refuses(Box::new(process), "it gives no health report".to_owned()),
        Err(failure) if failure.is_silence() => State::Silent,
        Err(failure) => State::Refuses(Box::new(process), failure.to_string()),
    };
    Some(UserProcess { pid, uid, state })
}
