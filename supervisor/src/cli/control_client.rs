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
    let mut answers = Vec::new();
    for (pid, path) in
        socket_path::candidate_directories().iter().flat_map(|directory| socket_path::sockets(directory))
    {
        if let Ok(Some(answer)) = tokio::time::timeout(ANSWER_TIMEOUT, request(&path, order)).await {
            answers.push((pid, answer));
        }
    }
    answers.sort_by_key(|(pid, _)| *pid);
    answers
}

async fn request(path: &Path, order: &OperatorRequest) -> Option<OperatorResponse> {
    let stream = Stream::connect(path.to_fs_name::<GenericFilePath>().ok()?).await.ok()?;
    if !control_socket::is_trusted(&stream) {
        return None;
    }
    let (mut from, mut to) = (BufReader::new(&stream), &stream);
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
    tokio::time::timeout(ANSWER_TIMEOUT, request(&paths.next()?, order)).await.ok()?
}

/// The result of looking up an item, such as a run or session, by a name or id that the user typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Match<T> {
    One(T),
    None,
    /// Several items match the text that the user typed. The list contains all of them.
    Ambiguous(Vec<T>),
}

/// Finds the item whose name is `text`. If there is none, finds the only item whose name starts with `text`.
pub(super) fn find_by_prefix<T: Clone>(all: &[T], text: &str, name: impl Fn(&T) -> String) -> Match<T> {
    match find_exact(all, text, &name) {
        Match::None => single(all.iter().filter(|one| name(one).starts_with(text))),
        found => found,
    }
}

/// Finds the item whose id is exactly `text`. A prefix of an id is not accepted: it could be the complete id of an item
/// that has ended meanwhile.
pub(super) fn find_exact<T: Clone>(all: &[T], text: &str, id: impl Fn(&T) -> String) -> Match<T> {
    single(all.iter().filter(|one| id(one) == text))
}

fn single<'a, T: Clone + 'a>(found: impl Iterator<Item = &'a T>) -> Match<T> {
    let mut found: Vec<T> = found.cloned().collect();
    match found.len() {
        0 => Match::None,
        1 => Match::One(found.remove(0)),
        _ => Match::Ambiguous(found),
    }
}

/// Prints the names of the runs or sessions that a Lockhouse process has ended, and returns their number.
pub(super) fn print_ended(pid: u32, ended: &[String]) -> usize {
    for name in ended {
        println!("{name}: ended (lockhouse {pid})");
    }
    ended.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_name_matches_before_a_unique_prefix() {
        let all = ["report", "report-2", "chart"];
        let find = |text: &str| find_by_prefix(&all, text, |name| (*name).to_owned());
        assert_eq!(find("report"), Match::One("report"), "the exact name wins over a longer one");
        assert_eq!(find("report-"), Match::One("report-2"));
        assert_eq!(find("c"), Match::One("chart"));
        assert_eq!(find("rep"), Match::Ambiguous(vec!["report", "report-2"]));
        assert_eq!(find("art"), Match::None);
        let twice = ["report", "report"];
        assert!(matches!(find_by_prefix(&twice, "report", |name| (*name).to_owned()), Match::Ambiguous(_)));
    }

    #[test]
    fn an_id_does_not_match_by_prefix() {
        let all = ["7/10", "7/11"];
        let find = |text: &str| find_exact(&all, text, |id| (*id).to_owned());
        assert_eq!((find("7/1"), find("7/")), (Match::None, Match::None));
        assert_eq!(find("7/10"), Match::One("7/10"));
    }
}
