//! Values of this host and of hosts that have ended, which are read from their copies in S3: see [`lockhouse_cluster::ValueCopies`].

use std::convert::Infallible;

use lockhouse_base::principal::Principal;
use lockhouse_cluster::CopyUnreadable;
use lockhouse_messages::{Request, Response, RunReference};
use lockhouse_protocol::ResultHandle;

use super::Supervisor;

impl Supervisor {
    /// Reads the copy of what a request names, if the request asks for a value or for the answer of a run, and this host does not have it.
    /// Returns whether this host can answer with a value then.
    ///
    /// # Errors
    /// The response, if the copy cannot be read now.
    pub(crate) async fn restore_value(
        &self,
        client: &Principal,
        request: &Request,
    ) -> Result<bool, Response> {
        let Some(handle) = named_value(request).filter(|_| self.results.copies().is_some()) else {
            return Ok(false);
        };
        let (owner, run) = (client.owner(), RunReference::Handle(handle.clone()));
        if self.results.has_in_memory(owner, handle)
            || self.runs.find(owner, &run).is_some()
            || self.result_files.get(owner, handle).is_some()
        {
            return Ok(true);
        }
        let restored = Box::pin(self.results.restore(owner, handle)).await;
        restored.map_err(|reason| unreadable(handle, reason))
    }

    /// Removes old copies. Waits for ever if values are not copied.
    pub(crate) async fn keep_value_copies(&self) -> Infallible {
        match (self.results.copies(), self.cluster()) {
            (Some(copies), Some(cluster)) => copies.keep(cluster.membership()).await,
            _ => std::future::pending().await,
        }
    }

    /// Waits for a moment until the values of this host are copied, at the end of this process.
    pub async fn finish_value_copies(&self) {
        if let Some(copies) = self.results.copies() {
            copies.finish().await;
        }
    }

    /// Returns why values are not copied. `None` if they are, or need not be.
    pub(crate) fn value_copy_failure(&self) -> Option<String> {
        self.results.copies()?.failure()
    }
}

/// Returns the handle of the value or of the run that a request asks for.
fn named_value(request: &Request) -> Option<&ResultHandle> {
    match request {
        Request::GetResult { handle, .. } | Request::FollowRun(RunReference::Handle(handle)) => Some(handle),
        _ => None,
    }
}

fn unreadable(handle: &ResultHandle, reason: CopyUnreadable) -> Response {
    Response::Unavailable(format!(
        "the copy of {handle} cannot be read now: {reason}. Send the request again"
    ))
}
