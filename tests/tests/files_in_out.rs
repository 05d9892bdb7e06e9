//! Tests of the files that programs read from and write to this machine through the built-in server `files`, and of the
//! files that they return.

pub(crate) mod analyst;
mod approved_writes;
mod causes;
mod folders;
mod given_files;
mod large_files;
mod links_and_errors;
mod operations;
mod own_files;
mod principals;
mod reading;
mod returned_files;
mod writing;

use lockhouse_tests::Lockhouse;

/// A policy that permits everything of the server `files`.
const FILES_POLICY: &str = "version = 1\n[servers.files]\nallow = [\"*\"]\n";

/// Returns Lockhouse with the server `files` for CSV files below `home/data`, and for writing below `home/out`.
fn lockhouse() -> Lockhouse {
    let lockhouse = Lockhouse::outside_tmp()
        .config("[servers.files]\nread = [\"~/data/**/*.csv\"]\nwrite = [\"~/out\"]\nfile_mib = 1\n")
        .policy(FILES_POLICY);
    lockhouse.file("home/data/sales.csv", "region,amount\nnorth,3\nsouth,4\n");
    std::fs::create_dir_all(lockhouse.path("home/out")).expect("a directory");
    lockhouse
}

/// Returns a Python program that opens the file at `path` below the home directory of the test, and returns its text, or
/// the name and the text of the error.
fn opening(lockhouse: &Lockhouse, path: &str) -> String {
    let path = serde_json::Value::from(lockhouse.path("home").join(path).display().to_string());
    format!("try: r = open({path}).read()\nexcept Exception as e: r = f'{{type(e).__name__}}: {{e}}'\nr")
}
