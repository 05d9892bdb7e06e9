//! Writes the seeds of the fuzz targets into a directory, for `tests/fuzz/run.sh`.

#[path = "../../../../tests/fuzz/write_seeds.rs"]
mod write_seeds;

fn main() -> std::io::Result<()> {
    write_seeds::write(&lockhouse_base_fuzz::seeds())
}
