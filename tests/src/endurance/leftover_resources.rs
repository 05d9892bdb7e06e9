//! The resources that a Lockhouse server holds outside its memory: processes, zombies, descriptors and temporary
//! files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lockhouse_tests::{LANGUAGES, Process, children, ensure};

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The maximum number of idle workers per language: the default of `[pool] idle`.
const IDLE: usize = 4;
/// The shared temporary directory. Other programs write there too, so only files with `lockhouse` in their names are
/// counted.
const TEMPORARY: &str = "/tmp";
const OWN_NAME: &str = "lockhouse";
/// The beginning of the names of the directories of concurrent tests. Such directories are not counted.
const NAMES_OF_TESTS: &str = "lockhouse-test-";
const SHARED_MEMORY: &str = "/dev/shm";

/// The descriptors and temporary files of a server that runs nothing and has only its idle workers.
#[derive(Debug)]
pub(crate) struct Remains {
    /// The kinds of the supervisor's open descriptors, such as `socket`, or their paths. `None` if the tests do not run
    /// as root, because the supervisor is not dumpable, and only root can see the descriptors of such a process.
    pub(crate) descriptors: Option<Vec<String>>,
    /// Files in the directories that belong to this server alone.
    pub(crate) files: BTreeSet<PathBuf>,
    /// Files in the temporary directories that other programs use too.
    pub(crate) shared_files: BTreeSet<PathBuf>,
}

/// Returns the zygotes of a server: its child processes except upstream servers and the guard, which ends these.
pub(crate) fn zygotes(server: u32) -> Vec<Process> {
    children(server).into_iter().filter(|child| !is_upstream(child) && !is_guard(child)).collect()
}

fn is_upstream(process: &Process) -> bool {
    process.command.contains("fixture-server")
}

/// Whether a process is the guard of a server: `lockhouse guard`.
fn is_guard(process: &Process) -> bool {
    process.command.starts_with("lockhouse guard ")
}

/// Returns the language of a zygote or a worker.
pub(crate) fn language(process: &Process) -> &'static str {
    if process.command.contains("lockhouse-worker") { "typescript" } else { "python" }
}

/// Repeats the check `condition` until the check succeeds, and returns its result. Returns the last error if the check
/// has not succeeded after the time `give_up_after`.
pub(crate) async fn until<T>(
    give_up_after: Duration,
    mut condition: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let began = Instant::now();
    loop {
        match condition() {
            Err(reason) if began.elapsed() > give_up_after => return Err(reason),
            Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            found => return found,
        }
    }
}

/// Returns the descriptors of an idle server, its files in `directories`, and its temporary files. Fails unless the
/// server has exactly one upstream server, two zygotes with `IDLE` workers each, no other process, and no zombie.
pub(super) fn measure_idle(server: u32, directories: &[PathBuf]) -> Result<Remains, String> {
    only_idle(server)?;
    let (mut files, mut shared_files) = (BTreeSet::new(), BTreeSet::new());
    directories.iter().for_each(|directory| list(directory, &mut files));
    list(Path::new(SHARED_MEMORY), &mut shared_files);
    shared_files.extend(entries(Path::new(TEMPORARY)).filter(|path| has_own_name(path)));
    Ok(Remains { descriptors: descriptors(server), files, shared_files })
}

/// Checks that the server runs no executions: it has at most `IDLE` workers of each language. A retired zygote, which
/// was replaced and forks no more workers, may still exist.
pub(super) fn nothing_runs(server: u32) -> Result<(), String> {
    let workers: Vec<Process> = zygotes(server).iter().flat_map(|zygote| children(zygote.pid)).collect();
    let counts = LANGUAGES.map(|of| workers.iter().filter(|worker| language(worker) == of).count());
    ensure(counts.iter().all(|count| *count <= IDLE), workers)
}

fn only_idle(server: u32) -> Result<(), String> {
    let upstreams: Vec<Process> = children(server).into_iter().filter(is_upstream).collect();
    let zygotes = zygotes(server);
    let workers: Vec<Process> = zygotes.iter().flat_map(|zygote| children(zygote.pid)).collect();
    let of = |pid: u32| workers.iter().filter(|worker| worker.parent == pid).count();
    let zombies = zombies(server, &zygotes);
    let is_idle = upstreams.len() == 1
        && zygotes.len() == 2
        && zygotes.iter().all(|zygote| of(zygote.pid) == IDLE)
        && [&upstreams, &workers].into_iter().flatten().all(|leaf| children(leaf.pid).is_empty());
    match (is_idle, zombies.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => Err(format!("{} zombies, such as {:?}", zombies.len(), zombies.first())),
        (false, _) => {
            let counts: Vec<(&str, usize)> =
                zygotes.iter().map(|zygote| (language(zygote), of(zygote.pid))).collect();
            let (upstreams, zombies) = (upstreams.len(), zombies.len());
            Err(format!(
                "{upstreams} upstream servers, workers by zygote {counts:?}, {zombies} zombies; expected are one \
                 upstream server and two zygotes with {IDLE} idle workers each"
            ))
        }
    }
}

/// Returns the zombies among the children of the supervisor and of its zygotes: for each the beginning of its
/// `/proc/PID/stat`.
fn zombies(server: u32, zygotes: &[Process]) -> Vec<String> {
    let parents: Vec<u32> = std::iter::once(server).chain(zygotes.iter().map(|zygote| zygote.pid)).collect();
    let stats =
        entries(Path::new("/proc")).filter_map(|path| std::fs::read_to_string(path.join("stat")).ok());
    let is_zombie = |stat: &String| {
        // The process name in this line may itself contain brackets.
        let fields = stat.rsplit_once(") ").map(|(_, fields)| fields.split(' ').collect::<Vec<_>>());
        fields.is_some_and(|fields| {
            fields[0] == "Z" && fields[1].parse().is_ok_and(|parent| parents.contains(&parent))
        })
    };
    stats.filter(is_zombie).map(|stat| stat.chars().take(60).collect()).collect()
}

fn descriptors(pid: u32) -> Option<Vec<String>> {
    let directory = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let mut kinds: Vec<String> = directory
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .map(|target| target.to_string_lossy().split([':', '[']).next().unwrap_or_default().to_owned())
        .map(|target| if target.starts_with("/proc/") { "/proc/PID/status".into() } else { target })
        .collect();
    kinds.sort();
    Some(kinds)
}

/// Returns the elements of a sorted list that it has more often than another sorted list.
pub(crate) fn more_than(after: &[String], before: &[String]) -> Vec<String> {
    let mut before = before.iter().peekable();
    let mut more = Vec::new();
    for element in after {
        while before.next_if(|known| *known < element).is_some() {}
        if before.next_if_eq(&element).is_none() {
            more.push(element.clone());
        }
    }
    more
}

/// Returns the resident memory of a process in KiB; `None` if the process does not exist.
pub(crate) fn resident_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

fn list(directory: &Path, files: &mut BTreeSet<PathBuf>) {
    for path in entries(directory) {
        if path.is_dir() {
            list(&path, files);
        }
        files.insert(path);
    }
}

fn has_own_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.contains(OWN_NAME) && !name.starts_with(NAMES_OF_TESTS)
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_has_more_often_is_found() {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (after, before, more) in [
            ("", "a", ""),
            ("a b", "a a b", ""),
            ("a a b", "a b", "a"),
            ("b", "a c", "b"),
            ("a b c", "b", "a c"),
        ] {
            assert_eq!(more_than(&list(after), &list(before)), list(more), "{after} / {before}");
        }
    }
}
