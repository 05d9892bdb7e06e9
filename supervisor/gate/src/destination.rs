//! Where a call goes: to an upstream server, or to the one that Lockhouse is itself, `skills`.
//!
//! Both are on the way of every call. What sets them apart is here.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use lockhouse_catalog::Catalogue;
use lockhouse_policies::{Item, PermittedCall, SKILLS};
use lockhouse_protocol::{Failure, FailureCode, Reply, ServerName};
use lockhouse_upstream::{Caller, Connection, Offer, Slot};
use serde_json::{Map, Value, json};

use super::arguments::invalid;
use super::failure;
use crate::skills::{Draft, Skill, Skills, StoreError};

/// What `skills` offers, as an upstream server would say it.
const SAVE: &str = r#"{"name": "save", "description": "Keeps code under a name, for later programs to import.",
"inputSchema": {"type": "object", "additionalProperties": false, "required": ["name", "description", "code", "language"],
"properties": {"name": {"type": "string"}, "description": {"type": "string"}, "code": {"type": "string"},
"language": {"enum": ["python", "typescript"]}, "tags": {"type": "array", "items": {"type": "string"}}, "tests": {"type": "string"}}},
"annotations": {"readOnlyHint": false, "destructiveHint": false}}"#;

static OFFERED: LazyLock<Arc<Catalogue>> = LazyLock::new(|| Arc::new(Catalogue::of([SAVE].into_iter()).0));

/// Whether the name is that of skills.
pub(super) fn is_skills(server: &ServerName) -> bool {
    server.as_str() == SKILLS
}

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

    /// Makes a permitted call.
    pub(super) async fn call(
        self,
        permitted: PermittedCall,
        timeout: Option<Duration>,
        caller: &Caller,
    ) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Upstream { connection, offer, slot } => {
                connection.call(&offer, slot, permitted, timeout, caller).await
            }
            Self::Skills(skills) => {
                save(&skills, &permitted.into_arguments(), |skills, skill| {
                    skills.save(skill).map(|saved| (saved, State::Saved))
                })
                .await
            }
        }
    }
}

/// What has become of a skill that code saves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Saved,
    Draft,
}

/// Keeps what nobody has approved, where nothing can import it.
pub(super) async fn draft(skills: &Arc<Skills>, arguments: &Map<String, Value>) -> Reply {
    save(skills, arguments, |skills, skill| {
        Ok(match skills.save_draft(skill)? {
            Draft::Kept(draft) => (draft, State::Draft),
            Draft::Needless(current) => (current, State::Saved),
        })
    })
    .await
}

/// Off the way of other calls: it takes the time of a disk.
async fn save(
    skills: &Arc<Skills>,
    arguments: &Map<String, Value>,
    how: fn(&Skills, &Skill) -> Result<(Skill, State), StoreError>,
) -> Reply {
    let skill = Skill::proposed(arguments).map_err(invalid)?;
    let its = skills.clone();
    let saved = tokio::task::spawn_blocking(move || how(&its, &skill)).await;
    let saved = saved.map_err(|error| failure(FailureCode::ToolFailed, error.to_string()))?;
    let (saved, state) = saved.map_err(|error| match error {
        StoreError::Refused(_) => {
            failure(FailureCode::ToolFailed, format!("the skill is not saved: {error}"))
        }
        StoreError::Unwritten { .. } => {
            tracing::error!("{error}");
            failure(
                FailureCode::ToolFailed,
                "the skill is not saved: its folder cannot be written; the log of Lockhouse says why".into(),
            )
        }
    })?;
    let mut told = json!({"name": saved.name.as_str(), "version": saved.version, "import": saved.import()});
    match state {
        State::Saved => told["state"] = "saved".into(),
        State::Draft => {
            told["state"] = "draft".into();
            told["message"] = format!(
                "there is nobody to ask, so the skill is kept as a draft that cannot be imported; a person looks at it and \
                 runs `{}`",
                skills.to_approve(&saved.name)
            )
            .into();
        }
    }
    Ok(json!({"structured": told}).to_string().into_bytes())
}
