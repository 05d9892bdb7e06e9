//! The tables of `config.toml` and their keys, each declared once: see [`keys`](super::keys). `[http]` is declared in
//! [`http_tables`](super::http_tables), the keys of servers in [`server_keys`](super::server_keys).

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::notice_entry::{NoticeEntry, RECEIVERS_MAX};
use lockhouse_approvals::{ApproverKind, Presence};
use lockhouse_audit::{DEFAULT_REDACTED_NAMES, SinkAddress};
use lockhouse_audit_forward::{DESTINATIONS_MAX, DestinationEntry, ForwardFormat};
use lockhouse_base::http_checks::host_check::HostName;
use lockhouse_base::telemetry::log::Format;
use lockhouse_front::BuiltinTool;
use lockhouse_front::http::ListenAddress;
use lockhouse_stores::skills::DIRECTORIES_MAX;
use lockhouse_upstream::TextDecoding;
use serde::Deserialize;

use super::engine_sharing::EngineSharing;
use super::keys::{Range, table};
use super::module_name::ModuleName;
use super::package_spec::PackageSpec;

table! {
    /// credentials of each user for upstream servers with `auth = "per_user"`: see docs/users.md
    pub(super) struct Users = "users" {
        /// secret of at least 32 bytes that encrypts them: `${cred:NAME}` or `${keyring:SERVICE/USER}`
        key: Option<String> = None, else "none: such servers are not used", like "\"${cred:lockhouse-users}\"";
        /// URL under which browsers reach this service; users log in at its page `login/SERVER`
        url: Option<String> = None, else "none: only `lockhouse server login`", like "\"https://lockhouse.example.com\"";
        /// token endpoint of the identity provider at which OAuth tokens of users are exchanged for tokens for servers with
        /// `exchange`
        exchange_url: Option<String> = None, else "none: such servers are not used", like "\"https://idp.example.com/token\"";
        /// client id of Lockhouse there
        exchange_client: Option<String> = None, else "required with it", like "\"lockhouse\"";
        /// client secret of Lockhouse there, which must be a placeholder
        exchange_secret: Option<String> = None, else "none: a public client", like "\"${cred:lockhouse-exchange}\"";
        /// what the tokens of users are there
        exchange_subject: String = "access_token".into(), within Range::OneOf(&["access_token", "id_token", "jwt"]);
    }
}

table! {
    /// limits of one run
    pub(super) struct LimitsTable = "limits" {
        /// time limit of one run; the argument timeout_s of run_code can only shorten it
        timeout_seconds: f64 = 300.0, within 0.01..=86_400.0;
        /// time for a person to answer a question of an upstream server; all other time limits are suspended meanwhile
        question_seconds: f64 = 300.0, within 0.01..=3_600.0;
        /// time that a run has to end after its interrupt, before SIGKILL
        grace_ms: u32 = 100, within 1..=60_000;
        /// CPU time (RLIMIT_CPU)
        cpu_seconds: u32 = 30, within 1..=86_400;
        /// memory of a run, beyond what the interpreter has mapped
        memory_mib: u32 = 256, within 16..=1_048_576;
        /// size of the submitted code; less than `frame_kib`
        code_kib: u32 = 256, within 1..=8_192;
        /// size of stdout and stderr together
        output_kib: u32 = 1_024, within 1..=65_536;
        /// tool calls of one run
        calls: u32 = 1_000, within 1..=1_000_000;
        /// concurrent tool calls; further ones wait in the worker
        parallel_calls: u32 = 64, within 1..=1_024;
        /// size of one value between supervisor and worker, as JSON: a tool result, arguments or the value of a run
        frame_kib: u32 = 8_192, within 64..=65_536;
        /// bytes that an AI client is shown of the value, of stdout and of stderr each
        shown_bytes: u32 = 10_240, within 256..=1_048_576;
        /// bytes of a value that a program of an AI client's own code mode gets, if the client says that a program asks, as
        /// Codex does
        program_bytes: u32 = 1_048_576, within 256..=8_388_608;
        /// bytes that an AI client is shown of stdout and of stderr each, if different
        printed_bytes: Option<u32> = None, within 256..=1_048_576, else "shown_bytes", like "10240";
    }
}

table! {
    /// worker processes of each language
    pub(super) struct Pool = "pool" {
        /// most idle sandboxed workers that are kept ready: one at rest, more while runs find none
        idle: u32 = 4, within 1..=64;
        /// concurrent runs
        running: u32 = 16, within 1..=1_024;
        /// runs that may wait for a worker
        queue: u32 = 256, within 1..=65_536;
        /// runs of one client that may wait: see docs/runs.md
        queue_per_client: u32 = 128, within 1..=65_536;
        /// forks after which a new zygote (fork server) replaces the current one
        recycle_after: u32 = 1_000, within 1..=1_000_000;
        /// age after which a new zygote (fork server) replaces the current one, if it was used; after a crash it is
        /// replaced at once
        recycle_seconds: u32 = 600, within 1..=86_400;
        /// refuse to start unless the host provides every protection: see `lockhouse doctor`
        require_full: bool = false;
        /// user and group id of workers when started as root
        // systemd reserves 61184 to 65519 for dynamic service users, who own no files.
        unprivileged_id: u32 = 61_500, within 1_000..;
    }
}

table! {
    /// sessions whose variables persist between runs: see docs/sessions.md
    pub(super) struct Sessions = "sessions" {
        /// concurrent sessions, in addition to `running` of `[pool]`
        max: u32 = 8, within 1..=256;
        /// time without use after which a session expires
        idle_seconds: f64 = 900.0, within 0.01..=86_400.0;
        /// maximum age of a session
        life_seconds: f64 = 14_400.0, within 0.01..=86_400.0;
    }
}

table! {
    /// runs that take longer than a request waits: see docs/runs.md
    pub(super) struct Runs = "runs" {
        /// how long run_code waits for a result before the run continues in the background
        wait_seconds: f64 = 45.0, within 0.0..=600.0;
        /// concurrent background runs
        background: u32 = 64, within 0..=4_096;
        /// concurrent background runs of one client
        background_per_client: u32 = 16, within 0..=4_096;
        /// how long a background run continues after its client has cancelled get_result and not asked for the run again; 0
        /// ends it at once
        abandoned_seconds: f64 = 120.0, within 0.0..=3_600.0;
    }
}

table! {
    /// the Python engine
    pub(super) struct Python = "python" {
        /// path of Python 3.10 or later; the interpreter of a virtualenv also works
        interpreter: Option<PathBuf> = None,
            else "this one, else the first python3 in PATH", like "\"/usr/bin/python3\"";
        /// shared library of the Python engine
        extension: Option<PathBuf> = None,
            else "beside lockhouse, ../lib/lockhouse, /usr/lib/lockhouse",
            like "\"/opt/lockhouse/liblockhouse_python.so\"";
        /// modules to load before the worker enters the sandbox, in addition to the standard ones
        preload: Vec<String> = Vec::new(), like "[\"logging.handlers\"]";
        /// modules that programs cannot import, with those below them; the standard library and packages still import them. No
        /// part of the sandbox
        denied_modules: Vec<ModuleName> = Vec::new(), within Range::Entries(256), like "[\"ctypes\", \"xml.dom\"]";
        /// packages that programs can import: see python-packages.md; `lockhouse python add` installs them and adds them
        /// here. They are loaded in workers of their own, which only programs that import one of them use
        packages: Vec<PackageSpec> = Vec::new(), within Range::Entries(64), like "[\"numpy\", \"pandas\"]";
        /// virtual environment with the packages, if `lockhouse python` does not manage it
        environment: Option<PathBuf> = None,
            else "python/current below $STATE_DIRECTORY, else ~/.local/state/lockhouse",
            like "\"/opt/analysis\"";
        /// memory of a run with packages, beyond what the interpreter has mapped
        packages_memory_mib: Option<u32> = None, within 16..=1_048_576, else "memory_mib of `[limits]`", like "1024";
        /// time without a run after which the packages are unloaded; the next run that needs them waits until they are
        /// loaded
        packages_idle_seconds: u32 = 900, within 10..=86_400;
    }
}

table! {
    /// the JavaScript engine
    pub(super) struct JavaScript = "javascript" {
        /// worker program of the JavaScript engine
        worker: Option<PathBuf> = None,
            else "the same places as extension", like "\"/opt/lockhouse/lockhouse-worker\"";
        /// modules that programs cannot import, with those below them. No part of the sandbox
        denied_modules: Vec<ModuleName> = Vec::new(), within Range::Entries(256), like "[\"fs\"]";
    }
}

table! {
    /// the audit log: see docs/audit.md
    pub(super) struct Audit = "audit" {
        /// directory of the audit log
        directory: Option<PathBuf> = None,
            else "$LOGS_DIRECTORY, else audit below $STATE_DIRECTORY, else ~/.local/state/lockhouse",
            like "\"/var/log/lockhouse\"";
        /// whether the argument values of calls are recorded, at most 16 KiB for each call
        values: bool = false;
        /// names of arguments whose values are never recorded; case-insensitive, * matches any text
        redact: Vec<String> = DEFAULT_REDACTED_NAMES.map(str::to_owned).to_vec(),
            else "passwords, tokens, keys", like "[\"password\", \"*_token\"]";
        /// whether submitted code is recorded, each distinct program once
        code: bool = true;
        /// days after which a segment (file) of the audit log is deleted
        keep_days: u32 = 30, within 1..=3_650;
        /// whether records have ids in place of the names of AI clients and users, so that `lockhouse user forget` can
        /// erase a name: see docs/audit.md
        erasable_names: bool = false;
        /// the audit sink, a process of another account, which writes and forwards the log instead of this process;
        /// `directory` and `keep_days` then have no effect here
        sink: Option<SinkAddress> = None,
            else "this process writes the log", like "\"unix:/run/lockhouse-audit/sink.sock\"";
        /// destinations that receive each record as it is written: "journald", "syslog+tls://HOST:PORT",
        /// "otlp+https://HOST/v1/logs". In place of the text, a table has it as `to`, with `headers` or with `certificate`
        /// and `key`: see docs/audit.md
        forward: Vec<DestinationEntry> = Vec::new(), within Range::Entries(DESTINATIONS_MAX), else "none",
            like "[\"journald\", \"syslog+tls://logs.example.com:6514\"]";
        /// form of the records for syslog and journald: "json" or "ocsf"
        forward_format: ForwardFormat = ForwardFormat::default(), like "\"json\"";
        /// PEM file with the certificates that must have issued those of the destinations
        forward_ca: Option<PathBuf> = None,
            else "those that the system trusts", like "\"/etc/lockhouse/logs-ca.pem\"";
        /// age of an undelivered record beyond which calls are refused until it is delivered
        forward_within_seconds: Option<u32> = None, within 10..=86_400, else "calls never wait for destinations",
            like "300";
    }
}

table! {
    /// calls that require approval: see docs/approvals.md
    pub(super) struct Approvals = "approvals" {
        /// who approves calls: "any" is the user of the AI client if possible, "local" is never through the AI client
        through: ApproverKind = ApproverKind::default(), like "\"any\"";
        /// time for the approver to answer
        wait_seconds: Option<f64> = None, within 0.01..=3_600.0,
            else "question_seconds of `[limits]`", like "300";
        /// proof that a person is there, for each approval: "none", "password" (of polkit or sudo) or "key" (a security
        /// key, on the page). Requirements and rules of the policy can only raise it
        presence: Presence = Presence::default(), like "\"password\"";
        /// who gets notices of waiting questions: `{ url, secret }` of a webhook or `{ command }`, each also with
        /// `after_seconds` and `remind_seconds`
        notify: Vec<NoticeEntry> = Vec::new(), within Range::Entries(RECEIVERS_MAX), else "nobody",
            like "[{ command = [\"/etc/lockhouse/tell-approvers\"], remind_seconds = 60 }]";
        /// address at which people answer, for notices
        link: Option<String> = None, else "notices name the commands", like "\"https://lockhouse.example.com\"";
    }
}

table! {
    /// cached tool definitions of upstream servers
    pub(super) struct Catalogue = "catalogue" {
        /// how long cached definitions are used for a server that is not connected
        lifetime_hours: u32 = 24, within 0..=8_760;
        /// how long the first list request of an AI client waits for servers with `expose` whose definitions are not
        /// cached; clients that ignore `notifications/tools/list_changed` may need it where no cache is kept
        first_list_seconds: f64 = 0.0, within 0.0..=60.0;
        /// whether field names and types of results are recorded, for tools without an output schema
        learn: bool = true;
    }
}

table! {
    /// results that were too long to be shown: see values.md
    pub(super) struct Results = "results" {
        /// total size of all stored results; one result takes at most a quarter of it; 0 stores none
        keep_mib: u32 = 64, within 0..=65_536;
        /// time after which a result expires; when space is short, the oldest results of the client that stores the
        /// most are evicted first
        keep_seconds: u32 = 3_600, within 1..=604_800;
        /// total size on disk of all files that runs return, of one Lockhouse process; one file takes at most a quarter
        /// of it; 0 stores none
        files_mib: u32 = 256, within 0..=65_536;
        /// size of a returned file that an AI client can read with `resources/read`; larger ones are read with `lockhouse
        /// result`
        resource_mib: u32 = 8, within 1..=64;
    }
}

table! {
    /// saved skills: see docs/skills.md
    pub(super) struct Skills = "skills" {
        /// whether code can save, import and search skills
        enabled: bool = true;
        /// directories with shared skills, which are read-only
        directories: Vec<String> = Vec::new(), within Range::Entries(DIRECTORIES_MAX),
            like "[\"/srv/team/skills\"]";
    }
}

table! {
    /// limits of each client over HTTP
    pub(super) struct Clients = "clients" {
        /// rate of HTTP requests at `/mcp`
        requests: String = "1200/min".into(), within Range::Rate("1200/min");
        /// rate of started runs
        runs: String = "120/min".into(), within Range::Rate("30/min");
        /// active runs of one client
        running: u32 = 8, within 1..=1_024;
        /// further runs of one client, which wait until fewer of its runs are active
        waiting: u32 = 64, within 0..=4_096;
        /// concurrent sessions of one client
        sessions: u32 = 4, within 1..=256;
    }
}

table! {
    /// settings of `lockhouse serve --http`: see docs/service.md
    pub(super) struct Service = "service" {
        /// how long a stopping service waits for runs in progress
        drain_seconds: f64 = 30.0, within 0.0..=3_600.0;
        /// directory of a socket for people of other accounts, whose `[roles]` in the policy decide what they may do: see
        /// docs/roles.md
        operators: Option<PathBuf> = None,
            else "only root and the account of the service operate it", like "\"/run/lockhouse/operators\"";
    }
}

table! {
    /// whether AI clients over standard input and output share one engine: see docs/sharing.md
    pub(super) struct Sharing = "sharing" {
        /// "own": each `lockhouse serve` runs an engine, upstream servers and workers of its own; "shared": those with equal
        /// configuration, policy, values of variables and directory use one service, which is started when needed
        engine: EngineSharing = EngineSharing::default(), like "\"own\"";
        /// how long the service keeps running without clients
        idle_seconds: f64 = 30.0, within 1.0..=86_400.0;
        /// directory in which servers without `cwd` are started
        directory: Option<PathBuf> = None,
            else "that of the AI client, so clients in different directories share nothing", like "\"~\"";
    }
}

table! {
    /// several hosts as one service over HTTP: see docs/cluster.md
    pub(super) struct ClusterTable = "cluster" {
        /// NATS servers with JetStream, version 2.12 or later, which have the state that the hosts share: tls://HOST:PORT, or
        /// nats://127.0.0.1:PORT on this machine
        nats: Vec<String> = Vec::new(), within Range::Entries(16), else "none: this host is part of no cluster",
            like "[\"tls://nats.example.com:4222\"]";
        /// seed of the NKEY with which this host logs in to them: `${cred:NAME}` or `${file:PATH}`
        nkey: Option<String> = None, else "none", like "\"${cred:lockhouse-nats}\"";
        /// secret of all hosts, of at least 32 bytes, which encrypts the logins, skills and result types that they share in NATS. Without it
        /// each host has its own
        shared_key: Option<String> = None, else "none", like "\"${cred:lockhouse-shared}\"";
        /// copy the audit log of this host to NATS, where no host can change or remove it: `lockhouse cluster audit` verifies the copies
        audit_copies: bool = false;
        /// PEM file with the certificates that must have issued those of the NATS servers
        nats_ca: Option<String> = None, else "those that the system trusts", like "\"/etc/lockhouse/nats-ca.pem\"";
        /// number of NATS servers that keep each value
        replicas: u32 = 1, within 1..=5;
        /// name of this host, of a-z, 0-9 and -, which no other host has
        name: Option<String> = None, else "the name of this machine", like "\"host-1\"";
        /// IP:PORT at which this host accepts connections of the others
        listen: Option<String> = None, else "required with nats", like "\"10.0.0.1:7303\"";
        /// IP:PORT at which the others reach it
        address: Option<String> = None, else "listen, or with 0.0.0.0 there the address with which it reaches NATS", like "\"10.0.0.1:7303\"";
        table values: Option<ClusterValuesTable>;
    }
}

table! {
    /// copies of stored values in S3, which survive their host: see docs/cluster.md#values-that-survive-their-host
    pub(super) struct ClusterValuesTable = "cluster.values" {
        /// S3 server: https://HOST or https://HOST:PORT, or http://127.0.0.1:PORT on this machine
        endpoint: String = String::new(), like "\"https://s3.eu-central-1.amazonaws.com\"", required = true;
        /// bucket, which must exist
        bucket: String = String::new(), like "\"lockhouse-values\"", required = true;
        /// region that requests are signed for
        region: String = "us-east-1".to_owned();
        /// folder of the bucket in which the copies are. Nothing else may be there
        prefix: String = "lockhouse".to_owned();
        /// access key: `${cred:NAME}` or `${file:PATH}`
        access_key: String = String::new(), like "\"${cred:lockhouse-s3-access}\"", required = true;
        /// secret key: `${cred:NAME}` or `${file:PATH}`
        secret_key: String = String::new(), like "\"${cred:lockhouse-s3-secret}\"", required = true;
    }
}

table! {
    /// metrics and health endpoints: see docs/metrics.md
    pub(super) struct Metrics = "metrics" {
        /// addresses that serve /live, /ready, /health and /metrics without authentication: loopback or unix:/PATH
        /// only
        #[serde(deserialize_with = "local_addresses")]
        listen: Vec<ListenAddress> = Vec::new(), else "none", like "[\"127.0.0.1:7301\"]";
    }
}

table! {
    /// the live page of a service: see docs/page.md. Everybody who can start `lockhouse page` has their own page without it
    pub(super) struct Page = "page" {
        /// address at which `lockhouse page --service` listens: loopback only, a proxy with TLS makes it reachable
        #[serde(deserialize_with = "page_address")]
        listen: Option<ListenAddress> = None, else "off", like "\"127.0.0.1:7302\"";
        /// further host names of the page, NAME or NAME:PORT; browsers must use TLS for names other than localhost
        hosts: Vec<HostName> = Vec::new(), else "none", like "[\"page.example.com\"]";
        /// clients, by their name in the policy, who see and do everything; others see their own runs
        administrators: Vec<String> = Vec::new(), else "none", like "[\"ada\"]";
        /// client id of the page at the issuer of `[http.oauth]`, at which people then log in
        client_id: Option<String> = None, else "none: people enter an access token", like "\"lockhouse-page\"";
        /// its client secret, which must be a placeholder
        client_secret: Option<String> = None, else "none: a public client", like "\"${cred:lockhouse-page}\"";
        /// scopes that it asks for
        scopes: Vec<String> = Vec::new(), within Range::Entries(64), else "those of `[http.oauth.scopes]`",
            like "[\"openid\", \"lockhouse\"]";
    }
}

table! {
    /// the log on standard error
    pub(super) struct Log = "log" {
        /// "text", "json" with one object per line, or "journald" for fields of the systemd journal
        format: Format = Format::default(), like "\"text\"";
    }
}

table! {
    /// the tools for models
    pub(super) struct Tools = "tools" {
        /// signatures in the description of `run_code`: all tools that a client may use are listed there if they fit into
        /// so many estimated tokens; 0 lists only the servers. Every conversation of the client pays for them
        catalogue_tokens: u32 = 400, within 0..=20_000;
        /// whether models get the tool `health`
        health: bool = false;
        /// text before the names of Lockhouse's own tools, for clients that reserve a name such as `run_code`
        prefix: String = String::new(), within Range::NamePart(24), else "none", like "\"lockhouse_\"";
        /// whether direct tools that the policy denies by name are listed, so that a program that calls one gets the rule as
        /// an error; otherwise they are hidden
        list_denied: bool = false;
        /// which of "run_code", "search_tools" and "get_result" models do not get, for example if all servers are exposed
        /// directly
        hide: Vec<BuiltinTool> = Vec::new(), like "[\"run_code\", \"search_tools\", \"get_result\"]";
        /// when programs get text results that are JSON as values, by SERVER or by SERVER.TOOL (which may end with
        /// `*`): see `decode` of a server. For servers from the files of other clients too
        decode: BTreeMap<String, TextDecoding> = BTreeMap::new(),
            like "{ \"github\" = \"auto\", \"files.read_*\" = \"text\" }";
    }
}

/// Deserializes the listen address of `[page]` and rejects one that other machines can reach.
fn page_address<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<ListenAddress>, D::Error> {
    use serde::de::Error;
    let written: String = Deserialize::deserialize(from)?;
    written.parse::<lockhouse_page::PageAddress>().map_err(D::Error::custom)?;
    written.parse().map(Some).map_err(D::Error::custom)
}

/// Deserializes the listen addresses of `[metrics]` and rejects those that other machines can reach.
fn local_addresses<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<ListenAddress>, D::Error> {
    use serde::de::Error;
    let written: Vec<String> = Deserialize::deserialize(from)?;
    let local = |written: &String| match written.parse().map_err(D::Error::custom)? {
        ListenAddress::Tcp(address) if !address.ip().is_loopback() => Err(D::Error::custom(format!(
            "{written} can be reached from other machines, and nobody has to prove who they are there: use a loopback \
             address or unix:/PATH, and from elsewhere ask for /metrics where AI clients come in, with a token"
        ))),
        address => Ok(address),
    };
    written.iter().map(local).collect()
}
