//! Writes the seeds of fuzz targets as files: DIRECTORY/TARGET/seed-NUMBER.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Writes the seeds of each target into the directory that the first argument of the program names.
pub(crate) fn write(seeds: &BTreeMap<&str, Vec<Vec<u8>>>) -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args_os().nth(1).expect("the directory is the first argument"));
    for (target, inputs) in seeds {
        let directory = directory.join(target);
        std::fs::create_dir_all(&directory)?;
        for (number, input) in inputs.iter().enumerate() {
            std::fs::write(directory.join(format!("seed-{number:03}")), input)?;
        }
    }
    Ok(())
}
