//! Reads the records of the audit log that match a filter.

use std::io;
use std::path::Path;

use lockhouse_audit::reader::{Filter, LocatedRecord, ReadError, records};

/// Returns the records that match `filter`; none if no log exists yet.
pub(super) fn matching_records(
    directory: &Path,
    filter: &Filter,
) -> Result<impl Iterator<Item = Result<LocatedRecord, ReadError>>, ReadError> {
    match records(directory, filter) {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        found => found.map(|found| Some(found).into_iter().flatten()),
    }
}
