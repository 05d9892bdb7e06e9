//! Passes to `lockhouse --version --verbose` what only the build knows, as environment variables of the compiler. Values that the
//! build does not know are empty.
//!
//! The script asks no version control: `packaging/release/build` sets LOCKHOUSE_BUILD_COMMIT and SOURCE_DATE_EPOCH for
//! packages. Without them, a new commit recompiles nothing.

use std::path::Path;
use std::process::Command;

/// Set by `packaging/release/build`: the commit, the time of the commit in seconds since 1970, and the number of
/// components in the software bill of materials.
const FROM_ENVIRONMENT: [&str; 3] =
    ["LOCKHOUSE_BUILD_COMMIT", "SOURCE_DATE_EPOCH", "LOCKHOUSE_BUILD_COMPONENTS"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for name in FROM_ENVIRONMENT {
        println!("cargo::rerun-if-env-changed={name}");
        pass(name, std::env::var(name).ok());
    }
    pass("LOCKHOUSE_BUILD_PROFILE", profile());
    pass("LOCKHOUSE_BUILD_TARGET", std::env::var("TARGET").ok());
    pass("LOCKHOUSE_BUILD_RUSTC", rustc_version());
}

fn pass(name: &str, value: Option<String>) {
    println!("cargo::rustc-env={name}={}", value.unwrap_or_default());
}

/// Returns the name of the profile. `PROFILE` has only `debug` or `release`, so the name is taken from the path
/// `target/PROFILE/build/PACKAGE/out`.
fn profile() -> Option<String> {
    let out = std::env::var("OUT_DIR").ok()?;
    Path::new(&out).ancestors().nth(3)?.file_name()?.to_str().map(str::to_owned)
}

fn rustc_version() -> Option<String> {
    let output = Command::new(std::env::var_os("RUSTC")?).arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
