//! The server `files` in the session of a person: the engine of the system has another account, and cannot open this person's
//! files. It decides about each call; a helper with the rights of the person, and within a sandbox of the configured folders,
//! opens the file and sends bytes. No descriptor is passed: a file of the person could block the engine.
//!
//! What the helper answers is what the person's side says. The person, and so the agent, can take its place, and read and
//! write these files without it.

mod answers;
mod messages;

pub use answers::answer_requests;
pub use messages::{FileAnswer, FileRequest, HelperSettings, Resolution, UnusablePath};
