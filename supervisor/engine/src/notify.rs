//! What systemd is told of this service: that it is ready, how it is, that it lives, and that it ends.
//!
//! Where nobody has set `NOTIFY_SOCKET`, nothing is told.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::supervisor::Supervisor;
use lockhouse_base::language::Language;
use sd_notify::NotifyState;

/// Between two looks at whether the line of how it is has changed.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Messages that wait until the manager reads; further ones are left out.
const UNTOLD_MAX: usize = 64;

/// Tells that the service is ready once it is, and from then on how it is, and that it lives.
///
/// The event loop that runs this runs everything else, so that a loop that hangs tells nothing. Nor does one whose audit log
/// cannot be written: no call is made then, and a new start may find what has become of it.
pub async fn keep(supervisor: Arc<Supervisor>) {
    for language in [Language::Python, Language::Typescript] {
        // One that is missing is told to whoever asks for its language.
        let _ = supervisor.prepared(language).await;
    }
    supervisor.life().settle();
    supervisor.life().listening().await;
    let mut line = supervisor.in_a_line();
    let reasons = supervisor.not_ready();
    if reasons.is_empty() {
        tell(&[NotifyState::Ready, NotifyState::Status(&line)]);
    } else {
        tell(&[NotifyState::Status(&reasons.join("; "))]);
    }
    let mut is_ready = reasons.is_empty();
    let watchdog = sd_notify::watchdog_enabled();
    // Half of the time that it may take, so that one that comes late is not too late.
    let pause = watchdog.map_or(LINE_EVERY, |limit| LINE_EVERY.min(limit / 2));
    while !supervisor.life().draining().is_cancelled() {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = supervisor.life().draining().cancelled() => break,
        }
        let reasons = supervisor.not_ready();
        if watchdog.is_some() && supervisor.gate().audit().is_writable() {
            tell(&[NotifyState::Watchdog]);
        }
        if !is_ready && reasons.is_empty() {
            is_ready = true;
            tell(&[NotifyState::Ready]);
        }
        let now = if reasons.is_empty() { supervisor.in_a_line() } else { reasons.join("; ") };
        if now != line {
            tell(&[NotifyState::Status(&now)]);
            line = now;
        }
    }
    tell(&[NotifyState::Stopping, NotifyState::Status(&supervisor.in_a_line())]);
    let Some(_) = watchdog else { return };
    // Runs may take longer to end than the watchdog waits.
    while !supervisor.life().closing().is_cancelled() {
        tell(&[NotifyState::Watchdog]);
        tokio::time::sleep(pause).await;
    }
}

/// The configuration is being read again.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!("systemd is not told of the reload: {error}"),
    }
}

/// It has been read, whether it was taken or not.
pub fn reloaded() {
    tell(&[NotifyState::Ready]);
}

/// Never waits: a manager that does not read costs nobody more than what it is told.
fn tell(states: &[NotifyState<'_>]) {
    static TELLER: OnceLock<Option<SyncSender<String>>> = OnceLock::new();
    let Some(teller) = TELLER.get_or_init(teller) else { return };
    let states: Vec<String> = states.iter().map(ToString::to_string).collect();
    let _ = teller.try_send(states.join("\n"));
}

/// A thread of its own, since the socket of the manager may be full. None where there is no manager.
fn teller() -> Option<SyncSender<String>> {
    std::env::var_os("NOTIFY_SOCKET")?;
    let (sender, messages) = sync_channel::<String>(UNTOLD_MAX);
    let telling = move || {
        for message in messages {
            if let Err(error) = sd_notify::notify(&[NotifyState::Custom(&message)]) {
                tracing::debug!("systemd is not told: {error}");
            }
        }
    };
    let started = std::thread::Builder::new().name("notify".into()).spawn(telling);
    started.map_err(|error| tracing::warn!("systemd is not told: {error}")).ok()?;
    Some(sender)
}
