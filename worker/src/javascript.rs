//! The language engine for JavaScript and TypeScript: oxc removes the types, and QuickJS-NG runs the result, both
//! inside the sandboxed worker.
//!
//! ```text
//! job.code ──typescript──► one async function ──engine──► promise ──json_values──► JSON
//!                │ source map                      │ ▲
//!                └────────────► errors             ▼ │ host: requests, output, timers
//! ```
//!
//! The global scope of user code is implemented in JavaScript, in the `*.js` files of this directory, on top of a few
//! native functions (see `native_functions`).

mod base64;
mod call_check;
mod call_positions;
mod decorators;
mod digest;
mod engine;
mod error_expression;
mod errors;
mod evaluate;
mod final_value;
mod intl;
mod json_values;
mod large_literals;
mod latin1;
mod modules;
mod native_functions;
mod nesting_limit;
mod planned_calls;
mod position_markers;
mod program_failure;
mod property_reads;
mod realm;
mod run_loop;
mod runtime_error_hints;
mod session_variables;
mod shared_state;
mod skill_extraction;
mod source_excerpt;
mod source_map;
mod syntax_error_hints;
mod timers;
mod tool_requests;
mod traceback;
mod typescript;
mod undefined_value;
mod url;
mod value_origin;

pub(crate) use engine::JavaScript;
