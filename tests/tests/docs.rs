//! Tests of the documentation in `docs/`: every example program runs and returns the documented answer, and texts that
//! a page quotes from Lockhouse match Lockhouse's actual texts.

mod code_blocks;
mod connect_page;
mod for_models;
mod guide;
mod guide_programs;
mod install_script;
mod packaged_files;
mod page_links;
mod readme_figures;
