//! The records of the log that fit a filter.

use std::io;
use std::path::Path;

use lockhouse_audit::read::{Filter, Found, ReadError, records};

/// The records that are wanted; none where nothing was recorded yet.
pub(super) fn matching(
    directory: &Path,
    filter: &Filter,
) -> Result<impl Iterator<Item = Result<Found, ReadError>>, ReadError> {
    match records(directory, filter) {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        found => found.map(|found| Some(found).into_iter().flatten()),
    }
}
