//! The ways in which a run can end.

use lockhouse_protocol::{CodeError, Exit, STACK_OVERFLOW_STATUS};
use nix::sys::signal::Signal;

use super::Cancellation;

/// How a run ended.
#[derive(Debug)]
pub enum Ending {
    /// To its end; JSON of its value.
    Value(Option<Vec<u8>>),
    /// With an error of the code.
    Error(CodeError),
    /// At the deadline; where the code was, if it could still say so.
    Timeout(Option<CodeError>),
    /// At a limit; where the code was, if it could still say so.
    Limit(Limit, Option<CodeError>),
    /// The process died, in words; whether of a system call that only an attack makes.
    Killed { words: String, attack: bool },
    /// The worker broke the protocol, in words.
    Broken(String),
    /// It was ended from outside; where the code was, if it could still say so.
    Cancelled(Cancellation, Option<CodeError>),
}

/// A limit that was reached.
#[derive(Debug)]
pub struct Limit {
    /// The name that the error has in either language.
    pub kind: &'static str,
    /// What there was too much of, in a word for those who count.
    of: &'static str,
    /// In words.
    pub message: String,
    /// What to do, where nothing more particular is known.
    pub hint: &'static str,
}

impl Limit {
    pub(super) fn time(message: String) -> Self {
        let hint = "ask tools for less, run calls in parallel, or split the work over several runs";
        Self { kind: "TimeoutError", of: "cpu", message, hint }
    }

    pub(super) fn memory(message: String) -> Self {
        Self {
            kind: "MemoryError",
            of: "memory",
            message,
            hint: "keep less at once: let the tool filter, or work through pages",
        }
    }

    pub(super) fn amount(message: String) -> Self {
        Self {
            kind: "LimitError",
            of: "amount",
            message,
            hint: "ask and print less: filter in the tool, and return only what matters",
        }
    }
}

impl Ending {
    /// Why the worker was ended before its time, or died, in a word for those who count; nothing where it was neither.
    pub fn killed_for(&self) -> Option<&'static str> {
        match self {
            Self::Value(_) | Self::Error(_) => None,
            Self::Timeout(_) => Some("timeout"),
            Self::Limit(limit, _) => Some(limit.of),
            Self::Killed { attack: true, .. } | Self::Broken(_) => Some("violation"),
            Self::Killed { .. } => Some("died"),
            Self::Cancelled(..) => Some("cancelled"),
        }
    }

    /// Why a session ended whose run ended so.
    pub fn of_session(&self) -> String {
        match self {
            Self::Value(_) | Self::Error(_) => "its worker ended".into(),
            Self::Timeout(_) => {
                "a run did not end in time, did not stop when it was told to, and was killed".into()
            }
            Self::Limit(limit, _) => format!("a run was killed: {}", limit.message),
            Self::Killed { words, .. } => words.clone(),
            Self::Broken(why) => format!("its worker broke the protocol and was killed: {why}"),
            Self::Cancelled(Cancellation::Shutdown, _) => "Lockhouse was shut down".into(),
            Self::Cancelled(..) => {
                "a run was cancelled, did not stop when it was told to, and was killed".into()
            }
        }
    }
}

/// What a process died of.
pub(super) fn killed(exit: Exit) -> Ending {
    let attack = exit == Exit::Signal(Signal::SIGSYS as i32);
    Ending::Killed { words: in_words(exit), attack }
}

/// What a process's end means.
fn in_words(exit: Exit) -> String {
    match exit {
        Exit::Status(STACK_OVERFLOW_STATUS) => {
            "the stack overflowed: recursion outside the language's own check went too deep".into()
        }
        Exit::Status(status) => format!("the worker ended by itself with status {status}"),
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
                "the worker crashed (SIGSEGV): compiled code touched memory that is not its own".into()
            }
            Ok(Signal::SIGABRT) => {
                "the worker gave up (SIGABRT): compiled code found a state that it cannot go on from".into()
            }
            Ok(signal) => format!("the worker was ended by {signal}"),
            Err(_) => format!("the worker was ended by signal {number}"),
        },
    }
}
