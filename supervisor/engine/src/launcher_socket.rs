//! The socket at which the launcher in a person's session connects to the engine of the system for that person.

use std::convert::Infallible;
use std::time::Duration;

use lockhouse_access::UnixPeer;
use lockhouse_base::log_throttle::LogThrottle;
use lockhouse_base::unix_accept;
use nix::unistd::Uid;
use tokio::net::UnixListener;

use crate::supervisor::Supervisor;

/// Pause after the socket failed to accept a connection. The cause is often temporary, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Accepts launchers of the person until this future is dropped. Sandboxed servers are no launchers.
pub async fn accept(listener: UnixListener, supervisor: &Supervisor, person: Uid) -> Infallible {
    let log = LogThrottle::default();
    loop {
        let accepted = unix_accept::accept(&listener).await;
        let peer = accepted.and_then(|stream| Ok((UnixPeer::of(&stream)?, stream)));
        match peer {
            Ok((peer, stream)) if peer.uid() == person.as_raw() => {
                supervisor.gate().upstreams().launchers().add(stream);
            }
            Ok((peer, _)) => {
                log.write(|times| {
                    tracing::warn!("rejected a launcher of the user {}{times}", peer.uid());
                });
            }
            Err(error) => {
                log.write(|times| tracing::warn!("cannot accept a launcher: {error}{times}"));
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}
