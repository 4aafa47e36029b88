//! Runs programs and turns their failures into [`Error::Command`].

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::error::{Error, Result};

/// The folders of administrators' programs, in addition to the caller's `PATH`.
const SYSTEM_FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Finds the path of a program in `PATH`, then in the system's folders, because the `PATH` of an
/// ordinary user often lacks `/usr/sbin`.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    find_programs(name).into_iter().next()
}

/// Finds all programs of that name. The first program is the one that a shell would run.
pub(crate) fn find_programs(name: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM_FOLDERS.iter().map(PathBuf::from));
    let mut found: Vec<PathBuf> = Vec::new();
    for candidate in folders.map(|folder| folder.join(name)).filter(|it| is_executable(it)) {
        if !found.contains(&candidate) {
            found.push(candidate);
        }
    }
    found
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Makes a command of that name, with an empty stdin and messages in English.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(find_program(name).unwrap_or_else(|| name.into()));
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

/// Runs the command to its end and returns its stdout.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(Error::io(format!("run `{}`", describe(command))))?;
    checked(command, output)
}

/// Runs the command with `input` on its stdin and returns its stdout.
pub(crate) fn run_with_input(command: &mut Command, input: &str) -> Result<String> {
    let action = format!("run `{}`", describe(command));
    let fail = || Error::io(action.clone());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(fail())?;
    let mut stdin = child.stdin.take();
    // A separate thread writes the input, because a program that fills its output before reading all input would block
    // the caller. A broken pipe is not reported, but the exit status is.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.as_mut().map(|pipe| pipe.write_all(input.as_bytes())));
        child.wait_with_output()
    });
    checked(command, output.map_err(fail())?)
}

fn checked(command: &Command, output: Output) -> Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Command {
        command: describe(command),
        status: output.status.to_string(),
        stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// The command as typed in a shell. A very long command is cut.
fn describe(command: &Command) -> String {
    let mut text = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    const LONGEST: usize = 300;
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_reports_command_line_status_and_stderr() {
        let error =
            run(program("sh").args(["-c", "echo out; echo wrong >&2; exit 3"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`sh -c echo out; echo wrong >&2; exit 3` failed (exit status: 3): wrong"
        );
    }

    #[test]
    fn input_larger_than_a_pipe_buffer_is_passed_completely() {
        let input = "x".repeat(1 << 20);
        assert_eq!(run_with_input(&mut program("cat"), &input).unwrap(), input);
    }

    #[test]
    fn a_program_that_ignores_its_input_fails_only_by_its_exit_status() {
        let input = "x".repeat(1 << 20);
        assert_eq!(run_with_input(&mut program("true"), &input).unwrap(), "");
        assert!(run_with_input(&mut program("false"), &input).is_err());
    }

    #[test]
    fn a_missing_program_is_named_in_the_error() {
        let error = run(&mut program("weir-no-such-program")).unwrap_err().to_string();
        assert!(error.contains("run `weir-no-such-program`"), "{error}");
    }
}
