//! Asks the Lockhouse processes of this user, at intervals, what they do.

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_messages::{ListedHost, OperatorRequest, OperatorResponse, RunListing};
use lockhouse_page::{ActiveRun, Activity, Section, Sections, ServerStates, text};
use serde_json::{Value, json};

use super::kept_results::KeptResults;
use super::stable_times::StableTimes;
use crate::cli::cluster;
use crate::cli::control_client::request_all;

/// Interval at which active runs are requested.
const RUNS_INTERVAL: Duration = Duration::from_secs(1);
/// Everything else is requested with every such number of requests for active runs.
const OTHER_REQUESTS_EVERY: u32 = 3;
/// Maximum numbers of items in each section.
const SESSIONS_MAX: usize = 200;
const PROCESSES_MAX: usize = 100;

/// Requests the state of all Lockhouse processes at intervals, and keeps the sections up to date. Never returns.
pub(super) async fn poll(sections: &Sections, activity: &Activity, results: &KeptResults) {
    let mut times = Times::default();
    let mut count: u32 = 0;
    loop {
        activity.set_active_runs(active_runs(&mut times.runs).await, sections);
        if count.is_multiple_of(OTHER_REQUESTS_EVERY) {
            let processes = processes(&mut times.processes).await;
            activity.set_server_states(server_states(&processes), sections);
            let (hosts, problems) = hosts().await;
            let content = json!({"processes": processes, "hosts": hosts, "cluster_problems": problems});
            sections.set(Section::Processes, content);
            sections.set(Section::Sessions, json!({"sessions": sessions(&mut times.sessions).await}));
            sections.set(Section::Results, results.list().await);
        }
        count = count.wrapping_add(1);
        tokio::time::sleep(RUNS_INTERVAL).await;
    }
}

#[derive(Default)]
struct Times {
    runs: StableTimes,
    processes: StableTimes,
    sessions: StableTimes,
}

async fn active_runs(times: &mut StableTimes) -> Vec<ActiveRun> {
    let mut runs = Vec::new();
    for (supervisor, response) in request_all(&OperatorRequest::ListRuns).await {
        let OperatorResponse::Runs(listed) = response else { continue };
        runs.extend(listed.into_iter().map(|run| active_run(supervisor, run, times)));
    }
    times.forget_others();
    runs.sort_by(|one, other| one.execution.cmp(&other.execution));
    runs
}

fn active_run(supervisor: u32, run: RunListing, times: &mut StableTimes) -> ActiveRun {
    let started = times.began(run.execution.clone(), run.age_s);
    ActiveRun {
        supervisor,
        execution: run.execution,
        client: run.client,
        language: run.language,
        session: run.session,
        state: run.state,
        waiting_for: run.waiting_for,
        started,
        cpu_ms: run.cpu_ms,
        memory_bytes: run.memory_bytes,
        pid: run.worker.and_then(|pid| pid.try_into().ok()),
    }
}

/// Returns the health reports of the processes that serve AI clients or run code, with the time of their start instead of
/// their age, and without other ages.
async fn processes(times: &mut StableTimes) -> Vec<Value> {
    let mut processes = Vec::new();
    for (pid, response) in request_all(&OperatorRequest::Health).await {
        let OperatorResponse::Health(mut health) = response else { continue };
        let runs_code = health["running"].as_u64().is_some_and(|running| running > 0);
        if health["serving"] != true && !runs_code {
            continue;
        }
        if let Some(age) = health.as_object_mut().and_then(|members| members.remove("uptime_s")) {
            health["started"] = times.began(pid.to_string(), age.as_f64().unwrap_or_default()).into();
        }
        for (_, engine) in health["engines"].as_object_mut().into_iter().flatten() {
            // An age changes while nothing happens.
            engine
                .get_mut("pool")
                .and_then(Value::as_object_mut)
                .and_then(|pool| pool.remove("zygote_age_s"));
        }
        processes.push(health);
    }
    times.forget_others();
    processes.truncate(PROCESSES_MAX);
    processes
}

/// Returns the hosts of the cluster of which a process of this user is part, without ages, and what a person should know about them.
async fn hosts() -> (Value, Vec<String>) {
    let Some((_, listing)) = cluster::member().await else { return (json!([]), Vec::new()) };
    let row = |host: &ListedHost| {
        json!({
            "name": text::name(&host.name), "is_this": host.is_this, "address": text::name(&host.address),
            "version": text::name(&host.version), "state": host.state, "runs": host.runs, "free": host.free,
            "sessions": host.sessions,
        })
    };
    let rows: Vec<Value> = listing.hosts.iter().map(row).collect();
    (rows.into(), cluster::problems(&listing))
}

fn server_states(processes: &[Value]) -> ServerStates {
    let mut states = ServerStates::default();
    let mut definitions: BTreeMap<&str, u64> = BTreeMap::new();
    for process in processes {
        for (name, upstream) in process["upstreams"].as_object().into_iter().flatten() {
            if let Some(bytes) = upstream["definitions_bytes"].as_u64() {
                definitions.insert(name, bytes);
            }
            states.by_name.entry(name.clone()).or_default().push(json!({
                "supervisor": process["pid"], "state": upstream["state"],
                "reason": upstream["reason"].as_str().map(text::long), "tools": upstream["tools"],
                "changed_tools": upstream["changed_tools"], "answered": upstream["answered"],
                "reconnects": upstream["reconnects"],
            }));
        }
    }
    states.definitions_bytes = (!definitions.is_empty()).then(|| definitions.values().sum());
    states
}

async fn sessions(times: &mut StableTimes) -> Vec<Value> {
    let mut sessions = Vec::new();
    for (supervisor, response) in request_all(&OperatorRequest::ListSessions).await {
        let OperatorResponse::Sessions(listed) = response else { continue };
        for session in listed {
            let started = times.began(format!("{supervisor}/{}", session.id), session.age_s as f64);
            sessions.push(json!({
                "supervisor": supervisor, "id": session.id, "name": text::name(&session.name),
                "owner": text::name(&session.owner), "language": session.language, "state": session.state,
                "runs": session.runs, "started": started,
            }));
        }
    }
    times.forget_others();
    sessions.truncate(SESSIONS_MAX);
    sessions
}
