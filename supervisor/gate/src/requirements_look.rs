//! When this process last looked at the administrator's requirements. A process that was suspended, or that had no time, may
//! not know the newest ones: nothing begins before it has looked again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Maximum age of the last look at the administrator's requirements when a run or a call begins. A change of them is in force
/// within 2 s.
/// Bound: calls and arguments.
const AGE_MAX: Duration = Duration::from_millis(1_500);

/// When this process last looked at the administrator's requirements. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct RequirementsLook(Arc<watch::Sender<LastLook>>);

#[derive(Clone, Copy, Debug, Default)]
enum LastLook {
    /// The process reads the requirements at its start only.
    #[default]
    NotRepeated,
    /// The process will look repeatedly, and has not yet.
    Never,
    At(Instant),
}

impl RequirementsLook {
    /// From now on, nothing begins without a recent look.
    pub(super) fn require(&self) {
        self.0.send_replace(LastLook::Never);
    }

    /// Notes a look, and that what it found applies. `began` is the time before the files were looked at.
    pub(super) fn note(&self, began: Instant) {
        self.0.send_replace(LastLook::At(began));
    }

    /// Whether the requirements that apply are the newest ones, as far as they can be known.
    pub(super) fn is_recent(&self) -> bool {
        self.0.borrow().is_recent()
    }

    /// Waits until [`Self::is_recent`].
    pub(super) async fn wait_until_recent(&self) {
        let mut looks = self.0.subscribe();
        // The sender lives as long as this value.
        let _ = looks.wait_for(LastLook::is_recent).await;
    }
}

impl LastLook {
    fn is_recent(&self) -> bool {
        match self {
            Self::NotRepeated => true,
            Self::Never => false,
            Self::At(began) => began.elapsed() <= AGE_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn nothing_begins_without_a_recent_look() {
        let look = RequirementsLook::default();
        let begins = |look: &RequirementsLook| look.wait_until_recent().now_or_never().is_some();
        assert!(begins(&look), "a process that does not look again");
        look.require();
        assert!(!begins(&look), "before the first look");
        look.note(Instant::now());
        assert!(begins(&look) && look.is_recent(), "after a look");
        let Some(old) = Instant::now().checked_sub(AGE_MAX * 2) else { return };
        look.note(old);
        assert!(!begins(&look) && !look.is_recent(), "after an old look");
    }
}
