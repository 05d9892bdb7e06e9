//! Skills as running code gets at them. Nothing is granted here: what a skill's code asks for comes from the worker that loaded
//! it, like everything else that it asks for.

use std::sync::Arc;

use lockhouse_audit::SkillCode;
use lockhouse_protocol::{Failure, FailureCode, Reply, SEARCH_LIMIT_MAX, SkillName};
use serde_json::{Value, json};

use super::{Gate, Requester, failure};
use crate::skills::{Name, Origin, Skills};

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
        let name = Name::try_from(name).map_err(|wrong| failure(FailureCode::NotFound, wrong))?;
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
