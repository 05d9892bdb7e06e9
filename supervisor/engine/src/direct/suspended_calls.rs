//! Direct calls that wait for the user's answers to questions, which their AI clients give with further requests. They are here,
//! and not at a front, so that any front can resume them.

use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_messages::{CallDigest, OpenQuestion, Owner};
use lockhouse_protocol::{ResultHandle, ServerName};
use lockhouse_run_channel::RunFollower;
use lockhouse_stores::results::Results;
use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::pending_questions::PendingQuestions;
use crate::supervisor::DirectCallOutcome;

/// Maximum number of suspended calls, of all clients together (`SUSPENDED_MAX`) and per client (`SUSPENDED_PER_CLIENT_MAX`).
/// Bound: approvals and questions.
const SUSPENDED_MAX: usize = 256;
const SUSPENDED_PER_CLIENT_MAX: usize = 32;

/// A direct call under way. It is cancelled when this value is dropped.
#[derive(Debug)]
pub(crate) struct ActiveCall {
    pub(crate) server: ServerName,
    pub(crate) calling: JoinHandle<DirectCallOutcome>,
    pub(crate) follower: RunFollower,
    pub(crate) questions: PendingQuestions,
    _cancelling: DropGuard,
}

impl ActiveCall {
    /// `cancelling` is the token that cancels the call.
    pub(crate) fn new(
        server: ServerName,
        calling: JoinHandle<DirectCallOutcome>,
        follower: RunFollower,
        cancelling: CancellationToken,
    ) -> Self {
        let questions = PendingQuestions::default();
        Self { server, calling, follower, questions, _cancelling: cancelling.drop_guard() }
    }
}

/// The suspended calls. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct SuspendedCalls(Arc<Mutex<HashMap<ResultHandle, SuspendedCall>>>);

#[derive(Debug)]
struct SuspendedCall {
    /// The client that made the call. No other one can resume it.
    owner: Owner,
    /// The digest of target and arguments, which the client repeats with its answers.
    digest: CallDigest,
    /// `None` when it is resumed.
    call: Option<ActiveCall>,
    /// Ends the call when its questions have timed out.
    expiry: AbortHandle,
}

impl Drop for SuspendedCall {
    fn drop(&mut self) {
        self.expiry.abort();
    }
}

/// Why a call cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotResumed {
    /// The client has no suspended call with this handle.
    Unknown,
    /// Its target or arguments were others.
    OtherRequest,
}

impl SuspendedCalls {
    /// Suspends a call until its client resumes it, or its last question times out.
    ///
    /// # Errors
    /// The call, if it has no pending question, if too many calls are suspended, or if the kernel provides no random numbers for a
    /// handle.
    pub(crate) fn suspend(
        &self,
        owner: Owner,
        digest: CallDigest,
        mut call: ActiveCall,
    ) -> Result<ResultHandle, Box<ActiveCall>> {
        let mut calls = self.0.lock();
        let of_client = calls.values().filter(|call| call.owner == owner).count();
        let has_room = calls.len() < SUSPENDED_MAX && of_client < SUSPENDED_PER_CLIENT_MAX;
        let time_left = call.questions.all().iter().map(|OpenQuestion { time_left, .. }| *time_left).max();
        let handle = if has_room { Results::generate_handle() } else { None };
        let (Some(handle), Some(time_left)) = (handle, time_left) else { return Err(Box::new(call)) };
        let (suspended, to_end) = (self.clone(), handle.clone());
        let expiring = tokio::spawn(async move {
            tokio::time::sleep(time_left).await;
            suspended.0.lock().remove(&to_end);
        });
        let expiry = expiring.abort_handle();
        calls.insert(handle.clone(), SuspendedCall { owner, digest, call: Some(call), expiry });
        Ok(handle)
    }

    /// Returns a suspended call to the client that repeats its request.
    ///
    /// # Errors
    /// [`NotResumed`]
    pub(crate) fn resume(
        &self,
        owner: Owner,
        handle: &ResultHandle,
        digest: CallDigest,
    ) -> Result<ActiveCall, NotResumed> {
        let mut calls = self.0.lock();
        let suspended = calls.get(handle).filter(|call| call.owner == owner).ok_or(NotResumed::Unknown)?;
        if suspended.digest != digest {
            return Err(NotResumed::OtherRequest);
        }
        calls.remove(handle).and_then(|mut suspended| suspended.call.take()).ok_or(NotResumed::Unknown)
    }
}
