//! Records in the audit log what a destination did not receive. These records are delivered like all others, so they are the
//! receiver's notice too.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_audit::{Audit, SegmentName, UndeliveredOutcome, UndeliveredRecords};

use crate::backlog::VanishedSegment;
use crate::segment_reader::Batch;

/// Maximum number of changes of delivered segments that one process records for a destination. Further ones are only
/// logged: whoever changes the files could fill the log.
/// Bound: the audit log.
const CHANGES_MAX: usize = 256;
/// Minimum time between two records of rejected records. A destination that rejects everything, these records included, would
/// otherwise fill the log.
const REJECTION_INTERVAL: Duration = Duration::from_secs(60);

/// Records what one destination did not receive.
#[derive(Debug)]
pub(super) struct UndeliveredLog {
    destination: String,
    audit: Arc<Audit>,
    /// The changes that were recorded: segment, number of the record, and whether the file was truncated.
    changes: BTreeSet<(SegmentName, u64, bool)>,
    rejection_recorded: Option<Instant>,
    /// Number of rejected records that no record tells of yet.
    rejected: u64,
}

impl UndeliveredLog {
    pub(super) fn new(destination: String, audit: Arc<Audit>) -> Self {
        Self { destination, audit, changes: BTreeSet::new(), rejection_recorded: None, rejected: 0 }
    }

    /// Records that a segment has gone before it was delivered. Returns whether this is recorded.
    pub(super) fn report_lost(&self, segment: &VanishedSegment) -> bool {
        self.record(UndeliveredRecords {
            destination: &self.destination,
            outcome: UndeliveredOutcome::Lost,
            segment: &segment.name,
            first: segment.first,
            last: None,
            reason: "the segment expired or was removed before its records were delivered",
        })
    }

    /// Records that a segment does not continue what was delivered of it.
    pub(super) fn report_changes(&mut self, batch: &Batch) {
        let Some(first) = batch.records.first().filter(|_| batch.is_discontinuous || batch.is_truncated)
        else {
            return;
        };
        let change = (batch.segment.clone(), first.seq, batch.is_truncated);
        if self.changes.contains(&change) {
            return;
        }
        let reason = match batch.is_truncated {
            true => "the segment is shorter than what was delivered of it; it is delivered again",
            false => {
                "a record does not continue the delivered ones: records were changed, removed or inserted"
            }
        };
        if self.changes.len() >= CHANGES_MAX {
            tracing::error!("the audit log segment {}: {reason}", batch.segment);
            return;
        }
        self.changes.insert(change);
        self.record(UndeliveredRecords {
            destination: &self.destination,
            outcome: UndeliveredOutcome::Changed,
            segment: &batch.segment,
            first: first.seq,
            last: None,
            reason,
        });
    }

    /// Records that the destination rejected `rejected` records of a batch for good.
    pub(super) fn report_rejected(&mut self, batch: &Batch, rejected: u64, reason: &str) {
        self.rejected = self.rejected.saturating_add(rejected);
        if batch.records.iter().all(|record| record.event == "delivery")
            || self.rejection_recorded.is_some_and(|recorded| recorded.elapsed() < REJECTION_INTERVAL)
        {
            return;
        }
        let (Some(first), Some(last)) = (batch.records.first(), batch.records.last()) else { return };
        let words = format!("{} records since the last such record: {reason}", self.rejected);
        let is_recorded = self.record(UndeliveredRecords {
            destination: &self.destination,
            outcome: UndeliveredOutcome::Rejected,
            segment: &batch.segment,
            first: first.seq,
            last: Some(last.seq),
            reason: &words,
        });
        if is_recorded {
            (self.rejected, self.rejection_recorded) = (0, Some(Instant::now()));
        }
    }

    fn record(&self, records: UndeliveredRecords<'_>) -> bool {
        let UndeliveredRecords { destination, segment, first, reason, .. } = records;
        tracing::error!("{destination} did not receive records {first} and later of {segment}: {reason}");
        self.audit.undelivered(records).inspect_err(|error| tracing::error!("{error}")).is_ok()
    }
}
