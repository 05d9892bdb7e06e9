//! The tables of `config.toml` and their keys, each declared once: see [`keys`](super::keys). Those of `[http]` are in
//! [`http`](super::http), those of servers in [`server_keys`](super::server_keys).

use std::path::PathBuf;

use lockhouse_audit::REDACTED;
use lockhouse_base::telemetry::log::Format;
use lockhouse_front::http::Address;
use lockhouse_gate::Through;
use lockhouse_gate::skills::DIRECTORIES_MAX;
use serde::Deserialize;

use super::keys::{Range, table};

table! {
    /// of one execution
    pub(super) struct Limits = "limits" {
        /// wall clock; run_code's timeout_s can only shorten it
        timeout_seconds: f64 = 30.0, within 0.01..=86_400.0;
        /// for a person to answer an upstream server's question; no other clock runs meanwhile
        question_seconds: f64 = 300.0, within 0.01..=3_600.0;
        /// from the soft interrupt to SIGKILL
        grace_ms: u32 = 100, within 1..=60_000;
        /// RLIMIT_CPU
        cpu_seconds: u32 = 30, within 1..=86_400;
        /// beyond what the interpreter has mapped
        memory_mib: u32 = 256, within 16..=1_048_576;
        /// submitted code; less than `frame_kib`
        code_kib: u32 = 256, within 1..=8_192;
        /// stdout and stderr together
        output_kib: u32 = 1_024, within 1..=65_536;
        /// tool calls
        calls: u32 = 1_000, within 1..=1_000_000;
        /// at one time; more wait in the worker
        parallel_calls: u32 = 64, within 1..=1_024;
        /// one message: the largest tool result, arguments or value
        frame_kib: u32 = 8_192, within 64..=61_440;
        /// of value, stdout and stderr each, that an AI client is shown
        shown_bytes: u32 = 10_240, within 256..=1_048_576;
        /// of stdout and stderr each instead, that an AI client is shown
        printed_bytes: Option<u32> = None, within 256..=1_048_576, else "shown_bytes", like "10240";
    }
}

table! {
    /// of each language
    pub(super) struct Pool = "pool" {
        /// sealed workers kept ahead of need
        idle: u32 = 4, within 1..=64;
        /// executions at one time
        running: u32 = 16, within 1..=1_024;
        /// executions that may wait
        queue: u32 = 256, within 1..=65_536;
        /// of one client: see docs/runs.md
        queue_per_client: u32 = 128, within 1..=65_536;
        /// forks until a new zygote takes over
        recycle_after: u32 = 1_000, within 1..=1_000_000;
        /// age at which it does, if the old one has served; after a crash it does at once
        recycle_seconds: u32 = 600, within 1..=86_400;
        /// refuse a host that does not give every protection: see `lockhouse doctor`
        require_full: bool = false;
        /// user and group of workers when started as root
        // 61184 to 65519 is systemd's range for services' own users, where nobody else has files.
        unprivileged_id: u32 = 61_500, within 1_000..;
    }
}

table! {
    /// what AI clients keep between runs: see docs/sessions.md
    pub(super) struct Sessions = "sessions" {
        /// at one time, besides `running` of `[pool]`
        max: u32 = 8, within 1..=256;
        /// after which one that nobody uses ends
        idle_seconds: f64 = 900.0, within 0.01..=86_400.0;
        /// how old one becomes
        life_seconds: f64 = 14_400.0, within 0.01..=86_400.0;
    }
}

table! {
    /// those that take longer than a client waits: see docs/runs.md
    pub(super) struct Runs = "runs" {
        /// how long run_code waits for its answer
        wait_seconds: f64 = 45.0, within 0.0..=600.0;
        /// runs that go on without a request, at one time
        background: u32 = 64, within 0..=4_096;
        /// of one client
        background_per_client: u32 = 16, within 0..=4_096;
    }
}

table! {
    /// the Python engine
    pub(super) struct Python = "python" {
        /// a virtualenv's works
        interpreter: Option<PathBuf> = None,
            else "this one, else the first python3 in PATH", like "\"/usr/bin/python3\"";
        /// the engine's library
        extension: Option<PathBuf> = None,
            else "beside lockhouse, ../lib/lockhouse, /usr/lib/lockhouse",
            like "\"/opt/lockhouse/liblockhouse_python.so\"";
        /// modules to load before the seal, besides the standard ones
        preload: Vec<String> = Vec::new(), like "[\"pandas\"]";
    }
}

table! {
    /// the JavaScript engine
    pub(super) struct JavaScript = "javascript" {
        /// its program
        worker: Option<PathBuf> = None,
            else "the same places as extension", like "\"/opt/lockhouse/lockhouse-worker\"";
    }
}

table! {
    /// the audit log: see docs/audit.md
    pub(super) struct Audit = "audit" {
        /// where it is
        directory: Option<PathBuf> = None,
            else "$LOGS_DIRECTORY, else audit below $STATE_DIRECTORY, else ~/.local/state/lockhouse",
            like "\"/var/log/lockhouse\"";
        /// whether the values of arguments are kept, at most 16 KiB of a call
        values: bool = false;
        /// names of arguments whose values are never kept, in any case, * for any text
        redact: Vec<String> = REDACTED.map(str::to_owned).to_vec(),
            else "passwords, tokens, keys", like "[\"password\", \"*_token\"]";
        /// whether programs are kept, each once
        code: bool = true;
        /// days after which a segment is removed
        keep_days: u32 = 30, within 1..=3_650;
    }
}

table! {
    /// calls that the policy leaves to a person: docs/approvals.md
    pub(super) struct Approvals = "approvals" {
        /// or "local": never through the AI client
        through: Through = Through::default(), like "\"any\"";
        /// how long a person may take
        wait_seconds: Option<f64> = None, within 0.01..=3_600.0,
            else "question_seconds of `[limits]`", like "300";
    }
}

table! {
    /// the tools of servers, as they were last seen
    pub(super) struct Catalogue = "catalogue" {
        /// how long they stand for a server that is not connected
        lifetime_hours: u32 = 24, within 0..=8_760;
        /// whether names of fields and types of results are kept, for tools that do not say what they answer
        learn: bool = true;
    }
}

table! {
    /// what was too long to be shown: see values.md
    pub(super) struct Results = "results" {
        /// of all results together, each at most a quarter of it; 0 keeps none
        keep_mib: u32 = 64, within 0..=65_536;
        /// earlier the oldest go of the client that keeps most, when newer ones need their room
        keep_seconds: u32 = 3_600, within 1..=604_800;
    }
}

table! {
    /// saved skills: docs/skills.md
    pub(super) struct Skills = "skills" {
        /// whether code can save, import and find any
        enabled: bool = true;
        /// folders of skills that are shared: read, never written
        directories: Vec<String> = Vec::new(), within Range::Entries(DIRECTORIES_MAX),
            like "[\"/srv/team/skills\"]";
    }
}

table! {
    /// what each client over HTTP may use
    pub(super) struct Clients = "clients" {
        /// requests at `/mcp`
        requests: String = "1200/min".into(), within Range::Rate("1200/min");
        /// runs that begin
        runs: String = "120/min".into(), within Range::Rate("30/min");
        /// runs at one time
        running: u32 = 8, within 1..=1_024;
        /// sessions at one time
        sessions: u32 = 4, within 1..=256;
    }
}

table! {
    /// `lockhouse serve --http`: docs/service.md
    pub(super) struct Service = "service" {
        /// how long runs may take that are under way when it is to end
        drain_seconds: f64 = 30.0, within 0.0..=3_600.0;
    }
}

table! {
    /// docs/metrics.md
    pub(super) struct Metrics = "metrics" {
        /// /live, /ready, /health and /metrics without proof, at loopback addresses and unix:/PATH alone
        #[serde(deserialize_with = "local_addresses")]
        listen: Vec<Address> = Vec::new(), else "nowhere", like "[\"127.0.0.1:7301\"]";
    }
}

table! {
    /// the log on standard error
    pub(super) struct Log = "log" {
        /// or "json", one object a line, or "journald", fields of systemd's journal
        format: Format = Format::default(), like "\"text\"";
    }
}

table! {
    /// what models have besides the three tools
    pub(super) struct Tools = "tools" {
        /// `health`
        health: bool = false;
    }
}

/// Addresses that nobody on another machine reaches.
fn local_addresses<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Address>, D::Error> {
    use serde::de::Error;
    let written: Vec<String> = Deserialize::deserialize(from)?;
    let local = |written: &String| match written.parse().map_err(D::Error::custom)? {
        Address::Tcp(address) if !address.ip().is_loopback() => Err(D::Error::custom(format!(
            "{written} can be reached from other machines, and nobody has to prove who they are there: use a loopback \
             address or unix:/PATH, and from elsewhere ask for /metrics where AI clients come in, with a token"
        ))),
        address => Ok(address),
    };
    written.iter().map(local).collect()
}
