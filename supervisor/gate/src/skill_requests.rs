//! Handles the requests of running programs to load, search and save skills. Loading a skill grants no
//! permission: the policy decides about calls of its code as about all other calls of the program.

use std::sync::Arc;

use lockhouse_audit::SkillCode;
use lockhouse_base::principal::Principal;
use lockhouse_protocol::{Failure, FailureCode, Language, Reply, SEARCH_LIMIT_MAX, SkillName};
use serde_json::{Map, Value, json};

use super::failures::invalid_arguments;
use super::tool_search::split_server_filter;
use super::{Gate, RunContext};
use lockhouse_stores::skills::{DraftOutcome, Name, Origin, Skill, Skills, StoreError};

impl Gate {
    /// Returns the skills of the run's AI client. Fails if skills are turned off in the configuration.
    pub(super) fn skills(&self, run: &RunContext) -> Result<Arc<Skills>, Failure> {
        let off = || {
            Failure::new(
                FailureCode::NotFound,
                "skills are turned off in the configuration of Lockhouse".into(),
            )
        };
        let skills = self.skills.as_ref().ok_or_else(off)?;
        Ok(Arc::new(skills.for_client(run.principal().name())))
    }

    /// Returns a skill as JSON: its name, version, language and code. The audit record is written before the
    /// worker gets the code.
    pub(super) async fn load_skill(&self, run: &RunContext, name: &SkillName) -> Reply {
        let skills = self.skills(run)?;
        let name =
            Name::try_from(name).map_err(|wrong| Failure::new(FailureCode::NotFound, wrong.to_string()))?;
        let loaded = tokio::task::spawn_blocking(move || skills.load(&name)).await;
        let loaded = loaded.map_err(|error| Failure::new(FailureCode::NotFound, error.to_string()))?;
        let (skill, origin) =
            loaded.map_err(|error| Failure::new(FailureCode::NotFound, error.to_string()))?;
        let shared = match &origin {
            Origin::Shared(directory) => Some(directory.display().to_string()),
            Origin::Own | Origin::Draft => None,
        };
        let code = SkillCode {
            name: skill.name.as_str(),
            version: skill.version,
            language: skill.language,
            code: &skill.code,
            digest: &skill.digest(),
            shared: shared.as_deref(),
        };
        self.audit.skill(run.execution(), run.client(), code).await.map_err(|error| {
            tracing::error!("{error}");
            Failure::new(FailureCode::Denied, format!("the skill was not loaded: {error}"))
        })?;
        let reply = json!({
            "name": skill.name.as_str(), "version": skill.version, "language": skill.language.as_str(), "code": skill.code,
        });
        Ok(reply.to_string().into_bytes())
    }

    /// Returns the summaries of the skills that match a query as a JSON array, best first, at most `limit` and at
    /// most [`SEARCH_LIMIT_MAX`].
    pub(super) async fn search_skills(&self, run: &RunContext, query: String, limit: u32) -> Reply {
        let skills = self.skills(run)?;
        let searching = move || -> Value {
            let found = skills.search(&query, limit.clamp(1, SEARCH_LIMIT_MAX) as usize);
            found.iter().map(|skill| skill.summary()).collect()
        };
        let found = tokio::task::spawn_blocking(searching).await;
        let found = found.map_err(|error| Failure::new(FailureCode::NotFound, error.to_string()))?;
        Ok(found.to_string().into_bytes())
    }

    /// Returns the summaries of at most `limit` skills of an AI client that a search for tools should show beside the tools,
    /// best first. A search that is restricted to one server shows none. Programs in `language` can import them.
    pub async fn relevant_skills(
        &self,
        principal: &Principal,
        query: &str,
        limit: usize,
        language: Language,
    ) -> Vec<Value> {
        let (None, query) = split_server_filter(query) else { return Vec::new() };
        let Some(skills) = &self.skills else { return Vec::new() };
        let skills = skills.for_client(principal.name());
        let searching = move || skills.relevant(&query, limit, language).iter().map(Skill::summary).collect();
        tokio::task::spawn_blocking(searching).await.unwrap_or_default()
    }
}

/// How a skill was stored: as the current version, which programs can import, or as a draft, which they
/// cannot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Saved,
    Draft,
}

type WrittenSkill = (Skill, State);

/// Saves the skill that the arguments of `skills.save` describe. The saved skill becomes the current version.
pub(super) async fn save(skills: &Arc<Skills>, arguments: &Map<String, Value>) -> Reply {
    write_skill(skills, arguments, |skills, skill| skills.save(skill).map(|saved| (saved, State::Saved)))
        .await
}

/// Stores the skill that the arguments of `skills.save` describe as a draft, which code cannot import. Stores
/// nothing if it equals the current version.
pub(super) async fn save_draft(skills: &Arc<Skills>, arguments: &Map<String, Value>) -> Reply {
    write_skill(skills, arguments, |skills, skill| {
        Ok(match skills.save_draft(skill)? {
            DraftOutcome::Stored(draft) => (draft, State::Draft),
            DraftOutcome::Unchanged(current) => (current, State::Saved),
        })
    })
    .await
}

/// Writes the skill in the arguments of `skills.save` with the function `how`, on a blocking thread, since disk
/// access takes time. The reply contains the version, the import statement, and whether the skill was saved or is
/// a draft.
async fn write_skill(
    skills: &Arc<Skills>,
    arguments: &Map<String, Value>,
    how: fn(&Skills, &Skill) -> Result<WrittenSkill, StoreError>,
) -> Reply {
    let skill = Skill::from_arguments(arguments).map_err(|fault| invalid_arguments(fault.to_string()))?;
    let of_cluster = skills.lock(&skill.name).await;
    let of_cluster = of_cluster
        .map_err(|error| Failure::new(FailureCode::ToolFailed, format!("the skill is not saved: {error}")))?;
    let store = skills.clone();
    let saved = tokio::task::spawn_blocking(move || how(&store, &skill)).await;
    let saved = saved.map_err(|error| Failure::new(FailureCode::ToolFailed, error.to_string()))?;
    let (saved, state) = saved.map_err(|error| match error {
        StoreError::WriteFailed { .. } => {
            tracing::error!("{error}");
            Failure::new(
                FailureCode::ToolFailed,
                "the skill is not saved: its folder cannot be written; the log of Lockhouse says why".into(),
            )
        }
        StoreError::NoDirectory
        | StoreError::TooManySkills
        | StoreError::TooManyDrafts
        | StoreError::NotReplaceable(_) => {
            Failure::new(FailureCode::ToolFailed, format!("the skill is not saved: {error}"))
        }
    })?;
    if let Some(lock) = of_cluster {
        lock.finish().await.map_err(|error| {
            let message = format!("the skill is saved, and the other hosts do not have it yet: {error}");
            Failure::new(FailureCode::ToolFailed, message)
        })?;
    }
    let mut reply =
        json!({"name": saved.name.as_str(), "version": saved.version, "import": saved.import_statement()});
    match state {
        State::Saved => reply["state"] = "saved".into(),
        State::Draft => {
            reply["state"] = "draft".into();
            reply["message"] = format!(
                "there is nobody to ask, so the skill is kept as a draft that cannot be imported; a person looks at it and \
                 runs `{}`",
                skills.approve_command(&saved.name)
            )
            .into();
        }
    }
    Ok(json!({"structured": reply}).to_string().into_bytes())
}
