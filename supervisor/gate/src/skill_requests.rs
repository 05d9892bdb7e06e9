//! Skills as running code gets at them. Nothing is granted here: what a skill's code asks for comes from the worker that loaded
//! it, like everything else that it asks for.

use std::sync::Arc;

use lockhouse_audit::SkillCode;
use lockhouse_protocol::{Failure, FailureCode, Reply, SEARCH_LIMIT_MAX, SkillName};
use serde_json::{Map, Value, json};

use super::failures::{failure, invalid};
use super::{Gate, Requester};
use crate::skills::{Draft, Name, Origin, Skill, Skills, StoreError};

impl Gate {
    /// The skills of a client, if they are not turned off.
    pub(super) fn skills(&self, from: &Requester) -> Result<Arc<Skills>, Failure> {
        let off = || {
            failure(FailureCode::NotFound, "skills are turned off in the configuration of Lockhouse".into())
        };
        let skills = self.skills.as_ref().ok_or_else(off)?;
        Ok(Arc::new(skills.of(from.principal.name())))
    }

    /// The code of a skill. That it was loaded is in the log before the worker has it.
    pub(super) async fn load_skill(&self, from: &Requester, name: &SkillName) -> Reply {
        let skills = self.skills(from)?;
        let name = Name::try_from(name).map_err(|wrong| failure(FailureCode::NotFound, wrong.to_string()))?;
        let loaded = tokio::task::spawn_blocking(move || skills.load(&name)).await;
        let loaded = loaded.map_err(|error| failure(FailureCode::NotFound, error.to_string()))?;
        let (skill, origin) = loaded.map_err(|error| failure(FailureCode::NotFound, error.to_string()))?;
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
        self.audit.skill(from.caller.execution, from.client(), code).map_err(|error| {
            tracing::error!("{error}");
            failure(FailureCode::Denied, format!("the skill was not loaded: {error}"))
        })?;
        let told = json!({
            "name": skill.name.as_str(), "version": skill.version, "language": skill.language.as_str(), "code": skill.code,
        });
        Ok(told.to_string().into_bytes())
    }

    pub(super) async fn search_skills(&self, from: &Requester, query: String, limit: u32) -> Reply {
        let skills = self.skills(from)?;
        let searching = move || -> Value {
            let found = skills.search(&query, limit.clamp(1, SEARCH_LIMIT_MAX) as usize);
            found.iter().map(|skill| skill.summary()).collect()
        };
        let found = tokio::task::spawn_blocking(searching).await;
        let found = found.map_err(|error| failure(FailureCode::NotFound, error.to_string()))?;
        Ok(found.to_string().into_bytes())
    }
}

/// What has become of a skill that code saves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Saved,
    Draft,
}

/// Makes what these arguments propose the current version of a skill.
pub(super) async fn save(skills: &Arc<Skills>, arguments: &Map<String, Value>) -> Reply {
    write(skills, arguments, |skills, skill| skills.save(skill).map(|saved| (saved, State::Saved))).await
}

/// Keeps what nobody has approved, where nothing can import it.
pub(super) async fn save_draft(skills: &Arc<Skills>, arguments: &Map<String, Value>) -> Reply {
    write(skills, arguments, |skills, skill| {
        Ok(match skills.save_draft(skill)? {
            Draft::Kept(draft) => (draft, State::Draft),
            Draft::Needless(current) => (current, State::Saved),
        })
    })
    .await
}

/// Off the way of other calls: it takes the time of a disk.
async fn write(
    skills: &Arc<Skills>,
    arguments: &Map<String, Value>,
    how: fn(&Skills, &Skill) -> Result<(Skill, State), StoreError>,
) -> Reply {
    let skill = Skill::proposed(arguments).map_err(|fault| invalid(fault.to_string()))?;
    let its = skills.clone();
    let saved = tokio::task::spawn_blocking(move || how(&its, &skill)).await;
    let saved = saved.map_err(|error| failure(FailureCode::ToolFailed, error.to_string()))?;
    let (saved, state) = saved.map_err(|error| match error {
        StoreError::Unwritten { .. } => {
            tracing::error!("{error}");
            failure(
                FailureCode::ToolFailed,
                "the skill is not saved: its folder cannot be written; the log of Lockhouse says why".into(),
            )
        }
        StoreError::NoPlace
        | StoreError::TooManySkills
        | StoreError::TooManyDrafts
        | StoreError::Occupied(_) => {
            failure(FailureCode::ToolFailed, format!("the skill is not saved: {error}"))
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
