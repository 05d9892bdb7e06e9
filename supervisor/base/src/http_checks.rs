//! Checks of HTTP requests that every HTTP server of this product makes: the server for AI clients, the live page, and
//! the redirect endpoint of a login.

pub mod checked_stream;
pub mod host_check;
mod request_head_validator;
