//! Copies of stored values in S3, which survive the host that has made them: values that are too long for an answer, and answers of
//! background runs. Each copy is sealed with a key of the hosts and of its handle, written once, and served to the owner of the value
//! alone. Who has the key of the hosts but not the handle, which has 88 random bits, cannot read a copy.

mod copy_failures;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockhouse_messages::Owner;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::copied_value::CopiedValue;
use crate::membership::Membership;
use crate::object_storage::ObjectError;
use crate::sealed_storage::SealedStorage;
use copy_failures::CopyFailures;

/// Maximum number of values that wait for their copies. A further one is not copied.
/// Bound: hosts of a cluster.
const WAITING_MAX: usize = 1_000;
/// Maximum number of bytes of the values that wait for their copies. A further one is not copied, unless no other waits.
/// Bound: hosts of a cluster.
const WAITING_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of a value that is copied, in bytes.
/// Bound: hosts of a cluster.
const VALUE_BYTES_MAX: u64 = 256 << 20;
/// Number of copies that are written at one time.
const WRITERS: usize = 2;
/// Maximum number of copies that are read at one time: each is in memory as a whole. Reads of one owner wait for each other.
/// Bound: hosts of a cluster.
const READS_MAX: usize = 4;
/// Maximum time that a read waits for others.
const READ_WAIT: Duration = Duration::from_secs(3);
/// Maximum time for the copies that are not written when the process ends.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which a host removes old copies.
const REMOVAL_INTERVAL: Duration = Duration::from_secs(600);
/// How long a copy stays after its value has expired: the clocks of the hosts and of the S3 server differ.
const REMOVAL_MARGIN: Duration = Duration::from_secs(600);

/// Why a copy cannot be read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyUnreadable {
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error("others are read")]
    Busy,
}

/// The copies of the values that this host stores. Clones are of the same copies.
#[derive(Clone, Debug)]
pub struct ValueCopies(Arc<ValueCopiesInner>);

#[derive(Debug)]
struct ValueCopiesInner {
    sealed: Arc<SealedStorage>,
    /// Maximum size of a value, in bytes.
    bytes_max: u64,
    /// How long a value is stored.
    lifetime: Duration,
    queue: mpsc::Sender<CopiedValue>,
    waiting: watch::Sender<Waiting>,
    failures: CopyFailures,
    /// One for each part of the owners, so that one owner delays few others.
    reads: [Semaphore; READS_MAX],
}

/// The values that wait for their copies, with those that are being written.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    count: usize,
    bytes: u64,
}

impl ValueCopies {
    /// Begins to copy values, of at most `bytes_max` bytes, which are stored for `lifetime`. `None` if the configuration asks for no
    /// copies.
    pub fn begin(membership: &Membership, bytes_max: u64, lifetime: Duration) -> Option<Self> {
        Some(Self::begin_with(membership.value_storage()?.clone(), bytes_max, lifetime))
    }

    fn begin_with(sealed: Arc<SealedStorage>, bytes_max: u64, lifetime: Duration) -> Self {
        let (queue, values) = mpsc::channel(WAITING_MAX);
        let inner = ValueCopiesInner {
            sealed,
            bytes_max: bytes_max.min(VALUE_BYTES_MAX),
            lifetime,
            queue,
            waiting: watch::Sender::default(),
            failures: CopyFailures::default(),
            reads: [const { Semaphore::const_new(1) }; READS_MAX],
        };
        let copies = Self(Arc::new(inner));
        let values = Arc::new(tokio::sync::Mutex::new(values));
        for _ in 0..WRITERS {
            let (copies, values) = (copies.clone(), values.clone());
            tokio::spawn(async move {
                loop {
                    let next = values.lock().await.recv().await;
                    let Some(value) = next else { return };
                    copies.write(value).await;
                }
            });
        }
        copies
    }

    /// Copies a value in the background. If too many wait, it stays on this host only.
    pub fn offer(&self, value: CopiedValue) {
        // The owner of a connection means another client on another host.
        if !value.owner.is_limited() {
            return;
        }
        let bytes = value.json.len() as u64;
        if bytes > self.0.bytes_max {
            return self.0.failures.note("a value is too long for a copy");
        }
        let has_room = self.0.waiting.send_if_modified(|waiting| {
            let has_room = waiting.count < WAITING_MAX
                && (waiting.count == 0 || waiting.bytes + bytes <= WAITING_BYTES_MAX);
            if has_room {
                *waiting = Waiting { count: waiting.count + 1, bytes: waiting.bytes + bytes };
            }
            has_room
        });
        if !has_room {
            self.0.failures.note("too many values wait for their copies");
        } else if self.0.queue.try_send(value).is_err() {
            self.remove_waiting(bytes);
        }
    }

    /// Returns the value of this owner with this handle. `None` if it has no copy, has expired, or belongs to another owner.
    ///
    /// # Errors
    /// [`CopyUnreadable`]
    pub async fn read(&self, owner: Owner, handle: &str) -> Result<Option<CopiedValue>, CopyUnreadable> {
        if !owner.is_limited() {
            return Ok(None);
        }
        let part = usize::try_from(owner.number() % READS_MAX as u128).unwrap_or_default();
        let waiting = timeout(READ_WAIT, self.0.reads[part].acquire()).await;
        // The semaphore is never closed.
        let _permit = waiting.map_err(|_| CopyUnreadable::Busy)?;
        let value = self.0.sealed.read(owner, handle, self.0.bytes_max).await?;
        Ok(value.filter(|value| value.expires > SystemTime::now()))
    }

    /// Returns why values were not copied lately. `None` if all were.
    pub fn failure(&self) -> Option<String> {
        self.0.failures.reason()
    }

    /// Removes the copies of expired values, of all hosts, until it is dropped. While the clock of this host is wrong, it removes none:
    /// they would be those of values that others serve.
    pub async fn keep(&self, membership: &Membership) -> Infallible {
        loop {
            // Not all hosts at the same time.
            sleep(REMOVAL_INTERVAL.mul_f64(0.75 + 0.5 * random_share())).await;
            let limit = SystemTime::now().checked_sub(self.0.lifetime + REMOVAL_MARGIN);
            let Some(time) = limit.filter(|_| membership.has_right_clock()) else { continue };
            match self.0.sealed.remove_older(time).await {
                Ok(count) => tracing::debug!("{count} copies of expired values were removed"),
                Err(error) => tracing::warn!("copies of expired values are not removed: {error}"),
            }
        }
    }

    /// Waits until the copies of all values are written, at the end of this process.
    pub async fn finish(&self) {
        let mut waiting = self.0.waiting.subscribe();
        if timeout(FINISH_TIMEOUT, waiting.wait_for(|waiting| waiting.count == 0)).await.is_err() {
            let count = waiting.borrow().count;
            tracing::error!("{count} values are not copied to S3 and end with this process");
        }
    }

    async fn write(&self, value: CopiedValue) {
        let bytes = value.json.len() as u64;
        match self.0.sealed.write(value).await {
            Ok(()) => self.0.failures.note_success(),
            Err(error) => self.0.failures.note(error),
        }
        self.remove_waiting(bytes);
    }

    fn remove_waiting(&self, bytes: u64) {
        self.0.waiting.send_modify(|waiting| {
            *waiting = Waiting {
                count: waiting.count.saturating_sub(1),
                bytes: waiting.bytes.saturating_sub(bytes),
            };
        });
    }
}

/// Returns a number from 0 to 1.
fn random_share() -> f64 {
    let mut byte = [0; 1];
    match getrandom::fill(&mut byte) {
        Ok(()) => f64::from(byte[0]) / f64::from(u8::MAX),
        Err(_) => 0.5,
    }
}
