//! Asking every Lockhouse of this user that runs, through its control socket.

use std::path::Path;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::tokio::Stream as _;
use interprocess::local_socket::{GenericFilePath, ToFsName};
use lockhouse_engine::control::{self, LINE_BYTES_MAX, Order, Told, place, read_line, write_line};
use tokio::io::BufReader;

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

/// The answer of one process; none where it does not answer, or is not there any more.
pub(super) async fn ask_one(pid: u32, order: &Order) -> Option<Told> {
    let sockets = place::everywhere().into_iter().flat_map(|directory| place::sockets(&directory));
    let mut paths = sockets.filter(|(named, _)| *named == pid).map(|(_, path)| path);
    tokio::time::timeout(PATIENCE, ask(&paths.next()?, order)).await.ok()?
}

/// Which one of several a person means by a text: the one that has it as its name, else the one whose name begins so.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meant<T> {
    One(T),
    None,
    /// Those that could be meant.
    Several(Vec<T>),
}

/// Looks among `all` for what a text means.
pub(super) fn meant<T: Clone>(all: &[T], text: &str, name: impl Fn(&T) -> String) -> Meant<T> {
    match meant_exactly(all, text, &name) {
        Meant::None => one_of(all.iter().filter(|one| name(one).starts_with(text))),
        meant => meant,
    }
}

/// The same of ids that are counted: the beginning of one may be another, of something that is gone.
pub(super) fn meant_exactly<T: Clone>(all: &[T], text: &str, id: impl Fn(&T) -> String) -> Meant<T> {
    one_of(all.iter().filter(|one| id(one) == text))
}

fn one_of<'a, T: Clone + 'a>(found: impl Iterator<Item = &'a T>) -> Meant<T> {
    let mut found: Vec<T> = found.cloned().collect();
    match found.len() {
        0 => Meant::None,
        1 => Meant::One(found.remove(0)),
        _ => Meant::Several(found),
    }
}

/// Says what a process has ended, and how many that are.
pub(super) fn tell_ended(pid: u32, ended: &[String]) -> usize {
    for name in ended {
        println!("{name}: ended (lockhouse {pid})");
    }
    ended.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_means_the_one_that_it_names_else_the_only_one_that_begins_so() {
        let all = ["report", "report-2", "chart"];
        let means = |text: &str| meant(&all, text, |name| (*name).to_owned());
        assert_eq!(means("report"), Meant::One("report"), "exactly, and not the one that begins so");
        assert_eq!(means("report-"), Meant::One("report-2"));
        assert_eq!(means("c"), Meant::One("chart"));
        assert_eq!(means("rep"), Meant::Several(vec!["report", "report-2"]));
        assert_eq!(means("art"), Meant::None);
        let twice = ["report", "report"];
        assert!(matches!(meant(&twice, "report", |name| (*name).to_owned()), Meant::Several(_)));
    }

    #[test]
    fn the_id_of_one_that_is_gone_means_no_other() {
        let all = ["7/10", "7/11"];
        let means = |text: &str| meant_exactly(&all, text, |id| (*id).to_owned());
        assert_eq!((means("7/1"), means("7/")), (Meant::None, Meant::None));
        assert_eq!(means("7/10"), Meant::One("7/10"));
    }
}
