//! The reasons for which a request to run code is refused.

/// Declares [`Refusal`]. Each row has the documentation of a reason and its variant, whose name is the type of the error that
/// the AI client gets.
macro_rules! refusals {
    ($($(#[$documentation:meta])* $variant:ident,)*) => {
        /// Why a request to run code was refused before it had a worker.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Refusal {
            $($(#[$documentation])* $variant,)*
        }

        impl Refusal {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the type of the error, such as `Busy`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)*
                }
            }
        }
    };
}

refusals! {
    /// The request is invalid, for example because the code is empty.
    InvalidRequest,
    /// This host cannot run the language of the code, or Lockhouse is shutting down.
    Unavailable,
    /// The administrator has stopped Lockhouse.
    Stopped,
    /// The session that the request names has ended.
    SessionEnded,
    /// Too many sessions are open, or too many runs wait for the session that the request names.
    SessionsBusy,
    /// The AI client exceeded its quota or its rate limit for runs.
    RateLimited,
    /// No worker became free in time, or too many runs already wait for a worker.
    Busy,
}
