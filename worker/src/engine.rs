//! A language, as zygote and worker see it.

use lockhouse_protocol::{Job, Outcome};

use crate::sandbox::Sandboxed;
use crate::tool_host::ToolHost;

/// Why an interpreter cannot be prepared, in its own words.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct EngineError(Box<dyn std::error::Error>);

impl EngineError {
    /// The interpreter's own error.
    pub fn new(error: impl Into<Box<dyn std::error::Error>>) -> Self {
        Self(error.into())
    }
}

/// A language interpreter in its three ages: prepared in the zygote, forked into a worker, sealed.
pub trait Engine {
    /// In the zygote, once: load all that code may use, for a sealed worker can open no file. Gives interpreter and
    /// version, for people.
    ///
    /// # Errors
    /// What is missing, and what to do.
    fn prepare(&mut self, preload: &[String]) -> Result<String, EngineError>;

    /// In the zygote, around each fork: what the interpreter wants done.
    fn before_fork(&mut self) {}

    /// In the zygote, after each fork.
    fn after_fork_in_zygote(&mut self) {}

    /// In the worker, just after the fork and before the seal: give it randomness of its own.
    fn after_fork(&mut self);

    /// In the sealed worker: the way out, and how much memory the code may use.
    fn attach(&mut self, sandboxed: &Sandboxed, host: &'static dyn ToolHost, memory_bytes: u64);

    /// In the sealed worker, when nobody waits: run something small through the whole path, so that its pages are
    /// there.
    fn warm(&mut self, sandboxed: &Sandboxed);

    /// Runs the one job of this worker, or the next one of its session.
    fn run(&mut self, sandboxed: &Sandboxed, job: &Job) -> Outcome;
}
