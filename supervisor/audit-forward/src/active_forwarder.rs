//! Forwards the log to one destination, in the process that holds the destination's lock.

#[cfg(test)]
mod tests;
mod undelivered;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use lockhouse_audit::{Audit, Delivery, SegmentName};
use lockhouse_base::telemetry;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::acceptance::Acceptance;
use crate::backlog::Backlog;
use crate::backoff::Backoff;
use crate::cursor_file::{CursorFile, Position};
use crate::delivery_error::DeliveryError;
use crate::receiver::Receiver;
use crate::segment_reader::{Batch, BatchLimits, read_account, read_batch};
use crate::state_files::{StateFiles, Status};
use crate::{ForwardDestination, ForwardSettings, SegmentAccounts};
use undelivered::UndeliveredLog;

/// How often the log is looked at for new records.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of batches that were sent to a destination of the audit log and do not count as delivered.
/// Bound: the audit log.
const UNSETTLED_MAX: usize = 64;
/// Maximum time that a process needs longer for its end because it forwards its last records.
/// Bound: the audit log.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum time between two updates of the status file while records are delivered.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum time between two log lines about the same failure.
const LOG_INTERVAL: Duration = Duration::from_secs(300);
/// Number of attempts to send a single record that the destination rejects.
const SINGLE_ATTEMPTS: u32 = 3;

/// The forwarding to one destination.
#[derive(Debug)]
pub(crate) struct ActiveForwarder {
    settings: Arc<ForwardSettings>,
    delivery: Arc<Delivery>,
    files: StateFiles,
    cursor: CursorFile,
    backlog: Backlog,
    receiver: Receiver,
    undelivered: UndeliveredLog,
    backoff: Backoff,
    /// What was sent and does not count as delivered, the oldest first.
    unsettled: VecDeque<SentBatch>,
    /// The segment of the last batch: the next batch is of another one, if possible.
    last_segment: Option<SegmentName>,
    limits: BatchLimits,
    /// How often a single record was rejected.
    single_rejections: u32,
    /// Whether the destination has accepted records since one was left out. Two in a row are not left out: then the
    /// destination rejects everything.
    may_leave_out: bool,
    /// Whether the last attempt to send a batch failed.
    is_failing: bool,
    status: Status,
    status_written: Option<Instant>,
    /// The failure that was logged last, and when.
    logged: Option<(String, Instant)>,
}

#[derive(Debug)]
struct SentBatch {
    at: Instant,
    segment: SegmentName,
    end: Position,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A batch was sent, or a smaller one is to be sent next.
    Progress,
    /// There is nothing to send.
    Idle,
}

impl ActiveForwarder {
    /// Continues where the cursor of the destination is.
    ///
    /// # Errors
    /// The cursor cannot be read.
    pub(crate) fn new(
        settings: Arc<ForwardSettings>,
        destination: &ForwardDestination,
        audit: Arc<Audit>,
        delivery: Arc<Delivery>,
        files: StateFiles,
    ) -> std::io::Result<Self> {
        let cursor = CursorFile::open(files.cursor())?;
        let mut backlog = Backlog::new(&settings.log);
        backlog.restore(cursor.positions());
        let status = Status { pid: std::process::id(), ..files.read_status() };
        Ok(Self {
            receiver: Receiver::new(&settings, destination),
            undelivered: UndeliveredLog::new(destination.destination.to_string(), audit),
            settings,
            delivery,
            files,
            cursor,
            backlog,
            backoff: Backoff::default(),
            unsettled: VecDeque::new(),
            last_segment: None,
            limits: BatchLimits::default(),
            single_rejections: 0,
            may_leave_out: false,
            is_failing: false,
            status,
            status_written: None,
            logged: None,
        })
    }

    /// Forwards until `stop` is cancelled. Then sends the last records, if that is possible soon.
    pub(crate) async fn run(mut self, stop: &CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            never = self.forward() => match never {},
        }
        if !self.is_failing {
            let _ = timeout(FINISH_TIMEOUT, self.send_rest()).await;
        }
        if self.receiver.close().await {
            let sent = std::mem::take(&mut self.unsettled);
            let _ = self.commit(sent.into_iter().map(|sent| (sent.segment, sent.end)).collect());
        }
        self.files.write_status(&self.status);
    }

    async fn forward(&mut self) -> std::convert::Infallible {
        loop {
            let wait = match self.step().await {
                Ok(Step::Progress) => {
                    self.is_failing = false;
                    Duration::ZERO
                }
                Ok(Step::Idle) => POLL_INTERVAL,
                Err(error) => self.fail(&error),
            };
            self.publish();
            if wait.is_zero() {
                tokio::task::yield_now().await;
            } else {
                sleep(wait).await;
            }
        }
    }

    /// Sends everything that the log has. An interrupted batch is sent again.
    async fn send_rest(&mut self) {
        self.rewind_if_disconnected();
        while matches!(self.step().await, Ok(Step::Progress)) {}
        self.publish();
    }

    fn rewind_if_disconnected(&mut self) {
        if self.settle().is_err() {
            self.unsettled.clear();
            self.backlog.rewind();
        }
    }

    /// Finds new records, sends one batch of them, and moves the cursor past what counts as delivered.
    async fn step(&mut self) -> Result<Step, DeliveryError> {
        self.cursor.flush().map_err(DeliveryError::Cursor)?;
        let unreadable = self.scan()?;
        self.settle()?;
        if self.unsettled.len() >= UNSETTLED_MAX {
            return Ok(Step::Idle);
        }
        let Some(batch) = self.next_batch()? else { return unreadable.map_or(Ok(Step::Idle), Err) };
        self.undelivered.report_changes(&batch);
        match self.receiver.send(&batch).await {
            Ok(acceptance) => {
                if let Acceptance::Partial { rejected, reason } = acceptance {
                    self.undelivered.report_rejected(&batch, rejected, &reason);
                }
                self.may_leave_out = true;
                self.single_rejections = 0;
                self.limits.records = (self.limits.records * 2).min(BatchLimits::default().records);
            }
            Err(DeliveryError::Rejected(status)) => {
                if !self.may_be_left_out(&batch, status)? {
                    return Ok(Step::Progress);
                }
            }
            Err(error) => return Err(error),
        }
        self.last_segment = Some(batch.segment.clone());
        self.backlog.set_sent(&batch.segment, batch.end.clone());
        self.unsettled.push_back(SentBatch { at: Instant::now(), segment: batch.segment, end: batch.end });
        self.settle()?;
        Ok(Step::Progress)
    }

    /// Decides about a batch that the destination rejects: smaller batches are sent, down to one record. Returns true if
    /// that record is left out, which the log then says.
    fn may_be_left_out(&mut self, batch: &Batch, status: u16) -> Result<bool, DeliveryError> {
        if batch.records.len() > 1 {
            self.limits.records = batch.records.len() / 2;
            return Ok(false);
        }
        self.single_rejections += 1;
        if self.single_rejections < SINGLE_ATTEMPTS || !self.may_leave_out {
            return Err(DeliveryError::Rejected(status));
        }
        (self.single_rejections, self.may_leave_out) = (0, false);
        self.undelivered.report_rejected(batch, 1, &format!("HTTP status {status}"));
        Ok(true)
    }

    /// Finds new records, and records which segments have gone. Returns why a segment cannot be read.
    fn scan(&mut self) -> Result<Option<DeliveryError>, DeliveryError> {
        let log = self.settings.log.clone();
        let unreadable = |source| DeliveryError::Log { path: log.clone(), source };
        let found = self.backlog.scan().map_err(unreadable)?;
        for segment in found.vanished {
            // Without its record, it is reported again.
            if segment.may_have_more && !self.undelivered.report_lost(&segment) {
                continue;
            }
            self.backlog.forget(&segment.name);
            self.cursor.remove(&segment.name).map_err(DeliveryError::Cursor)?;
        }
        let of_segment =
            |(name, source): (SegmentName, _)| DeliveryError::Log { path: log.join(name.as_str()), source };
        Ok(found.unreadable.map(of_segment))
    }

    fn next_batch(&mut self) -> Result<Option<Batch>, DeliveryError> {
        while let Some((segment, from)) = self.backlog.next_unsent(self.last_segment.as_ref()) {
            let batch = match self.read_batch(&segment, &from) {
                Ok(batch) => batch,
                // The next scan finds that it has gone.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(source) => {
                    return Err(DeliveryError::Log {
                        path: self.settings.log.join(segment.as_str()),
                        source,
                    });
                }
            };
            if !batch.records.is_empty() {
                return Ok(Some(batch));
            }
            self.backlog.set_examined(&segment);
        }
        Ok(None)
    }

    fn read_batch(&self, segment: &SegmentName, from: &Position) -> std::io::Result<Batch> {
        let log = &self.settings.log;
        let batch = read_batch(log, segment, from, self.limits)?;
        let account = match self.settings.accounts {
            SegmentAccounts::Owner => None,
            SegmentAccounts::FirstRecord => read_account(log, segment)?,
        };
        Ok(Batch { uid: account.unwrap_or(batch.uid), ..batch })
    }

    /// Moves the cursor past the batches that the destination has received.
    fn settle(&mut self) -> Result<(), DeliveryError> {
        let (mut delivered, mut broken) = (BTreeMap::new(), None);
        while let Some(sent) = self.unsettled.front() {
            match self.receiver.has_received(sent.at) {
                Ok(true) => delivered.extend(self.unsettled.pop_front().map(|sent| (sent.segment, sent.end))),
                Ok(false) => break,
                Err(error) => {
                    broken = Some(error);
                    break;
                }
            }
        }
        self.commit(delivered)?;
        broken.map_or(Ok(()), Err)
    }

    fn commit(&mut self, mut delivered: BTreeMap<SegmentName, Position>) -> Result<(), DeliveryError> {
        delivered.retain(|segment, end| self.backlog.set_delivered(segment, end));
        if delivered.is_empty() {
            return Ok(());
        }
        self.backoff.reset();
        self.status.delivered = Some(now());
        if self.status.error.take().is_some() {
            tracing::info!("the audit log is delivered to {} again", self.delivery.destination());
            (self.status.failing_since, self.logged, self.status_written) = (None, None, None);
        }
        self.cursor.advance(delivered).map_err(DeliveryError::Cursor)
    }

    /// Notes a failure: what was not acknowledged is sent again. Returns how long to wait before.
    fn fail(&mut self, error: &DeliveryError) -> Duration {
        self.is_failing = true;
        self.unsettled.clear();
        self.backlog.rewind();
        let destination = self.delivery.destination();
        telemetry::count_audit_forward_failure(destination);
        let words = error.to_string();
        let is_new = |(logged, at): &(String, Instant)| *logged != words || at.elapsed() >= LOG_INTERVAL;
        if self.logged.as_ref().is_none_or(is_new) {
            tracing::warn!("the audit log cannot be delivered to {destination}, and is kept: {words}");
            self.logged = Some((words.clone(), Instant::now()));
        }
        self.status.failing_since.get_or_insert_with(now);
        if self.status.error.as_ref() != Some(&words) {
            (self.status.error, self.status_written) = (Some(words), None);
        }
        let asked = match error {
            DeliveryError::Busy { retry_after, .. } => *retry_after,
            _ => None,
        };
        self.backoff.next(asked)
    }

    /// Tells other parts of this process, and other processes, how far the destination is.
    fn publish(&mut self) {
        self.delivery.update(self.backlog.lag(), self.status.error.clone());
        if self.status_written.is_none_or(|written| written.elapsed() >= STATUS_INTERVAL) {
            let written = self.files.read_status();
            if written != self.status {
                self.files.write_status(&self.status);
            }
            self.status_written = Some(Instant::now());
        }
    }
}

fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
