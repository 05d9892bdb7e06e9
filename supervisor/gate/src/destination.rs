//! Where a call goes: to an upstream server, or to the one that Lockhouse is itself, `skills`.
//!
//! Both are on the way of every call. What sets them apart is here.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use lockhouse_catalog::Catalogue;
use lockhouse_policies::{Item, SKILLS};
use lockhouse_protocol::{Failure, FailureCode, ServerName};
use lockhouse_upstream::{Caller, Connection, Offer, Slot};
use serde_json::{Map, Value};

use super::call::RecordedCall;
use super::failures::{failure, invalid};
use super::skill_requests::save;
use super::{Gate, Requester};
use crate::skills::{Skill, Skills, is_skills};

/// What `skills` offers, as an upstream server would say it.
const SAVE: &str = r#"{"name": "save", "description": "Keeps code under a name, for later programs to import.",
"inputSchema": {"type": "object", "additionalProperties": false, "required": ["name", "description", "code", "language"],
"properties": {"name": {"type": "string"}, "description": {"type": "string"}, "code": {"type": "string"},
"language": {"enum": ["python", "typescript"]}, "tags": {"type": "array", "items": {"type": "string"}}, "tests": {"type": "string"}}},
"annotations": {"readOnlyHint": false, "destructiveHint": false}}"#;

static OFFERED: LazyLock<Arc<Catalogue>> = LazyLock::new(|| Arc::new(Catalogue::of([SAVE].into_iter()).0));

/// Where a call goes.
#[derive(Clone)]
pub(super) enum Destination<'g> {
    Upstream(&'g Connection),
    Skills(Arc<Skills>),
}

/// What a destination offers when it is asked.
pub(super) enum Offered<'g> {
    Upstream(&'g Connection, Arc<Offer>),
    Skills(Arc<Skills>),
}

/// A destination whose turn it is to be called.
pub(super) enum Ready<'g> {
    Upstream { connection: &'g Connection, offer: Arc<Offer>, slot: Slot },
    Skills(Arc<Skills>),
}

impl Gate {
    /// Where a call to that server goes.
    pub(super) fn destination(
        &self,
        from: &Requester,
        server: &ServerName,
    ) -> Result<Destination<'_>, Failure> {
        if is_skills(server) {
            return self.skills(from).map(Destination::Skills);
        }
        self.connection(from, server).map(Destination::Upstream)
    }

    /// To a server that the execution may know of, or of which it is told that it was left out.
    pub(super) fn connection(&self, from: &Requester, server: &ServerName) -> Result<&Connection, Failure> {
        let known = self.upstreams.get(server).filter(|_| from.scope.may_know_of(server));
        known.ok_or_else(|| {
            let names: Vec<&str> = from.scope.servers().iter().take(50).map(ServerName::as_str).collect();
            let told = if names.is_empty() {
                "none is configured".into()
            } else {
                format!("there are: {}", names.join(", "))
            };
            failure(FailureCode::UnknownTool, format!("there is no server {server}; {told}"))
        })
    }
}

impl<'g> Destination<'g> {
    /// The tools as they were last known, without waiting.
    pub(super) fn known(&self) -> Option<Arc<Catalogue>> {
        match self {
            Self::Upstream(connection) => connection.known(),
            Self::Skills(_) => Some(OFFERED.clone()),
        }
    }

    pub(super) async fn offer(&self) -> Result<Offered<'g>, Failure> {
        match self {
            Self::Upstream(connection) => Ok(Offered::Upstream(connection, connection.offer().await?)),
            Self::Skills(skills) => Ok(Offered::Skills(skills.clone())),
        }
    }

    /// Waits for its turn. From then on a server is not stopped for idleness; before, it may have been.
    pub(super) async fn turn(&self) -> Result<Ready<'g>, Failure> {
        match self {
            Self::Upstream(connection) => {
                let slot = connection.slot().await?;
                Ok(Ready::Upstream { connection, offer: connection.offer().await?, slot })
            }
            Self::Skills(skills) => Ok(Ready::Skills(skills.clone())),
        }
    }
}

impl Offered<'_> {
    pub(super) fn catalogue(&self) -> &Catalogue {
        match self {
            Self::Upstream(_, offer) => &offer.catalogue,
            Self::Skills(_) => &OFFERED,
        }
    }

    /// Whether it has such things at all, and can do what is asked of it.
    pub(super) fn offers(&self, item: &Item, arguments: &Map<String, Value>) -> Result<(), Failure> {
        match self {
            Self::Upstream(connection, offer) => connection.offers(offer, item),
            Self::Skills(_) if matches!(item, Item::Tool(_)) => Skill::proposed(arguments)
                .map(drop)
                .map_err(|wrong| invalid(format!("the skill is not saved: {wrong}"))),
            Self::Skills(_) => Err(failure(
                FailureCode::UnknownTool,
                format!("{SKILLS} is no server of resources or prompts"),
            )),
        }
    }

    /// Where it goes when there is nobody to ask: a draft of a skill does nothing until a person approves it.
    pub(super) fn drafts(&self) -> Option<&Arc<Skills>> {
        match self {
            Self::Upstream(..) => None,
            Self::Skills(skills) => Some(skills),
        }
    }
}

impl Ready<'_> {
    pub(super) fn catalogue(&self) -> &Catalogue {
        match self {
            Self::Upstream { offer, .. } => &offer.catalogue,
            Self::Skills(_) => &OFFERED,
        }
    }

    /// Makes a call whose record is in the log.
    pub(super) async fn call(
        self,
        call: RecordedCall,
        timeout: Option<Duration>,
        caller: &Caller,
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
