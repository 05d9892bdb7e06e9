//! The events and effects of the state machine of a run.

use std::time::Duration;

use lockhouse_protocol::{CallId, Exit, FromWorker, Job, Reply, Request, Stream, ToWorker};
use nix::sys::signal::Signal;

use crate::execution::cancellation::Cancellation;
use crate::execution::end_reason::EndReason;

/// An event of a run: the input of its state machine.
#[derive(Debug)]
pub(in crate::execution) enum Event {
    /// The code is to be sent to the worker.
    Begin(Job),
    /// The worker sent a message.
    Message(FromWorker),
    /// The worker sent bytes that do not decode to a message.
    InvalidFrame(String),
    /// The gate answered a request of the worker.
    ReplyReady(CallId, Reply),
    /// The run must stop before its deadline.
    StopRequested(Cancellation),
    /// The wall-clock time of the run is over.
    DeadlineReached,
    /// The timer that an effect set has expired.
    TimerExpired,
    /// A run in a session used its CPU limit.
    CpuLimitReached,
    /// A run in a session used the CPU grace time after its limit.
    CpuGraceExpired,
    /// The worker closed its channel.
    ChannelClosed,
}

/// An effect of a run's state machine, which the driver carries out.
#[derive(Debug)]
pub(in crate::execution) enum Effect {
    Nothing,
    /// Append text to the captured output.
    Append(Stream, String),
    /// Pass a request to the gate.
    AskGate(CallId, Request),
    /// Send a message to the worker.
    Send(ToWorker),
    Signal(Signal),
    /// Set the timer of the run.
    Wait(Duration),
    /// Send a signal to the worker, and set the timer.
    SignalAndWait(Signal, Duration),
    /// The run has ended.
    End(EndReason),
}

/// Exit status of a worker process, and the resources that the run used.
#[derive(Clone, Copy, Debug)]
pub(in crate::execution) struct WorkerExit {
    pub(in crate::execution) exit: Exit,
    pub(in crate::execution) cpu: Duration,
    /// Whether the kernel killed the process because it was out of memory.
    pub(in crate::execution) was_out_of_memory: bool,
    /// Peak memory growth since the worker was sealed, in bytes.
    pub(in crate::execution) peak_growth_bytes: u64,
}
