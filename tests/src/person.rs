//! Somebody in front of an AI client, who is asked things and says what the test decides.

use std::sync::Arc;

use parking_lot::Mutex;
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    ProgressNotificationParam,
};
use serde_json::{Value, json};

/// What they say, whatever they are asked.
#[derive(Clone, Debug)]
pub enum Says {
    /// These values.
    Yes(Value),
    /// Yes, without a word more.
    Bare,
    /// One of these after the other, and then the last one again.
    InTurn(Vec<Says>),
    /// These values, after a while.
    Slowly(Duration, Value),
    /// That they will not say it.
    No,
    /// That it shall be let be.
    Stop,
    /// Nothing, ever.
    Nothing,
    /// The AI client does not know the method after all.
    Unknown,
}

/// A person, and what their AI client says that it can do.
#[derive(Clone, Debug)]
pub struct Person {
    pub(crate) abilities: ClientCapabilities,
    says: Says,
    asked: Arc<Mutex<Vec<Value>>>,
    notes: Arc<Mutex<Vec<ProgressNotificationParam>>>,
}

impl Default for Person {
    /// Nobody.
    fn default() -> Self {
        Self::who(json!({}), Says::Unknown)
    }
}

impl Person {
    /// With an AI client of these capabilities.
    ///
    /// # Panics
    /// If they are none that MCP knows.
    #[must_use]
    pub fn who(abilities: Value, says: Says) -> Self {
        let abilities = serde_json::from_value(abilities).expect("capabilities");
        Self { abilities, says, asked: Arc::default(), notes: Arc::default() }
    }

    /// With an AI client that shows forms and opens pages.
    #[must_use]
    pub fn who_says(says: Says) -> Self {
        Self::who(json!({"elicitation": {"form": {}, "url": {}}}), says)
    }

    /// What they were asked so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().clone()
    }

    /// The notes of progress that they saw.
    #[must_use]
    pub fn notes(&self) -> Vec<ProgressNotificationParam> {
        self.notes.lock().clone()
    }

    pub(crate) fn note(&self, note: ProgressNotificationParam) {
        self.notes.lock().push(note);
    }

    pub(crate) async fn answer(&self, request: ElicitRequestParams) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request).unwrap_or_default();
        let turn = {
            let mut asked = self.asked.lock();
            asked.push(request);
            asked.len() - 1
        };
        let says = match &self.says {
            Says::InTurn(all) => &all[turn.min(all.len() - 1)],
            says => says,
        };
        match says {
            Says::Bare => Ok(ElicitResult::new(ElicitationAction::Accept)),
            Says::InTurn(_) => panic!("a turn within a turn"),
            Says::Yes(content) => {
                Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content.clone()))
            }
            Says::Slowly(after, content) => {
                tokio::time::sleep(*after).await;
                Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content.clone()))
            }
            Says::No => Ok(ElicitResult::new(ElicitationAction::Decline)),
            Says::Stop => Ok(ElicitResult::new(ElicitationAction::Cancel)),
            Says::Nothing => std::future::pending().await,
            Says::Unknown => {
                Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, "elicitation/create", None))
            }
        }
    }
}
