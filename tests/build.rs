//! Compiles the native attacks in `hostile/native`. Each file has one function `attack`, which is renamed
//! after the file. A generated table of these functions is linked into `native-worker` and `native-service`.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const FOLDER: &str = "hostile/native";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let mut table = String::new();
    let mut declarations = String::new();
    let mut objects = Vec::new();
    for file in sources()? {
        let name = file.file_stem().and_then(|stem| stem.to_str()).ok_or("a file without a name")?.to_owned();
        let function = format!("attack_{}", name.replace('-', "_"));
        let mut build = cc::Build::new();
        build
            .file(&file)
            .define("attack", function.as_str())
            .opt_level(0)
            .warnings(true)
            .extra_warnings(true);
        objects.extend(build.compile_intermediates());
        writeln!(declarations, "    fn {function}() -> c_long;")?;
        writeln!(table, "    ({name:?}, {function}),")?;
    }
    let out = std::env::var("OUT_DIR")?;
    cc::Build::new().objects(objects).cargo_metadata(false).compile("attacks");
    // Of this package only these programs know them.
    for program in ["native-worker", "native-service"] {
        println!("cargo::rustc-link-arg-bin={program}={out}/libattacks.a");
    }
    let source = format!(
        "unsafe extern \"C\" {{\n{declarations}}}\n\n/// Name and function of each.\nstatic ATTACKS: &[(&str, unsafe extern \"C\" fn() -> c_long)] = &[\n{table}];\n"
    );
    std::fs::write(Path::new(&out).join("attacks.rs"), source)?;
    Ok(())
}

/// Returns the paths of the C files in `hostile/native`, sorted by path.
fn sources() -> Result<Vec<PathBuf>, std::io::Error> {
    let entries = std::fs::read_dir(FOLDER)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = entries.collect::<Result<Vec<_>, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    Ok(files)
}
