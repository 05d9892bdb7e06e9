//! Ends a run from outside, and says who did.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Who ended a run before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancellation {
    /// The AI client, by cancelling its request or by leaving.
    Client,
    /// A person, by `lockhouse runs end`.
    Person,
    /// Whoever sits at `lockhouse run`.
    Interrupt,
    /// Whoever ended its session.
    Session,
    /// Whoever revoked the token of its client.
    Revoked,
    /// This process ends.
    Shutdown,
}

impl Cancellation {
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Client => "the AI client cancelled it",
            Self::Person => "a person ended it with `lockhouse runs end`",
            Self::Interrupt => "it was interrupted with Ctrl-C",
            Self::Session => "its session was ended",
            Self::Revoked => "the token of its client is not valid any more",
            Self::Shutdown => "Lockhouse is ending, and this did not come to its end in time; run it again",
        }
    }

    pub(super) fn hint(self) -> Option<&'static str> {
        let person = "a person did this on purpose: do not run it again unless they ask for it";
        matches!(self, Self::Person | Self::Interrupt).then_some(person)
    }
}

/// Ends one run, for the first reason that is given. Copies are of the same run.
#[derive(Clone, Debug)]
pub struct Stop {
    token: CancellationToken,
    why: Arc<OnceLock<Cancellation>>,
    /// Why it ends if nobody says why.
    otherwise: Cancellation,
}

impl Stop {
    /// Ends the run when `cancelled` is, which is for the reason `otherwise`.
    pub fn with(cancelled: &CancellationToken, otherwise: Cancellation) -> Self {
        Self { token: cancelled.child_token(), why: Arc::default(), otherwise }
    }

    /// Ends the run, unless it is being ended already.
    pub fn now(&self, why: Cancellation) {
        if !self.token.is_cancelled() {
            let _ = self.why.set(why);
            self.token.cancel();
        }
    }

    /// Until the run is to end: why.
    pub async fn wanted(&self) -> Cancellation {
        self.token.cancelled().await;
        self.why.get().copied().unwrap_or(self.otherwise)
    }
}
