//! What a run hears of, and what it wants done.

use std::time::Duration;

use lockhouse_protocol::{CallId, Exit, FromWorker, Job, Reply, Request, Stream, ToWorker};
use nix::sys::signal::Signal;

use crate::execution::ending::Ending;
use crate::execution::stop::Cancellation;

/// What happens to a run.
#[derive(Debug)]
pub(in crate::execution) enum Event {
    /// The worker gets its code.
    Begin(Job),
    /// The worker sent a message.
    Message(FromWorker),
    /// The worker sent what is no message.
    InvalidFrame(String),
    /// A request of the worker has its reply.
    Replied(CallId, Reply),
    /// The run is to end, before its time.
    StopWanted(Cancellation),
    /// The wall clock of the run has run out.
    WallClockEnded,
    /// The timer that an effect set has run out.
    TimerEnded,
    /// A run of a session has used up its CPU time.
    CpuUsedUp,
    /// It has gone on, and has used up what it had to stop in.
    CpuGraceUsedUp,
    /// The worker reads and writes no more.
    ChannelClosed,
}

/// What is to be done about an event.
#[derive(Debug)]
pub(in crate::execution) enum Effect {
    Nothing,
    /// Append this to the output of the code.
    Append(Stream, String),
    /// Have the gate answer a request.
    Ask(CallId, Request),
    /// Send a message to the worker.
    Send(ToWorker),
    Signal(Signal),
    /// Set the timer.
    Wait(Duration),
    /// Send the signal, and set the timer.
    SignalAndWait(Signal, Duration),
    /// The run is over.
    End(Ending),
}

/// How the process of a worker ended, and what the run had used by then.
#[derive(Clone, Copy, Debug)]
pub(in crate::execution) struct Exited {
    pub(in crate::execution) exit: Exit,
    pub(in crate::execution) cpu: Duration,
    /// The kernel ended it for want of memory.
    pub(in crate::execution) was_out_of_memory: bool,
    /// Memory that it took at most since it was sealed, bytes.
    pub(in crate::execution) peak_growth_bytes: u64,
}
