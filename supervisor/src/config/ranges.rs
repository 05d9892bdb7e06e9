//! Keys whose value cannot work, whatever its type.

use lockhouse_gate::skills::DIRECTORIES_MAX;
use lockhouse_policies::Rate;

use super::document::Document;

impl Document {
    /// Keys whose value cannot work.
    pub(super) fn out_of_range(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (limits, pool) = (&self.limits, &self.pool);
        let wait = self.approvals.wait_seconds;
        let (sessions, runs, clients) = (&self.sessions, &self.runs, &self.clients);
        let oauth = self.http.oauth.as_ref();
        let is_rate = |text: &str| Rate::parse(text).is_some();
        let checks = [
            ((0.01..=86_400.0).contains(&limits.timeout_seconds), "limits.timeout_seconds", "0.01 to 86400"),
            ((0.01..=3_600.0).contains(&limits.question_seconds), "limits.question_seconds", "0.01 to 3600"),
            (
                wait.is_none_or(|wait| (0.01..=3_600.0).contains(&wait)),
                "approvals.wait_seconds",
                "0.01 to 3600",
            ),
            ((1..=60_000).contains(&limits.grace_ms), "limits.grace_ms", "1 to 60000"),
            ((1..=86_400).contains(&limits.cpu_seconds), "limits.cpu_seconds", "1 to 86400"),
            ((16..=1_048_576).contains(&limits.memory_mib), "limits.memory_mib", "16 to 1048576"),
            ((1..=8_192).contains(&limits.code_kib), "limits.code_kib", "1 to 8192"),
            ((1..=65_536).contains(&limits.output_kib), "limits.output_kib", "1 to 65536"),
            ((1..=1_000_000).contains(&limits.calls), "limits.calls", "1 to 1000000"),
            ((1..=1_024).contains(&limits.parallel_calls), "limits.parallel_calls", "1 to 1024"),
            ((64..=61_440).contains(&limits.frame_kib), "limits.frame_kib", "64 to 61440"),
            (
                limits.code_kib < limits.frame_kib,
                "limits.code_kib",
                "less than frame_kib: code travels in one message",
            ),
            ((256..=1_048_576).contains(&limits.shown_bytes), "limits.shown_bytes", "256 to 1048576"),
            ((1..=64).contains(&pool.idle), "pool.idle", "1 to 64"),
            ((1..=1_024).contains(&pool.running), "pool.running", "1 to 1024"),
            ((1..=65_536).contains(&pool.queue), "pool.queue", "1 to 65536"),
            ((1..=65_536).contains(&pool.queue_per_client), "pool.queue_per_client", "1 to 65536"),
            ((1..=1_000_000).contains(&pool.recycle_after), "pool.recycle_after", "1 to 1000000"),
            ((1..=86_400).contains(&pool.recycle_seconds), "pool.recycle_seconds", "1 to 86400"),
            ((1..=256).contains(&sessions.max), "sessions.max", "1 to 256"),
            (is_rate(&clients.requests), "clients.requests", "such as \"1200/min\", per s, min, h or d"),
            (is_rate(&clients.runs), "clients.runs", "such as \"30/min\", per s, min, h or d"),
            ((1..=1_024).contains(&clients.running), "clients.running", "1 to 1024"),
            ((1..=256).contains(&clients.sessions), "clients.sessions", "1 to 256"),
            (oauth.is_none_or(|of| of.leeway_seconds <= 600), "http.oauth.leeway_seconds", "0 to 600"),
            (
                oauth.is_none_or(|of| (1..=3_600).contains(&of.refetch_seconds)),
                "http.oauth.refetch_seconds",
                "1 to 3600",
            ),
            ((0.01..=86_400.0).contains(&sessions.idle_seconds), "sessions.idle_seconds", "0.01 to 86400"),
            ((0.01..=86_400.0).contains(&sessions.life_seconds), "sessions.life_seconds", "0.01 to 86400"),
            ((0.0..=600.0).contains(&runs.wait_seconds), "runs.wait_seconds", "0 to 600"),
            ((0..=4_096).contains(&runs.background), "runs.background", "0 to 4096"),
            ((0..=4_096).contains(&runs.background_per_client), "runs.background_per_client", "0 to 4096"),
            ((0..=8_760).contains(&self.catalogue.lifetime_hours), "catalogue.lifetime_hours", "0 to 8760"),
            ((0..=65_536).contains(&self.results.keep_mib), "results.keep_mib", "0 to 65536"),
            ((1..=604_800).contains(&self.results.keep_seconds), "results.keep_seconds", "1 to 604800"),
            (self.skills.directories.len() <= DIRECTORIES_MAX, "skills.directories", "at most 20"),
            ((1..=3_650).contains(&self.audit.keep_days), "audit.keep_days", "1 to 3650"),
            ((1_000..u32::MAX).contains(&pool.unprivileged_id), "pool.unprivileged_id", "1000 or more"),
            ((0.0..=3_600.0).contains(&self.service.drain_seconds), "service.drain_seconds", "0 to 3600"),
        ];
        checks
            .into_iter()
            .chain(self.http.limits.checks(limits.code_kib))
            .filter(|(fits, ..)| !fits)
            .map(|(_, key, range)| (key, range))
    }
}
