//! Tests of the file system in memory: programs find in it what they find on disk, and nothing of the host.

mod functions;
mod isolation;
mod limits;
mod messages;
mod random_operations;
mod server_tree;
mod sessions;

/// The programs of a file in `programs/`: pairs of a name and its code. Each program begins with a line `=== NAME`.
fn programs(text: &str) -> Vec<(&str, &str)> {
    let parts = text.strip_prefix("=== ").expect("a program").split("\n=== ");
    parts.map(|part| part.split_once('\n').expect("a program has lines")).collect()
}
