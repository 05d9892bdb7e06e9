//! Error messages for models: every message of a failing program is a snapshot, to be read as a user would read it.
//!
//! The programs in `programs/` fail in the ways that programs of models do. A snapshot holds the program and the
//! part of the answer about its failure. After a change of messages, run `INSTA_UPDATE=always cargo nextest run -p
//! lockhouse-tests errors::` and review the differences.

mod error_documentation;
mod error_snapshots;
mod lengths;
mod python;
mod slips;
mod typescript;
