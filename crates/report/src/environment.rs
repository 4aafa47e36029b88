//! Records the machine and the software versions of a measurement. Every result contains this
//! record, so that a reader can judge and repeat the measurement.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The machine and the versions. An unknown value is left out, never guessed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The command-line arguments of this process.
    pub command: Vec<String>,
    /// Weir's version.
    pub weir: String,
    /// The git commit of the program, as given to [`program_starts`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The kernel's release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The CPU's model name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// The number of CPUs that this process may use.
    pub cpus: usize,
    /// Main memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The peers by name (`openvswitch`, `haproxy`, …), each with the version that it printed.
    pub versions: BTreeMap<String, String>,
}

impl Environment {
    /// Records this machine, and runs each of `peers` (name, command, arguments) for its version.
    /// The version is the first line of the output.
    #[must_use]
    pub fn capture(peers: &[(&str, &str, &[&str])]) -> Self {
        let versions = peers.iter().filter_map(|&(name, command, arguments)| {
            Some((name.to_owned(), first_line(command, arguments)?))
        });
        Self {
            command: std::env::args().collect(),
            weir: env!("CARGO_PKG_VERSION").to_owned(),
            commit: PROGRAM.get().and_then(|program| program.commit).map(str::to_owned),
            kernel: read_trimmed("/proc/sys/kernel/osrelease"),
            cpu: field("/proc/cpuinfo", "model name"),
            cpus: PROGRAM.get().map_or_else(usable_cpus, |program| program.cpus),
            memory_bytes: field("/proc/meminfo", "MemTotal").and_then(|text| kilobytes(&text)),
            versions: versions.collect(),
        }
    }

    /// Describes the machine in one line: CPU, cores, kernel.
    #[must_use]
    pub fn machine(&self) -> String {
        format!(
            "{}, {} CPUs, Linux {}",
            self.cpu.as_deref().unwrap_or("unknown CPU"),
            self.cpus,
            self.kernel.as_deref().unwrap_or("unknown")
        )
    }
}

/// The values that are the same for all measurements of a program.
struct Program {
    commit: Option<&'static str>,
    cpus: usize,
    started: String,
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

/// Records the start time, the usable CPUs and the commit of a program for all its results. A program that measures
/// calls this function at its start, because some measurements later restrict the process to one CPU. The commit is an
/// argument, because a commit in this crate would make every commit rebuild all crates that use this crate.
pub fn program_starts(commit: Option<&'static str>) {
    PROGRAM.get_or_init(|| Program { commit, cpus: usable_cpus(), started: timestamp() });
}

/// The start time of the program if [`program_starts`] was called, else the current time.
pub(crate) fn started() -> String {
    PROGRAM.get().map_or_else(timestamp, |program| program.started.clone())
}

fn usable_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn first_line(command: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(command).args(arguments).stdin(Stdio::null()).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

fn read_trimmed(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn field(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(value.trim_start_matches([' ', '\t', ':']).trim().to_owned())
}

fn kilobytes(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The current time as RFC 3339 in UTC, in whole seconds.
#[must_use]
pub fn timestamp() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    rfc3339(now.map_or(0, |since| since.as_secs()))
}

fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // This computes the date from days since 1970 (Hinnant's algorithm, for dates after 1970 only).
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_written_as_rfc3339_dates() {
        for (seconds, want) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), want);
        }
    }

    #[test]
    fn the_environment_has_the_kernel_the_cpus_and_the_command() {
        let environment = Environment::capture(&[("no-such", "/no/such/program", &[])]);
        assert!(environment.kernel.is_some() && environment.cpus >= 1);
        assert!(environment.versions.is_empty());
        assert!(!environment.command.is_empty());
    }
}
