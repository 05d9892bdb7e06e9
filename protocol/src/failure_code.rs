//! The kinds of failure of a request, and the outcomes of calls. Both are declared once, in the table of this file.

use serde::{Deserialize, Serialize};

/// Whether a call reached its upstream server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The call was not sent, so it has changed nothing.
    NotSent,
    /// The call was sent, and the server answered it, with a result or an error.
    Answered,
    /// The call may have been sent, and its effect is not known.
    Unknown,
}

/// Declares [`FailureCode`]. Each row has the documentation of a code, its variant, the text that programs see, and what
/// else depends on the code:
///
/// - `delivery`: whether a call with this failure reached its upstream server;
/// - `denial`: whether the audit log has a record of the decision against the call, so that a record of the outcome would
///   repeat it;
/// - `of_request`: whether a direct call fails with the JSON-RPC error for invalid parameters, and not for an internal
///   error.
macro_rules! failure_codes {
    ($(
        $(#[$documentation:meta])*
        $variant:ident = $name:literal, delivery: $delivery:ident, denial: $denial:literal, of_request: $of_request:literal;
    )*) => {
        /// The kinds of failure of a request. A code travels to workers, so the order of the variants is part of the
        /// format of frames: a new variant is the last one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum FailureCode {
            $($(#[$documentation])* $variant,)*
        }

        impl FailureCode {
            /// All codes, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the error code that programs see, such as `denied`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns whether a call with this failure reached its upstream server.
            #[must_use]
            pub fn delivery(self) -> Delivery {
                match self {
                    $(Self::$variant => Delivery::$delivery,)*
                }
            }

            /// Whether the audit log has a record of the decision against a call with this failure.
            #[must_use]
            pub fn is_denial(self) -> bool {
                match self {
                    $(Self::$variant => $denial,)*
                }
            }

            /// Whether the request itself is the reason of the failure, because it names something that does not exist or
            /// is not permitted, or has invalid arguments.
            #[must_use]
            pub fn is_of_request(self) -> bool {
                match self {
                    $(Self::$variant => $of_request,)*
                }
            }
        }
    };
}

failure_codes! {
    /// The call is denied by the policy or by a restriction of this execution, or its audit record could not be
    /// written.
    Denied = "denied", delivery: NotSent, denial: true, of_request: true;
    /// The arguments do not match the parameters of the tool or prompt.
    InvalidArguments = "invalid_arguments", delivery: NotSent, denial: false, of_request: true;
    /// The server, tool, resource or prompt does not exist.
    UnknownTool = "unknown_tool", delivery: NotSent, denial: false, of_request: true;
    /// The upstream server did not answer in time.
    Timeout = "timeout", delivery: Unknown, denial: false, of_request: false;
    /// The upstream server is not connected, or was lost during the call.
    UpstreamUnavailable = "upstream_unavailable", delivery: Unknown, denial: false, of_request: false;
    /// The tool or its upstream server reported an error, or the request failed for a reason that no other code covers.
    ToolFailed = "tool_failed", delivery: Answered, denial: false, of_request: false;
    /// The result is longer than [`ConversationLimits::value_bytes`](crate::ConversationLimits::value_bytes), or the
    /// results of the execution exceed the total size that the policy permits.
    ResultTooLarge = "result_too_large", delivery: Unknown, denial: false, of_request: false;
    /// The call requires approval, and an approver declined it or could not be asked.
    ApprovalDeclined = "approval_declined", delivery: NotSent, denial: true, of_request: false;
    /// The call exceeds a limit of the policy: a rate limit, or a limit on the calls of one execution.
    RateLimited = "rate_limited", delivery: NotSent, denial: true, of_request: false;
    /// The stored result or saved skill does not exist, or no longer exists.
    NotFound = "not_found", delivery: Unknown, denial: false, of_request: true;
    /// The upstream server is called with credentials of each user, and this user has none.
    LoginRequired = "login_required", delivery: NotSent, denial: false, of_request: false;
}

/// How a call ended, in the answer of its run and in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallOutcome {
    /// The call succeeded.
    Ok,
    /// The call was to save a skill, and the skill was stored as a draft.
    Draft,
    /// The run ended before the reply to the call, which had been sent.
    Unknown,
    /// The run ended before the call was sent.
    NotSent,
    /// The call failed.
    Failed(FailureCode),
}

impl CallOutcome {
    /// Returns all outcomes.
    pub fn all() -> impl Iterator<Item = Self> {
        let failed = FailureCode::ALL.iter().copied().map(Self::Failed);
        [Self::Ok, Self::Draft, Self::Unknown, Self::NotSent].into_iter().chain(failed)
    }

    /// Returns the name of the outcome in answers and in the audit log, such as `ok`. The name of a failure is its code.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Draft => "draft",
            Self::Unknown => "unknown",
            Self::NotSent => "not_sent",
            Self::Failed(code) => code.as_str(),
        }
    }

    /// Returns whether the call reached its upstream server.
    #[must_use]
    pub fn delivery(self) -> Delivery {
        match self {
            Self::Ok => Delivery::Answered,
            Self::Draft | Self::NotSent => Delivery::NotSent,
            Self::Unknown => Delivery::Unknown,
            Self::Failed(code) => code.delivery(),
        }
    }

    /// Whether the call may have been sent to its upstream server.
    #[must_use]
    pub fn was_sent(self) -> bool {
        self.delivery() != Delivery::NotSent
    }

    /// Whether the audit log has a record of the decision against the call, so that it needs no record of the outcome.
    #[must_use]
    pub fn is_denial(self) -> bool {
        matches!(self, Self::Failed(code) if code.is_denial())
    }
}
