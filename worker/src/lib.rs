//! The sandboxed side of Lockhouse: a zygote process that forks workers, and workers that enter their sandbox
//! and run code.
//!
//! [`zygote::run`] prepares an [`engine::Engine`] and forks workers on request. Each worker passes through
//! [`lockhouse_sandbox::enter`] before it receives any code. Requests of the code leave through
//! [`tool_host::ToolHost`].

pub mod channel;
mod code_pages;
pub mod engine;
pub mod program_text;
pub mod signals;
mod stack_overflow;
pub mod tool_host;
mod warm_up_host;
pub mod zygote;
