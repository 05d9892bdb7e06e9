//! Calls that the policy leaves to a person: who is asked, and what they have approved before.
//!
//! One execution has one [`Approvals`]. Its calls gather for a moment ([`batch`]), become one prompt ([`prompt`]), and are
//! put to the person behind the AI client ([`form`]) or to whoever watches the [`desk`]. An answer counts for exactly the
//! calls of its prompt. The model is never asked, and nothing that it can write reaches an answer.

mod always;
mod approvers;
mod arguments;
mod batch;
mod candidate;
mod desk;
mod facts;
mod form;
mod grants;
mod members;
mod messages;
mod order;
mod outcome;
mod permit;
mod policy_file;
mod prompt;
mod refusals;
mod room;
mod rows;
mod visible;

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lockhouse_audit::Audit;
use lockhouse_base::principal::Owner;
use lockhouse_catalog::Tool;
use lockhouse_policies::{PendingCall, PermittedCall, printable};
use lockhouse_protocol::{CallId, ExecutionId, Failure, FailureCode};
use lockhouse_upstream::Caller;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

pub use approvers::{ApprovalSettings, Approvers, Through};
pub use desk::{Seat, Watcher};
pub use messages::{Ask, Decision, FromPerson, FromSupervisor, PersonsAnswer};
pub use policy_file::PolicyFile;

use batch::{Batches, Waiting};
use candidate::Candidate;
use grants::Grants;
use order::Order;
use outcome::Refusal;

use super::failures::failure;

/// Calls of one execution that can wait at one time: as many as may be configured to be under way.
const WAITING_MAX: usize = 1_024;

/// Characters of a URI or a name where it is told what a run waits for.
const ABOUT_CHARS_MAX: usize = 100;

/// How far a person's answer reaches, and how a call came to be approved, for the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// The calls that were shown, alone.
    #[default]
    Once,
    /// Every call of these tools in this execution.
    Execution,
    /// Written into the policy.
    Always,
}

impl Approval {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Execution => "execution",
            Self::Always => "always",
        }
    }
}

/// Why a call was not approved.
#[derive(Debug)]
pub(super) struct Unapproved {
    pub(super) failure: Failure,
    /// Whether that is for want of anybody to ask.
    pub(super) nobody: bool,
}

/// Whom one execution's calls are put to, and what they have approved so far.
#[derive(Debug)]
pub struct Approvals {
    of: Arc<Execution>,
    /// To the task that asks. It is there once there was something to ask.
    queue: OnceLock<mpsc::Sender<Waiting>>,
    /// Calls that wait for a person.
    waiting: Mutex<BTreeSet<CallId>>,
}

/// What all prompts of one execution have in common.
#[derive(Debug)]
struct Execution {
    caller: Caller,
    owner: Owner,
    /// For the lines that are shown.
    code: Arc<str>,
    audit: Arc<Audit>,
    approvers: Arc<Approvers>,
    grants: Mutex<Grants>,
    /// Whether somebody else than the program and its client ended it.
    is_cancelled: AtomicBool,
}

impl Execution {
    fn id(&self) -> ExecutionId {
        self.caller.execution
    }

    fn grants(&self) -> MutexGuard<'_, Grants> {
        self.grants.lock()
    }
}

impl Approvals {
    pub fn new(
        caller: Caller,
        owner: Owner,
        code: Arc<str>,
        approvers: Arc<Approvers>,
        audit: Arc<Audit>,
    ) -> Self {
        let (grants, is_cancelled) = (Mutex::default(), AtomicBool::new(false));
        let of = Execution { caller, owner, code, audit, approvers, grants, is_cancelled };
        Self { of: Arc::new(of), queue: OnceLock::new(), waiting: Mutex::default() }
    }

    /// Asks the person, unless they have answered for calls like this one, and waits for what they say. The execution's
    /// clock stands still meanwhile.
    pub(super) async fn ask(
        &self,
        (call, id): (CallId, Uuid),
        pending: PendingCall,
        line: Option<u32>,
        tool: Option<&Tool>,
    ) -> Result<(PermittedCall, Approval), Unapproved> {
        let (server, item) = (pending.server().clone(), pending.item().clone());
        let refused = |refusal: Refusal| Unapproved {
            failure: failure(FailureCode::ApprovalDeclined, refusal.in_words(&server, &item)),
            nobody: matches!(refusal, Refusal::Nobody(_)),
        };
        let claims = tool.map(Tool::claims).unwrap_or_default();
        let order = Order::of(&pending, tool);
        let candidate = Candidate::new((self.of.id(), call, id), pending, line, claims, order);
        let granted = self.of.grants().find(&candidate.pending);
        if let Some(how) = granted {
            return candidate.approved().map(|permitted| (permitted, how)).map_err(refused);
        }
        let named: String = printable(item.as_str()).chars().take(ABOUT_CHARS_MAX).collect();
        let _open = self.of.caller.questions.open(format!("approval of {server}.{named}"));
        let _waits = Waits::new(&self.waiting, call);
        let (verdict, decided) = oneshot::channel();
        let queue = self.queue.get_or_init(|| {
            let (queue, asked) = mpsc::channel(WAITING_MAX);
            tokio::spawn(Batches::new(self.of.clone()).run(asked));
            queue
        });
        if queue.send(Waiting { candidate, verdict }).await.is_err() {
            return Err(refused(Refusal::Broken));
        }
        decided.await.unwrap_or(Err(Refusal::Broken)).map_err(refused)
    }

    /// Somebody else than the program and its client ends the execution: neither is to blame for questions that nobody
    /// answers any more. To be
    /// said before its calls are dropped.
    pub fn cancel(&self) {
        self.of.is_cancelled.store(true, Ordering::Release);
    }

    /// Whether a call waits for a person, and so has not gone out.
    pub(super) fn is_waiting(&self, call: CallId) -> bool {
        self.waiting.lock().contains(&call)
    }
}

/// A call's place among those that wait.
struct Waits<'a> {
    all: &'a Mutex<BTreeSet<CallId>>,
    call: CallId,
}

impl<'a> Waits<'a> {
    fn new(all: &'a Mutex<BTreeSet<CallId>>, call: CallId) -> Self {
        all.lock().insert(call);
        Self { all, call }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(&self.call);
    }
}
