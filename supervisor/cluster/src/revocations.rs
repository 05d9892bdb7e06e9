//! Tokens that were revoked on any host. Their number only grows: NATS may lose a write that it has acknowledged, so each host writes
//! its own again at each start.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use tokio::time::sleep;

use crate::shared_state::{Change, SharedState};
use crate::state_table::Table;

/// Interval at which a host looks for tokens that were revoked there, and tries again what has failed.
const INTERVAL: Duration = Duration::from_millis(500);

/// The digest of a token.
pub type TokenDigest = [u8; 32];

/// Tells the other hosts which tokens were revoked here, which `own` returns, and calls `revoke` for those that were revoked on any
/// host. Runs until it is dropped.
pub(crate) async fn share(
    state: &SharedState,
    own: impl Fn() -> Vec<TokenDigest>,
    revoke: impl Fn(TokenDigest),
) -> Infallible {
    tokio::select! {
        never = publish(state, own) => never,
        never = listen(state, revoke) => never,
    }
}

async fn publish(state: &SharedState, own: impl Fn() -> Vec<TokenDigest>) -> Infallible {
    let mut published: HashSet<TokenDigest> = HashSet::new();
    loop {
        for digest in own().into_iter().filter(|digest| !published.contains(digest)).collect::<Vec<_>>() {
            match state.create(Table::Revocations, &HEXLOWER.encode(&digest), Bytes::from_static(b"{}")).await
            {
                // Another host may have said so before.
                Ok(_) => drop(published.insert(digest)),
                Err(error) => {
                    tracing::warn!("the other hosts do not know yet that a token was revoked: {error}");
                    break;
                }
            }
        }
        sleep(INTERVAL).await;
    }
}

async fn listen(state: &SharedState, revoke: impl Fn(TokenDigest)) -> Infallible {
    let hear = async |change: Change| {
        let digest = HEXLOWER.decode(change.key.as_bytes()).ok().and_then(|digest| digest.try_into().ok());
        // A revocation that somebody has deleted still counts.
        digest.into_iter().for_each(&revoke);
    };
    state.follow(Table::Revocations, hear).await
}
