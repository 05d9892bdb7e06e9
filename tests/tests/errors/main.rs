//! What models read when their programs fail: every message is a snapshot, to be read as a person would.
//!
//! A program of `programs/` fails as programs of models do; its snapshot holds the program and everything that the answer says of
//! its end. Run again after a change of words: `INSTA_UPDATE=always cargo nextest run -p lockhouse-tests --test errors`, and read
//! what differs.

mod documented;
mod golden;
mod python;
mod typescript;
