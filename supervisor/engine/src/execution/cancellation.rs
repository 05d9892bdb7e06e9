//! Stops a run before it ends by itself, and records the cause of the cancellation.

use std::sync::{Arc, OnceLock};

use lockhouse_base::lifecycle::Lifecycle;
use lockhouse_base::principal::Principal;
use tokio_util::sync::CancellationToken;

/// Why a run was cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancellation {
    /// The AI client cancelled its request or disconnected.
    Client,
    /// An operator ended the run with `lockhouse runs end`.
    Person,
    /// An operator or an administrator stops this process. The text says who, and why.
    Stopped(Arc<str>),
    /// The user of `lockhouse run` pressed Ctrl-C.
    Interrupt,
    /// The session in which the run executes was ended.
    Session,
    /// The access token of the AI client was revoked.
    Revoked,
    /// Lockhouse is shutting down.
    Shutdown,
}

impl Cancellation {
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Client => "the AI client cancelled it",
            Self::Person => "a person ended it with `lockhouse runs end`",
            Self::Stopped(reason) => reason,
            Self::Interrupt => "it was interrupted with Ctrl-C",
            Self::Session => "its session was ended",
            Self::Revoked => "the token of its client is no longer valid",
            Self::Shutdown => "Lockhouse is shutting down, and the run did not end in time; run it again",
        }
    }

    /// Returns who or what ended the run, as the audit log names it.
    pub(crate) fn ended_by(&self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Person | Self::Stopped(_) => "operator",
            Self::Interrupt => "interrupt",
            Self::Session => "session",
            Self::Revoked => "revocation",
            Self::Shutdown => "shutdown",
        }
    }

    pub(super) fn hint(&self) -> Option<&'static str> {
        let person = "a person did this on purpose: do not run it again unless they ask for it";
        matches!(self, Self::Person | Self::Stopped(_) | Self::Interrupt).then_some(person)
    }
}

/// Stops one run. If the run is stopped several times, the first cause counts. All clones of the handle stop the same
/// run.
#[derive(Clone, Debug)]
pub struct StopHandle {
    token: CancellationToken,
    cause: Arc<OnceLock<Cancellation>>,
    /// The cause to report if the token is cancelled directly. [`StopHandle::stop`] reports the cause that it is given
    /// instead.
    default_cause: Cancellation,
}

impl StopHandle {
    /// Creates the handle of a run. Cancelling the token `cancelled` also stops the run, with the cause
    /// `default_cause`.
    pub fn new(cancelled: &CancellationToken, default_cause: Cancellation) -> Self {
        Self { token: cancelled.child_token(), cause: Arc::default(), default_cause }
    }

    /// Stops the run for the given cause, unless the run is already being stopped.
    pub fn stop(&self, cause: Cancellation) {
        if !self.token.is_cancelled() {
            let _ = self.cause.set(cause);
            self.token.cancel();
        }
    }

    /// Returns why the run was stopped. `None` if it was not stopped through this handle.
    pub fn cause(&self) -> Option<Cancellation> {
        self.cause.get().cloned()
    }

    /// Waits until the run must stop, and returns the cause. The run must stop when it is stopped through this handle,
    /// its session ends, its AI client's token is revoked, or the process shuts down. If several of these happened, the
    /// first in this order is the cause. `session` is cancelled when the session ends; `None` for a run without a
    /// session.
    pub async fn requested(
        &self,
        session: Option<&CancellationToken>,
        principal: &Principal,
        lifecycle: &Lifecycle,
    ) -> Cancellation {
        let session_ends = async {
            match session {
                Some(session) => session.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.token.cancelled() => self.cause.get().unwrap_or(&self.default_cause).clone(),
            () = session_ends => Cancellation::Session,
            () = principal.revoked() => Cancellation::Revoked,
            () = lifecycle.stopping().cancelled() => Cancellation::Shutdown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use lockhouse_base::principal::{Grant, Validity};

    use super::*;

    /// Everything that can stop a run. The tests trigger several of them, and check which cause is reported.
    struct Sources {
        request: CancellationToken,
        session: CancellationToken,
        grant: Grant,
        lifecycle: Lifecycle,
        stop: StopHandle,
    }

    impl Sources {
        fn new() -> Self {
            let request = CancellationToken::new();
            let stop = StopHandle::new(&request, Cancellation::Client);
            let lifecycle = Lifecycle::new(Duration::ZERO);
            Self { request, session: CancellationToken::new(), grant: Grant::default(), lifecycle, stop }
        }

        fn cause(&self) -> Option<Cancellation> {
            let standing = Validity::Revocable(self.grant.clone());
            let principal = Principal::authenticated("token:a", "a", None, standing);
            self.stop.requested(Some(&self.session), &principal, &self.lifecycle).now_or_never()
        }
    }

    #[test]
    #[allow(clippy::type_complexity, reason = "a table of test cases")]
    fn every_source_has_its_cause() {
        let table: [(fn(&Sources), Cancellation); 5] = [
            (|sources| sources.request.cancel(), Cancellation::Client),
            (|sources| sources.stop.stop(Cancellation::Person), Cancellation::Person),
            (|sources| sources.session.cancel(), Cancellation::Session),
            (|sources| sources.grant.revoke(), Cancellation::Revoked),
            (|sources| sources.lifecycle.close(), Cancellation::Shutdown),
        ];
        for (stop, cause) in table {
            let sources = Sources::new();
            assert_eq!(sources.cause(), None);
            stop(&sources);
            assert_eq!(sources.cause(), Some(cause));
        }
    }

    #[test]
    fn the_first_cause_counts() {
        let sources = Sources::new();
        sources.stop.stop(Cancellation::Person);
        sources.stop.stop(Cancellation::Interrupt);
        sources.request.cancel();
        sources.lifecycle.close();
        assert_eq!(sources.cause(), Some(Cancellation::Person));
    }
}
