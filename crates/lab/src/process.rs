//! Identifies processes by pid *and* start time, so that a process with a reused pid is never
//! ended.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The identity of one process since the boot of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: i32,
    /// Start time in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start: u64,
}

impl ProcessIdentity {
    /// The calling process.
    pub fn own() -> Option<ProcessIdentity> {
        ProcessIdentity::of(Pid::this().as_raw())
    }

    /// The current process of this pid; `None` if there is no process, or only a zombie.
    pub fn of(pid: i32) -> Option<ProcessIdentity> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The command's name, in parentheses, may itself contain spaces and parentheses.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        let state = fields.next()?;
        let start = fields.nth(18)?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then_some(ProcessIdentity { pid, start })
    }

    /// Whether exactly this process still runs.
    pub fn is_alive(self) -> bool {
        ProcessIdentity::of(self.pid) == Some(self)
    }

    /// The parent of this process, its parent, and so on up to the first process.
    fn ancestors(self) -> impl Iterator<Item = ProcessIdentity> {
        let parent = |child: &ProcessIdentity| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.pid)).ok()?;
            let (_, fields) = stat.rsplit_once(") ")?;
            ProcessIdentity::of(fields.split(' ').nth(1)?.parse().ok()?)
        };
        std::iter::successors(parent(&self), parent)
    }

    fn signal(self, signal: Signal) -> Result<()> {
        if !self.is_alive() {
            return Ok(());
        }
        match kill(Pid::from_raw(self.pid), signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(Error::io(format!("end process {}", self.pid))(errno.into())),
        }
    }
}

/// Every process for which `test` holds, except the calling process and its ancestors.
pub(crate) fn find(test: impl Fn(i32) -> bool) -> Vec<ProcessIdentity> {
    let own = ProcessIdentity::own();
    let spared: Vec<_> =
        own.into_iter().chain(own.into_iter().flat_map(ProcessIdentity::ancestors)).collect();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| test(*pid))
        .filter_map(ProcessIdentity::of)
        .filter(|process| !spared.contains(process))
        .collect()
}

/// The environment variable of every program that a lab starts. The value is the folder of the lab,
/// or a folder in it.
pub(crate) const MARK: &str = "WEIR_LAB";

/// Whether the process carries the mark of that folder. In another PID namespace (a container) the same path is another
/// lab's folder.
pub(crate) fn is_marked(pid: i32, folder: &Path) -> bool {
    if !shares_pid_namespace(pid) {
        return false;
    }
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| {
        let value = variable.strip_prefix(MARK.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        let rest = value.and_then(|value| value.strip_prefix(folder.as_os_str().as_bytes()));
        rest.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'/'))
    })
}

fn shares_pid_namespace(pid: i32) -> bool {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    of(&pid.to_string()).is_some_and(|namespace| Some(namespace) == of("self"))
}

/// Asks the processes to end, and kills those that have not ended within `patience`. A killed process cannot go on, but
/// the kernel may need some time to remove it, on a busy machine and after a switch with many ports.
pub(crate) fn end(processes: &[ProcessIdentity], patience: Duration) -> Result<()> {
    processes.iter().try_for_each(|process| process.signal(Signal::SIGTERM))?;
    if wait_for_end(processes, patience) {
        return Ok(());
    }
    processes.iter().try_for_each(|process| process.signal(Signal::SIGKILL))?;
    if wait_for_end(processes, CLEARING) {
        return Ok(());
    }
    let left: Vec<_> = processes
        .iter()
        .filter(|process| process.is_alive())
        .map(|one| one.pid.to_string())
        .collect();
    Err(Error::Timeout {
        what: format!("the end of processes {}", left.join(", ")),
        after: CLEARING,
    })
}

/// The maximum time that the kernel has to remove killed processes.
const CLEARING: Duration = Duration::from_secs(60);

/// Whether all processes end within `patience`. The time starts again whenever a process ends.
fn wait_for_end(processes: &[ProcessIdentity], patience: Duration) -> bool {
    let mut deadline = Instant::now() + patience;
    let mut left = processes.len();
    loop {
        let alive = processes.iter().filter(|process| process.is_alive()).count();
        if alive == 0 {
            return true;
        }
        if alive < left {
            (left, deadline) = (alive, Instant::now() + patience);
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    const PATIENCE: Duration = Duration::from_millis(500);

    #[test]
    fn a_process_with_a_reused_pid_is_not_ended() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let identity = ProcessIdentity::of(i32::try_from(child.id()).unwrap()).unwrap();
        let earlier_owner_of_the_pid = ProcessIdentity { start: identity.start - 1, ..identity };
        end(&[earlier_owner_of_the_pid], PATIENCE).unwrap();
        assert!(identity.is_alive());
        end(&[identity], PATIENCE).unwrap();
        assert!(!identity.is_alive());
        child.wait().unwrap();
    }

    #[test]
    fn processes_are_found_by_their_environment_mark() {
        let mut child = Command::new("sh")
            .args(["-c", "echo; read line"])
            .env(MARK, "/run/of/this")
            .env("PWD", "/run/elsewhere")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The first byte of its output shows that the program runs with its environment.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let cases = [
            ("/run/of/this", true),
            ("/run/of", true),
            ("/run/of/thi", false),
            ("/run/of/this/x", false),
            ("/run/elsewhere", false),
        ];
        for (path, expected) in cases {
            assert_eq!(is_marked(pid, Path::new(path)), expected, "{path}");
        }
        let own = ProcessIdentity::own().unwrap();
        let everybody = find(|_| true);
        assert!(everybody.iter().any(|one| one.pid == pid));
        assert!(!everybody.contains(&own) && !everybody.contains(&own.ancestors().next().unwrap()));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_in_another_pid_namespace_belongs_to_another_lab() {
        let mut child = Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child", "sh", "-c", "echo; read line"])
            .env(MARK, "/run/of/another")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        if child.stdout.as_mut().unwrap().read_exact(&mut [0]).is_err() {
            child.wait().unwrap();
            let test = "a_process_in_another_pid_namespace_belongs_to_another_lab";
            eprintln!("SKIPPED {test}: root is needed");
            assert!(std::env::var_os("CI").is_none(), "{test}: root is needed (under CI=true)");
            return;
        }
        // `unshare` itself is in this namespace, but its child is not.
        let marked = find(|pid| is_marked(pid, Path::new("/run/of/another")));
        let pids: Vec<u32> = marked.iter().map(|one| one.pid.cast_unsigned()).collect();
        assert_eq!(pids, [child.id()]);
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_ignores_sigterm_is_killed() {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' TERM; echo; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The first byte of its output shows that the trap is set.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let identity = ProcessIdentity::of(i32::try_from(child.id()).unwrap()).unwrap();
        end(&[identity], Duration::from_millis(100)).unwrap();
        assert!(!identity.is_alive());
        child.wait().unwrap();
    }
}
