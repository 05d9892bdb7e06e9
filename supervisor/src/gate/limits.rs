//! How often and how much: what the policy's limits leave of a permitted call.

use std::time::Duration;

use lockhouse_policies::{PermittedCall, ScopedLimits};
use lockhouse_protocol::Failure;

/// What one execution has used of the policy's limits so far.
#[derive(Debug, Default)]
pub(crate) struct Usage {}

/// What all executions together have used.
#[derive(Debug, Default)]
pub(super) struct Limiter {}

/// What a call that may go out is bounded by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Admitted {
    /// The shortest that applies.
    pub(super) timeout: Option<Duration>,
}

impl Limiter {
    /// Counts the call, or says which limit it would exceed and when there is room again.
    pub(super) fn admit(
        &self,
        _usage: &Usage,
        _call: &PermittedCall,
        _limits: &[ScopedLimits],
    ) -> Result<Admitted, Failure> {
        Ok(Admitted::default())
    }

    /// Counts what came back. A result that is too much is not handed on.
    pub(super) fn received(
        &self,
        _usage: &Usage,
        _limits: &[ScopedLimits],
        _bytes: usize,
    ) -> Result<(), Failure> {
        Ok(())
    }
}
