//! Finds the running supervisors of this user by their control sockets, and relays their messages and the approver's
//! answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::tokio::Stream as _;
use interprocess::local_socket::{GenericFilePath, ToFsName};
use lockhouse_engine::control_socket::{self, LINE_BYTES_MAX, VERSION, read_line, socket_path, write_line};
use lockhouse_gate::{FromApprover, FromSupervisor, WatcherRole};
use tokio::io::BufReader;
use tokio::sync::{mpsc, watch};

use super::ANSWERS_MAX;
use super::terminal_prompt::{ApproverReply, SupervisorEvent};

/// How often to look for supervisors that have started.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Connects to every supervisor of this user that runs now or starts later, forwards their messages to `events`, and
/// sends each reply to the supervisor that asked. `role` says whether a person can answer, and may change. Returns when
/// the channel `replies` is closed.
pub(in crate::cli) async fn watch(
    events: mpsc::Sender<SupervisorEvent>,
    mut replies: mpsc::Receiver<ApproverReply>,
    role: watch::Receiver<WatcherRole>,
) {
    let mut connected: BTreeMap<PathBuf, (u32, mpsc::Sender<FromApprover>)> = BTreeMap::new();
    let mut poll = tokio::time::interval(POLL_INTERVAL);
    loop {
        tokio::select! {
            _ = poll.tick() => {
                connected.retain(|_, (_, to)| !to.is_closed());
                for (pid, path) in socket_path::candidate_directories().iter().flat_map(|directory| socket_path::sockets(directory)) {
                    if connected.contains_key(&path) {
                        continue;
                    }
                    let (to, answers) = mpsc::channel(ANSWERS_MAX);
                    connected.insert(path.clone(), (pid, to));
                    let (events, role) = (events.clone(), role.clone());
                    tokio::spawn(async move { converse(&path, pid, events, answers, role).await });
                }
            }
            reply = replies.recv() => {
                let Some(ApproverReply { supervisor, answer }) = reply else { return };
                let to = connected.values().find(|(pid, _)| *pid == supervisor);
                let sent = to.is_some_and(|(_, to)| to.try_send(FromApprover::Answer(answer.clone())).is_ok());
                if !sent {
                    let reason = "this Lockhouse process is no longer connected".to_owned();
                    let refused = FromSupervisor::Refused { id: Some(answer.id), reason };
                    let _ = events.send(SupervisorEvent { supervisor, message: Some(refused) }).await;
                }
            }
        }
    }
}

/// Relays messages between this command and the supervisor with the control socket `path` and the process id `pid`,
/// until the connection ends. Then reports to `events` that the supervisor has disconnected.
async fn converse(
    path: &Path,
    pid: u32,
    events: mpsc::Sender<SupervisorEvent>,
    mut answers: mpsc::Receiver<FromApprover>,
    mut role: watch::Receiver<WatcherRole>,
) {
    let Ok(name) = path.to_fs_name::<GenericFilePath>() else { return };
    // The next supervisor that starts removes sockets on which no process listens.
    let Ok(stream) = Stream::connect(name).await else { return };
    if !control_socket::is_trusted(&stream) {
        return;
    }
    let (mut from, mut to) = (BufReader::new(&stream), &stream);
    let first = registration(*role.borrow_and_update());
    if write_line(&mut to, &first).await.is_err() {
        return;
    }
    let receiving = async {
        while let Ok(Some(line)) = read_line(&mut from, LINE_BYTES_MAX).await {
            // A later version may send messages that this version does not know.
            let Ok(message) = serde_json::from_str(&line) else { continue };
            if events.send(SupervisorEvent { supervisor: pid, message: Some(message) }).await.is_err() {
                return;
            }
        }
    };
    let sending = async {
        loop {
            let message = tokio::select! {
                answer = answers.recv() => answer,
                changed = role.changed() => changed.ok().map(|()| registration(*role.borrow_and_update())),
            };
            let Some(message) = message else { return };
            if write_line(&mut to, &message).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = receiving => {}
        () = sending => {}
    }
    let _ = events.send(SupervisorEvent { supervisor: pid, message: None }).await;
}

/// Returns the message that registers a watcher with this role.
fn registration(role: WatcherRole) -> FromApprover {
    match role {
        WatcherRole::Approver => FromApprover::Watch(VERSION),
        WatcherRole::Observer => FromApprover::Observe(VERSION),
    }
}
