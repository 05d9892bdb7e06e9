//! Lockhouse's policies: parses policy documents, and decides which calls to upstream servers they allow.
//!
//! [`Policy::parse`] reads a document and reports all of its errors together. [`Policy::restricted_by`] combines
//! documents; for each call, the strictest of them counts. [`Policy::decide`] decides each call; a call that no
//! document allows is denied. docs/policy.md describes the language of the documents. A [`PermittedCall`] is created
//! only by [`Policy::decide`] or by a user's approval of a [`PendingCall`]. Code that sends calls requires a
//! [`PermittedCall`], so it cannot bypass the policy.
//!
//! This crate is pure: it has no I/O, no clock and no threads.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod call;
mod call_target;
mod condition;
mod decision;
mod denial;
mod diagnostic;
mod diff;
mod document;
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
mod rule;
mod schema_parameters;
mod scoped_limits;
mod similar_names;
mod source;
mod source_excerpt;
mod suggest;
mod table;
mod template;
mod unmatched_names;

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
pub use printable::{escaped, is_hidden, printable, quoted, visible_text};
pub use schema_parameters::SchemaParameters;
pub use scoped_limits::ScopedLimits;
pub use similar_names::most_similar_name;
pub use source::{Source, SourceLocation};
pub use suggest::{CallKey, suggest_policy};
pub use table::OnChange;
pub use template::{SUMMARY_CHARS_MAX, ServerOffer, ToolOffer, render_template};
pub use unmatched_names::unmatched_names;
