//! The untrusting side: a zygote forks workers, a worker seals itself and runs one execution.
//!
//! Follow [`zygote::run`]: it prepares an [`engine::Engine`], forks on request, and each child goes through
//! [`sandbox::enter`] before it sees a byte of code. What the code asks for leaves through [`tool_host::ToolHost`].

pub mod channel;
pub mod engine;
pub mod sandbox;
pub mod signals;
mod stack_overflow;
pub mod tool_host;
pub mod zygote;
