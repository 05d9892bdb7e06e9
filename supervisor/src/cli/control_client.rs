//! Sends requests to the running Lockhouse processes of this user, through their control sockets.

use std::path::Path;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::tokio::Stream as _;
use interprocess::local_socket::{GenericFilePath, ToFsName};
use lockhouse_engine::control_socket::{
    self, LINE_BYTES_MAX, OperatorRequest, OperatorResponse, read_line, socket_path, write_line,
};
use tokio::io::BufReader;

/// How long a Lockhouse process may take to answer a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends a request to every running Lockhouse process of this user. Returns the answers with the process ids. Processes
/// that do not answer in time are omitted.
pub(super) async fn request_all(order: &OperatorRequest) -> Vec<(u32, OperatorResponse)> {
    let answers = request_reachable(order).await.into_iter();
    answers.filter_map(|(pid, answer)| Some((pid, answer?))).collect()
}

/// Sends a request to every Lockhouse process of this user that accepts a connection. Returns the answers with the
/// process ids; `None` for a process that does not answer in time.
pub(super) async fn request_reachable(order: &OperatorRequest) -> Vec<(u32, Option<OperatorResponse>)> {
    let mut answers = Vec::new();
    for (pid, path) in
        socket_path::candidate_directories().iter().flat_map(|directory| socket_path::sockets(directory))
    {
        let Some(stream) = connect(&path).await else { continue };
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, exchange(&stream, order)).await;
        answers.push((pid, answer.ok().flatten()));
    }
    answers.sort_by_key(|(pid, _)| *pid);
    answers
}

/// Connects to a control socket. Returns `None` if no process listens on it, or if the process is of another user.
async fn connect(path: &Path) -> Option<Stream> {
    let connecting = Stream::connect(path.to_fs_name::<GenericFilePath>().ok()?);
    let stream = tokio::time::timeout(ANSWER_TIMEOUT, connecting).await.ok()?.ok()?;
    control_socket::is_trusted(&stream).then_some(stream)
}

async fn exchange(stream: &Stream, order: &OperatorRequest) -> Option<OperatorResponse> {
    let (mut from, mut to) = (BufReader::new(stream), stream);
    write_line(&mut to, order).await.ok()?;
    let line = read_line(&mut from, LINE_BYTES_MAX).await.ok()??;
    serde_json::from_str(&line).ok()
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

/// Sends a request to the Lockhouse process with the given id. Returns `None` if the process does not answer in time or
/// has ended.
pub(super) async fn request_one(pid: u32, order: &OperatorRequest) -> Option<OperatorResponse> {
    let sockets = socket_path::candidate_directories()
        .into_iter()
        .flat_map(|directory| socket_path::sockets(&directory));
    let mut paths = sockets.filter(|(named, _)| *named == pid).map(|(_, path)| path);
    let stream = connect(&paths.next()?).await?;
    tokio::time::timeout(ANSWER_TIMEOUT, exchange(&stream, order)).await.ok()?
}

/// Prints the names of the runs or sessions that a Lockhouse process has ended, and returns their number.
pub(super) fn print_ended(pid: u32, ended: &[String]) -> usize {
    for name in ended {
        println!("{name}: ended (lockhouse {pid})");
    }
    ended.len()
}
