//! The documentation in `docs/`: every program runs and returns the documented answer, and quoted texts match the
//! program's own.

mod code_blocks;
mod connect_page;
mod for_models;
mod guide_programs;
mod packaged_files;
mod page_links;
mod readme_figures;
