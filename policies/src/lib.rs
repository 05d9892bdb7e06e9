//! The policy language: parses policy documents, and decides which calls to upstream servers they allow.
//!
//! docs/policy.md describes the language for those who write policies.
//!
//! # Parts
//!
//! - [`Policy::parse`] reads a document and reports all of its errors together, each with its line. A parsed document
//!   is a layer (`layer.rs`): tables of servers, lists, rules and their conditions.
//! - [`Policy::restricted_by`] combines documents. For each call, the strictest of them counts.
//! - [`Policy::decide`] decides one call. [`explain()`] returns every statement that matched, in the order of
//!   precedence (`precedence.rs`; `pattern_index.rs` finds them without comparing each pattern).
//! - [`PermittedCall`] is a call with its arguments after the policy, or an approver's answer to a [`PendingCall`],
//!   permitted it.
//! - [`RoleKind`] is what a role of a person permits: `role.rs` has the tables, and `role_queries.rs` what a policy answers
//!   about them. [`ApprovalRequirement`] is what the approval of a call requires of people.
//! - [`Limits`] are the limits of a policy, and [`ScopedLimits`] those that apply to one permitted call.
//! - [`diff()`], [`suggest_policy`] and [`render_template`] are what `lockhouse policy diff`, `suggest` and `init`
//!   print.
//! - [`edit`] changes the text of a policy and keeps its comments and order, for answers `always` and for `lockhouse
//!   policy allow`.
//! - [`unmatched_names()`] finds names in a policy that no tool and no parameter of a server has.
//! - [`Diagnostic`] shows errors in all files that people write: location, what is wrong, what to do.
//!
//! # Invariants
//!
//! - Nothing in this crate does I/O, reads a clock or starts a thread.
//! - Nothing but `decision.rs` constructs a [`PermittedCall`]. Code that sends calls requires one, so it cannot bypass
//!   the policy.
//! - No call is allowed by default. A call that no document allows is denied.
//! - No condition that cannot be evaluated counts as met. A condition is met, is not met, or cannot be evaluated; the
//!   last fails closed.
//! - No document can widen another one.
//! - Nothing else in the product changes the text of a policy.
//!
//! # Decisions
//!
//! - Errors are reported all at once, with file, line and a help text, because a person edits the file once and not
//!   once for each error.
//! - A pattern is a name or the beginning of one with `*`, and no regular expression: a reader of a policy sees what it
//!   permits.
//! - What an untrusted name shows to people passes through [`visible_text`] and [`printable()`], so that no control or
//!   invisible character of a server changes a decision of an approver.
//!
//! # Limits
//!
//! A document has at most [`TEXT_BYTES_MAX`] bytes, [`RULES_MAX`] rules and [`PATTERNS_MAX`] patterns. A call has at
//! most [`PATHS_MAX`] paths whose links are resolved.

mod approval_requirement;
mod call;
mod call_target;
mod condition;
mod decision;
mod denial;
mod diagnostic;
mod diff;
mod document;
pub mod edit;
mod effect;
mod explain;
mod layer;
mod limits;
mod list;
mod pattern;
mod pattern_index;
mod policy;
mod possible_effects;
mod precedence;
mod printable;
mod role;
mod role_queries;
mod rule;
mod rule_presence;
mod schema_parameters;
mod scoped_limits;
mod similar_names;
mod source;
mod source_excerpt;
mod suggest;
mod table;
mod template;
mod unmatched_names;

pub use approval_requirement::{APPROVERS_MAX, ApprovalRequirement};
pub use call::{Call, ClientName, ResolvedPaths};
pub use call_target::{CallTarget, Listing};
pub use decision::Decision;
pub use decision::pending::{CallDigest, PendingCall};
pub use decision::permitted::PermittedCall;
pub use denial::{Denial, DenialReason};
pub use diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Diagnostics};
pub use diff::{Change, PolicyValue, diff};
pub use document::{PATTERNS_MAX, RULES_MAX, TEXT_BYTES_MAX};
pub use effect::Effect;
pub use explain::{ConsideredStatement, Explanation, explain};
pub use limits::{Limits, Rate};
pub use pattern::{InvalidPattern, Pattern, PatternKind};
pub use policy::{PATHS_MAX, Policy};
pub use precedence::SKILLS;
pub use printable::{escaped, escaped_line, is_hidden, printable, quoted, visible_text};
pub use role::RoleKind;
pub use rule_presence::RulePresence;
pub use schema_parameters::SchemaParameters;
pub use scoped_limits::ScopedLimits;
pub use similar_names::most_similar_name;
pub use source::{Source, SourceLocation};
pub use suggest::{CallKey, suggest_policy};
pub use table::OnChange;
pub use template::{SUMMARY_CHARS_MAX, ServerOffer, ToolOffer, render_template};
pub use unmatched_names::unmatched_names;
