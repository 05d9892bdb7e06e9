//! Who may call what: policy documents and the decisions they lead to.
//!
//! A document is read once, with all of its errors reported together ([`Policy::parse`]), and can be laid under others
//! ([`Policy::under`]); each call is then decided by [`Policy::decide`]. What is not permitted is denied. The language is
//! in docs/policy.md. A call that may go out is a [`PermittedCall`], which nothing but that decision can make; so whoever
//! demands one cannot be reached around the policy.
//!
//! Everything here is pure: no I/O, no clock, no threads.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod call;
mod condition;
mod decision;
mod denial;
mod diagnostic;
mod diff;
mod document;
mod effect;
mod excerpt;
mod explain;
mod index;
mod item;
mod judge;
mod layer;
mod limits;
mod list;
mod members;
mod nearest;
mod pattern;
mod policy;
mod printable;
mod rule;
mod scoped_limits;
mod source;
mod standing;
mod suggest;
mod table;
mod template;
mod unmatched;

pub use call::{Call, ClientName, Links};
pub use decision::Decision;
pub use decision::pending::{CallDigest, PendingCall};
pub use decision::permitted::PermittedCall;
pub use denial::{Denial, DenialReason};
pub use diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Diagnostics};
pub use diff::{Change, Said, diff};
pub use document::{PATTERNS_MAX, RULES_MAX, TEXT_BYTES_MAX};
pub use effect::Effect;
pub use explain::{Considered, Explanation, explain};
pub use item::{Item, Listing};
pub use judge::SKILLS;
pub use limits::{Limits, Rate};
pub use members::Members;
pub use nearest::nearest;
pub use pattern::{InvalidPattern, Pattern, Subject};
pub use policy::{PATHS_MAX, Policy};
pub use printable::{escaped, is_hidden, printable, quoted, visible_text};
pub use scoped_limits::ScopedLimits;
pub use source::{Place, Source};
pub use suggest::{Use, suggest};
pub use table::OnChange;
pub use template::{SUMMARY_CHARS_MAX, ServerOffer, ToolOffer, render_template};
pub use unmatched::unmatched;
