//! What requirements determine about every upstream server: the table `[servers."*"]`.

use lockhouse_policies::OnChange;
use lockhouse_upstream::{Confinement, Endpoint, Exposure, Proxy, ServerDefinition};
use url::Url;

use super::server_entry::EntryLimits;

/// Keys that are laid over the definition of every upstream server. `None` leaves what the server's own table says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct EveryServer {
    pub(super) limits: EntryLimits,
    /// The sandbox of each server that is a process.
    pub(super) confinement: Option<Confinement>,
    pub(super) exposure: Option<Exposure>,
    pub(super) on_change: Option<OnChange>,
    pub(super) is_shared: Option<bool>,
    /// Tools that no server offers.
    pub(super) disabled_tools: Vec<String>,
    /// The proxy of each server that is reached at a URL.
    pub(super) proxy: Option<Url>,
    /// The only variables that the table of a server may set. `None` permits all.
    pub(super) variables: Option<Vec<String>>,
}

impl EveryServer {
    /// Returns the first variable that a server sets and that no server may set.
    pub(super) fn forbidden_variable<'d>(&self, definition: &'d ServerDefinition) -> Option<&'d str> {
        let (Some(permitted), Endpoint::Stdio(command)) = (&self.variables, &definition.endpoint) else {
            return None;
        };
        command.environment.keys().find(|name| !permitted.contains(name)).map(String::as_str)
    }

    /// Lays the keys over the definition of a server.
    pub(super) fn apply_to(&self, definition: &mut ServerDefinition) {
        self.apply_limits(definition);
        match &mut definition.endpoint {
            Endpoint::Stdio(command) => {
                if let Some(confinement) = &self.confinement {
                    command.confinement = Some(confinement.clone());
                }
            }
            Endpoint::Http(endpoint) => {
                if let Some(proxy) = &self.proxy {
                    endpoint.proxy = Proxy::Address(proxy.clone());
                }
            }
            Endpoint::Socket(_) => {}
        }
        if let Some(exposure) = &self.exposure {
            definition.exposure = exposure.clone();
        }
        if let Some(on_change) = self.on_change {
            definition.on_change = on_change;
        }
        if let Some(is_shared) = self.is_shared {
            definition.is_shared = is_shared;
        }
        definition.tools.except.extend(self.disabled_tools.iter().cloned());
    }

    fn apply_limits(&self, definition: &mut ServerDefinition) {
        let (own, limits) = (&self.limits, &mut definition.limits);
        limits.start_timeout = own.start_timeout.unwrap_or(limits.start_timeout);
        limits.call_timeout = own.call_timeout.unwrap_or(limits.call_timeout);
        limits.call_timeout_max = own.call_timeout_max.unwrap_or(limits.call_timeout_max);
        limits.calls_max = own.parallel_calls.unwrap_or(limits.calls_max);
        limits.queue_max = own.queue.unwrap_or(limits.queue_max);
        limits.queue_timeout = own.queue_timeout.unwrap_or(limits.queue_timeout);
    }
}
