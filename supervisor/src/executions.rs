//! The executions of this process that are not over, as an operator sees them and ends them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lockhouse_policies::ClientName;
use lockhouse_protocol::ExecutionId;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::execution::{Begun, Language, Looks};
use crate::sessions::SessionKey;

/// All of them. Copies are the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Executions(Arc<Mutex<BTreeMap<u128, Going>>>);

#[derive(Debug)]
struct Going {
    client: Option<ClientName>,
    language: Language,
    session: Option<String>,
    since: Instant,
    begun: Begun,
    stop: CancellationToken,
}

/// One of them, as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ListedRun {
    pub(crate) execution: String,
    /// None at the command line, and where a client says nothing of itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) client: Option<String>,
    pub(crate) language: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) session: Option<String>,
    /// `running`, or `waiting` for a worker or its turn in a session.
    pub(crate) state: String,
    /// Since it was asked for.
    pub(crate) age_s: f64,
}

/// Keeps an execution among them.
#[derive(Debug)]
pub(crate) struct Entered {
    execution: ExecutionId,
    executions: Executions,
    /// Cancelled when its client or an operator ends it.
    pub(crate) stop: CancellationToken,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.executions.going().remove(&self.execution.0);
    }
}

impl Executions {
    pub(crate) fn enter(
        &self,
        execution: ExecutionId,
        client: Option<ClientName>,
        (language, session): (Language, Option<&SessionKey>),
        looks: &Looks,
        cancelled: &CancellationToken,
    ) -> Entered {
        let stop = cancelled.child_token();
        let session = session.map(|key| key.name.to_string());
        let (since, begun) = (Instant::now(), looks.begun());
        let going = Going { client, language, session, since, begun, stop: stop.clone() };
        self.going().insert(execution.0, going);
        Entered { execution, executions: self.clone(), stop }
    }

    /// In the order in which they were asked for.
    pub(crate) fn list(&self) -> Vec<ListedRun> {
        let listed = |(id, going): (&u128, &Going)| ListedRun {
            execution: ExecutionId(*id).to_string(),
            client: going.client.as_ref().map(|client| client.as_str().to_owned()),
            language: going.language.as_str().into(),
            session: going.session.clone(),
            state: if going.begun.is_it() { "running" } else { "waiting" }.into(),
            age_s: going.since.elapsed().as_millis() as f64 / 1000.0,
        };
        self.going().iter().map(listed).collect()
    }

    /// Ends the one of this id, or all. Gives their ids.
    pub(crate) fn end(&self, execution: Option<&str>) -> Vec<String> {
        let going = self.going();
        let ids = going.iter().map(|(id, going)| (ExecutionId(*id).to_string(), going));
        let meant = ids.filter(|(id, _)| execution.is_none_or(|execution| execution == id));
        meant
            .map(|(id, going)| {
                going.stop.cancel();
                id
            })
            .collect()
    }

    fn going(&self) -> MutexGuard<'_, BTreeMap<u128, Going>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
