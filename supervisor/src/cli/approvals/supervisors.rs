//! The supervisors of this user: found by their sockets, and spoken with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::tokio::Stream as _;
use interprocess::local_socket::{GenericFilePath, ToFsName};
use lockhouse_engine::control::{self, LINE_BYTES_MAX, VERSION, place, read_line, write_line};
use lockhouse_gate::{FromPerson, FromSupervisor};
use tokio::io::BufReader;
use tokio::sync::mpsc;

use super::ANSWERS_MAX;
use super::screen::{Event, Reply};

/// How often it is looked for supervisors that have started.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Speaks with all of them, for as long as there is somebody to tell.
pub(super) async fn watch(events: mpsc::Sender<Event>, mut replies: mpsc::Receiver<Reply>) {
    let mut connected: BTreeMap<PathBuf, (u32, mpsc::Sender<FromPerson>)> = BTreeMap::new();
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            _ = look.tick() => {
                connected.retain(|_, (_, to)| !to.is_closed());
                for (pid, path) in place::everywhere().iter().flat_map(|directory| place::sockets(directory)) {
                    if connected.contains_key(&path) {
                        continue;
                    }
                    let (to, answers) = mpsc::channel(ANSWERS_MAX);
                    connected.insert(path.clone(), (pid, to));
                    let events = events.clone();
                    tokio::spawn(async move { converse(&path, pid, events, answers).await });
                }
            }
            reply = replies.recv() => {
                let Some(Reply { supervisor, answer }) = reply else { return };
                let to = connected.values().find(|(pid, _)| *pid == supervisor);
                let sent = to.is_some_and(|(_, to)| to.try_send(FromPerson::Answer(answer.clone())).is_ok());
                if !sent {
                    let reason = "this Lockhouse is not connected any more".to_owned();
                    let refused = FromSupervisor::Refused { id: Some(answer.id), reason };
                    let _ = events.send(Event { supervisor, message: Some(refused) }).await;
                }
            }
        }
    }
}

/// Speaks with one until it leaves.
async fn converse(
    path: &Path,
    pid: u32,
    events: mpsc::Sender<Event>,
    mut answers: mpsc::Receiver<FromPerson>,
) {
    let Ok(name) = path.to_fs_name::<GenericFilePath>() else { return };
    // A socket that nobody listens at is cleared away by the next supervisor that starts.
    let Ok(stream) = Stream::connect(name).await else { return };
    if !control::is_trusted(&stream) {
        return;
    }
    let (mut from, mut to) = (BufReader::new(&stream), &stream);
    if write_line(&mut to, &FromPerson::Watch(VERSION)).await.is_err() {
        return;
    }
    let hearing = async {
        while let Ok(Some(line)) = read_line(&mut from, LINE_BYTES_MAX).await {
            // Of a later version there may be messages that are not known here.
            let Ok(message) = serde_json::from_str(&line) else { continue };
            if events.send(Event { supervisor: pid, message: Some(message) }).await.is_err() {
                return;
            }
        }
    };
    let telling = async {
        while let Some(answer) = answers.recv().await {
            if write_line(&mut to, &answer).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = hearing => {}
        () = telling => {}
    }
    let _ = events.send(Event { supervisor: pid, message: None }).await;
}
