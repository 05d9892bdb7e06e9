//! JavaScript and TypeScript: QuickJS-NG runs what oxc has freed of its types, both inside the sealed worker.
//!
//! ```text
//! job.code ──typescript──► one async function ──engine──► promise ──values──► JSON
//!                │ map of positions                │ ▲
//!                └────────────► errors             ▼ │ host: requests, output, timers
//! ```
//!
//! What user code finds in its global scope is written in JavaScript, in the `*.js` files beside this module's parts;
//! the native functions below them are few (see `host`).

mod base64;
mod calls;
mod ending;
mod engine;
mod errors;
mod evaluate;
mod excerpts;
mod hints;
mod host;
mod marks;
mod mistakes;
mod modules;
mod natives;
mod nesting;
mod positions;
mod realm;
mod requests;
mod run_loop;
mod session_names;
mod skill_source;
mod subjects;
mod timers;
mod traceback;
mod typescript;
mod values;

pub(crate) use engine::JavaScript;
