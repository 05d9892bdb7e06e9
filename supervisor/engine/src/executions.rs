//! The executions of this process that are not over, as an operator sees them and ends them.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_base::language::Language;
use lockhouse_policies::ClientName;
use lockhouse_protocol::ExecutionId;
use lockhouse_upstream::ai_client::{Begun, Looks, OpenQuestions};
use serde::{Deserialize, Serialize};

use crate::execution::{Cancellation, Stop};
use crate::sessions::SessionKey;

/// All of them. Copies are the same ones.
#[derive(Clone, Debug, Default)]
pub struct Executions(Arc<Mutex<BTreeMap<u128, Going>>>);

#[derive(Debug)]
struct Going {
    client: Option<ClientName>,
    language: Language,
    session: Option<String>,
    since: Instant,
    begun: Begun,
    questions: OpenQuestions,
    stop: Stop,
}

/// One of them, as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedRun {
    pub execution: String,
    /// None at the command line, and where a client says nothing of itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client: Option<String>,
    pub language: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    /// `running`, `waiting` for a worker or its turn in a session, or `waiting for a person`.
    pub state: String,
    /// What a person is asked, and for how long already.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiting_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiting_s: Option<f64>,
    /// Since it was asked for.
    pub age_s: f64,
}

/// Keeps an execution among them.
#[derive(Debug)]
pub struct Entered {
    execution: ExecutionId,
    executions: Executions,
    /// Cancelled when its client or an operator ends it.
    pub stop: Stop,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.executions.going().remove(&self.execution.0);
    }
}

impl Executions {
    pub fn enter(
        &self,
        execution: ExecutionId,
        client: Option<ClientName>,
        (language, session): (Language, Option<&SessionKey>),
        (looks, questions): (&Looks, &OpenQuestions),
        stop: Stop,
    ) -> Entered {
        let session = session.map(|key| key.name.to_string());
        let (since, begun) = (Instant::now(), looks.begun());
        let questions = questions.clone();
        let going = Going { client, language, session, since, begun, questions, stop: stop.clone() };
        self.going().insert(execution.0, going);
        Entered { execution, executions: self.clone(), stop }
    }

    /// In the order in which they were asked for.
    pub fn list(&self) -> Vec<ListedRun> {
        let seconds = |duration: Duration| duration.as_millis() as f64 / 1000.0;
        let listed = |(id, going): (&u128, &Going)| {
            let person = going.questions.oldest();
            let state = match (going.begun.is_it(), &person) {
                (false, _) => "waiting",
                (true, None) => "running",
                (true, Some(_)) => "waiting for a person",
            };
            ListedRun {
                execution: ExecutionId(*id).to_string(),
                client: going.client.as_ref().map(|client| client.as_str().to_owned()),
                language: going.language.as_str().into(),
                session: going.session.clone(),
                state: state.into(),
                waiting_for: person.as_ref().map(|person| person.about.clone()),
                waiting_s: person.map(|person| seconds(person.since)),
                age_s: seconds(going.since.elapsed()),
            }
        };
        self.going().iter().map(listed).collect()
    }

    /// Ends the one of this id, or all. Gives their ids.
    pub fn end(&self, execution: Option<&str>) -> Vec<String> {
        let going = self.going();
        let ids = going.iter().map(|(id, going)| (ExecutionId(*id).to_string(), going));
        let meant = ids.filter(|(id, _)| execution.is_none_or(|execution| execution == id));
        meant
            .map(|(id, going)| {
                going.stop.now(Cancellation::Person);
                id
            })
            .collect()
    }

    fn going(&self) -> MutexGuard<'_, BTreeMap<u128, Going>> {
        self.0.lock()
    }
}
