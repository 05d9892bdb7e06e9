//! Approvals: asks a person about calls for which the policy says `ask`.
//!
//! # Parts
//!
//! - `approval_request.rs` is one call that requires approval; `batch.rs` groups calls into one question, `batch/first_answer.rs` waits for its answer.
//! - `argument_order.rs`, `schema_members.rs`, `argument_display.rs` and `argument_lines.rs` order the arguments of a
//!   call and divide the space of a question between them. `prompt.rs` is the text of a question, `untrusted_text.rs`
//!   what it shows of other people's words.
//! - `elicitation_form.rs` asks through the AI client of the run, `approval_queue.rs` through watchers such as
//!   `lockhouse approvals` and the live page. `approvers.rs` chooses between them, and `approver.rs` decides whose answer
//!   counts.
//! - `grants.rs` has earlier approvals that cover later calls of the same execution. `refusal_backoff.rs` counts
//!   consecutive refusals.
//! - `notices.rs` tells people who watch nothing that a question waits.
//! - `presence.rs` verifies proofs that a person is there, and has the registered keys.
//! - `policy_change.rs` and `policy_file.rs` change the policy file for the answer `always`.
//!
//! # Invariants
//!
//! - Nothing here decides whether a call requires approval. The gate asks after the policy said so.
//! - No answer permits more than its question says. It is bound to a digest of the calls; an answer for the rest of the
//!   run, or for always, names the tools that it covers.
//! - No argument is left out without a sign. The first line says `INCOMPLETE`; of a long text, the question has the
//!   beginning, the end and the length.
//! - No text of a server, a tool or an argument can look like a part of the question: control and invisible characters
//!   are shown as such.
//! - No program chooses the order of arguments. It is that of the tool's schema.
//! - No model answers. A question goes to the user of the AI client or to an operator whose user id the kernel
//!   reported.
//! - If the configuration requires presence, no answer approves without a proof that the engine itself has verified. A refusal
//!   needs none.
//! - No call is sent because nobody answered.
//! - A notice has no arguments and no way to answer. Nothing waits for its receiver.
//!
//! # Decisions
//!
//! - Calls that a program starts together are one question with one line each, because a person who is asked fifty
//!   times no longer reads.
//! - The layout of arguments is a property of security and therefore our own. Required arguments get space first, since
//!   a program can add any number of optional ones; within each group a long value cannot displace others, and is cut
//!   in the middle.
//! - After consecutive refusals, further questions of the client are paused, across executions: a refused program can
//!   simply be run again, and must not wear the approver down.
//! - `always` changes the policy file and keeps its comments and layout. The changed policy is evaluated and shown as a
//!   difference before it is written.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod answer_error;
mod approval_queue;
mod approval_request;
mod approver;
mod approvers;
mod argument_display;
mod argument_lines;
mod argument_order;
mod batch;
mod call_summary;
mod elicitation_form;
mod grants;
mod notices;
mod outcome;
mod policy_change;
mod policy_file;
mod presence;
mod prompt;
mod prompt_limits;
mod refusal_backoff;
mod schema_members;
mod untrusted_text;

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lockhouse_audit::Audit;
use lockhouse_catalog::Tool;
use lockhouse_messages::{Approval, Owner};
use lockhouse_policies::{PendingCall, PermittedCall, printable};
use lockhouse_protocol::{CallId, ExecutionId, Failure, FailureCode};
use lockhouse_run_channel::RunChannel;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

pub use answer_error::AnswerError;
pub use approval_queue::{Watcher, WatcherKind};
pub use approver::Approver;
pub use approvers::{ApprovalSettings, ApproverKind, Approvers};
pub use lockhouse_messages::Presence;
pub use notices::{NoticeChannel, NoticeReceiver, NoticeSettings, Webhook, WebhookError};
pub use policy_file::PolicyFile;
pub use presence::{ApprovalSubject, PresenceError, PresenceVerifier, level_of_rule};

use approval_request::ApprovalRequest;
use batch::{ApprovalBatcher, QueuedRequest};
use grants::Grants;
use outcome::ApprovalRefusal;

/// Maximum number of calls of one execution that wait for approval; equals the largest number of parallel calls that
/// can be configured.
/// Bound: approvals and questions.
const WAITING_MAX: usize = 1_024;

/// Maximum number of characters of a tool name or URI in the label of a pending question. Longer names are truncated.
const ABOUT_CHARS_MAX: usize = 100;

/// The error for a call that requires approval and was refused.
#[derive(Debug)]
pub struct NotApproved {
    pub failure: Failure,
    /// Whether the call was refused because no approver was available.
    pub no_approver: bool,
}

/// Requests approvals for the calls of one execution, and remembers the approvals that cover later calls.
#[derive(Debug)]
pub struct ExecutionApprovals {
    context: Arc<ExecutionContext>,
    /// The channel to the execution's [`ApprovalBatcher`] task. The first call that requires approval starts the task.
    queue: OnceLock<mpsc::Sender<QueuedRequest>>,
    /// The calls that wait for an answer now.
    waiting: Mutex<BTreeSet<CallId>>,
}

/// The data of one execution that all of its prompts use.
#[derive(Debug)]
struct ExecutionContext {
    channel: RunChannel,
    /// The submitted code, of which prompts quote lines. Empty for a direct call.
    code: Arc<str>,
    audit: Arc<Audit>,
    approvers: Arc<Approvers>,
    /// The approvals that cover later calls of this execution.
    grants: Mutex<Grants>,
    /// Whether the execution was ended by a cause other than the program and its AI client, such as an operator.
    is_cancelled: AtomicBool,
}

impl ExecutionContext {
    fn id(&self) -> ExecutionId {
        self.channel.execution()
    }

    fn owner(&self) -> Owner {
        self.channel.principal().owner()
    }
}

impl ExecutionApprovals {
    pub fn new(channel: RunChannel, code: Arc<str>, approvers: Arc<Approvers>, audit: Arc<Audit>) -> Self {
        let (grants, is_cancelled) = (Mutex::default(), AtomicBool::new(false));
        let context = ExecutionContext { channel, code, audit, approvers, grants, is_cancelled };
        Self { context: Arc::new(context), queue: OnceLock::new(), waiting: Mutex::default() }
    }

    /// Requests approval for a call, and returns the approved call with the scope of the approval. If no earlier
    /// approval covers the call, an approver is asked. The execution's deadline is suspended while the question is
    /// pending. `id` is the id of the call in the audit log, `line` the line of the program that makes the call,
    /// `undescribed_bytes` the number of bytes of a written file that the arguments cover only by a hash, and `tool` the
    /// definition of the called tool, if it is known.
    pub async fn ask(
        &self,
        call: CallId,
        id: Uuid,
        pending: PendingCall,
        line: Option<u32>,
        undescribed_bytes: u64,
        tool: Option<&Tool>,
    ) -> Result<(PermittedCall, Approval), NotApproved> {
        let (server, item) = (pending.server().clone(), pending.item().clone());
        let refused = |refusal: ApprovalRefusal| NotApproved {
            failure: Failure::new(FailureCode::ApprovalDeclined, refusal.message(&server, &item)),
            no_approver: matches!(refusal, ApprovalRefusal::NoApprover(_)),
        };
        let execution = self.context.id();
        let request = ApprovalRequest::new(execution, call, id, pending, line, undescribed_bytes, tool);
        let granted = self.context.grants.lock().approval_for(&request.pending);
        if let Some(scope) = granted {
            return request.into_permitted().map(|permitted| (permitted, scope)).map_err(refused);
        }
        let named: String = printable(item.as_str()).chars().take(ABOUT_CHARS_MAX).collect();
        let _pending_question =
            self.context.channel.questions().open(format!("approval of {server}.{named}"));
        let _waiting = WaitingCallGuard::new(&self.waiting, call);
        let (verdict, decided) = oneshot::channel();
        let queue = self.queue.get_or_init(|| {
            let (queue, incoming) = mpsc::channel(WAITING_MAX);
            tokio::spawn(ApprovalBatcher::new(self.context.clone()).run(incoming));
            queue
        });
        if queue.send(QueuedRequest { request, verdict }).await.is_err() {
            return Err(refused(ApprovalRefusal::Broken));
        }
        decided.await.unwrap_or(Err(ApprovalRefusal::Broken)).map_err(refused)
    }

    /// Records that the execution was ended by a cause other than the program and its AI client, so that its unanswered
    /// questions do not count as refusals. Must be called before the calls of the execution are dropped.
    pub fn cancel(&self) {
        self.context.is_cancelled.store(true, Ordering::Release);
    }

    /// Whether a call waits for approval and has therefore not been sent.
    pub fn is_awaiting_approval(&self, call: CallId) -> bool {
        self.waiting.lock().contains(&call)
    }
}

/// Keeps a call in the set of calls that wait for approval, until the guard is dropped.
struct WaitingCallGuard<'a> {
    all: &'a Mutex<BTreeSet<CallId>>,
    call: CallId,
}

impl<'a> WaitingCallGuard<'a> {
    fn new(all: &'a Mutex<BTreeSet<CallId>>, call: CallId) -> Self {
        all.lock().insert(call);
        Self { all, call }
    }
}

impl Drop for WaitingCallGuard<'_> {
    fn drop(&mut self) {
        self.all.lock().remove(&self.call);
    }
}
