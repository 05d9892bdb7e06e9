//! The destination of a call: an upstream server, or one of the built-in servers `skills` and `files`.
//!
//! All calls take the same steps. This file contains the differences between the destinations.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use lockhouse_catalog::Catalogue;
use lockhouse_policies::{CallTarget, SKILLS};
use lockhouse_protocol::{ExecutionId, Failure, FailureCode, ServerName};
use lockhouse_upstream::{CallSlot, ConnectedServer, Connection};
use serde_json::{Map, Value};

use super::call::RecordedCall;
use super::code_server::CodeServer;
use super::failures::invalid_arguments;
use super::file_access::FileAccess;
use super::skill_requests::save;
use super::tool_request::ToolRequest;
use super::{Gate, RunContext};
use lockhouse_host_files::{FILES_CATALOGUE, FileCall};
use lockhouse_stores::skills::{Skill, Skills, is_skills_server};

/// The MCP definition of the tool `skills.save`, as an upstream server would list it.
const SAVE_TOOL: &str = r#"{"name": "save", "description": "Keeps code under a name, for later programs to import.",
"inputSchema": {"type": "object", "additionalProperties": false, "required": ["name", "description", "code", "language"],
"properties": {"name": {"type": "string"}, "description": {"type": "string"}, "code": {"type": "string"},
"language": {"enum": ["python", "typescript"]}, "tags": {"type": "array", "items": {"type": "string"}}, "tests": {"type": "string"}}},
"annotations": {"readOnlyHint": false, "destructiveHint": false}}"#;

/// The tool catalogue (parsed definitions) of the built-in server `skills`.
static SKILLS_CATALOGUE: LazyLock<Arc<Catalogue>> =
    LazyLock::new(|| Arc::new(Catalogue::from_definitions([SAVE_TOOL].into_iter()).0));

/// The server that a call goes to. `Skills` is the built-in server that saves reusable code (skills) for the
/// AI client, `Files` the one that reads and writes files of this machine.
#[derive(Clone)]
pub(super) enum Destination {
    Upstream(Arc<Connection>),
    Skills(Arc<Skills>),
    Files(FileAccess),
}

/// The destination of a call, with its current tool definitions. If it is an upstream server, the server is
/// connected.
pub(super) enum DestinationOffer {
    Upstream(Arc<Connection>, Arc<ConnectedServer>),
    Skills(Arc<Skills>),
    Files(FileAccess),
}

/// The destination of a call that has a slot of the server's concurrency limit. Built-in servers have no such limit.
pub(super) enum ReservedDestination {
    Upstream { connection: Arc<Connection>, offer: Arc<ConnectedServer>, slot: CallSlot },
    Skills(Arc<Skills>),
    Files(FileAccess),
}

impl Gate {
    /// Returns the destination of calls of this server, for all its callers. Fails if the server does not exist, if its existence
    /// must not be revealed to the execution, or if `skills` is called and skills are turned off.
    pub(super) fn destination(&self, run: &RunContext, server: &ServerName) -> Result<Destination, Failure> {
        if is_skills_server(server) {
            return self.skills(run).map(Destination::Skills);
        }
        match self.visible_server(run, server)? {
            CodeServer::Upstream(connection) => Ok(Destination::Upstream(connection.clone())),
            CodeServer::Files => Ok(Destination::Files(self.files.clone())),
        }
    }

    /// Returns a server that programs can import or that an AI client calls directly. Fails if the server does not
    /// exist, or if its existence must not be revealed to the execution.
    pub(super) fn visible_server(
        &self,
        run: &RunContext,
        server: &ServerName,
    ) -> Result<CodeServer<'_>, Failure> {
        let known = self.code_server(server).filter(|_| run.scope.knows(server));
        known.ok_or_else(|| run.scope.unknown_server_failure(server.as_str()))
    }
}

impl Destination {
    /// Returns the last known tool catalogue of the destination, without waiting; `None` if no catalogue is known
    /// yet.
    pub(super) fn cached_catalogue(&self) -> Option<Arc<Catalogue>> {
        match self {
            Self::Upstream(connection) => connection.known_catalogue(),
            Self::Skills(_) => Some(SKILLS_CATALOGUE.clone()),
            Self::Files(_) => Some(FILES_CATALOGUE.clone()),
        }
    }

    /// Returns the destination with its current tool definitions. Starts or connects the upstream server if necessary.
    pub(super) async fn fetch_offer(&self) -> Result<DestinationOffer, Failure> {
        match self {
            Self::Upstream(connection) => {
                let offer = connection.connected_server().await?;
                Ok(DestinationOffer::Upstream(connection.clone(), offer))
            }
            Self::Skills(skills) => Ok(DestinationOffer::Skills(skills.clone())),
            Self::Files(files) => Ok(DestinationOffer::Files(files.clone())),
        }
    }

    /// Waits until the concurrency limit of the destination permits another call. An upstream server is not stopped for
    /// being idle as long as a call has a slot.
    pub(super) async fn reserve(&self, execution: ExecutionId) -> Result<ReservedDestination, Failure> {
        match self {
            Self::Upstream(connection) => {
                let slot = connection.call_slot(execution).await?;
                Ok(ReservedDestination::Upstream {
                    offer: connection.connected_server().await?,
                    connection: connection.clone(),
                    slot,
                })
            }
            Self::Skills(skills) => Ok(ReservedDestination::Skills(skills.clone())),
            Self::Files(files) => Ok(ReservedDestination::Files(files.clone())),
        }
    }
}

impl DestinationOffer {
    pub(super) fn catalogue(&self) -> &Catalogue {
        match self {
            Self::Upstream(_, offer) => &offer.catalogue,
            Self::Skills(_) => &SKILLS_CATALOGUE,
            Self::Files(_) => &FILES_CATALOGUE,
        }
    }

    /// Checks that the destination supports the called kind of item (tool, resource or prompt). For a call that
    /// saves a skill, also checks the arguments.
    pub(super) fn check_supported(
        &self,
        item: &CallTarget,
        arguments: &Map<String, Value>,
    ) -> Result<(), Failure> {
        match self {
            Self::Upstream(connection, offer) => connection.check_offered(offer, item),
            Self::Files(_) => FileCall::parse(item, arguments).map(drop),
            Self::Skills(_) if matches!(item, CallTarget::Tool(_)) => Skill::from_arguments(arguments)
                .map(drop)
                .map_err(|wrong| invalid_arguments(format!("the skill is not saved: {wrong}"))),
            Self::Skills(_) => Err(Failure::new(
                FailureCode::UnknownTool,
                format!("{SKILLS} has no resources and no prompts"),
            )),
        }
    }

    /// Returns the store for drafts of skills. If no approver is available for a call that saves a skill, the skill
    /// is stored there as a draft, which has no effect until a person approves it. Returns `None` for upstream
    /// servers, because their calls cannot be stored.
    pub(super) fn draft_store(&self) -> Option<&Arc<Skills>> {
        match self {
            Self::Upstream(..) | Self::Files(_) => None,
            Self::Skills(skills) => Some(skills),
        }
    }

    /// Returns the built-in server `files`, if the call goes to it.
    pub(super) fn file_access(&self) -> Option<&FileAccess> {
        match self {
            Self::Files(files) => Some(files),
            Self::Upstream(..) | Self::Skills(_) => None,
        }
    }
}

impl ReservedDestination {
    /// Fails if the administrator's requirements do not permit the destination any more.
    pub(super) fn refuse_withdrawn(&self) -> Result<(), Failure> {
        match self {
            Self::Upstream { connection, .. } => connection.refuse_withdrawn(),
            // The server `files` checks each path; skills are not withdrawn.
            Self::Files(_) | Self::Skills(_) => Ok(()),
        }
    }

    pub(super) fn catalogue(&self) -> &Catalogue {
        match self {
            Self::Upstream { offer, .. } => &offer.catalogue,
            Self::Skills(_) => &SKILLS_CATALOGUE,
            Self::Files(_) => &FILES_CATALOGUE,
        }
    }

    /// Makes a call whose audit record is already written, and returns the reply as JSON. `timeout` is the
    /// shortest of the timeouts that the program and the policy set.
    pub(super) async fn call(
        self,
        call: RecordedCall,
        timeout: Option<Duration>,
        gate: &Gate,
        run: &RunContext,
        request: &ToolRequest,
    ) -> Result<Vec<u8>, Failure> {
        let permitted = call.into_permitted();
        match self {
            Self::Upstream { connection, offer, slot } => {
                connection.call(&offer, slot, permitted, timeout, &run.channel, run.direct.as_deref()).await
            }
            Self::Skills(skills) => save(&skills, &permitted.into_arguments()).await,
            Self::Files(files) => {
                gate.use_host_file(files, run, request, &permitted.into_arguments(), timeout).await
            }
        }
    }
}
