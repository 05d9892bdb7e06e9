//! The names of the copies of audit logs in the shared state.

use std::fmt;
use std::io;
use std::path::Path;

use data_encoding::HEXLOWER;
use lockhouse_base::audit_files::{EXTENSION, INDEX, is_segment};
use sha2::{Digest as _, Sha256};

use crate::settings::HostName;

/// Number of bytes of the digest that names a log.
const ID_BYTES: usize = 8;
/// Number of digits of a position, so that the keys of the parts of a file are sorted.
const POSITION_DIGITS: usize = 15;

/// Distinguishes the logs that one host has had: the digest of the first line of the index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogId(String);

impl LogId {
    pub(crate) fn of_first_line(line: &[u8]) -> Self {
        Self(HEXLOWER.encode(&Sha256::digest(line)[..ID_BYTES]))
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A part of a file of an audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuditPart {
    pub(crate) host: HostName,
    pub(crate) log: LogId,
    /// The name of the file. A key has it without its extension.
    pub(crate) file: String,
    /// The position of its first byte in the file.
    pub(crate) start: u64,
    /// The position after its last byte.
    pub(crate) end: u64,
}

impl AuditPart {
    pub(crate) fn key(&self) -> String {
        let Self { host, log, file, start, end } = self;
        let name = file.strip_suffix(EXTENSION).unwrap_or(file);
        format!("{host}.{log}.{name}.{start:0POSITION_DIGITS$}-{end:0POSITION_DIGITS$}")
    }

    /// Returns the part with this key. `None` if no host of this version has written it.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        let mut parts = key.split('.');
        let (host, log, name, range) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let (start, end) = range.split_once('-')?;
        let (start, end) = (start.parse().ok()?, end.parse().ok()?);
        let file = format!("{name}{EXTENSION}");
        let is_log = log.len() == 2 * ID_BYTES && is_hexadecimal(log);
        let is_file = file == INDEX || is_segment(&file);
        let is_valid = parts.next().is_none() && is_log && is_file && start < end;
        let host = host.parse().ok()?;
        is_valid.then(|| Self { host, log: LogId(log.to_owned()), file, start, end })
    }
}

/// Returns the names of the segments in the directory of a log. The file with the names of clients is not copied: a name can be erased.
pub(crate) fn segment_names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        names.extend(name.to_str().filter(|name| is_segment(name)).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_a_part_and_no_other_text_does() {
        let segment = format!("2026-11-30-{}", "0f".repeat(16));
        let part = AuditPart {
            host: "h-1".parse().expect("a name"),
            log: LogId::of_first_line(b"{}\n"),
            file: format!("{segment}.jsonl"),
            start: 0,
            end: 17,
        };
        let key = part.key();
        assert!(key.ends_with(&format!(".{segment}.000000000000000-000000000000017")), "{key}");
        assert_eq!(AuditPart::of_key(&key), Some(part));
        for (from, to) in [
            (segment.as_str(), "names"),
            (segment.as_str(), "../../x"),
            ("h-1", "H"),
            ("h-1", ".."),
            ("-000000000000017", ""),
            ("017", "000"),
            (".2026", ".g.2026"),
        ] {
            assert_eq!(AuditPart::of_key(&key.replace(from, to)), None, "{to:?}");
        }
    }
}
