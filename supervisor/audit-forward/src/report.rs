//! Tells for each destination how far the log is delivered, for people: `lockhouse audit forward`.

use std::io;

use serde::Serialize;

use crate::backlog::Backlog;
use crate::cursor_file::read_positions;
use crate::state_files::{StateFiles, Status};
use crate::{Destination, ForwardSettings};

/// How far the log is delivered to a destination.
#[derive(Clone, Debug, Serialize)]
pub struct DestinationReport {
    pub destination: String,
    /// Age of the oldest record that was not delivered, in seconds; 0 if there is none.
    pub lag_s: f64,
    /// Number of segments with records that were not delivered.
    pub undelivered_segments: usize,
    /// The process that forwards. `None` if there is none.
    pub pid: Option<u32>,
    /// When records were delivered last, as RFC 3339. `None` if never.
    pub delivered: Option<String>,
    /// Why nothing could be delivered in the last attempt. `None` if it succeeded.
    pub error: Option<String>,
    /// Since when nothing could be delivered, as RFC 3339.
    pub failing_since: Option<String>,
}

/// Returns a report for each destination.
///
/// # Errors
/// The log or the state of a destination cannot be read.
pub fn report(settings: &ForwardSettings) -> io::Result<Vec<DestinationReport>> {
    settings.destinations.iter().map(|entry| report_of(settings, &entry.destination)).collect()
}

fn report_of(settings: &ForwardSettings, destination: &Destination) -> io::Result<DestinationReport> {
    let files = StateFiles::new(settings, destination);
    let mut backlog = Backlog::new(&settings.log);
    backlog.restore(&read_positions(&files.cursor())?);
    match backlog.scan() {
        // No record was written yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        scanned => drop(scanned?),
    }
    let Status { pid, delivered, error, failing_since } = files.read_status();
    let is_forwarding = files.lock()?.is_none();
    Ok(DestinationReport {
        destination: destination.to_string(),
        lag_s: backlog.lag().unwrap_or_default().as_secs_f64(),
        undelivered_segments: backlog.undelivered_segments(),
        pid: is_forwarding.then_some(pid),
        delivered,
        error,
        failing_since,
    })
}
