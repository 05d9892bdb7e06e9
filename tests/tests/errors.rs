//! Tests of the error messages that models read: each snapshot has the messages of failing programs, so that a person
//! can review them.
//!
//! The programs in `programs/` fail in ways in which programs written by models often fail. A snapshot has each program
//! and the part of its answer that describes the failure. After a change of messages, run `INSTA_UPDATE=always cargo
//! nextest run -p lockhouse-tests errors::` and review the differences.

mod checks;
mod error_documentation;
mod error_snapshots;
mod lengths;
mod python;
mod slips;
mod typescript;
