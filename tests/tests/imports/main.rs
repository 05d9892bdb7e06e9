//! How programs find the tools, what their functions take, and what they say of themselves.

mod arguments;
mod library;
mod names;
mod stubs;
mod ways;
