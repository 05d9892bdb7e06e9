//! What a run is doing, for whoever asks while it goes on. A run that nobody asks about makes nothing of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use lockhouse_messages::Course;

/// Those who ask about one run at one time; whoever comes besides is told nothing.
const ASKING_MAX: usize = 4;
/// How long a run may take to say what it does: it may be waiting for a worker to end.
const PATIENCE: Duration = Duration::from_millis(200);
/// Bytes of the end of what it printed.
pub const TAIL_BYTES_MAX: usize = 1_000;

type Asked = oneshot::Sender<Course>;

/// Whether a run has its worker. Copies are of the same run.
#[derive(Clone, Debug, Default)]
pub struct Begun(Arc<AtomicBool>);

impl Begun {
    pub fn is_it(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Where somebody asks about one run.
#[derive(Clone, Debug)]
pub struct Watch {
    has_begun: Begun,
    asking: mpsc::Sender<Asked>,
}

/// Where a run is asked. Nobody ever asks at the default one.
#[derive(Debug)]
pub struct Looks {
    has_begun: Begun,
    asked: mpsc::Receiver<Asked>,
}

impl Default for Looks {
    fn default() -> Self {
        looks().1
    }
}

/// Both ends.
pub fn looks() -> (Watch, Looks) {
    let (asking, asked) = mpsc::channel(ASKING_MAX);
    let has_begun = Begun::default();
    (Watch { has_begun: has_begun.clone(), asking }, Looks { has_begun, asked })
}

impl Watch {
    /// Whether it has a worker. Until then it waits for one.
    pub fn has_begun(&self) -> bool {
        self.has_begun.is_it()
    }

    /// What it is doing now. None while it waits for a worker, or ends.
    pub async fn look(&self) -> Option<Course> {
        if !self.has_begun() {
            return None;
        }
        let (asked, told) = oneshot::channel();
        self.asking.try_send(asked).ok()?;
        tokio::time::timeout(PATIENCE, told).await.ok()?.ok()
    }
}

impl Looks {
    pub fn begun(&self) -> Begun {
        self.has_begun.clone()
    }

    pub fn begin(&self) {
        self.has_begun.0.store(true, Ordering::Relaxed);
    }

    /// The next who asks. None, for ever, once nobody can.
    pub async fn next(&mut self) -> Option<Asked> {
        self.asked.recv().await
    }
}
