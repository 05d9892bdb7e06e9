//! The destination of a call: an upstream server, or the built-in server `skills`.
//!
//! All calls take the same steps. This file contains the differences between the two destinations.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use lockhouse_catalog::Catalogue;
use lockhouse_policies::{CallTarget, SKILLS};
use lockhouse_protocol::{ExecutionId, Failure, FailureCode, ServerName};
use lockhouse_upstream::{CallSlot, Caller, ConnectedServer, Connection};
use serde_json::{Map, Value};

use super::call::RecordedCall;
use super::failures::{failure, invalid_arguments};
use super::skill_requests::save;
use super::{Gate, Requester};
use crate::skills::{Skill, Skills, is_skills_server};

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
/// AI client.
#[derive(Clone)]
pub(super) enum Destination<'g> {
    Upstream(&'g Connection),
    Skills(Arc<Skills>),
}

/// The destination of a call, with its current tool definitions. If it is an upstream server, the server is
/// connected.
pub(super) enum DestinationOffer<'g> {
    Upstream(&'g Connection, Arc<ConnectedServer>),
    Skills(Arc<Skills>),
}

/// The destination of a call that has a slot of the server's concurrency limit. `Skills` has no such limit.
pub(super) enum ReservedDestination<'g> {
    Upstream { connection: &'g Connection, offer: Arc<ConnectedServer>, slot: CallSlot },
    Skills(Arc<Skills>),
}

impl Gate {
    /// Returns the destination of calls of this server. Fails if the server does not exist, if its existence must
    /// not be revealed to the execution, or if `skills` is called and skills are turned off.
    pub(super) fn destination(
        &self,
        requester: &Requester,
        server: &ServerName,
    ) -> Result<Destination<'_>, Failure> {
        if is_skills_server(server) {
            return self.skills(requester).map(Destination::Skills);
        }
        self.connection(requester, server).map(Destination::Upstream)
    }

    /// Returns the connection of an upstream server. Fails if the server does not exist, or if its existence must
    /// not be revealed to the execution.
    pub(super) fn connection(
        &self,
        requester: &Requester,
        server: &ServerName,
    ) -> Result<&Connection, Failure> {
        let known = self.upstreams.get(server).filter(|_| requester.scope.knows(server));
        known.ok_or_else(|| {
            let names: Vec<&str> =
                requester.scope.servers().iter().take(50).map(ServerName::as_str).collect();
            let suggestion = if names.is_empty() {
                "none is configured".into()
            } else {
                format!("there are: {}", names.join(", "))
            };
            failure(FailureCode::UnknownTool, format!("there is no server {server}; {suggestion}"))
        })
    }
}

impl<'g> Destination<'g> {
    /// Returns the last known tool catalogue of the destination, without waiting; `None` if no catalogue is known
    /// yet.
    pub(super) fn cached_catalogue(&self) -> Option<Arc<Catalogue>> {
        match self {
            Self::Upstream(connection) => connection.known_catalogue(),
            Self::Skills(_) => Some(SKILLS_CATALOGUE.clone()),
        }
    }

    /// Returns the destination with its current tool definitions. Starts or connects the upstream server if necessary.
    pub(super) async fn fetch_offer(&self) -> Result<DestinationOffer<'g>, Failure> {
        match self {
            Self::Upstream(connection) => {
                Ok(DestinationOffer::Upstream(connection, connection.connected_server().await?))
            }
            Self::Skills(skills) => Ok(DestinationOffer::Skills(skills.clone())),
        }
    }

    /// Waits until the concurrency limit of the destination permits another call. An upstream server is not stopped for
    /// being idle as long as a call has a slot.
    pub(super) async fn reserve(&self, execution: ExecutionId) -> Result<ReservedDestination<'g>, Failure> {
        match self {
            Self::Upstream(connection) => {
                let slot = connection.call_slot(execution).await?;
                Ok(ReservedDestination::Upstream {
                    connection,
                    offer: connection.connected_server().await?,
                    slot,
                })
            }
            Self::Skills(skills) => Ok(ReservedDestination::Skills(skills.clone())),
        }
    }
}

impl DestinationOffer<'_> {
    pub(super) fn catalogue(&self) -> &Catalogue {
        match self {
            Self::Upstream(_, offer) => &offer.catalogue,
            Self::Skills(_) => &SKILLS_CATALOGUE,
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
            Self::Skills(_) if matches!(item, CallTarget::Tool(_)) => Skill::from_arguments(arguments)
                .map(drop)
                .map_err(|wrong| invalid_arguments(format!("the skill is not saved: {wrong}"))),
            Self::Skills(_) => {
                Err(failure(FailureCode::UnknownTool, format!("{SKILLS} has no resources and no prompts")))
            }
        }
    }

    /// Returns the store for drafts of skills. If no approver is available for a call that saves a skill, the skill
    /// is stored there as a draft, which has no effect until a person approves it. Returns `None` for upstream
    /// servers, because their calls cannot be stored.
    pub(super) fn draft_store(&self) -> Option<&Arc<Skills>> {
        match self {
            Self::Upstream(..) => None,
            Self::Skills(skills) => Some(skills),
        }
    }
}

impl ReservedDestination<'_> {
    pub(super) fn catalogue(&self) -> &Catalogue {
        match self {
            Self::Upstream { offer, .. } => &offer.catalogue,
            Self::Skills(_) => &SKILLS_CATALOGUE,
        }
    }

    /// Makes a call whose audit record is already written, and returns the reply as JSON. `timeout` is the
    /// shortest of the timeouts that the program and the policy set.
    pub(super) async fn call(
        self,
        call: RecordedCall,
        timeout: Option<Duration>,
        caller: &Arc<Caller>,
    ) -> Result<Vec<u8>, Failure> {
        let permitted = call.into_permitted();
        match self {
            Self::Upstream { connection, offer, slot } => {
                connection.call(&offer, slot, permitted, timeout, caller).await
            }
            Self::Skills(skills) => save(&skills, &permitted.into_arguments()).await,
        }
    }
}
