//! The resources of a process, seen from outside in `/proc`: CPU by thread, memory, context
//! switches.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The resources that one process used between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// The process.
    pub pid: u32,
    /// The name of the process.
    pub name: String,
    /// CPU in user mode, in percent of one core.
    pub user_percent: f64,
    /// CPU in the kernel for the process, in percent of one core.
    pub system_percent: f64,
    /// Each thread (name, then number) with its CPU in percent of one core.
    pub threads: Vec<(String, f64)>,
    /// The largest resident memory that was seen, in bytes.
    pub resident_bytes: u64,
    /// Voluntary context switches per second: the process gave up the CPU.
    pub voluntary_switches: f64,
    /// Involuntary context switches per second: the kernel took the CPU from the process.
    pub involuntary_switches: f64,
}

/// Watches processes from [`Observer::start`] until [`Observer::finish`].
#[derive(Debug)]
pub struct Observer {
    since: Instant,
    processes: Vec<(u32, Snapshot, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Snapshot {
    user: u64,
    system: u64,
    threads: BTreeMap<u32, (String, u64)>,
    voluntary: u64,
    involuntary: u64,
}

/// The kernel's clock ticks per second in `/proc`: a constant of Linux's user interface.
const TICKS_PER_SECOND: f64 = 100.0;

impl Observer {
    /// Begins to watch these processes. A process that does not exist is omitted.
    #[must_use]
    pub fn start(pids: &[u32]) -> Self {
        let processes = pids.iter().filter_map(|&pid| Some((pid, snapshot(pid)?, 0))).collect();
        let mut observer = Self { since: Instant::now(), processes };
        observer.sample();
        observer
    }

    /// Samples the memory. The caller should call this from time to time.
    pub fn sample(&mut self) {
        for (pid, _, most) in &mut self.processes {
            *most = (*most).max(resident(*pid).unwrap_or(0));
        }
    }

    /// Ends the observation, and returns the used resources.
    #[must_use]
    pub fn finish(mut self) -> Vec<Usage> {
        self.sample();
        let seconds = self.since.elapsed().as_secs_f64().max(1e-3);
        let percent = |ticks: u64| ticks as f64 / TICKS_PER_SECOND / seconds * 100.0;
        let usage = self.processes.iter().filter_map(|(pid, before, most)| {
            let after = snapshot(*pid)?;
            let threads = after.threads.iter().map(|(id, (name, ticks))| {
                let earlier = before.threads.get(id).map_or(0, |thread| thread.1);
                (format!("{name} {id}"), percent(ticks.saturating_sub(earlier)))
            });
            Some(Usage {
                pid: *pid,
                name: read(*pid, "comm").unwrap_or_default().trim().to_owned(),
                user_percent: percent(after.user.saturating_sub(before.user)),
                system_percent: percent(after.system.saturating_sub(before.system)),
                threads: threads.collect(),
                resident_bytes: *most,
                voluntary_switches: after.voluntary.saturating_sub(before.voluntary) as f64
                    / seconds,
                involuntary_switches: after.involuntary.saturating_sub(before.involuntary) as f64
                    / seconds,
            })
        });
        usage.collect()
    }
}

/// The observed processes of a system that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// One process.
    Process(u32),
    /// All processes of a control group, by its folder.
    Group(PathBuf),
}

impl Watched {
    /// Reads `PID`, or `cgroup:FOLDER`. The folder is below `/sys/fs/cgroup`, unless the folder
    /// begins with `/`.
    ///
    /// # Errors
    /// The error, as a sentence.
    pub fn read(text: &str) -> Result<Watched, String> {
        if let Some(folder) = text.strip_prefix("cgroup:") {
            let folder = Path::new("/sys/fs/cgroup").join(folder);
            if !folder.join("cgroup.procs").exists() {
                return Err(format!("{} is no control group", folder.display()));
            }
            return Ok(Watched::Group(folder));
        }
        let pid = text.parse().ok().filter(|pid| *pid > 0).map(Watched::Process);
        pid.ok_or_else(|| format!("{text:?} is neither a process id nor cgroup:FOLDER"))
    }

    /// The current processes.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        match self {
            Watched::Process(pid) => vec![*pid],
            Watched::Group(folder) => processes_of_cgroup(folder),
        }
    }
}

/// The processes of a control group, and of all groups inside this group. The folder of the group
/// is under `/sys/fs/cgroup`. The result is empty if there is no such group.
#[must_use]
pub fn processes_of_cgroup(folder: &Path) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
        let inside = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(inside.map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    pids
}

/// The CPU time that each thread of a process has used, in ns, by the threads' names.
#[must_use]
pub fn cpu_by_thread(pid: u32) -> Vec<(String, u64)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let used = threads.filter_map(|entry| {
        let text = |file: &str| fs::read_to_string(entry.path().join(file)).ok();
        let used = text("schedstat")?.split_whitespace().next()?.parse().ok()?;
        Some((text("comm")?.trim().to_owned(), used))
    });
    used.collect()
}

/// The memory that a process has resident, in bytes.
#[must_use]
pub fn resident(pid: u32) -> Option<u64> {
    number(&read(pid, "status")?, "VmRSS:")?.checked_mul(1024)
}

/// The most memory that a process ever had resident, in bytes.
#[must_use]
pub fn resident_peak(pid: u32) -> Option<u64> {
    number(&read(pid, "status")?, "VmHWM:")?.checked_mul(1024)
}

/// The number after a key of a `status` file.
fn number(status: &str, key: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn read(pid: u32, file: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/{file}")).ok()
}

fn snapshot(pid: u32) -> Option<Snapshot> {
    let (user, system) = ticks(&read(pid, "stat")?)?;
    let mut snapshot = Snapshot { user, system, ..Snapshot::default() };
    for entry in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let path = entry.path();
        let text = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let (user, system) = ticks(&text("stat")).unwrap_or_default();
        snapshot.threads.insert(id, (text("comm").trim().to_owned(), user + system));
        let status = text("status");
        snapshot.voluntary += number(&status, "voluntary_ctxt_switches:").unwrap_or(0);
        snapshot.involuntary += number(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
    }
    Some(snapshot)
}

/// User and system ticks from a `stat` file. The name in the file may contain spaces and
/// parentheses.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    // The name is field 2; utime is field 14 and stime field 15 (proc(5)).
    let user = fields.nth(11)?.parse().ok()?;
    Some((user, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_ticks_are_parsed_when_the_process_name_has_parentheses() {
        let stat = "42 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 111 222 0 0";
        assert_eq!(ticks(stat), Some((111, 222)));
        assert_eq!(ticks("nonsense"), None);
    }

    #[test]
    fn a_cgroup_includes_the_processes_of_its_child_cgroups() {
        let dir = std::env::temp_dir().join(format!("weir-bench-cgroup-{}", std::process::id()));
        fs::create_dir_all(dir.join("inner")).unwrap();
        fs::write(dir.join("cgroup.procs"), "12\n13\n").unwrap();
        fs::write(dir.join("inner/cgroup.procs"), "14\n").unwrap();
        assert_eq!(processes_of_cgroup(&dir), [12, 13, 14]);
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(processes_of_cgroup(&dir), Vec::<u32>::new());
    }

    #[test]
    fn memory_and_cpu_use_of_a_running_process_are_observed() {
        let observer = Observer::start(&[std::process::id(), u32::MAX]);
        let usage = observer.finish();
        assert_eq!(usage.len(), 1, "a process that does not exist is left out");
        assert!(usage[0].resident_bytes > 100_000 && !usage[0].threads.is_empty());
        assert!(resident_peak(std::process::id()).is_some_and(|peak| peak > 100_000));
        let threads = cpu_by_thread(std::process::id());
        assert!(threads.iter().any(|(_, used)| *used > 0), "{threads:?}");
        assert_eq!(cpu_by_thread(u32::MAX), []);
    }
}
