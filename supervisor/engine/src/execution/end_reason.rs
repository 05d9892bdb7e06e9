//! The reasons for which a run ends.

use std::borrow::Cow;

use lockhouse_protocol::{CodeError, Exit, STACK_OVERFLOW_STATUS};
use nix::sys::signal::Signal;

use super::Cancellation;

/// Why a run ended.
#[derive(Debug)]
pub enum EndReason {
    /// The code completed. Contains the JSON of its value, or `None` if the code has no value.
    Value(Option<Vec<u8>>),
    /// The code completed without a value, probably by mistake. The text tells how to return a value.
    NoValue(String),
    /// The code ended with an error.
    Error(CodeError),
    /// The run reached its deadline. The `CodeError` has the line that was executing, if the code could report it.
    Timeout(Option<CodeError>),
    /// The run reached a limit. The `CodeError` has the line that was executing, if the code could report it.
    Limit(ReachedLimit, Option<CodeError>),
    /// The worker process died. `is_attack` is true if the process made a system call that only an attack makes.
    Killed { message: String, is_attack: bool },
    /// The worker violated the protocol between supervisor and worker. The text describes the violation.
    ProtocolViolation(String),
    /// The run was cancelled. The `CodeError` has the line that was executing, if the code could report it.
    Cancelled(Cancellation, Option<CodeError>),
}

/// A limit on CPU time, memory, calls or output that a run reached.
#[derive(Debug)]
pub struct ReachedLimit {
    /// The type of the error that the AI client sees. It does not depend on the language of the code.
    pub kind: &'static str,
    /// The value of the label `reason` in the metrics for a run that reached this limit.
    metric_label: &'static str,
    /// The error message, which says which limit was reached.
    pub message: String,
    /// Advice on how to avoid the limit. If the code itself reported a hint, the answer contains that hint
    /// instead.
    pub hint: Cow<'static, str>,
}

impl ReachedLimit {
    pub(super) fn time(message: String) -> Self {
        let hint = "ask tools for less, run calls in parallel, or split the work over several runs";
        Self { kind: "TimeoutError", metric_label: "cpu", message, hint: hint.into() }
    }

    pub(super) fn memory(message: String) -> Self {
        Self {
            kind: "MemoryError",
            metric_label: "memory",
            message,
            hint: "keep less at once: let the tool filter, or work through pages".into(),
        }
    }

    pub(super) fn amount(message: String) -> Self {
        Self {
            kind: "LimitError",
            metric_label: "amount",
            message,
            hint: "ask and print less: filter in the tool, and return only what matters".into(),
        }
    }
}

impl EndReason {
    /// Returns the value of the metrics label `reason` for a run that was killed, cancelled or stopped at a limit.
    /// Returns `None` if the code ended by itself.
    pub fn kill_label(&self) -> Option<&'static str> {
        match self {
            Self::Value(_) | Self::NoValue(_) | Self::Error(_) => None,
            Self::Timeout(_) => Some("timeout"),
            Self::Limit(limit, _) => Some(limit.metric_label),
            Self::Killed { is_attack: true, .. } | Self::ProtocolViolation(_) => Some("violation"),
            Self::Killed { .. } => Some("died"),
            Self::Cancelled(..) => Some("cancelled"),
        }
    }

    /// Returns who or what ended the run, as the audit log names it. `None` if the program ended by itself, or its worker
    /// did.
    pub fn ended_by(&self) -> Option<&'static str> {
        match self {
            Self::Value(_) | Self::NoValue(_) | Self::Error(_) | Self::Killed { .. } => None,
            Self::Timeout(_) => Some("deadline"),
            Self::Limit(..) => Some("limit"),
            Self::ProtocolViolation(_) => Some("violation"),
            Self::Cancelled(why, _) => Some(why.ended_by()),
        }
    }

    /// Returns why the session of this run ended, as text for the AI client, if the session ended because of the run.
    pub fn session_end_reason(&self) -> String {
        match self {
            Self::Value(_) | Self::NoValue(_) | Self::Error(_) => "its worker ended".into(),
            Self::Timeout(_) => {
                "a run reached its deadline, did not stop when interrupted, and was killed".into()
            }
            Self::Limit(limit, _) => format!("a run was killed: {}", limit.message),
            Self::Killed { message, .. } => message.clone(),
            Self::ProtocolViolation(why) => format!("its worker broke the protocol and was killed: {why}"),
            Self::Cancelled(Cancellation::Shutdown | Cancellation::Stopped(_), _) => {
                "Lockhouse was shut down".into()
            }
            Self::Cancelled(..) => {
                "a run was cancelled, did not stop when interrupted, and was killed".into()
            }
        }
    }
}

/// Returns the end reason of a run whose worker process exited by itself or was killed.
pub(super) fn reason_from_exit(exit: Exit) -> EndReason {
    let is_attack = exit == Exit::Signal(Signal::SIGSYS as i32);
    EndReason::Killed { message: describe_exit(exit), is_attack }
}

/// Describes the exit status or the signal of a worker process for a user.
fn describe_exit(exit: Exit) -> String {
    match exit {
        Exit::Status(STACK_OVERFLOW_STATUS) => {
            "the stack overflowed: recursion outside the language's own check went too deep".into()
        }
        Exit::Status(status) => format!("the worker exited with status {status}"),
        Exit::Signal(number) => match Signal::try_from(number) {
            Ok(Signal::SIGKILL) => {
                "the worker was killed from outside (SIGKILL), by a person or by the kernel because the \
                                    whole machine ran out of memory"
                    .into()
            }
            Ok(Signal::SIGSYS) => {
                "the worker made a system call that only an attack makes, and was killed (SIGSYS)".into()
            }
            Ok(Signal::SIGSEGV) => {
                "the worker crashed (SIGSEGV): compiled code accessed invalid memory".into()
            }
            Ok(Signal::SIGABRT) => {
                "the worker aborted (SIGABRT): compiled code detected an unrecoverable error".into()
            }
            Ok(signal) => format!("the worker was killed by {signal}"),
            Err(_) => format!("the worker was killed by signal {number}"),
        },
    }
}
