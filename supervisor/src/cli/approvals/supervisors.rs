//! Finds the running supervisors of this user by their control sockets, and relays their messages and the approver's
//! answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockhouse_link::{ExchangeStep, OperatorError};
use lockhouse_messages::{ApprovalEvent, ApprovalInput, Event, Input, Response, WatcherRole};
use tokio::sync::{mpsc, watch};

use super::super::control_client;
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
    let mut connected: BTreeMap<PathBuf, (u32, mpsc::Sender<ApprovalInput>)> = BTreeMap::new();
    let mut poll = tokio::time::interval(POLL_INTERVAL);
    loop {
        tokio::select! {
            _ = poll.tick() => {
                connected.retain(|_, (_, to)| !to.is_closed());
                for (pid, path) in control_client::sockets() {
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
                let Some(ApproverReply { supervisor, question, input }) = reply else { return };
                let to = connected.values().find(|(pid, _)| *pid == supervisor);
                let sent = to.is_some_and(|(_, to)| to.try_send(input).is_ok());
                if !sent {
                    let reason = "this Lockhouse process is no longer connected".to_owned();
                    let refused = ApprovalEvent::Refused { id: Some(question), reason };
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
    mut answers: mpsc::Receiver<ApprovalInput>,
    mut role: watch::Receiver<WatcherRole>,
) {
    // The next supervisor that starts removes sockets on which no process listens.
    let client = match control_client::connect(path).await {
        Some(Ok(client)) => client,
        Some(Err(OperatorError::OtherVersion)) => {
            tracing::warn!(
                "process {pid} is of another version of Lockhouse: its questions are not shown here"
            );
            // It is not asked again.
            while answers.recv().await.is_some() {}
            return;
        }
        Some(Err(OperatorError::Refused(_) | OperatorError::NoAnswer)) | None => return,
    };
    let first_role = *role.borrow_and_update();
    let mut watching = client.watch_approvals(first_role).await;
    loop {
        let input = tokio::select! {
            step = watching.next() => match step {
                ExchangeStep::Event(Event::Approval(event)) => {
                    let event = SupervisorEvent { supervisor: pid, message: Some(event) };
                    if events.send(event).await.is_err() {
                        return;
                    }
                    continue;
                }
                ExchangeStep::Event(_) => continue,
                ExchangeStep::Finished(Response::Refused(refusal)) => {
                    let reason = format!("{}: an administrator answers there", refusal.description());
                    let refused = ApprovalEvent::Refused { id: None, reason };
                    let _ = events.send(SupervisorEvent { supervisor: pid, message: Some(refused) }).await;
                    // It is not asked again.
                    while answers.recv().await.is_some() {}
                    return;
                }
                ExchangeStep::Finished(_) => break,
            },
            input = answers.recv() => input,
            changed = role.changed() => {
                changed.ok().map(|()| ApprovalInput::SetRole(*role.borrow_and_update()))
            }
        };
        let Some(input) = input else { break };
        watching.send(Input::Approval(input));
    }
    let _ = events.send(SupervisorEvent { supervisor: pid, message: None }).await;
}
