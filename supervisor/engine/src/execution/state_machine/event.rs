//! The events and effects of the state machine of a run.

use std::time::Duration;

use lockhouse_protocol::{CallId, Exit, FromWorker, Job, Reply, Stream, ToWorker, WorkerRequest};
use nix::sys::signal::Signal;

use crate::execution::cancellation::Cancellation;
use crate::execution::end_reason::EndReason;

/// An event of a run: the input of its state machine.
#[derive(Debug)]
pub(in crate::execution) enum ExecutionEvent {
    /// The run starts: its code is to be sent to the worker.
    Begin(Job),
    /// The worker sent a message.
    Message(FromWorker),
    /// The worker sent bytes that do not decode to a message. The text is the decoding error.
    InvalidFrame(String),
    /// The gate answered a request of the worker.
    ReplyReady(CallId, Reply),
    /// The run must stop before its deadline, for this cause.
    StopRequested(Cancellation),
    /// The run reached its deadline in wall-clock time.
    DeadlineReached,
    /// The timer of the run has expired, which an effect such as [`ExecutionEffect::Wait`] had set.
    TimerExpired {
        /// Whether the worker process has exited, as the kernel reports.
        has_exited: bool,
    },
    /// A run in a session has used all the CPU time that its CPU limit permits.
    CpuLimitReached,
    /// A run in a session has also used all the CPU grace time, which follows its CPU limit.
    CpuGraceExpired,
    /// The worker closed its channel.
    ChannelClosed,
}

/// An effect of an event: the action that the state machine of a run decides on, and that the driver carries out.
#[derive(Debug)]
pub(in crate::execution) enum ExecutionEffect {
    Nothing,
    /// Append text to the captured stdout or stderr of the run.
    Append(Stream, String),
    /// Pass a request of the worker to the gate. The answer of the gate comes later, as the event
    /// [`ExecutionEvent::ReplyReady`].
    AskGate(CallId, WorkerRequest),
    /// Send a message to the worker.
    Send(ToWorker),
    /// Send a signal to the worker.
    Signal(Signal),
    /// Set the timer of the run to expire after this duration.
    Wait(Duration),
    /// Interrupt the code with SIGINT and a message, and set the timer of the run to expire after this duration.
    Interrupt(Duration),
    /// Kill the worker, and set the timer of the run to expire after this duration.
    Kill(Duration),
    /// End the run, for this reason.
    End(EndReason),
}

/// The exit status of a worker process, and the resources that the run used.
#[derive(Clone, Copy, Debug)]
pub(in crate::execution) struct WorkerExit {
    pub(in crate::execution) exit: Exit,
    pub(in crate::execution) cpu: Duration,
    /// Whether the kernel killed the worker process because the memory of the worker was exhausted.
    pub(in crate::execution) was_out_of_memory: bool,
    /// How much more memory the worker used at its peak than when it entered the sandbox, in bytes.
    pub(in crate::execution) peak_growth_bytes: u64,
}
