//! What fronts are told of the engine, and what they read of it.

use std::sync::Weak;

use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry;
use lockhouse_gate::results;
use lockhouse_messages::{FrontEnd, FrontSettings, Response, ToFront};
use lockhouse_protocol::ResultHandle;
use serde_json::Value;

use super::{Supervisor, set_gauges};
use crate::direct::Client;

impl Supervisor {
    /// Tells a front the settings now, and whenever they change.
    pub(crate) fn add_front(&self, front: Weak<dyn FrontEnd>) {
        if let Some(front) = front.upgrade() {
            front.send(ToFront::Settings(self.front_settings()));
        }
        let mut fronts = self.fronts.lock();
        fronts.retain(|front| front.strong_count() > 0);
        fronts.push(front);
    }

    pub(super) fn tell_fronts(&self) {
        let fronts = self.fronts.lock().clone();
        for front in fronts.iter().filter_map(Weak::upgrade) {
            front.send(ToFront::Settings(self.front_settings()));
        }
    }

    fn front_settings(&self) -> FrontSettings {
        FrontSettings {
            has_direct: self.gate().direct().next().is_some(),
            health_tool: self.settings.health_tool,
            wait: self.settings.runs.wait,
            // From its beginning: as long as it may run, and its answer is kept after that.
            task_lifetime: self.settings.limits.wall + self.results.lifetime(),
        }
    }

    /// A part of a result that was too long to be shown.
    pub(crate) fn read_result(&self, client: &Client, handle: &ResultHandle, offset: usize) -> Response {
        let json = match self.results.get(client.principal.owner(), handle) {
            Ok(json) => json,
            Err(not_kept) => return Response::Invalid(not_kept.to_string()),
        };
        match results::part(&json, offset, self.settings.display.part_bytes) {
            Ok(part) => Response::Json(part),
            Err(beyond) => Response::Invalid(beyond.to_string()),
        }
    }

    /// Of the service alone for a client that is granted a part of the servers, as `/health` refuses it.
    pub(crate) fn health_for(&self, principal: &Principal) -> Value {
        let health = self.health();
        match principal.only() {
            Some(_) => health.of_the_service_alone(),
            None => serde_json::to_value(health).unwrap_or_default(),
        }
    }

    /// The figures, as Prometheus reads them; none if they are not gathered.
    pub(crate) fn metrics(&self) -> Option<String> {
        telemetry::render(|| set_gauges(self))
    }
}
