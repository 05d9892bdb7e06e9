//! The supervisor's services for fronts: it sends them settings, and answers requests for stored results, health
//! and metrics.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lockhouse_access::Authenticator;
use lockhouse_base::own_host;
use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry::{self, traces};
use lockhouse_link::FrontEndpoint;
use lockhouse_messages::{
    FrontSettings, ListKind, RESULT_URI_PREFIX, Response, SessionMessage, StoredFile, ToFront,
};
use lockhouse_protocol::ResultHandle;
use lockhouse_protocol::json_text::quote_large_integers;
use lockhouse_stores::results;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::{Supervisor, WorkerKind, set_gauges};
use crate::execution;

/// Limits the files that are read at one time, each of which is in memory as a whole.
static FILE_READS: Semaphore = Semaphore::const_new(4);

/// A front that has connected.
#[derive(Debug)]
pub(super) struct RegisteredFront {
    endpoint: Weak<dyn FrontEndpoint>,
    serves_http: bool,
}

impl Supervisor {
    /// Sets what verifies the credentials of AI clients over HTTP. Later calls have no effect.
    pub fn set_authenticator(&self, authenticator: Arc<Authenticator>) {
        let _ = self.authenticator.set(authenticator);
    }

    pub(crate) fn authenticator(&self) -> Option<&Authenticator> {
        self.authenticator.get().map(Arc::as_ref)
    }

    /// Registers a front. It gets the settings that concern it now and after every reload of the configuration, and messages for MCP
    /// sessions if it `serves_http`.
    pub(crate) fn add_front(&self, endpoint: Weak<dyn FrontEndpoint>, serves_http: bool) {
        if let Some(front) = endpoint.upgrade() {
            front.notify(ToFront::Settings(self.front_settings()));
        }
        let mut fronts = self.fronts.lock();
        fronts.retain(|front| front.endpoint.strong_count() > 0);
        fronts.push(RegisteredFront { endpoint, serves_http });
    }

    pub(super) fn send_settings_to_fronts(&self) {
        for front in self.connected_fronts(|_| true) {
            front.notify(ToFront::Settings(self.front_settings()));
        }
    }

    /// Passes a message on to the front that has its MCP session.
    pub(crate) fn deliver(&self, message: &SessionMessage) {
        for front in self.connected_fronts(|front| front.serves_http) {
            front.notify(ToFront::SessionMessage(message.clone()));
        }
    }

    /// Returns the fronts that have not ended and for which `is_meant` is true.
    fn connected_fronts(&self, is_meant: fn(&RegisteredFront) -> bool) -> Vec<Arc<dyn FrontEndpoint>> {
        let fronts = self.fronts.lock();
        let meant = fronts.iter().filter(|front| is_meant(front));
        meant.filter_map(|front| front.endpoint.upgrade()).collect()
    }

    /// Waits until the protections of the sandbox on this host are known. If any is missing, sends the list
    /// of missing protections to the fronts.
    pub(crate) async fn report_missing_protections(&self) {
        // The zygote with packages may never start; the host lacks the same protections for it.
        for kind in [WorkerKind::Python, WorkerKind::Typescript] {
            if let Some(Ok(pool)) = self.pools.get(kind) {
                let _ = pool.zygote_info().await;
            }
        }
        if !self.missing_protections().is_empty() {
            self.send_settings_to_fronts();
        }
    }

    fn missing_protections(&self) -> Vec<String> {
        let missing: BTreeSet<String> =
            self.pools.all().flat_map(|pool| pool.missing_protections()).collect();
        missing.into_iter().collect()
    }

    fn front_settings(&self) -> FrontSettings {
        FrontSettings {
            has_files: self.settings.result_files.bytes > 0 && self.settings.state_directory.is_some(),
            is_withdrawn: self.is_withdrawn(),
            // While nothing may run, direct calls get the reason from the engine.
            has_direct: self.gate().direct_servers().next().is_some() || self.stop_message().is_some(),
            code_servers: self.gate().code_servers().iter().map(ToString::to_string).collect(),
            tools: self.settings.builtin_tools.clone(),
            missing_protections: self.missing_protections(),
            packages: self.pools.package_names(),
            wait: self.settings.runs.wait,
            run_limit: self.settings.limits.wall,
            // Counted from the start of the run: the longest run, and then the time for which its answer is stored.
            task_lifetime: self.settings.limits.wall + self.results.lifetime(),
            authentication: self.authenticator().map(Authenticator::how_to_authenticate).unwrap_or_default(),
            has_traces: traces::are_exported(),
            host_tag: own_host::tag(),
        }
    }

    /// Returns the servers and tools that an AI client may use, for the description of `run_code`.
    pub(crate) async fn catalogue_description(&self, client: &Principal) -> String {
        let gate = self.gate();
        let scope = gate.scope_for(client);
        gate.catalogue_description(&scope, client.client(), self.settings.catalogue_tokens).await
    }

    /// Returns the maximum time for which a list request waits until the tools of directly exposed servers are known.
    pub(crate) fn first_list_wait(&self) -> Duration {
        self.settings.first_list_wait
    }

    /// Returns a digest of the tool definitions that an AI client gets. The digest differs when the definitions have
    /// changed.
    pub(crate) async fn tools_digest(&self, client: &Principal) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(self.catalogue_description(client).await);
        digest.update(self.settings.limits.wall.as_nanos().to_le_bytes());
        let direct = self.direct().list(self, client, ListKind::Tools).await;
        direct.iter().for_each(|tool| digest.update(tool));
        digest.finalize().into()
    }

    /// Returns one part of a stored result of the AI client, starting at `offset`. The unit of the offset is items if
    /// the result is a list, and otherwise characters.
    pub(crate) fn read_result(&self, client: &Principal, handle: &ResultHandle, offset: usize) -> Response {
        let json = match self.results.get(client.owner(), handle) {
            Ok(json) => json,
            Err(not_kept) => {
                return match self.result_files.get(client.owner(), handle) {
                    Some(file) => Response::Json(json!({"file": {
                        "name": file.name, "mime_type": file.media_type, "bytes": file.bytes,
                        "handle": handle.as_str(), "uri": format!("{RESULT_URI_PREFIX}{handle}"),
                    }})),
                    None => Response::Invalid(not_kept.to_string()),
                };
            }
        };
        // A model has no use for the bytes of files.
        match results::page(
            &execution::describe_files(&quote_large_integers(&json)),
            offset,
            self.settings.display.part_bytes,
        ) {
            Ok(part) => Response::Json(part),
            Err(beyond) => Response::Invalid(beyond.to_string()),
        }
    }

    /// Returns a stored file of the AI client.
    pub(crate) async fn read_file(&self, client: &Principal, handle: ResultHandle) -> Response {
        let (files, owner) = (self.result_files.clone(), client.owner());
        let (most, wanted) = (self.settings.resource_bytes_max, handle.clone());
        // The semaphore is never closed.
        let _permit = FILE_READS.acquire().await;
        let read = tokio::task::spawn_blocking(move || {
            let (stored, mut file) = files.open(owner, &wanted)?;
            let mut content = Vec::new();
            if stored.bytes <= most {
                file.read_to_end(&mut content).ok()?;
            }
            Some((stored, content))
        });
        let Ok(Some((stored, content))) = read.await else {
            let kept = results::storage_time(self.results.lifetime(), owner.is_connection());
            return Response::Invalid(format!(
                "there is no file {handle}: {kept}, and only for the client whose run made it"
            ));
        };
        if stored.bytes > most {
            return Response::Invalid(format!(
                "the file has {} bytes, and {most} can be read (resource_mib of [results] in the configuration); \
                 `lockhouse result {handle} --out DIR` writes it into a folder, and code reads it with open(\"{RESULT_URI_PREFIX}{handle}\")",
                stored.bytes
            ));
        }
        Response::File(StoredFile { handle, media_type: stored.media_type, content })
    }

    /// Returns the health of this process as JSON for an AI client. If the client may use only some upstream servers,
    /// the report leaves out all upstream servers and the counters that other AI clients influence.
    pub(crate) fn health_for(&self, principal: &Principal) -> Value {
        match principal.only() {
            Some(_) => self.health().service_only(),
            None => self.complete_health(),
        }
    }

    pub(crate) fn complete_health(&self) -> Value {
        serde_json::to_value(self.health()).unwrap_or_default()
    }

    /// Renders all metrics in the Prometheus text format. Returns `None` if metrics are disabled.
    pub(crate) fn render_metrics(&self) -> Option<String> {
        telemetry::render(|| set_gauges(self))
    }
}
