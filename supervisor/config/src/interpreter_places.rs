//! The files from which a Python interpreter takes code when it starts, before any program runs: its standard library, the
//! modules of its environment, and the files that decide where it looks for them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Maximum number of links to an interpreter, and of interpreters that environments name, that are followed.
const LINKS_MAX: usize = 40;
/// The prefix of the system's interpreter, and the folder with further modules that Debian's looks into.
const SYSTEM_PREFIX: &str = "/usr";
const LOCAL_LIBRARIES: &str = "/usr/local/lib";
/// Maximum number of entries of a folder that are read.
const ENTRIES_MAX: usize = 20_000;
/// Versions of Python 3 whose standard library could be put beside an interpreter.
const MINOR_VERSIONS: std::ops::RangeInclusive<u8> = 8..=30;
/// Folders below the folder of an interpreter, and below the one above it, with standard libraries.
const LIBRARIES: [&str; 2] = ["lib", "lib64"];
/// Modules that the interpreter imports by itself, beside the lines of `*.pth`.
const STARTUP_MODULES: [&str; 2] = ["sitecustomize.py", "usercustomize.py"];

/// Returns the files and folders from which an interpreter takes code, also those that do not exist: it would use them
/// from its next start on. It looks for them beside each link that leads to it, and beside the interpreter that a virtual
/// environment names as its base.
pub(super) fn interpreter_places(interpreter: &Path) -> Vec<PathBuf> {
    let (mut places, mut waiting) = (Vec::new(), vec![interpreter.to_owned()]);
    let mut seen = BTreeSet::new();
    while let Some(link) = waiting.pop().filter(|_| seen.len() < LINKS_MAX) {
        let Some(folder) = link.parent().map(Path::to_owned) else { continue };
        if !seen.insert(link.clone()) {
            continue;
        }
        places.extend([link.clone(), folder.join("pybuilddir.txt"), with_ending(&link, "._pth")]);
        for prefix in [Some(folder.as_path()), folder.parent()].into_iter().flatten() {
            let settings = prefix.join("pyvenv.cfg");
            waiting.extend(base_interpreters(&settings, &link));
            places.push(settings);
            LIBRARIES.iter().for_each(|library| places.extend(libraries(&prefix.join(library))));
            if prefix == Path::new(SYSTEM_PREFIX) {
                places.extend(libraries(Path::new(LOCAL_LIBRARIES)));
            }
        }
        waiting.extend(std::fs::read_link(&link).map(|target| folder.join(target)));
    }
    places
}

/// Returns the interpreters that the settings of a virtual environment may name as its base: those of `home` with the name
/// of the environment's interpreter, and with the usual ones.
fn base_interpreters(settings: &Path, link: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(settings).unwrap_or_default();
    let home = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim().eq_ignore_ascii_case("home")).then(|| PathBuf::from(value.trim()))
    });
    let Some(home) = home else { return Vec::new() };
    let names = link.file_name().into_iter().chain(["python3", "python"].map(OsStr::new));
    names.map(|name| home.join(name)).collect()
}

/// Returns those of the places that exist, with the modules that the interpreter imports by itself.
pub(super) fn startup_code(interpreter: &Path) -> Vec<PathBuf> {
    let places: Vec<PathBuf> =
        interpreter_places(interpreter).into_iter().filter(|place| place.exists()).collect();
    let folders = places.iter().flat_map(|place| {
        ["", "site-packages", "dist-packages"]
            .map(|below| place.join(below))
            .into_iter()
            .filter(|folder| folder.is_dir())
    });
    let modules: Vec<PathBuf> = folders.flat_map(|folder| startup_modules(&folder)).collect();
    places.into_iter().chain(modules).collect()
}

/// Returns a folder with modules, and the modules in it that the interpreter imports by itself.
fn startup_modules(folder: &Path) -> Vec<PathBuf> {
    let is_module = |path: &PathBuf| {
        let is_named = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| STARTUP_MODULES.contains(&name));
        is_named || path.extension().is_some_and(|ending| ending == "pth")
    };
    let modules = entries(folder).filter(is_module);
    std::iter::once(folder.to_owned()).chain(modules).collect()
}

/// Returns the standard libraries in a folder, and the names of those that are not there.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    if !folder.is_dir() {
        return vec![folder.to_owned()];
    }
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("python3") || name.starts_with("libpython")
    };
    let possible =
        MINOR_VERSIONS.flat_map(|minor| [format!("python3.{minor}"), format!("python3{minor}.zip")]);
    entries(folder).filter(is_library).chain(possible.map(|name| folder.join(name))).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX).map(|entry| entry.path())
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_interpreter_is_found_beside_each_link_to_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir_all(path("conda/bin")).expect("a folder");
        std::fs::create_dir_all(path("conda/lib/python3.11/site-packages")).expect("a folder");
        std::fs::create_dir_all(path("own/bin")).expect("a folder");
        for file in
            ["conda/bin/python3", "conda/lib/python3.11/site-packages/x.pth", "conda/lib/libpython3.11.so"]
        {
            std::fs::write(path(file), "").expect("a file");
        }
        std::os::unix::fs::symlink("../../conda/bin/python3", path("own/bin/python")).expect("a link");
        let link = path("own/bin/python");
        let real = path("own/bin/../../conda/bin/python3");
        let places = interpreter_places(&link);
        let beside = |name: &str| real.parent().expect("a folder").join(name);
        for expected in [
            link.clone(),
            path("own/pyvenv.cfg"),
            path("own/bin/pyvenv.cfg"),
            path("own/lib"),
            real.clone(),
            beside("pyvenv.cfg"),
        ] {
            assert!(places.contains(&expected), "{}: {places:?}", expected.display());
        }
        // A copied interpreter, whose environment names the other one as its base.
        std::fs::create_dir_all(path("copied/bin")).expect("a folder");
        std::fs::write(path("copied/bin/python3"), "").expect("a file");
        let base = path("conda/bin").display().to_string();
        std::fs::write(path("copied/pyvenv.cfg"), format!("home = {base}\nversion = 3\n")).expect("a file");
        let copied = interpreter_places(&path("copied/bin/python3"));
        assert!(copied.contains(&path("conda/lib/python3.11")), "{copied:?}");
        let names = |places: &[PathBuf]| -> Vec<String> {
            places
                .iter()
                .filter_map(|place| place.canonicalize().ok())
                .map(|place| place.display().to_string())
                .collect()
        };
        let found = names(&startup_code(&link));
        for expected in
            ["conda/lib/python3.11", "conda/lib/python3.11/site-packages/x.pth", "conda/lib/libpython3.11.so"]
        {
            let expected = path(expected).canonicalize().expect("there").display().to_string();
            assert!(found.contains(&expected), "{expected}: {found:?}");
        }
    }
}
