//! Notifies systemd of readiness, status, reload and shutdown of the service, and sends watchdog messages.
//!
//! Does nothing if the environment variable `NOTIFY_SOCKET` is not set.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::supervisor::Supervisor;
use lockhouse_protocol::Language;
use sd_notify::NotifyState;

/// Maximum interval between two checks whether the status line for systemd has changed.
const STATUS_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of queued messages to systemd. While the queue is full, further messages are dropped.
const QUEUED_MESSAGES_MAX: usize = 64;

/// Sends `READY=1` to systemd once the service is ready, then status changes and watchdog messages, and `STOPPING=1`
/// when the service drains.
///
/// This task runs on the same event loop as everything else, so a blocked event loop sends no watchdog message, and
/// systemd restarts the service. A process whose audit log cannot be written is not ready, and goes on sending watchdog
/// messages: a restart would not make room on a full disk, and the process recovers by itself.
pub async fn run(supervisor: Arc<Supervisor>) {
    for language in [Language::Python, Language::Typescript] {
        // A missing engine is reported when a request needs its language.
        let _ = supervisor.wait_until_prepared(language).await;
    }
    supervisor.lifecycle().set_initialized();
    supervisor.lifecycle().wait_listening().await;
    let mut line = supervisor.status_line();
    let reasons = supervisor.unready_reasons();
    if reasons.is_empty() {
        notify(&[NotifyState::Ready, NotifyState::Status(&line)]);
    } else {
        notify(&[NotifyState::Status(&reasons.join("; "))]);
    }
    let mut is_ready = reasons.is_empty();
    let watchdog = sd_notify::watchdog_enabled();
    // Half of the watchdog timeout, so that a delayed message is still in time.
    let pause = watchdog.map_or(STATUS_INTERVAL, |limit| STATUS_INTERVAL.min(limit / 2));
    while !supervisor.lifecycle().draining().is_cancelled() {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = supervisor.lifecycle().draining().cancelled() => break,
        }
        let reasons = supervisor.unready_reasons();
        if watchdog.is_some() {
            notify(&[NotifyState::Watchdog]);
        }
        if !is_ready && reasons.is_empty() {
            is_ready = true;
            notify(&[NotifyState::Ready]);
        }
        let now = if reasons.is_empty() { supervisor.status_line() } else { reasons.join("; ") };
        if now != line {
            notify(&[NotifyState::Status(&now)]);
            line = now;
        }
    }
    notify(&[NotifyState::Stopping, NotifyState::Status(&supervisor.status_line())]);
    let Some(_) = watchdog else { return };
    // Draining runs may take longer than the watchdog timeout.
    while !supervisor.lifecycle().closing().is_cancelled() {
        notify(&[NotifyState::Watchdog]);
        tokio::time::sleep(pause).await;
    }
}

/// Notifies systemd that the configuration is being reloaded.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!("cannot notify systemd of the reload: {error}"),
    }
}

/// Notifies systemd that the reload has ended, whether the configuration was accepted or not.
pub fn reloaded() {
    notify(&[NotifyState::Ready]);
}

/// Queues a message to systemd without blocking. Drops the message if the queue is full.
fn notify(states: &[NotifyState<'_>]) {
    static SENDER: OnceLock<Option<SyncSender<String>>> = OnceLock::new();
    let Some(sender) = SENDER.get_or_init(start_sender) else { return };
    let states: Vec<String> = states.iter().map(ToString::to_string).collect();
    let _ = sender.try_send(states.join("\n"));
}

/// Starts the thread that sends messages to systemd. The thread is separate because writing to systemd's socket may
/// block. Returns `None` if `NOTIFY_SOCKET` is not set or the thread cannot be started.
fn start_sender() -> Option<SyncSender<String>> {
    std::env::var_os("NOTIFY_SOCKET")?;
    let (sender, messages) = sync_channel::<String>(QUEUED_MESSAGES_MAX);
    let send_all = move || {
        for message in messages {
            if let Err(error) = sd_notify::notify(&[NotifyState::Custom(&message)]) {
                tracing::debug!("cannot notify systemd: {error}");
            }
        }
    };
    let started = std::thread::Builder::new().name("notify".into()).spawn(send_all);
    started.map_err(|error| tracing::warn!("cannot notify systemd: {error}")).ok()?;
    Some(sender)
}
