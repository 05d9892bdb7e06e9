//! Waits for a server that has missed a ping. Such a server may be busy with the calls in flight, so it is given up only
//! once these have ended or used up their time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::call_concurrency::CallSlots;
use crate::caller_signals::CallStats;
use crate::request::ping;
use lockhouse_mcp::client::{Client, ConnectionFailure};

/// Timeout of a ping to a server.
/// Bound: upstream servers.
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest time between the beginnings of two pings. A ping to a server over HTTP can fail at once.
const PING_INTERVAL: Duration = Duration::from_secs(1);

/// Pings the server until it answers. `answers` are those to calls from now on, and `missed` is why the ping before failed.
///
/// # Errors
/// Fails with the reason of the last ping once no call is in flight any more. If the server has answered one of them, it
/// gets one more ping then: it was busy, and reads its input again.
pub(super) async fn recovered(
    client: Client,
    slots: Arc<CallSlots>,
    answers: watch::Receiver<CallStats>,
    mut missed: ConnectionFailure,
) -> Result<(), ConnectionFailure> {
    let mut drained = pin!(slots.wait_drained());
    loop {
        let next = Instant::now() + PING_INTERVAL;
        let answered = async {
            let answered = ping(client.clone(), PING_TIMEOUT).await;
            if answered.is_err() {
                sleep_until(next).await;
            }
            answered
        };
        tokio::select! {
            biased;
            () = &mut drained => break,
            answered = answered => match answered {
                Ok(()) => return Ok(()),
                // It answers calls, so it is only busy.
                Err(_) if answers.has_changed().unwrap_or(false) => return Ok(()),
                Err(reason) => missed = reason,
            },
        }
    }
    match answers.has_changed() {
        Ok(true) => ping(client, PING_TIMEOUT).await,
        _ => Err(missed),
    }
}
