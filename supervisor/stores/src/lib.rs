//! What outlives a run: stored results, returned files and skills.
//!
//! # Parts
//!
//! - `results.rs`: values and outputs that are too long for an answer, in memory for their AI client or in files for
//!   `lockhouse run`.
//! - `result_files.rs`: files that programs return. `result_files/index.rs` decides without I/O who owns which file and
//!   what makes room, `directory.rs` has the files, `file_name.rs` makes their names safe.
//! - `skills.rs`: functions that programs saved. `skill_folder.rs` reads and writes one in the Agent Skills format,
//!   `store.rs` has versions and drafts.
//!
//! # Invariants
//!
//! - Nothing here makes or permits a call. A skill that is loaded grants nothing: the policy decides about its calls as
//!   about all others.
//! - No store gives anything to another owner than the one whose run made it. For others, a handle does not exist.
//! - No handle can be guessed.
//! - No draft can be imported before a person approved it.
//! - No store is unbounded: number, size and time are limited, and clients share the room fairly.
//! - No file is written through a symbolic link, and no name that a program chose is used as a path unchanged.
//!
//! # Decisions
//!
//! - A result is stored once, as text, and read in parts: models read little of it, and a parsed tree takes many times
//!   as much memory.
//! - Returned files are on disk, because they may be large. A service removes them at its end; `lockhouse run` leaves
//!   them to later commands of the same user.
//! - A skill is a folder with a text that people can read, so that it can be reviewed, copied and shared like a
//!   program.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

pub mod result_files;
pub mod results;
pub mod skills;
