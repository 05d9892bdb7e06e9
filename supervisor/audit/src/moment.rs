//! A point in time by two clocks: the wall clock, which can be set, and the time since the boot of the machine, which
//! cannot. The audit log ages by both, so that a wrong wall clock removes nothing.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};

use super::hash_chain::RecordBody;

/// The kernel's name of the current boot: a UUID.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// A larger difference between the two clocks is a jump of the wall clock.
const TOLERANCE: Duration = Duration::from_secs(2);
/// Maximum time between two boots by which the log ages: nothing but the wall clock says how long it was.
const OFF_MAX: Duration = Duration::from_secs(24 * 3_600);

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) wall: SystemTime,
    /// `None` if it is not known: in a line of an earlier version.
    pub(super) boot: Option<Uptime>,
}

/// The time since a boot, with the time during which the machine slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uptime {
    pub(super) boot: uuid::Uuid,
    pub(super) time: Duration,
}

/// A jump of the wall clock: it was set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClockJump {
    /// What the clock would show without the jump.
    from: SystemTime,
    to: SystemTime,
    /// By how many seconds it was set forward; negative if it was set back.
    difference: f64,
}

impl Moment {
    pub(super) fn now() -> Self {
        static BOOT: OnceLock<Option<uuid::Uuid>> = OnceLock::new();
        let read = || std::fs::read_to_string(BOOT_ID).ok()?.trim().parse().ok();
        let time = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from);
        let boot = BOOT.get_or_init(read).zip(time.ok()).map(|(boot, time)| Uptime { boot, time });
        Self { wall: SystemTime::now(), boot }
    }

    /// Returns the time since an earlier moment of the same boot by the clock that cannot be set; for another boot, by the
    /// wall clock.
    pub(super) fn elapsed_since(self, earlier: Self) -> Duration {
        let wall = || self.wall.duration_since(earlier.wall).unwrap_or_default();
        self.uptime_since(earlier).unwrap_or_else(wall)
    }

    /// Returns by how much the log has aged since an earlier moment: the shorter of the times of both clocks. If the machine
    /// was started in between, the time before that counts at most a day.
    pub(super) fn age_since(self, earlier: Self) -> Duration {
        let wall = self.wall.duration_since(earlier.wall).unwrap_or_default();
        let since_boot = self.boot.map_or(Duration::ZERO, |now| now.time);
        wall.min(self.uptime_since(earlier).unwrap_or(OFF_MAX + since_boot))
    }

    /// Returns the jump of the wall clock since an earlier moment of the same boot, if there was one.
    pub(super) fn jump_since(self, earlier: Self) -> Option<ClockJump> {
        let from = earlier.wall.checked_add(self.uptime_since(earlier)?)?;
        let difference = match self.wall.duration_since(from) {
            Ok(ahead) => ahead.as_secs_f64(),
            Err(behind) => -behind.duration().as_secs_f64(),
        };
        let is_jump = difference.abs() > TOLERANCE.as_secs_f64();
        is_jump.then_some(ClockJump { from, to: self.wall, difference })
    }

    fn uptime_since(self, earlier: Self) -> Option<Duration> {
        let (now, before) = (self.boot?, earlier.boot?);
        (now.boot == before.boot).then(|| now.time.saturating_sub(before.time))
    }

    /// Appends the time since the boot to a record.
    pub(super) fn write_to(self, body: RecordBody) -> RecordBody {
        match self.boot {
            Some(Uptime { boot, time }) => {
                body.text("boot", &boot.simple().to_string()).number("up_ms", time.as_millis())
            }
            None => body,
        }
    }
}

impl ClockJump {
    /// Returns the record of the jump.
    pub(super) fn record(self) -> RecordBody {
        let time = super::hash_chain::timestamp;
        let body = RecordBody::new("clock").text("from", &time(self.from)).text("to", &time(self.to));
        body.number("difference_s", format_args!("{:.3}", self.difference))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// Returns a moment whose clocks agree, all of one boot.
    pub(in super::super) fn at(wall: SystemTime) -> Moment {
        let time = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Moment { wall, boot: Some(Uptime { boot: uuid::Uuid::from_u128(1), time }) }
    }

    #[test]
    fn the_log_ages_by_the_clock_that_shows_less() {
        let start = at(SystemTime::UNIX_EPOCH + HOUR * 1_000);
        let moment = |wall: i32, boot: u128, up: u32| Moment {
            wall: if wall < 0 {
                start.wall - HOUR * wall.unsigned_abs()
            } else {
                start.wall + HOUR * wall as u32
            },
            boot: Some(Uptime { boot: uuid::Uuid::from_u128(boot), time: HOUR * up }),
        };
        let unknown = |wall: u32| Moment { wall: start.wall + HOUR * wall, boot: None };
        for (what, now, hours, jump) in [
            ("an hour", moment(1, 1, 1_001), 1, None),
            ("40 days ahead", moment(960, 1, 1_001), 1, Some(959.0)),
            ("40 days back", moment(-960, 1, 1_001), 0, Some(-961.0)),
            ("another boot, soon", moment(5, 2, 1), 5, None),
            ("another boot, a month later or 40 days ahead", moment(960, 2, 1), 25, None),
            ("another boot, long ago", moment(960, 2, 900), 924, None),
            ("another boot, back", moment(-5, 2, 1), 0, None),
            ("unknown", unknown(5), 5, None),
            ("unknown, 40 days", unknown(960), 24, None),
        ] {
            assert_eq!(now.age_since(start), HOUR * hours, "{what}");
            let found = now.jump_since(start).map(|jump| (jump.difference / 3_600.0).round());
            assert_eq!(found, jump, "{what}");
        }
        let real = (Moment::now(), Moment::now());
        assert!(real.0.boot.is_some() && real.1.jump_since(real.0).is_none(), "{real:?}");
    }
}
