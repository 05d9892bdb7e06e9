//! Interface between a language engine and the zygote or worker that contains it.

use lockhouse_protocol::{Job, LoadedPackage, Outcome, SandboxProfile};

use crate::tool_host::ToolHost;
use lockhouse_sandbox::Sandboxed;

/// The reason why an interpreter cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct EngineError(Box<dyn std::error::Error>);

impl EngineError {
    /// Wraps an error that an interpreter reported while it was prepared.
    pub fn new(error: impl Into<Box<dyn std::error::Error>>) -> Self {
        Self(error.into())
    }
}

/// What a language engine reports after it was prepared.
#[derive(Debug, Default)]
pub struct PreparedEngine {
    /// The interpreter's name and version for display.
    pub runtime: String,
    /// The Python packages that were loaded, in the order of the configuration.
    pub packages: Vec<LoadedPackage>,
}

impl From<String> for PreparedEngine {
    fn from(runtime: String) -> Self {
        Self { runtime, packages: Vec::new() }
    }
}

/// A language interpreter. The zygote prepares it once. Each forked worker has a copy, and runs code with it in the
/// sandbox.
pub trait Engine {
    /// Prepares the interpreter; the zygote calls this method once. Loads everything that code may use, because a
    /// worker in its sandbox cannot open files. `profile` names additional modules and packages.
    ///
    /// # Errors
    /// [`EngineError`] says what is missing, and how to correct it.
    fn prepare(&mut self, profile: &SandboxProfile) -> Result<PreparedEngine, EngineError>;

    /// Prepares the interpreter for a fork. The zygote calls this method before each fork.
    fn before_fork(&mut self) {}

    /// Readies the interpreter of the zygote after a fork. The zygote calls this method after each fork, even if the
    /// fork failed.
    fn after_fork_in_zygote(&mut self) {}

    /// Readies the interpreter of a forked worker, before the worker enters its sandbox. Must reseed all random number
    /// generators.
    fn after_fork(&mut self);

    /// Gives the language engine its connection to the supervisor, and the memory limit of the submitted code in bytes.
    /// The worker calls this method after it has entered its sandbox; and before that with a host that answers by itself, for a
    /// warm-up.
    fn attach(&mut self, sandboxed: &Sandboxed, host: &'static dyn ToolHost, memory_bytes: u64);

    /// Runs a trivial program, so that later runs find its memory pages mapped. The sandboxed worker calls this method
    /// before it waits for its first job, if the supervisor requested a warm-up.
    fn warm(&mut self, sandboxed: &Sandboxed);

    /// Runs the program of a job and returns its outcome. The job is the worker's only one, or the next one of its
    /// session.
    fn run(&mut self, sandboxed: &Sandboxed, job: &Job) -> Outcome;
}
