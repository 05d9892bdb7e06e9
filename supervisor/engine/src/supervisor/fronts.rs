//! The supervisor's services for fronts (which serve AI clients): it sends them settings, and answers requests for
//! stored results, health and metrics.

use std::sync::Weak;

use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry;
use lockhouse_gate::results;
use lockhouse_messages::{FrontEndpoint, FrontSettings, Response, ToFront};
use lockhouse_protocol::ResultHandle;
use serde_json::Value;

use super::{Supervisor, set_gauges};
use crate::direct::RequestingClient;

impl Supervisor {
    /// Registers a front. The front gets the settings that concern it now and after every reload of the
    /// configuration.
    pub(crate) fn add_front(&self, front: Weak<dyn FrontEndpoint>) {
        if let Some(front) = front.upgrade() {
            front.send(ToFront::Settings(self.front_settings()));
        }
        let mut fronts = self.fronts.lock();
        fronts.retain(|front| front.strong_count() > 0);
        fronts.push(front);
    }

    pub(super) fn send_settings_to_fronts(&self) {
        let fronts = self.fronts.lock().clone();
        for front in fronts.iter().filter_map(Weak::upgrade) {
            front.send(ToFront::Settings(self.front_settings()));
        }
    }

    fn front_settings(&self) -> FrontSettings {
        FrontSettings {
            has_direct: self.gate().direct_servers().next().is_some(),
            health_tool: self.settings.health_tool,
            wait: self.settings.runs.wait,
            // Counted from the start of the run: the longest run, and then the time for which its answer is stored.
            task_lifetime: self.settings.limits.wall + self.results.lifetime(),
        }
    }

    /// Returns one part of a stored result, starting at a byte offset.
    pub(crate) fn read_result(
        &self,
        client: &RequestingClient,
        handle: &ResultHandle,
        offset: usize,
    ) -> Response {
        let json = match self.results.get(client.principal.owner(), handle) {
            Ok(json) => json,
            Err(not_kept) => return Response::Invalid(not_kept.to_string()),
        };
        match results::page(&json, offset, self.settings.display.part_bytes) {
            Ok(part) => Response::Json(part),
            Err(beyond) => Response::Invalid(beyond.to_string()),
        }
    }

    /// Returns the health of this process as JSON for an AI client. A client that may use only some upstream servers
    /// gets a report without upstream servers.
    pub(crate) fn health_for(&self, principal: &Principal) -> Value {
        let health = self.health();
        match principal.only() {
            Some(_) => health.service_only(),
            None => serde_json::to_value(health).unwrap_or_default(),
        }
    }

    /// Renders all metrics in the Prometheus text format. Returns `None` if metrics are disabled.
    pub(crate) fn render_metrics(&self) -> Option<String> {
        telemetry::render(|| set_gauges(self))
    }
}
