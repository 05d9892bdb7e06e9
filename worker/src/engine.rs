//! Interface between a language engine and the zygote or worker that contains it.

use lockhouse_protocol::{Job, Outcome};

use crate::sandbox::Sandboxed;
use crate::tool_host::ToolHost;

/// Why an interpreter cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct EngineError(Box<dyn std::error::Error>);

impl EngineError {
    /// Wraps an error that an interpreter reported while it was prepared.
    pub fn new(error: impl Into<Box<dyn std::error::Error>>) -> Self {
        Self(error.into())
    }
}

/// A language interpreter. It is prepared in the zygote, forked into a worker, and then sealed.
pub trait Engine {
    /// Called once in the zygote. Loads everything that code may use, since a worker in its sandbox cannot open
    /// files. Returns the interpreter's name and version for display.
    ///
    /// # Errors
    /// What is missing, and how to correct it.
    fn prepare(&mut self, preload: &[String]) -> Result<String, EngineError>;

    /// Called in the zygote before each fork.
    fn before_fork(&mut self) {}

    /// Called in the zygote after each fork.
    fn after_fork_in_zygote(&mut self) {}

    /// Called in the worker after the fork and before the sandbox is entered. Must reseed all random number
    /// generators.
    fn after_fork(&mut self);

    /// Called in the worker after it entered the sandbox. Provides the connection to the supervisor, and the
    /// memory limit of the submitted code in bytes.
    fn attach(&mut self, sandboxed: &Sandboxed, host: &'static dyn ToolHost, memory_bytes: u64);

    /// Called in the sandboxed worker while it waits for a job. Runs a trivial program, so that later runs find
    /// its memory pages mapped.
    fn warm(&mut self, sandboxed: &Sandboxed);

    /// Runs the worker's only job, or the next job of its session.
    fn run(&mut self, sandboxed: &Sandboxed, job: &Job) -> Outcome;
}
