//! What each part of Lockhouse takes, of the configuration as it is written.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lockhouse_audit::AuditSettings;
use lockhouse_base::directories;
use lockhouse_engine::execution::{DisplayLimits, ExecutionLimits};
use lockhouse_engine::sessions::SessionSettings;
use lockhouse_engine::supervisor::{self, RunSettings};
use lockhouse_gate::skills::SkillSettings;
use lockhouse_gate::{ApprovalSettings, results};
use lockhouse_protocol::ConversationLimits;
use lockhouse_upstream::Places;

use super::admission;
use super::document::Document;
use super::error::ConfigError;
use super::pools;
use super::references::Surroundings;
use super::tables::{Audit, Catalogue, Limits, Results, Runs, Skills};

/// What the engine takes; which servers there are, and which policy, others say.
pub(super) fn engine(
    document: &Document,
    path: &Path,
    surroundings: &Surroundings,
) -> Result<supervisor::Settings, ConfigError> {
    let limits = limits(&document.limits);
    Ok(supervisor::Settings {
        limits,
        approvals: approvals(document),
        skills: skills(&document.skills, path, surroundings),
        own_policy: None,
        code_bytes_max: document.limits.code_kib as usize * 1024,
        display: display(&document.limits),
        results: result_bounds(&document.results),
        audit: audit_settings(&document.audit)?,
        servers: BTreeMap::new(),
        places: places(&document.catalogue),
        sessions: sessions(document),
        runs: runs(&document.runs),
        refused: Vec::new(),
        clients: admission::limits(&document.clients),
        drain: Duration::from_secs_f64(document.service.drain_seconds),
        health_tool: document.tools.health,
        digest: None,
        python: pools::python(document, &limits),
        typescript: pools::typescript(document, &limits),
    })
}

pub(super) fn limits(document: &Limits) -> ExecutionLimits {
    ExecutionLimits {
        wall: Duration::from_secs_f64(document.timeout_seconds),
        question: Duration::from_secs_f64(document.question_seconds),
        grace: Duration::from_millis(document.grace_ms.into()),
        cpu: Duration::from_secs(document.cpu_seconds.into()),
        // Of the client's, as the run begins.
        cpu_credit: None,
        memory_bytes: u64::from(document.memory_mib) * 1024 * 1024,
        conversation: ConversationLimits {
            calls: document.calls,
            parallel_calls: document.parallel_calls,
            output_bytes: u64::from(document.output_kib) * 1024,
            frame_bytes: document.frame_kib * 1024,
        },
    }
}

pub(super) fn display(document: &Limits) -> DisplayLimits {
    let printed_bytes = document.printed_bytes.unwrap_or(document.shown_bytes);
    DisplayLimits { part_bytes: document.shown_bytes as usize, printed_bytes: printed_bytes as usize }
}

pub(super) fn sessions(document: &Document) -> SessionSettings {
    let sessions = &document.sessions;
    SessionSettings {
        max: sessions.max as usize,
        of_a_client: document.clients.sessions as usize,
        idle: Duration::from_secs_f64(sessions.idle_seconds),
        life: Duration::from_secs_f64(sessions.life_seconds),
    }
}

pub(super) fn runs(document: &Runs) -> RunSettings {
    RunSettings {
        wait: Duration::from_secs_f64(document.wait_seconds),
        background: document.background as usize,
        background_of_one: document.background_per_client as usize,
    }
}

pub(super) fn approvals(document: &Document) -> ApprovalSettings {
    let wait = document.approvals.wait_seconds.unwrap_or(document.limits.question_seconds);
    ApprovalSettings { through: document.approvals.through, wait: Duration::from_secs_f64(wait) }
}

pub(super) fn result_bounds(document: &Results) -> results::Bounds {
    results::Bounds {
        bytes: u64::from(document.keep_mib) * 1024 * 1024,
        lifetime: Duration::from_secs(document.keep_seconds.into()),
    }
}

/// Directories are taken from where the configuration is.
pub(super) fn skills(document: &Skills, configuration: &Path, surroundings: &Surroundings) -> SkillSettings {
    let beside = configuration.parent().unwrap_or(Path::new(""));
    let shared = document.directories.iter().map(|path| beside.join(surroundings.expand_home(path)));
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
    })
}

pub(super) fn places(document: &Catalogue) -> Places {
    Places {
        cache: directories::cache(),
        state: directories::state(),
        tools_lifetime: Duration::from_secs(u64::from(document.lifetime_hours) * 3_600),
        learns_shapes: document.learn,
    }
}
