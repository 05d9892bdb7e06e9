//! Requests that were answered with a question: their exchanges, until the client calls again with what the person said.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::principal::{Owner, Principal};
use lockhouse_messages::{Answer, Exchange, Input, OpenQuestion};
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{InputRequest, InputRequiredResult, InputResponses, JsonObject};

use super::super::ask;

/// Requests whose client is to call again, at one time; and those of one client.
const SUSPENDED_MAX: usize = 256;
const OF_ONE_MAX: usize = 16;

/// Requests whose client was asked something and is to call again.
#[derive(Clone, Default)]
pub(crate) struct Suspended {
    requests: Arc<Mutex<HashMap<String, Waiting>>>,
}

struct Waiting {
    /// Whoever else comes with its handle finds nothing.
    owner: Owner,
    exchange: Exchange,
    /// Of the questions that were put.
    keys: Vec<String>,
    /// A call that comes back is the same call.
    arguments: JsonObject,
}

impl Suspended {
    /// Whether one more of this owner's can wait.
    pub(super) fn has_room(&self, owner: Owner) -> bool {
        let requests = self.requests();
        let own = requests.values().filter(|waiting| waiting.owner == owner).count();
        requests.len() < SUSPENDED_MAX && own < OF_ONE_MAX
    }

    /// Keeps an exchange until its client comes back, or the time for its questions is up; a run that nobody else follows or
    /// keeps is then cancelled. The exchange itself if there is nothing to ask.
    pub(super) fn keep(
        &self,
        owner: Owner,
        exchange: Exchange,
        questions: Vec<OpenQuestion>,
        arguments: &JsonObject,
    ) -> Result<InputRequiredResult, Exchange> {
        let (asked, patience) = requests(&exchange, questions);
        let Some(patience) = patience else { return Err(exchange) };
        let (name, arguments) = (new_handle(), arguments.clone());
        let keys = asked.keys().cloned().collect();
        self.requests().insert(name.clone(), Waiting { owner, exchange, keys, arguments });
        let (suspended, to_end) = (self.clone(), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(patience).await;
            suspended.requests().remove(&to_end);
        });
        Ok(InputRequiredResult::new(Some(asked), Some(name)))
    }

    /// The exchange that a client comes back to, with what the person said handed over, and the keys of those questions.
    pub(super) fn resume(
        &self,
        principal: &Principal,
        state: &str,
        arguments: &JsonObject,
        mut responses: InputResponses,
    ) -> Result<(Exchange, Vec<String>), &'static str> {
        let mut requests = self.requests();
        let own = |waiting: &&Waiting| waiting.owner == principal.owner();
        let waiting = requests.get(state).filter(own).ok_or(
            "nothing waits for this answer: it came too late, or twice. The execution is over; run the code again",
        )?;
        if waiting.arguments != *arguments {
            return Err("an answer comes with the same arguments as the call that it is for");
        }
        let Some(Waiting { exchange, keys, .. }) = requests.remove(state) else { return Err("it is gone") };
        drop(requests);
        // Whatever has no answer among these was let be.
        for key in &keys {
            let answer = responses.remove(key).map_or(Answer::Cancel, ask::meaning);
            exchange.send(Input::Answer(key.clone(), Ok(answer)));
        }
        Ok((exchange, keys))
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.requests.lock()
    }
}

/// The questions as MCP puts them, and how long the most patient of them waits. One that MCP cannot put is answered so.
pub(super) fn requests(
    exchange: &Exchange,
    questions: Vec<OpenQuestion>,
) -> (BTreeMap<String, InputRequest>, Option<Duration>) {
    let (mut asked, mut most) = (BTreeMap::new(), None);
    for OpenQuestion { key, question, patience } in questions {
        match ask::input_request(question) {
            Ok(request) => {
                asked.insert(key, request);
                most = most.max(Some(patience));
            }
            Err(unasked) => exchange.send(Input::Answer(key, Err(unasked))),
        }
    }
    (asked, most)
}

/// More than anybody guesses: 148 bits of the kernel's randomness.
pub(crate) fn new_handle() -> String {
    format!("{}{}", uuid::Uuid::now_v7().simple(), uuid::Uuid::now_v7().simple())
}
