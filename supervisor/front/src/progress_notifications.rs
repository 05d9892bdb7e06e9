//! Sends MCP progress notifications for a tool call to the AI client that asked for them.

use std::time::{Duration, Instant, SystemTime};

use lockhouse_mcp::server::{ClientChannel, RequestContext};
use lockhouse_messages::{Progress, RunState, RunView, UserWait};
use lockhouse_policies::printable;
use rmcp::model::{ProgressNotification, ProgressNotificationParam, ProgressToken, ServerNotification};

/// Minimum time between two progress notifications of a tool call.
/// Bound: AI clients.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Interval at which the state of a run is read for progress notifications.
/// Bound: AI clients.
pub(super) const VIEW_INTERVAL: Duration = Duration::from_secs(1);
const PROGRESS_CHARS_MAX: usize = 300;
/// Maximum number of characters of the program's last printed line in a progress notification.
/// Bound: AI clients.
const LINE_CHARS_MAX: usize = 120;

/// Sends progress notifications for one tool call, if its request has a progress token.
pub(super) struct ProgressReporter {
    token: Option<ProgressToken>,
    channel: ClientChannel,
    sent: f64,
    last: Option<Instant>,
}

impl ProgressReporter {
    pub(super) fn new(context: &RequestContext) -> Self {
        let token = context.meta.get_progress_token();
        Self { token, channel: context.channel.clone(), sent: 0.0, last: None }
    }

    /// Returns whether the AI client asked for progress notifications.
    pub(super) fn is_requested(&self) -> bool {
        self.token.is_some()
    }

    /// Sends a progress notification with this text, unless another was sent less than 100 ms ago. The progress value
    /// is the number of notifications so far, because the progress values of several upstream servers cannot be added
    /// up.
    pub(super) async fn report(&mut self, words: &str) {
        let Some(token) = &self.token else { return };
        if self.last.is_some_and(|last| last.elapsed() < MIN_INTERVAL) {
            return;
        }
        self.last = Some(Instant::now());
        self.sent += 1.0;
        let words: String = words.chars().take(PROGRESS_CHARS_MAX).collect();
        let progress = ProgressNotificationParam::new(token.clone(), self.sent).with_message(words);
        let notification = ServerNotification::ProgressNotification(ProgressNotification::new(progress));
        let _ = self.channel.notify(notification).await;
    }
}

impl ProgressReporter {
    /// Sends a progress notification about the state of a run, unless the run is ending.
    pub(super) async fn report_view(&mut self, view: &RunView) {
        if !matches!(view.state, RunState::Ending) {
            self.report(&progress_text(view.progress(), view.age)).await;
        }
    }
}

/// Returns the current time in RFC 3339 format.
pub(super) fn rfc3339_now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// Describes a run's progress in one line: finished calls, calls in flight, a pending question, the elapsed time, and
/// the last printed line. If `progress` is `None`, the line says that the run waits for a worker process, and has done
/// so for the time `since`.
pub(super) fn progress_text(progress: Option<&Progress>, since: Duration) -> String {
    let Some(progress) = progress else {
        return format!("waiting for a worker, {:.1} s", since.as_secs_f32());
    };
    let Progress { elapsed, finished_calls: calls, in_flight, waiting_for, stdout } = progress;
    let mut words = format!("{calls} {} made", if *calls == 1 { "call" } else { "calls" });
    let waiting: usize = in_flight.values().sum();
    if let Some(first) = in_flight.keys().next() {
        let more = if in_flight.len() > 1 { ", …" } else { "" };
        words += &format!(", {waiting} under way ({first}{more})");
    }
    if let Some(UserWait { reason, since }) = waiting_for {
        words += &format!(", waiting for a person for {:.1} s ({reason})", since.as_secs_f32());
    }
    words += &format!(", {:.1} s", elapsed.as_secs_f32());
    if let Some(line) = stdout.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        let line: String = line.chars().take(LINE_CHARS_MAX).collect();
        words += &format!("; {line}");
    }
    printable(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_one_line_without_control_characters() {
        let progress = |calls, under_way: &[(&str, usize)], stdout: &str| Progress {
            elapsed: Duration::from_millis(4_230),
            finished_calls: calls,
            in_flight: under_way.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            waiting_for: None,
            stdout: stdout.to_owned(),
        };
        let words = |progress: &Progress| progress_text(Some(progress), Duration::ZERO);
        assert_eq!(progress_text(None, Duration::from_secs(2)), "waiting for a worker, 2.0 s");
        assert_eq!(words(&progress(1, &[], "")), "1 call made, 4.2 s");
        let busy = progress(12, &[("a.list", 2), ("b.get", 1)], "first\npage \u{1b}[31m 3\n \n");
        assert_eq!(words(&busy), "12 calls made, 3 under way (a.list, …), 4.2 s; page \u{fffd}[31m 3");
        let waiting = UserWait { reason: "approval of a.get".into(), since: Duration::from_secs(50) };
        let waiting = words(&Progress { waiting_for: Some(waiting), ..progress(3, &[("a.get", 1)], "") });
        let expected =
            "3 calls made, 1 under way (a.get), waiting for a person for 50.0 s (approval of a.get), 4.2 s";
        assert_eq!(waiting, expected);
        let long = words(&progress(0, &[], &"x".repeat(1_000)));
        assert!(long.chars().count() < 200, "{long}");
    }
}
