//! Converts ages to times of day that stay the same from one poll to the next, so that nothing on the page changes while
//! nothing happens.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// The time at which each thing began, as computed when it was first seen.
#[derive(Debug, Default)]
pub(super) struct StableTimes {
    known: BTreeMap<String, String>,
    /// The times that were requested since the last call of [`Self::forget_others`].
    used: BTreeMap<String, String>,
}

impl StableTimes {
    /// Returns the time at which a thing began that is this old, as RFC 3339. `key` identifies the thing.
    pub(super) fn began(&mut self, key: String, age_s: f64) -> String {
        let time = self.known.get(&key).cloned().unwrap_or_else(|| {
            let age = Duration::try_from_secs_f64(age_s).unwrap_or_default();
            let began = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
            humantime::format_rfc3339_millis(began).to_string()
        });
        self.used.insert(key, time.clone());
        time
    }

    /// Forgets the things that were not requested since the last call.
    pub(super) fn forget_others(&mut self) {
        self.known = std::mem::take(&mut self.used);
    }
}
