//! Where an AI client shows how far its call is, if it asked for that.

use std::time::{Duration, Instant, SystemTime};

use lockhouse_messages::{Course, PersonWait, RunState, RunView};
use lockhouse_policies::printable;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};

/// Between two notes of progress, whoever has something to say.
const AT_MOST_EVERY: Duration = Duration::from_millis(100);
/// Between two looks at what the code is doing.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
const PROGRESS_CHARS_MAX: usize = 300;
/// Of these, for the last line that the code printed.
const LINE_CHARS_MAX: usize = 120;

/// Where an AI client shows how far its call is, if it asked for that.
pub(super) struct Display {
    token: Option<ProgressToken>,
    peer: Peer<RoleServer>,
    shown: f64,
    last: Option<Instant>,
}

impl Display {
    pub(super) fn new(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Self { token, peer: context.peer.clone(), shown: 0.0, last: None }
    }

    /// Whether anybody wants to see it.
    pub(super) fn is_wanted(&self) -> bool {
        self.token.is_some()
    }

    /// Shows it, unless something was shown just before. How far servers say that they are cannot be added up, so the
    /// number only counts.
    pub(super) async fn show(&mut self, words: &str) {
        let Some(token) = &self.token else { return };
        if self.last.is_some_and(|last| last.elapsed() < AT_MOST_EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        self.shown += 1.0;
        let words: String = words.chars().take(PROGRESS_CHARS_MAX).collect();
        let progress = ProgressNotificationParam::new(token.clone(), self.shown).with_message(words);
        let _ = self.peer.notify_progress(progress).await;
    }
}

impl Display {
    /// Shows what the code is doing, if it says so.
    pub(super) async fn view(&mut self, view: &RunView) {
        if !matches!(view.state, RunState::Silent) {
            self.show(&in_words(view.course(), view.age)).await;
        }
    }
}

/// Now, as in RFC 3339.
pub(super) fn rfc3339_now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// What the code is doing, in a line.
pub(super) fn in_words(course: Option<&Course>, since: Duration) -> String {
    let Some(course) = course else { return format!("waiting for a worker, {:.1} s", since.as_secs_f32()) };
    let Course { elapsed, calls, under_way, person, stdout } = course;
    let mut words = format!("{calls} {} made", if *calls == 1 { "call" } else { "calls" });
    let waiting: usize = under_way.values().sum();
    if let Some(first) = under_way.keys().next() {
        let more = if under_way.len() > 1 { ", …" } else { "" };
        words += &format!(", {waiting} under way ({first}{more})");
    }
    if let Some(PersonWait { about, since }) = person {
        words += &format!(", waiting for a person for {:.1} s ({about})", since.as_secs_f32());
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
    fn what_the_code_is_doing_is_one_line_without_control_characters() {
        let course = |calls, under_way: &[(&str, usize)], stdout: &str| Course {
            elapsed: Duration::from_millis(4_230),
            calls,
            under_way: under_way.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            person: None,
            stdout: stdout.to_owned(),
        };
        let words = |course: &Course| in_words(Some(course), Duration::ZERO);
        assert_eq!(in_words(None, Duration::from_secs(2)), "waiting for a worker, 2.0 s");
        assert_eq!(words(&course(1, &[], "")), "1 call made, 4.2 s");
        let busy = course(12, &[("a.list", 2), ("b.get", 1)], "first\npage \u{1b}[31m 3\n \n");
        assert_eq!(words(&busy), "12 calls made, 3 under way (a.list, …), 4.2 s; page \u{fffd}[31m 3");
        let asking = PersonWait { about: "approval of a.get".into(), since: Duration::from_secs(50) };
        let asking = words(&Course { person: Some(asking), ..course(3, &[("a.get", 1)], "") });
        let told =
            "3 calls made, 1 under way (a.get), waiting for a person for 50.0 s (approval of a.get), 4.2 s";
        assert_eq!(asking, told);
        let long = words(&course(0, &[], &"x".repeat(1_000)));
        assert!(long.chars().count() < 200, "{long}");
    }
}
