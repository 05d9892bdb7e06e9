//! The connections of one run to servers with `token = "per_run"`: each has a token for the scopes of its calls, and is closed with
//! the run.

use std::sync::{Arc, Weak};

use lockhouse_messages::Owner;
use lockhouse_protocol::ExecutionId;
use parking_lot::Mutex;

use super::instances::{InstanceKey, Instances, RunKey};

/// The connections that were opened for one run. Dropping it closes them.
#[derive(Debug)]
pub struct RunConnections {
    run: ExecutionId,
    /// The instances of the servers that the run has called so.
    used: Mutex<Vec<Weak<Instances>>>,
}

impl RunConnections {
    pub fn new(run: ExecutionId) -> Self {
        Self { run, used: Mutex::default() }
    }

    /// Returns the key of an instance of this run. The instance is closed with the run.
    pub(super) fn key(&self, user: Owner, scopes: String, instances: &Arc<Instances>) -> InstanceKey {
        let mut used = self.used.lock();
        if !used.iter().any(|known| known.as_ptr() == Arc::as_ptr(instances)) {
            used.push(Arc::downgrade(instances));
        }
        InstanceKey { owner: user, run: Some(RunKey { run: self.run, scopes }) }
    }
}

impl Drop for RunConnections {
    fn drop(&mut self) {
        for instances in self.used.get_mut().iter().filter_map(Weak::upgrade) {
            instances.close_run(self.run);
        }
    }
}
