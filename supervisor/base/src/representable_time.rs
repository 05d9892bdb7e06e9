//! Times that have a text in RFC 3339, which has four digits for the year. Formatting another time would panic.

use std::time::{Duration, SystemTime};

/// The last second of the year 9999, since 1970.
const LAST_SECOND: Duration = Duration::from_secs(253_402_300_799);

/// Returns the nearest time between 1970 and the end of the year 9999.
#[must_use]
pub fn representable(time: SystemTime) -> SystemTime {
    time.clamp(SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + LAST_SECOND)
}

/// Returns the time so long ago, or 1970 if that is earlier.
#[must_use]
pub fn ago(age: Duration) -> SystemTime {
    SystemTime::now().checked_sub(age).map_or(SystemTime::UNIX_EPOCH, representable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_becomes_one_that_has_a_text() {
        let epoch = SystemTime::UNIX_EPOCH;
        for time in [epoch - Duration::from_secs(1 << 60), epoch + Duration::from_secs(1 << 60), epoch] {
            let time = representable(time);
            assert!(time >= epoch && time <= epoch + LAST_SECOND);
        }
        assert_eq!(ago(Duration::MAX), epoch);
        assert_eq!(ago(Duration::from_secs(1 << 60)), epoch);
    }
}
