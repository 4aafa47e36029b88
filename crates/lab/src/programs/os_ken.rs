//! Finds a Python that can import os-ken.

use crate::command::find_programs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Finds a Python that can import os-ken, and the version of os-ken. The Python is from the environment that `make`
/// builds, or from `PATH`.
#[must_use]
pub fn os_ken_python() -> Option<(PathBuf, String)> {
    pythons().into_iter().find_map(|python| {
        let release = os_ken_of(&python)?;
        Some((python, release))
    })
}

/// The version of os-ken that a Python imports; `None` if the import fails.
fn os_ken_of(python: &Path) -> Option<String> {
    let question = "import os_ken\n\
                    try:\n import importlib.metadata as m; print(m.version('os-ken'))\n\
                    except Exception: print('of unknown version')";
    let answer = Command::new(python).args(["-c", question]).stderr(Stdio::null()).output();
    let answer = answer.ok().filter(|answer| answer.status.success())?;
    Some(String::from_utf8(answer.stdout).ok()?.trim().to_owned())
}

/// The Pythons in which os-ken is searched.
fn pythons() -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let folders = program.iter().flat_map(|program| program.ancestors().skip(1));
    let here = std::env::current_dir().ok();
    let environments = folders.chain(here.as_deref()).map(|folder| folder.join(".venv/bin/python"));
    let environments = environments.filter(|python| python.exists());
    environments.chain(find_programs("python3")).collect()
}

/// The message if os-ken is required but missing. The message names the package to install, also without a clone of the
/// repository.
#[must_use]
pub fn no_os_ken() -> String {
    let pinned = include_str!("../../../../scripts/requirements.txt").lines();
    let package = pinned.into_iter().find(|line| line.starts_with("os-ken==")).unwrap_or("os-ken");
    let tried: Vec<String> = pythons().iter().map(|it| it.display().to_string()).collect();
    let tried = if tried.is_empty() { "there is no python3".to_owned() } else { tried.join(", ") };
    format!(
        "no Python here imports os_ken (tried: {tried}). Install it, for one by `python3 -m venv os-ken && \
         os-ken/bin/pip install {package}`, and run this again with `PATH=$PWD/os-ken/bin:$PATH`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn os_ken_is_found_only_if_python_can_import_the_package() {
        let needed = [("python3", "python3")];
        if crate::testing::skip_without(
            "os_ken_is_found_only_if_python_can_import_the_package",
            &needed,
        ) {
            return;
        }
        let folder = std::env::temp_dir().join(format!("weir-pythons-{}", std::process::id()));
        fs::create_dir_all(folder.join("packages/os_ken")).unwrap();
        fs::write(folder.join("packages/os_ken/__init__.py"), "").unwrap();
        let python = |packages: &str| {
            let path = folder.join("python3");
            let packages = folder.join(packages).display().to_string();
            let script = format!("#!/bin/sh\nPYTHONPATH='{packages}' exec python3 -S \"$@\"\n");
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        assert_eq!(os_ken_of(&python("packages")).as_deref(), Some("of unknown version"));
        assert_eq!(os_ken_of(&python("nothing")), None);
        assert_eq!(os_ken_of(&folder.join("no-python")), None);
        let words = no_os_ken();
        assert!(words.contains("pip install os-ken=="), "{words}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
