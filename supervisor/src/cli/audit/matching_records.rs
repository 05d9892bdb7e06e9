//! Reads the records of the audit log that match a filter.

use std::io;
use std::path::Path;

use lockhouse_audit::reader::{Filter, LocatedRecord, ReadError, records};

/// Returns the audit records that match `filter`. There are none if no audit log exists yet.
pub(super) fn matching_records(
    directory: &Path,
    filter: &Filter,
) -> Result<impl Iterator<Item = Result<LocatedRecord, ReadError>>, ReadError> {
    match records(directory, filter) {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        found => found.map(|found| Some(found).into_iter().flatten()),
    }
}
