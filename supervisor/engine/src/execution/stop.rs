//! Ends a run from outside, and says who did.

use std::sync::{Arc, OnceLock};

use lockhouse_base::lifecycle::Life;
use lockhouse_base::principal::Principal;
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
    pub(crate) fn message(self) -> &'static str {
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

    /// Until the run is to end, for the reason that comes first: its own, that its session is to end, that the token of its
    /// client is revoked, or that this process ends. Of several at one time the first in this order counts.
    pub async fn wanted(
        &self,
        session: Option<&CancellationToken>,
        principal: &Principal,
        life: &Life,
    ) -> Cancellation {
        let session_ends = async {
            match session {
                Some(session) => session.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.token.cancelled() => self.why.get().copied().unwrap_or(self.otherwise),
            () = session_ends => Cancellation::Session,
            () = principal.revoked() => Cancellation::Revoked,
            () = life.stopping().cancelled() => Cancellation::Shutdown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use lockhouse_base::principal::{Grant, Standing};

    use super::*;

    /// What can end a run, each as it is before anything has happened.
    struct Sources {
        request: CancellationToken,
        session: CancellationToken,
        grant: Grant,
        life: Life,
        stop: Stop,
    }

    impl Sources {
        fn new() -> Self {
            let request = CancellationToken::new();
            let stop = Stop::with(&request, Cancellation::Client);
            let life = Life::new(Duration::ZERO);
            Self { request, session: CancellationToken::new(), grant: Grant::default(), life, stop }
        }

        fn why(&self) -> Option<Cancellation> {
            let standing = Standing::Revocable(self.grant.clone());
            let principal = Principal::proven("token:a", "a", None, standing);
            self.stop.wanted(Some(&self.session), &principal, &self.life).now_or_never()
        }
    }

    #[test]
    fn every_source_has_its_reason() {
        let table: [(fn(&Sources), Cancellation); 5] = [
            (|sources| sources.request.cancel(), Cancellation::Client),
            (|sources| sources.stop.now(Cancellation::Person), Cancellation::Person),
            (|sources| sources.session.cancel(), Cancellation::Session),
            (|sources| sources.grant.revoke(), Cancellation::Revoked),
            (|sources| sources.life.close(), Cancellation::Shutdown),
        ];
        for (stop, why) in table {
            let sources = Sources::new();
            assert_eq!(sources.why(), None);
            stop(&sources);
            assert_eq!(sources.why(), Some(why));
        }
    }

    #[test]
    fn the_first_reason_that_is_given_counts() {
        let sources = Sources::new();
        sources.stop.now(Cancellation::Person);
        sources.stop.now(Cancellation::Interrupt);
        sources.request.cancel();
        sources.life.close();
        assert_eq!(sources.why(), Some(Cancellation::Person));
    }
}
