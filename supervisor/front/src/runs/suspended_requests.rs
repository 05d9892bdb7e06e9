//! Requests that were answered with `input_required` (a question to the user). Their runs continue to
//! wait until the client repeats the request with answers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_link::{Exchange, GrantedAccess};
use lockhouse_messages::{Answer, AskError, Input, OpenQuestion, Owner};
use lockhouse_protocol::ExecutionId;
use parking_lot::Mutex;
use rmcp::model::{InputRequest, InputRequiredResult, InputResponses, JsonObject};

use super::super::elicitation;
use super::request_state::{self, new_handle};

/// Maximum number of suspended requests (requests that wait for the user's answers to questions), of all clients
/// together (`SUSPENDED_MAX`) and per client (`SUSPENDED_PER_CLIENT_MAX`).
/// Bound: approvals and questions.
const SUSPENDED_MAX: usize = 256;
const SUSPENDED_PER_CLIENT_MAX: usize = 16;

/// Suspended requests, which wait for the user's answers to questions. The key is the `requestState` with
/// which a client repeats its request. Clones share the requests.
#[derive(Clone, Default)]
pub(crate) struct SuspendedRequests {
    requests: Arc<Mutex<HashMap<String, SuspendedRequest>>>,
}

/// Why a suspended request cannot be resumed.
#[derive(Debug)]
pub(super) enum NotResumed {
    /// This front has no such request of the client, to which these are the answers.
    Unknown(InputResponses),
    OtherArguments,
}

struct SuspendedRequest {
    /// The client that sent the request. No other client can resume it.
    owner: Owner,
    exchange: Exchange,
    /// Keys by which the engine identifies the questions that the client was asked.
    keys: Vec<String>,
    /// Arguments of the request. When the client repeats the request with answers, they must be the same.
    arguments: JsonObject,
}

impl SuspendedRequests {
    /// Returns whether another request of this owner can be suspended.
    pub(super) fn has_capacity(&self, owner: Owner) -> bool {
        let requests = self.requests.lock();
        let own = requests.values().filter(|request| request.owner == owner).count();
        requests.len() < SUSPENDED_MAX && own < SUSPENDED_PER_CLIENT_MAX
    }

    /// Suspends a request until its client repeats it or the last question times out. After a timeout, the
    /// run is cancelled unless another request follows it. Returns the result that asks the questions. If no
    /// question can be asked, returns the exchange as `Err`. `run` is the run of the request in a cluster, where any host may get the
    /// answers.
    ///
    /// If too many requests are suspended, or the kernel provides no random numbers, answers the questions with the keys
    /// `arrived` with an error, so that the run does not wait for them. The other questions remain pending, because
    /// another suspended request may have asked them.
    pub(super) fn suspend(
        &self,
        owner: Owner,
        exchange: Exchange,
        questions: Vec<OpenQuestion>,
        arrived: Vec<String>,
        arguments: &JsonObject,
        run: Option<ExecutionId>,
    ) -> Result<InputRequiredResult, Exchange> {
        let name = match (self.has_capacity(owner), run) {
            (false, _) => None,
            (true, None) => new_handle(None),
            (true, Some(run)) => request_state::of_run(run, arguments),
        };
        let Some(name) = name else {
            for key in arrived {
                exchange.send(Input::Answer(key, Err(AskError::Busy)));
            }
            return Err(exchange);
        };
        let (input_requests, patience) = input_requests(&exchange, questions);
        let Some(time_left) = patience else { return Err(exchange) };
        let arguments = arguments.clone();
        let keys = input_requests.keys().cloned().collect();
        self.requests.lock().insert(name.clone(), SuspendedRequest { owner, exchange, keys, arguments });
        let (suspended, to_end) = (self.clone(), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(time_left).await;
            suspended.requests.lock().remove(&to_end);
        });
        Ok(InputRequiredResult::new(Some(input_requests), Some(name)))
    }

    /// Resumes the suspended request with this `requestState`: passes the user's answers on to the run. Returns the
    /// exchange with the engine and the keys of the answered questions.
    ///
    /// # Errors
    /// [`NotResumed`]
    pub(super) fn resume(
        &self,
        access: &GrantedAccess,
        state: &str,
        arguments: &JsonObject,
        mut responses: InputResponses,
    ) -> Result<(Exchange, Vec<String>), NotResumed> {
        let mut requests = self.requests.lock();
        let own = |request: &&SuspendedRequest| request.owner == access.owner();
        let Some(request) = requests.get(state).filter(own) else {
            return Err(NotResumed::Unknown(responses));
        };
        if request.arguments != *arguments {
            return Err(NotResumed::OtherArguments);
        }
        let Some(SuspendedRequest { exchange, keys, .. }) = requests.remove(state) else {
            return Err(NotResumed::Unknown(responses));
        };
        drop(requests);
        // A question without an answer counts as cancelled.
        for key in &keys {
            let answer = responses.remove(key).map_or(Answer::Cancel, elicitation::parse_answer);
            exchange.send(Input::Answer(key.clone(), Ok(answer)));
        }
        Ok((exchange, keys))
    }
}

/// Converts questions to MCP input requests. Returns the input requests by the keys of their questions, and the longest
/// timeout of these questions; `None` if there are no input requests. A question that MCP cannot express is answered
/// with an error.
pub(super) fn input_requests(
    exchange: &Exchange,
    questions: Vec<OpenQuestion>,
) -> (BTreeMap<String, InputRequest>, Option<Duration>) {
    let (mut input_requests, mut most) = (BTreeMap::new(), None);
    for OpenQuestion { key, question, time_left } in questions {
        match elicitation::to_input_request(question) {
            Ok(request) => {
                input_requests.insert(key, request);
                most = most.max(Some(time_left));
            }
            Err(unasked) => exchange.send(Input::Answer(key, Err(unasked))),
        }
    }
    (input_requests, most)
}

#[cfg(test)]
mod tests {
    use lockhouse_link::{EngineClient, EngineEndpoint, Waiting};
    use lockhouse_messages::{Access, GrantId, InputSupport, Question, Request, Role, Roles, ToEngine};
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// An engine that only stores the answers to questions.
    #[derive(Default)]
    struct Answers(Mutex<Vec<(String, Result<Answer, AskError>)>>);

    impl EngineEndpoint for Answers {
        fn begin(&self) {}

        fn receive(&self, message: ToEngine) -> Option<Waiting> {
            if let ToEngine::Input(_, Input::Answer(key, answer)) = message {
                self.0.lock().push((key, answer));
            }
            None
        }
    }

    #[tokio::test]
    async fn without_capacity_only_questions_that_have_just_arrived_are_answered() {
        let answers = Arc::new(Answers::default());
        let engine: Arc<dyn EngineEndpoint> = answers.clone();
        let client = EngineClient::connect(|_| engine, CancellationToken::new());
        let access = Access {
            grant: GrantId::CONNECTION,
            owner: Owner::LOCAL,
            name: None,
            client: None,
            only: None,
            roles: Roles::only(Role::Run),
            expires_in: None,
        };
        let access = GrantedAccess::new(access, Arc::default());
        let open = async || client.open(&access, None, InputSupport::default(), Request::Health).await;
        let question = |key: &str| {
            let (message, url, id) = ("Sign in".into(), "https://example.com/".into(), "1".into());
            let question = Question::Url { message, url, id };
            OpenQuestion { key: key.into(), question, time_left: Duration::from_secs(60) }
        };
        let (suspended, arguments) = (SuspendedRequests::default(), JsonObject::new());
        let suspend = async |keys: [&str; 2], arrived: &str| {
            let (questions, arrived) = (keys.map(question).into(), vec![arrived.to_owned()]);
            suspended.suspend(Owner::LOCAL, open().await, questions, arrived, &arguments, None).is_ok()
        };
        for number in 0..SUSPENDED_PER_CLIENT_MAX {
            assert!(suspend(["question-1", "question-2"], "question-2").await, "request {number}");
        }
        assert!(answers.0.lock().is_empty());
        assert!(!suspend(["question-1", "question-2"], "question-2").await);
        let busy: Result<Answer, AskError> = Err(AskError::Busy);
        assert_eq!(*answers.0.lock(), vec![("question-2".to_owned(), busy)]);
    }
}
