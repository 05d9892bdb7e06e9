//! What a process may do. Upstream servers inherit it, so a client in a container or a sandbox must not share servers with
//! clients outside.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Fields of `/proc/self/status` that say what this process may do.
const RIGHTS: [&str; 11] = [
    "Uid",
    "Gid",
    "Groups",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "NoNewPrivs",
    "Seccomp_filters",
    "Umask",
];
const NAMESPACES: [&str; 6] = ["ipc", "mnt", "net", "pid", "user", "uts"];

/// Returns the rights of this process, each with its name.
pub(super) fn process_rights() -> io::Result<Vec<(String, String)>> {
    let named = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let status = std::fs::read_to_string("/proc/self/status")?;
    let fields = status.lines().filter_map(|line| line.split_once(':'));
    let mut rights: Vec<_> = fields.filter(|(name, _)| RIGHTS.contains(name)).map(named).collect();
    for namespace in NAMESPACES {
        let link = std::fs::read_link(Path::new("/proc/self/ns").join(namespace))?;
        rights.push((format!("namespace {namespace}"), link.to_string_lossy().into_owned()));
    }
    let root = std::fs::metadata("/")?;
    rights.push(("root directory".to_owned(), format!("{}:{}", root.dev(), root.ino())));
    // Programs change their soft limits for themselves, and children inherit them.
    let limits = std::fs::read_to_string("/proc/self/limits")?;
    rights.extend(limits.lines().filter_map(hard_limit).map(named));
    // Without a security module, there is no label.
    let label = std::fs::read_to_string("/proc/self/attr/current").unwrap_or_default();
    rights.push(("security label".to_owned(), label));
    Ok(rights)
}

/// Returns the name and the hard limit in a line of `/proc/self/limits`: name, soft limit, hard limit and unit.
fn hard_limit(line: &str) -> Option<(&str, &str)> {
    const NAME_CHARS: usize = 26;
    let (name, values) = line.split_at_checked(NAME_CHARS)?;
    Some((name.trim_end(), values.split_whitespace().nth(1)?))
}
