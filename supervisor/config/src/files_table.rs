//! The settings of the built-in server `files`, from its table in the configuration.

use std::collections::BTreeMap;

use lockhouse_base::own_places::OwnPlaces;
use lockhouse_host_files::{FILES_NAMES, FilePattern, HostFileSettings};
use lockhouse_protocol::ServerName;

use super::placeholders::Environment;

/// The table `[servers.files]` without a command and a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FilesTable {
    pub(super) read: Vec<FilePattern>,
    pub(super) write: Vec<FilePattern>,
    /// Maximum size of a file that is read or written, in MiB.
    pub(super) file_mib: u32,
}

/// The default of `file_mib`.
pub(super) const FILE_MIB: u32 = 64;

/// Returns the settings of the server `files`. Its name is `files`, or `lockhouse_files` if one of the upstream servers is
/// called `files`; an upstream server with both names keeps its name, and the server `files` is then turned off. `own` are
/// the places that no program may use.
pub(super) fn settings<S>(
    table: &FilesTable,
    upstreams: &BTreeMap<ServerName, S>,
    environment: &Environment,
    own: OwnPlaces,
) -> Option<HostFileSettings> {
    let names = FILES_NAMES.into_iter().filter_map(|name| ServerName::new(name).ok());
    let mut names = names.collect::<Vec<_>>().into_iter();
    let (first, last) = (names.next()?, names.next()?);
    let name = if upstreams.contains_key(&first) { last } else { first };
    let is_taken = upstreams.contains_key(&name);
    if is_taken && *table != FilesTable::default() {
        tracing::warn!(
            "the built-in server files is turned off: upstream servers have both names, files and {name}"
        );
    }
    let table = if is_taken { FilesTable::default() } else { table.clone() };
    Some(HostFileSettings {
        name,
        read: table.read,
        write: table.write,
        file_bytes: u64::from(table.file_mib) * 1024 * 1024,
        home: environment.for_files().home,
        is_in_session: environment.person.is_some(),
        own,
    })
}
