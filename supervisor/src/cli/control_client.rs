//! Sends requests to the running Lockhouse processes of this user, through their control sockets.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::StreamCommon as _;
use interprocess::local_socket::traits::tokio::Stream as _;
use interprocess::local_socket::{GenericFilePath, ToFsName};
use lockhouse_config::SystemEngine;
use lockhouse_engine::control_socket::{self, socket_path};
use lockhouse_link::{OperatorClient, OperatorError};
use lockhouse_messages::{HostActivity, OperatorRequest, OperatorResponse};
use nix::unistd::{Uid, geteuid};

use super::engine_socket::CONTROL_SOCKET;
use super::terminal::sanitize_lines;
use super::{UNAVAILABLE, USAGE, system_engine};

/// How long a Lockhouse process may take to answer a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// No process has an id as large as this: PID_MAX_LIMIT of the kernel (proc(5)).
const PROCESSES_MAX: u32 = 1 << 22;

/// What a Lockhouse process answered, or why it did not.
pub(super) type Reply = Result<OperatorResponse, OperatorError>;

/// Sends a request to every running Lockhouse process of this user. Returns the answers with the process ids. Processes
/// that do not answer in time are omitted.
pub(super) async fn request_all(request: &OperatorRequest) -> Vec<(u32, OperatorResponse)> {
    let replies = request_reachable(request).await.into_iter();
    replies.filter_map(|(pid, reply)| Some((pid, accepted(pid, reply)?))).collect()
}

/// Returns the answer of a process. Prints why it refused the request, if it did.
fn accepted(pid: u32, reply: Reply) -> Option<OperatorResponse> {
    match reply {
        Ok(response) => Some(response),
        Err(OperatorError::Refused(reason)) => {
            eprintln!("lockhouse: process {pid}: {}", sanitize_lines(&reason));
            None
        }
        Err(OperatorError::OtherVersion | OperatorError::NoAnswer) => None,
    }
}

/// Sends a request to every Lockhouse process of this user that accepts a connection. Returns the replies with the
/// process ids.
pub(super) async fn request_reachable(request: &OperatorRequest) -> Vec<(u32, Reply)> {
    let mut replies = Vec::new();
    for (pid, path) in sockets() {
        let Some(stream) = open(&path).await else { continue };
        replies.push((pid, ask(stream, request).await));
    }
    replies.sort_by_key(|(pid, _)| *pid);
    replies
}

/// Sends a request to the Lockhouse process with the given id.
pub(super) async fn request_one(pid: u32, request: &OperatorRequest) -> Reply {
    let named = sockets().into_iter().find(|(named, _)| *named == pid);
    let (_, path) = named.ok_or(OperatorError::NoAnswer)?;
    let stream = open(&path).await.ok_or(OperatorError::NoAnswer)?;
    ask(stream, request).await
}

/// Connects to the process behind a control socket, to send it several requests. Returns `None` if no process listens on
/// it, or if the process is of another user.
pub(super) async fn connect(path: &Path) -> Option<Result<OperatorClient, OperatorError>> {
    let connecting = OperatorClient::connect(open(path).await?);
    let connected = tokio::time::timeout(ANSWER_TIMEOUT, connecting).await;
    Some(connected.unwrap_or(Err(OperatorError::NoAnswer)))
}

/// Returns the control sockets that this user may use, each with the id of its process: those of the user's processes, and
/// that of the system's engine for this person; for root, those for all people. The kernel does not report the process of a
/// socket that systemd opened: the engine of this person has the id 0, and for root that of each person an id which no
/// process has.
pub(super) fn sockets() -> Vec<(u32, PathBuf)> {
    let own = socket_path::candidate_directories();
    let own = own.iter().flat_map(|directory| socket_path::sockets(directory));
    let of_system = SystemEngine::operated_by_this_account()
        .into_iter()
        .map(|engine| (engine_id(engine), engine.directory().join(CONTROL_SOCKET)));
    // Root and the account of the service use the service's own socket.
    let of_service = Some(socket_path::operators_directory()).filter(|directory| is_of_another(directory));
    let of_service = of_service.iter().flat_map(|directory| socket_path::sockets(directory));
    own.chain(of_service).chain(of_system.filter(|(_, path)| path.exists())).collect()
}

/// Whether a directory belongs to another account than this one, and nobody but that account and root can replace it.
fn is_of_another(directory: &Path) -> bool {
    let owner = std::fs::symlink_metadata(directory).map(|found| found.uid());
    !geteuid().is_root() && owner.is_ok_and(|owner| owner != geteuid().as_raw())
}

/// Returns the id of the engine of the system for a person: see [`sockets`].
pub(super) fn engine_id(engine: SystemEngine) -> u32 {
    if geteuid().is_root() { PROCESSES_MAX + engine.person().as_raw() } else { 0 }
}

/// Prints why an engine of the system has not done what it was asked for. Returns the exit status.
pub(super) fn print_refusal(reply: Reply) -> ExitCode {
    match reply {
        Ok(OperatorResponse::Refused { reason }) => {
            eprintln!("lockhouse: {}", sanitize_lines(&reason));
            ExitCode::from(USAGE)
        }
        Ok(_) | Err(_) => {
            eprintln!(
                "lockhouse: the engine of the system does not answer this request, or is of another version"
            );
            ExitCode::from(UNAVAILABLE)
        }
    }
}

/// Connects as root to an engine that runs code for another account, to send it several requests. `process` is its id as that
/// account's commands number it. Returns `None` if no such engine answers.
pub(super) async fn connect_to_engine_of(person: Uid, process: u32) -> Option<OperatorClient> {
    let (_, path) = sockets_of(person).into_iter().find(|(id, _)| *id == process)?;
    let connecting = OperatorClient::connect(open_of(person, &path).await?);
    tokio::time::timeout(ANSWER_TIMEOUT, connecting).await.ok()?.ok()
}

/// Sends a request as root to the first engine that answers of those that run code for another account.
pub(super) async fn request_engine_of(person: Uid, request: &OperatorRequest) -> Option<OperatorResponse> {
    for (_, path) in sockets_of(person) {
        let Some(stream) = open_of(person, &path).await else { continue };
        if let Ok(response) = ask(stream, request).await {
            return Some(response);
        }
    }
    None
}

/// Returns the control sockets of the engines that run code for an account, each with the id of its process as that account's
/// commands number it: the system's engine for this person, and its own processes in the usual directories.
fn sockets_of(person: Uid) -> Vec<(u32, PathBuf)> {
    if person == geteuid() {
        return sockets();
    }
    let of_system = SystemEngine::of_person(person).directory().join(CONTROL_SOCKET);
    let own = socket_path::usual_directories(person);
    let own = own.iter().flat_map(|directory| socket_path::sockets(directory));
    own.chain(of_system.exists().then_some((0, of_system))).collect()
}

/// Connects to a control socket of an engine that runs code for this account. The account chooses where its own sockets lead,
/// so the process that listens must be of it.
async fn open_of(person: Uid, path: &Path) -> Option<Stream> {
    if path.ends_with(CONTROL_SOCKET) {
        return open(path).await;
    }
    let connecting = Stream::connect(path.to_fs_name::<GenericFilePath>().ok()?);
    let stream = tokio::time::timeout(ANSWER_TIMEOUT, connecting).await.ok()?.ok()?;
    let peer = stream.peer_creds().ok()?.euid()?;
    (peer == person.as_raw()).then_some(stream)
}

async fn open(path: &Path) -> Option<Stream> {
    if let Some(directory) = path.parent().filter(|_| path.ends_with(CONTROL_SOCKET)) {
        let connecting = system_engine::connect(directory, CONTROL_SOCKET);
        return tokio::time::timeout(ANSWER_TIMEOUT, connecting).await.ok()?.ok();
    }
    let connecting = Stream::connect(path.to_fs_name::<GenericFilePath>().ok()?);
    let stream = tokio::time::timeout(ANSWER_TIMEOUT, connecting).await.ok()?.ok()?;
    let is_of_service = path.parent() == Some(&socket_path::operators_directory());
    match is_of_service {
        // Whoever owns the directory serves it.
        true => {
            let owner = std::fs::symlink_metadata(path.parent()?).ok()?.uid();
            (stream.peer_creds().ok()?.euid()? == owner).then_some(stream)
        }
        false => control_socket::is_trusted(&stream).then_some(stream),
    }
}

async fn ask(stream: Stream, request: &OperatorRequest) -> Reply {
    let asking = async { OperatorClient::connect(stream).await?.ask(request.clone()).await };
    tokio::time::timeout(ANSWER_TIMEOUT, asking).await.unwrap_or(Err(OperatorError::NoAnswer))
}

/// Converts the items that Lockhouse processes listed, such as runs or sessions, to a JSON array. Each item gets the id
/// of its process as `pid`.
pub(super) fn to_json<T: serde::Serialize>(listed: &[(u32, T)]) -> serde_json::Value {
    let row = |(pid, one): &(u32, T)| {
        let mut row = serde_json::to_value(one).unwrap_or_default();
        row["pid"] = (*pid).into();
        row
    };
    listed.iter().map(row).collect()
}

/// Returns the items of one kind, such as runs, that are active on the other hosts of the clusters of which processes of this user are
/// hosts, each with the name of its host. `items` returns those of one host. Prints which hosts have not answered.
pub(super) async fn elsewhere<T>(items: impl Fn(HostActivity) -> Vec<T>) -> Vec<(String, T)> {
    let mut all = Vec::new();
    for (_, reply) in request_reachable(&OperatorRequest::ListElsewhere).await {
        if let Ok(OperatorResponse::Elsewhere(hosts)) = reply {
            all.extend(hosts);
        }
    }
    for silent in all.iter().filter(|activity| !activity.has_answered) {
        eprintln!("lockhouse: the host {} of the cluster has not answered", silent.host);
    }
    let of_host = |activity: HostActivity| {
        let host = activity.host.clone();
        items(activity).into_iter().map(move |one| (host.clone(), one))
    };
    all.into_iter().flat_map(of_host).collect()
}

/// Adds items of other hosts to a JSON array of items of this host. Each gets the name of its host as `host`.
pub(super) fn add_elsewhere<T: serde::Serialize>(own: &mut serde_json::Value, elsewhere: Vec<(String, T)>) {
    if let Some(own) = own.as_array_mut() {
        own.extend(elsewhere.into_iter().map(|(host, one)| {
            let mut row = serde_json::to_value(one).unwrap_or_default();
            row["host"] = host.into();
            row
        }));
    }
}

/// Prints the names of the runs or sessions that a Lockhouse process has ended, and returns their number.
pub(super) fn print_ended(pid: u32, ended: &[String]) -> usize {
    for name in ended {
        println!("{name}: ended (lockhouse {pid})");
    }
    ended.len()
}
