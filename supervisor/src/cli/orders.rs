//! Asking every Lockhouse of this user that runs, through its control socket.

use std::path::Path;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::tokio::Stream as _;
use interprocess::local_socket::{GenericFilePath, ToFsName};
use tokio::io::BufReader;

use crate::control::{self, LINE_BYTES_MAX, Order, Told, place, read_line, write_line};

/// How long one may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The answers, by process. One that does not answer has nothing that could be told of.
pub(super) async fn ask_all(order: &Order) -> Vec<(u32, Told)> {
    let mut answers = Vec::new();
    for (pid, path) in place::everywhere().iter().flat_map(|directory| place::sockets(directory)) {
        if let Ok(Some(told)) = tokio::time::timeout(PATIENCE, ask(&path, order)).await {
            answers.push((pid, told));
        }
    }
    answers.sort_by_key(|(pid, _)| *pid);
    answers
}

async fn ask(path: &Path, order: &Order) -> Option<Told> {
    let stream = Stream::connect(path.to_fs_name::<GenericFilePath>().ok()?).await.ok()?;
    if !control::is_trusted(&stream) {
        return None;
    }
    let (mut from, mut to) = (BufReader::new(&stream), &stream);
    write_line(&mut to, order).await.ok()?;
    let line = read_line(&mut from, LINE_BYTES_MAX).await.ok()??;
    serde_json::from_str(&line).ok()
}

/// What each has listed, as JSON, with the process that it is of.
pub(super) fn to_json<T: serde::Serialize>(listed: &[(u32, T)]) -> serde_json::Value {
    let row = |(pid, one): &(u32, T)| {
        let mut row = serde_json::to_value(one).unwrap_or_default();
        row["pid"] = (*pid).into();
        row
    };
    listed.iter().map(row).collect()
}

/// Says what a process has ended, and how many that are.
pub(super) fn tell_ended(pid: u32, ended: &[String]) -> usize {
    for name in ended {
        println!("{name}: ended (lockhouse {pid})");
    }
    ended.len()
}
