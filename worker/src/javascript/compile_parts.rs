//! Compiles the JavaScript source files of the engine to QuickJS bytecode. A part of the build script.
//!
//! A zygote reads the bytecode instead of the text, which takes a fraction of the time: the first result after a start waits
//! for it. The bytecode belongs to one version of QuickJS, which build script and worker share.

use std::error::Error;
use std::path::Path;

use rquickjs::module::WriteOptions;
use rquickjs::{Context, Module, Runtime};

/// The beginning of the function that each source file consists of, after its comment.
const FUNCTION: &str = "(native, realm) => {";

/// Compiles each source file `NAME.js` to the file `NAME.bytecode` in the directory `out`. Each becomes a module whose default
/// export is the function of the file.
pub(crate) fn compile(out: &Path) -> Result<(), Box<dyn Error>> {
    let folder = Path::new("src/javascript");
    println!("cargo::rerun-if-changed={}", folder.display());
    let context = Context::full(&Runtime::new()?)?;
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        if path.extension().is_none_or(|extension| extension != "js") {
            continue;
        }
        let source = std::fs::read_to_string(&path)?;
        let (comment, rest) =
            source.split_once(FUNCTION).ok_or_else(|| format!("{name}.js has no {FUNCTION}"))?;
        // On the same line, so that positions in stack traces stay.
        let module = format!("{comment}export default {FUNCTION}{rest}");
        let bytecode = context.with(|ctx| {
            let declared = Module::declare(ctx.clone(), format!("lockhouse:{name}"), module)?;
            declared.write(WriteOptions { strip_source: true, ..WriteOptions::default() })
        });
        let bytecode = bytecode.map_err(|error| format!("{name}.js: {error}"))?;
        std::fs::write(out.join(format!("{name}.bytecode")), bytecode)?;
    }
    Ok(())
}
