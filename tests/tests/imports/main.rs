//! How programs find the tools, what their functions take, and what they say of themselves.
#![allow(clippy::too_many_lines)] // Tables.

mod arguments;
mod library;
mod names;
mod stubs;
mod ways;
