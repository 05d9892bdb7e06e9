//! Converts `config.toml` into the settings of the engine crate (the supervisor's core) and of the crates that it uses.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_approvals::ApprovalSettings;
use lockhouse_audit::AuditSettings;
use lockhouse_base::directories;
use lockhouse_base::own_places::OwnPlaces;
use lockhouse_engine::execution::{DisplayLimits, ExecutionLimits};
use lockhouse_engine::sessions::SessionSettings;
use lockhouse_engine::supervisor::{self, BackgroundRunSettings};
use lockhouse_front::BuiltinTools;
use lockhouse_protocol::{ConversationLimits, FRAME_OVERHEAD_BYTES, ServerName};
use lockhouse_stores::result_files::ResultFileLimits;
use lockhouse_stores::results;
use lockhouse_stores::skills::SkillSettings;
use lockhouse_upstream::{ServerDefinition, StoragePaths};

use super::client_access;
use super::config_toml::ConfigToml;
use super::error::ConfigError;
use super::files_table;
use super::notice_settings::notice_settings;
use super::placeholders::Environment;
use super::tables::{Audit, Catalogue, LimitsTable, Results, Runs, Skills};
use super::worker_pools;

/// Builds the settings of the supervisor from the configuration, whose file is `path`, with the upstream servers that are
/// used. The caller adds the policy and the digest of the configuration.
pub(super) fn engine_settings(
    document: &ConfigToml,
    path: &Path,
    environment: &Environment,
    servers: BTreeMap<ServerName, ServerDefinition>,
    own: OwnPlaces,
) -> Result<supervisor::EngineSettings, ConfigError> {
    let host_files = files_table::settings(&document.files, &servers, environment, own.clone());
    let limits = execution_limits(&document.limits);
    let packages = worker_pools::python_packages(document, &limits);
    Ok(supervisor::EngineSettings {
        limits,
        approvals: approval_settings(document, environment)?,
        skills: skill_settings(&document.skills, path, environment),
        own_policy: None,
        proposal: None,
        code_bytes_max: document.limits.code_kib as usize * 1024,
        display: display_limits(&document.limits),
        results: result_bounds(&document.results),
        result_files: result_file_bounds(&document.results),
        resource_bytes_max: u64::from(document.results.resource_mib) * 1024 * 1024,
        state_directory: directories::state(),
        audit: audit_settings(&document.audit)?,
        servers,
        host_files: host_files.ok_or(ConfigError::NoStateDirectory)?,
        places: storage_paths(&document.catalogue, own.into()),
        sessions: session_settings(document),
        runs: run_settings(&document.runs),
        refused: Vec::new(),
        stop: None,
        clients: client_access::client_limits(&document.clients),
        drain: Duration::from_secs_f64(document.service.drain_seconds),
        operators: document.service.operators.clone(),
        builtin_tools: BuiltinTools {
            health: document.tools.health,
            prefix: document.tools.prefix.clone(),
            hidden: document.tools.hide.clone(),
        },
        list_denied_tools: document.tools.list_denied,
        first_list_wait: Duration::from_secs_f64(document.catalogue.first_list_seconds),
        catalogue_tokens: document.tools.catalogue_tokens as usize,
        digest: None,
        requirements_digest: None,
        python: worker_pools::python(document, &limits, packages.as_ref()),
        typescript: worker_pools::typescript(document, &limits),
        packages,
    })
}

pub(super) fn execution_limits(document: &LimitsTable) -> ExecutionLimits {
    ExecutionLimits {
        wall: Duration::from_secs_f64(document.timeout_seconds),
        wall_asked: None,
        wall_max: Duration::from_secs_f64(document.timeout_seconds),
        question: Duration::from_secs_f64(document.question_seconds),
        grace: Duration::from_millis(document.grace_ms.into()),
        cpu: Duration::from_secs(document.cpu_seconds.into()),
        // Set for each client when a run begins.
        cpu_credit: None,
        memory_bytes: u64::from(document.memory_mib) * 1024 * 1024,
        conversation: ConversationLimits {
            calls: document.calls,
            parallel_calls: document.parallel_calls,
            output_bytes: u64::from(document.output_kib) * 1024,
            frame_bytes: document.frame_kib * 1024 + FRAME_OVERHEAD_BYTES,
        },
    }
}

pub(super) fn display_limits(document: &LimitsTable) -> DisplayLimits {
    let printed_bytes = document.printed_bytes.unwrap_or(document.shown_bytes);
    DisplayLimits {
        part_bytes: document.shown_bytes as usize,
        program_bytes: document.program_bytes as usize,
        printed_bytes: printed_bytes as usize,
    }
}

pub(super) fn session_settings(document: &ConfigToml) -> SessionSettings {
    let sessions = &document.sessions;
    SessionSettings {
        max: sessions.max as usize,
        per_client: document.clients.sessions as usize,
        idle_timeout: Duration::from_secs_f64(sessions.idle_seconds),
        max_age: Duration::from_secs_f64(sessions.life_seconds),
    }
}

pub(super) fn run_settings(document: &Runs) -> BackgroundRunSettings {
    BackgroundRunSettings {
        wait: Duration::from_secs_f64(document.wait_seconds),
        background: document.background as usize,
        background_per_client: document.background_per_client as usize,
        abandoned: Duration::from_secs_f64(document.abandoned_seconds),
    }
}

pub(super) fn approval_settings(
    document: &ConfigToml,
    environment: &Environment,
) -> Result<ApprovalSettings, ConfigError> {
    let wait = document.approvals.wait_seconds.unwrap_or(document.limits.question_seconds);
    Ok(ApprovalSettings {
        through: document.approvals.through,
        wait: Duration::from_secs_f64(wait),
        presence: document.approvals.presence,
        notices: notice_settings(&document.approvals, environment)?,
    })
}

pub(super) fn result_bounds(document: &Results) -> results::ResultLimits {
    results::ResultLimits {
        bytes: u64::from(document.keep_mib) * 1024 * 1024,
        lifetime: Duration::from_secs(document.keep_seconds.into()),
    }
}

pub(super) fn result_file_bounds(document: &Results) -> ResultFileLimits {
    ResultFileLimits {
        bytes: u64::from(document.files_mib) * 1024 * 1024,
        lifetime: Duration::from_secs(document.keep_seconds.into()),
    }
}

/// Returns the settings of saved skills. Relative directories in `[skills]` are relative to the configuration file.
pub(super) fn skill_settings(
    document: &Skills,
    configuration: &Path,
    environment: &Environment,
) -> SkillSettings {
    let beside = configuration.parent().unwrap_or(Path::new(""));
    let shared = document.directories.iter().map(|path| beside.join(environment.expand_home(path)));
    SkillSettings {
        enabled: document.enabled,
        own: directories::state().map(|state| state.join("skills")),
        shared: shared.collect(),
    }
}

pub(super) fn audit_settings(document: &Audit) -> Result<AuditSettings, ConfigError> {
    let state = directories::state();
    let below_state = || state.as_ref().map(|state| state.join("audit"));
    let directory = document.directory.clone().or_else(directories::logs).or_else(below_state);
    let directory = directory.ok_or(ConfigError::NoStateDirectory)?;
    Ok(AuditSettings {
        keys: state.unwrap_or_else(|| directory.clone()),
        directory,
        values: document.values,
        redact: document.redact.clone(),
        code: document.code,
        keep_days: document.keep_days,
        erasable_names: document.erasable_names,
        sink: document.sink.clone(),
        forward: document.forward.iter().map(|entry| entry.destination.to_string()).collect(),
        forward_within: forward_within(document),
    })
}

/// Returns the maximum age of an undelivered record. Without destinations, there is none.
fn forward_within(document: &Audit) -> Option<Duration> {
    let seconds = document.forward_within_seconds.filter(|_| !document.forward.is_empty())?;
    Some(Duration::from_secs(seconds.into()))
}

pub(super) fn storage_paths(document: &Catalogue, own: Arc<OwnPlaces>) -> StoragePaths {
    StoragePaths {
        cache_dir: directories::cache(),
        state_dir: directories::state(),
        tools_ttl: Duration::from_secs(u64::from(document.lifetime_hours) * 3_600),
        records_shapes: document.learn,
        // Set after the servers are known.
        users: None,
        own,
    }
}
