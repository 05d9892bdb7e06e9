//! The start of a server, until its tools are listed: in the newest era, and where it cannot stand that, in an older one.

mod attempt;

use std::path::PathBuf;

use lockhouse_base::secrets::Secrets;
use lockhouse_catalog::Catalogue;
use lockhouse_protocol::ServerName;
use tokio::sync::watch;
use tokio::time::Instant;

use self::attempt::Attempt;
use super::broken::{Broken, Reason};
use super::definition::{Reach, ServerDefinition, ServerLimits};
use super::link::Link;
use super::notices::DirectNotices;
use super::status::Status;

/// Why there is no connection.
pub(super) struct Refusal {
    /// In words of ours alone: code and the model read them.
    pub(super) reason: String,
    /// What the server itself had to say, without its secrets: for a person.
    pub(super) last_words: String,
    /// Whether the older handshake may fare better.
    may_be_older: bool,
    /// Whether the server sent more than a server may.
    pub(super) is_excess: bool,
}

impl Refusal {
    /// What the connection itself was given up for explains more than what followed from it.
    fn or(self, broken: &Broken) -> Self {
        match broken.reason().filter(|reason| reason.is_excess) {
            Some(Reason { words, is_excess }) => {
                Self { reason: words, may_be_older: false, is_excess, ..self }
            }
            None => self,
        }
    }

    fn told(reason: String) -> Self {
        Self { reason, last_words: String::new(), may_be_older: false, is_excess: false }
    }
}

/// Starts one server, as often as it must be started.
pub(super) struct Starter {
    name: ServerName,
    reach: Reach,
    pub(super) limits: ServerLimits,
    secrets: Secrets,
    /// Where its standard error is kept.
    pub(super) log: Option<PathBuf>,
    status: watch::Sender<Status>,
    notices: DirectNotices,
}

/// A server that has started.
pub(super) struct Started {
    pub(super) link: Link,
    pub(super) catalogue: Catalogue,
    /// Whether it understood only the older handshake.
    pub(super) older: bool,
}

impl Starter {
    /// `log` is where the server's standard error is kept, `status` where it is noted how far a start came.
    pub(super) fn new(
        name: &ServerName,
        definition: ServerDefinition,
        secrets: Secrets,
        log: Option<PathBuf>,
        status: watch::Sender<Status>,
        notices: DirectNotices,
    ) -> Self {
        let ServerDefinition { reach, limits, .. } = definition;
        Self { name: name.clone(), reach, limits, secrets, log, status, notices }
    }

    /// Connects to the server and lists its tools; with the older handshake at once, if it is known to need that one.
    pub(super) async fn start(&self, older: bool) -> Result<Started, Refusal> {
        let begun = Instant::now();
        let deadline = begun + self.limits.start_timeout;
        self.status.send_modify(|status| {
            status.begun = Some(begun.into_std());
            (status.era, status.spawned, status.handshake) = (None, None, None);
        });
        let attempt = |older| Attempt { server: self, begun, older, deadline }.reach();
        if !older {
            match attempt(false).await {
                // Some servers crash on the probe, or refuse the older handshake after it: a new process does not
                // know that it was asked.
                Err(Refusal { may_be_older: true, .. }) => {}
                done => return done,
            }
        }
        attempt(true).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::definition::ServerCommand;

    fn shell(script: &str) -> Starter {
        let seconds = Duration::from_secs;
        let command = ServerCommand {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: [("TOKEN".to_owned(), "SEKRET-CANARY".to_owned())].into(),
            ..ServerCommand::default()
        };
        let (start_timeout, call_timeout) = (seconds(5), seconds(5));
        let limits =
            ServerLimits { start_timeout, call_timeout, message_bytes_max: 1024, ..ServerLimits::default() };
        let secrets = Secrets::of(&command.environment);
        let name = ServerName::new("h").expect("a name");
        Starter {
            name,
            reach: Reach::Stdio(command),
            limits,
            secrets,
            log: None,
            status: watch::Sender::default(),
            notices: DirectNotices::default(),
        }
    }

    #[tokio::test]
    async fn why_a_server_is_not_available_is_told_without_its_own_words() {
        for (script, words) in [
            ("echo bad token: $TOKEN >&2; exit 3", "it ended before it was ready (exit status: 3)"),
            (
                r#"n=0; while read -r line; do
                    printf '{"jsonrpc":"2.0","id":%d,"error":{"code":-5,"message":"%s"}}\n' $n $TOKEN; n=$((n+1))
                done"#,
                "it answered with an error while it started (JSON-RPC code -5)",
            ),
        ] {
            let Err(refusal) = shell(script).start(false).await else {
                panic!("no refusal");
            };
            let (reason, last_words) = (refusal.reason, refusal.last_words);
            assert!(reason.starts_with(words) && !reason.contains("TOKEN"), "{reason}");
            assert!(
                last_words.contains("[redacted TOKEN]") && !last_words.contains("CANARY"),
                "{last_words}"
            );
        }
    }
}
