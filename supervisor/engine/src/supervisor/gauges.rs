//! Prometheus gauges that are computed when the metrics are requested.

use metrics::{counter, gauge};

use super::{Health, Supervisor};

/// The connection states of an upstream server, as values of the label `state`.
const STATES: [&str; 4] = ["idle", "connecting", "connected", "failed"];

/// Sets every Prometheus gauge to its current value.
pub fn set_gauges(supervisor: &Supervisor) {
    let health = supervisor.health();
    gauge!("lockhouse_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    gauge!("lockhouse_uptime_seconds").set(health.uptime_s);
    gauge!("lockhouse_ready").set(flag(health.ready));
    gauge!("lockhouse_draining").set(flag(health.draining));
    gauge!("lockhouse_configuration_generation").set(health.configuration.generation as f64);
    gauge!("lockhouse_executions_running").set(health.running as f64);
    gauge!("lockhouse_sessions").set(health.sessions as f64);
    gauge!("lockhouse_results").set(health.results.kept as f64);
    gauge!("lockhouse_results_bytes").set(health.results.bytes as f64);
    gauge!("lockhouse_audit_writable").set(flag(health.audit.writable));
    for delivery in &health.audit.forward {
        gauge!("lockhouse_audit_forward_lag_seconds", "destination" => delivery.destination.clone())
            .set(delivery.lag_s);
    }
    set_engines(&health);
    for (server, upstream) in &health.upstreams {
        for state in STATES {
            let is = flag(state == upstream.state);
            gauge!("lockhouse_upstream_state", "server" => server.clone(), "state" => state).set(is);
        }
        gauge!("lockhouse_upstream_tools", "server" => server.clone())
            .set(upstream.tools.unwrap_or(0) as f64);
        counter!("lockhouse_upstream_reconnects_total", "server" => server.clone())
            .absolute(upstream.reconnects);
    }
    let hosts = supervisor.cluster().map_or(0, |cluster| cluster.membership().list().len());
    gauge!("lockhouse_cluster_hosts").set(hosts as f64);
    gauge!("lockhouse_cluster_state_reachable").set(flag(supervisor.cluster_failures().is_empty()));
    let audit_failure = supervisor.cluster().and_then(|cluster| cluster.audit_failure());
    gauge!("lockhouse_cluster_audit_copied").set(flag(audit_failure.is_none()));
    gauge!("lockhouse_cluster_values_copied").set(flag(supervisor.value_copy_failure().is_none()));
    if let Some(bytes) = resident_bytes() {
        gauge!("lockhouse_process_resident_bytes").set(bytes as f64);
    }
}

fn set_engines(health: &Health) {
    for (language, engine) in &health.engines {
        let Some(pool) = &engine.pool else { continue };
        let language = *language;
        for (state, count) in [("idle", pool.idle), ("forking", pool.forking), ("running", pool.running)] {
            gauge!("lockhouse_pool_workers", "language" => language, "state" => state).set(count as f64);
        }
        gauge!("lockhouse_pool_places", "language" => language).set(pool.places as f64);
        gauge!("lockhouse_pool_waiting", "language" => language).set(pool.waiting as f64);
        gauge!("lockhouse_zygote_age_seconds", "language" => language).set(pool.zygote_age_s.unwrap_or(0.0));
        gauge!("lockhouse_sandbox_full", "language" => language).set(flag(engine.sandbox == Some("full")));
    }
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// Returns the resident memory of this process in bytes, from `/proc/self/statm`. Returns `None` if the file cannot
/// be read.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    Some(pages * u64::try_from(page).ok()?)
}
