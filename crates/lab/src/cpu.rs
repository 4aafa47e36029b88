//! Limits the CPU share of a group of processes, to emulate a server that is smaller than the
//! machine.
//!
//! The limit is `cpu.max` of cgroup v2 if this cgroup controller exists, else `cpu.cfs_quota_us` of cgroup v1, which is
//! the same limit under an older name. With v1 the CPU use is read from `cpuacct`.
//!
//! The kernel charges its work for a packet to the interrupted process or to the sender, so put senders into the group
//! too.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::missing::Missing;
use crate::process::ProcessIdentity;

const V2: &str = "/sys/fs/cgroup";
const V1: &str = "/sys/fs/cgroup/cpu";
const V1_ACCOUNT: &str = "/sys/fs/cgroup/cpuacct";
const PREFIX: &str = "weir-";
/// The length of a period. A real small server forwards slowly, but never stops. A group that has used up its share of
/// a period stops. Packets that arrive during the stop overflow the sockets of its switch, although the CPU is idle on
/// average. So a period is long, and the group may use unused time in the next period (burst). Only a group that needs
/// more than its share over a tenth of a second waits.
const PERIOD: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(2);

/// A group of processes that together get at most a share of one CPU. Dropping the value removes the group, and the
/// processes have no limit again.
#[derive(Debug)]
pub struct CpuBound {
    share: f64,
    /// The folder for processes and the limit. With v1 there is also a folder for CPU use.
    folders: Vec<PathBuf>,
    usage: PathBuf,
    is_v2: bool,
}

impl CpuBound {
    /// Makes a group with `share` of one CPU: 0.2 is a fifth of a CPU, 2 are two CPUs.
    pub fn new(name: &str, share: f64) -> Result<CpuBound> {
        if !(0.01..=1024.0).contains(&share) {
            let message = format!("{share} is not a share of a CPU such as 0.25");
            return Err(Error::Option { option: "cpu", message });
        }
        let name = format!("{PREFIX}{}-{name}", std::process::id());
        let is_v2 = has_cpu_controller(Path::new(V2));
        let roots: &[&str] = match is_v2 {
            true => &[V2],
            false if Path::new(V1).exists() => &[V1, V1_ACCOUNT],
            false => return Err(missing()),
        };
        let mut folders: Vec<PathBuf> =
            roots.iter().map(|root| Path::new(root).join(&name)).collect();
        // In some systems both cgroup controllers are in one hierarchy.
        folders.dedup_by_key(|folder| fs::canonicalize(folder.parent().unwrap_or(folder)).ok());
        let usage = folders.last().cloned().unwrap_or_default();
        let usage = usage.join(if is_v2 { "cpu.stat" } else { "cpuacct.usage" });
        let bound = CpuBound { share, folders, usage, is_v2 };
        for folder in &bound.folders {
            fs::create_dir(folder).map_err(Error::path("make", folder))?;
        }
        let period = PERIOD.as_micros();
        let quota = (share * period as f64) as u64;
        let burst = if is_v2 {
            bound.write("cpu.max", &format!("{quota} {period}"))?;
            "cpu.max.burst"
        } else {
            bound.write("cpu.cfs_period_us", &period.to_string())?;
            bound.write("cpu.cfs_quota_us", &quota.to_string())?;
            "cpu.cfs_burst_us"
        };
        // Linux before 5.14 does not support a burst. Groups then wait more often.
        let _ = bound.write(burst, &quota.to_string());
        Ok(bound)
    }

    /// Removes groups of processes that have ended.
    pub fn remove_abandoned() {
        for root in [V2, V1, V1_ACCOUNT] {
            let entries = fs::read_dir(root).into_iter().flatten().flatten();
            for entry in entries {
                let name = entry.file_name();
                let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
                let owner: Option<i32> =
                    owner.and_then(|rest| rest.split('-').next()?.parse().ok());
                if owner.is_some_and(|pid| ProcessIdentity::of(pid).is_none()) {
                    // The call fails if another process removed the group, or if the group is not
                    // empty. A group that is not empty stays.
                    let _ = fs::remove_dir(entry.path());
                }
            }
        }
    }

    /// The share of one CPU that the group gets.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Puts a process with all its threads into the group. Later children of the process are in the
    /// group too.
    pub fn add(&self, pid: i32) -> Result<()> {
        self.folders.iter().try_for_each(|folder| {
            let file = folder.join("cgroup.procs");
            fs::write(&file, pid.to_string()).map_err(Error::path("write", &file))
        })
    }

    /// The file from which [`CpuBound::read_usage`] reads, for a process that measures itself.
    pub fn usage_file(&self) -> &Path {
        &self.usage
    }

    /// Reads the CPU time that a group has used from its usage file.
    pub fn read_usage(file: &Path) -> Result<Duration> {
        let text = fs::read_to_string(file).map_err(Error::path("read", file))?;
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let v2 = || text.lines().find_map(|line| number(line.strip_prefix("usage_usec ")?));
        number(&text)
            .map(Duration::from_nanos)
            .or_else(|| v2().map(Duration::from_micros))
            .ok_or_else(|| Error::State {
                path: file.to_owned(),
                message: "it has no CPU time".to_owned(),
            })
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let Some(folder) = self.folders.first() else { return Ok(()) };
        let path = folder.join(file);
        fs::write(&path, text).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => missing(),
            _ => Error::path("write", &path)(error),
        })
    }
}

impl Drop for CpuBound {
    fn drop(&mut self) {
        // A group with processes cannot be removed, so the remaining processes go back to the root group.
        let members = self.folders.first().map(|folder| folder.join("cgroup.procs"));
        let members = members.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        for pid in members.lines() {
            for root in self.folders.iter().filter_map(|folder| folder.parent()) {
                let _ = fs::write(root.join("cgroup.procs"), pid);
            }
        }
        for folder in &self.folders {
            // The kernel still counts a process for a moment after its end.
            let deadline = Instant::now() + PATIENCE;
            let removed = loop {
                match fs::remove_dir(folder) {
                    Err(_) if folder.exists() && Instant::now() < deadline => {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    result => break result,
                }
            };
            if let Err(error) = removed
                && folder.exists()
            {
                tracing::warn!(folder = %folder.display(), %error, v2 = self.is_v2, "a group of processes is left");
            }
        }
    }
}

fn has_cpu_controller(root: &Path) -> bool {
    let controllers = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let names_cpu = |text: String| text.split_whitespace().any(|word| word == "cpu");
    if !names_cpu(controllers("cgroup.controllers")) {
        return false;
    }
    // The root group must enable the CPU controller for new groups. A write enables the controller
    // if needed.
    names_cpu(controllers("cgroup.subtree_control"))
        || fs::write(root.join("cgroup.subtree_control"), "+cpu").is_ok()
}

fn missing() -> Error {
    Error::Missing(vec![Missing::new(
        "a bound on CPU use",
        "this kernel has neither cpu.max of cgroup v2 nor cpu.cfs_quota_us of cgroup v1, or they are not mounted",
    )])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_usage_is_read_in_both_cgroup_formats() {
        let folder = std::env::temp_dir().join(format!("weir-cpu-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("usage");
        for (text, expected) in [
            ("1500000000\n", Some(1500)),
            ("usage_usec 2500000\nuser_usec 1\n", Some(2500)),
            ("user_usec 1\n", None),
            ("", None),
        ] {
            fs::write(&file, text).unwrap();
            let read = CpuBound::read_usage(&file).ok();
            assert_eq!(read, expected.map(Duration::from_millis), "{text:?}");
        }
        fs::remove_dir_all(&folder).unwrap();
        assert!(CpuBound::read_usage(&file).is_err());
        assert!(CpuBound::new("x", 0.0).is_err() && CpuBound::new("x", f64::NAN).is_err());
    }
}
