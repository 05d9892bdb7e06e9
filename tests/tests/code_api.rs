//! The tool API inside programs: imports, function arguments, names, and help texts.

mod arguments;
mod dialects;
mod imports;
mod names;
mod naming_server;
mod stubs;
