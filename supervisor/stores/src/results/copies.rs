//! Copies of results in memory, which survive the host that has made them: see [`ValueCopies`].

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use lockhouse_cluster::{CopiedValue, CopyUnreadable, Membership, ValueCopies, ValueKind};
use lockhouse_messages::Owner;
use lockhouse_protocol::ResultHandle;

use super::memory::{ResultKind, StoredResult};
use super::{RESULT_SHARE, Results, Storage};

impl Results {
    /// Begins to copy the results that are stored from now on, if the configuration of the cluster says so. Later calls have no effect.
    pub fn begin_copies(&self, membership: &Membership) {
        let bytes_max = self.bounds.bytes / RESULT_SHARE;
        if let Some(copies) = ValueCopies::begin(membership, bytes_max, self.bounds.lifetime) {
            let _ = self.copies.set(copies);
        }
    }

    /// Returns the copies of the results. `None` if there are none.
    pub fn copies(&self) -> Option<&ValueCopies> {
        self.copies.get()
    }

    pub(super) fn copy(&self, owner: Owner, handle: &ResultHandle, kind: ResultKind, json: Arc<str>) {
        let Some(copies) = self.copies.get() else { return };
        // A lifetime has at most a week.
        let expires = SystemTime::now() + self.bounds.lifetime;
        let (kind, handle) = (kind.into(), handle.as_str().to_owned());
        copies.offer(CopiedValue { owner, kind, handle, expires, json });
    }

    /// Whether this owner has a result in memory with this handle.
    pub fn has_in_memory(&self, owner: Owner, handle: &ResultHandle) -> bool {
        let Storage::Memory(memory) = &self.place else { return false };
        memory.lock().has(owner, handle, &self.bounds, Instant::now())
    }

    /// Reads the copy of a result that is not in memory into memory, so that its further parts are read from there. Returns whether this
    /// owner has a result in memory with this handle then.
    ///
    /// # Errors
    /// [`CopyUnreadable`]
    pub async fn restore(&self, owner: Owner, handle: &ResultHandle) -> Result<bool, CopyUnreadable> {
        let (Some(copies), Storage::Memory(memory)) = (self.copies.get(), &self.place) else {
            return Ok(false);
        };
        let Some(CopiedValue { kind, expires, json, .. }) = copies.read(owner, handle.as_str()).await? else {
            return Ok(false);
        };
        let now = Instant::now();
        let rest = expires.duration_since(SystemTime::now()).unwrap_or_default();
        let age = self.bounds.lifetime.saturating_sub(rest);
        let mut memory = memory.lock();
        // Another request may have read it meanwhile. A machine that was started more recently has no such instant.
        if let Some(since) = now.checked_sub(age)
            && !memory.has(owner, handle, &self.bounds, now)
        {
            let result = StoredResult { owner, handle: handle.clone(), kind: kind.into(), json, since };
            memory.store(result, &self.bounds, now);
        }
        Ok(memory.has(owner, handle, &self.bounds, now))
    }
}

impl From<ResultKind> for ValueKind {
    fn from(kind: ResultKind) -> Self {
        match kind {
            ResultKind::Part => Self::Value,
            ResultKind::Answer => Self::Answer,
        }
    }
}

impl From<ValueKind> for ResultKind {
    fn from(kind: ValueKind) -> Self {
        match kind {
            ValueKind::Value => Self::Part,
            ValueKind::Answer => Self::Answer,
        }
    }
}
