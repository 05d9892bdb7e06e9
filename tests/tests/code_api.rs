//! Tests of the tool API that Lockhouse offers to programs: imports, function arguments, names of tools, and help
//! texts.

mod arguments;
mod denied_modules;
mod dialects;
mod imports;
mod names;
mod naming_server;
mod server_words;
mod stubs;
