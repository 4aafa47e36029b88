//! Reads numbers outside the control channel: the CPU time of a local process, or objects of an SNMP agent.

use std::fs;

use crate::snmp::Agent;

/// The sources of gauges.
#[derive(Debug, Default)]
pub struct Gauges {
    /// The process of the switch, if the process runs on this machine.
    pub process: Option<u32>,
    /// The SNMP agent of the switch, if there is one. The agent gives the CPU time if there is no process, or if the
    /// agent's settings name an object for the CPU time. If the agent is silent, the process gives the CPU time.
    pub snmp: Option<Agent>,
}

/// The CPU time of all threads of a process so far, ns.
///
/// The source is `/proc/PID/task/*/schedstat` with a unit of ns. Without that file in the kernel, the source is
/// `/proc/PID/stat` with a unit of hundredths of a second.
pub(crate) fn process_cpu(pid: u32) -> Option<f64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let of_task = |entry: std::io::Result<fs::DirEntry>| -> Option<f64> {
        let text = fs::read_to_string(entry.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    let fine: Vec<f64> = tasks.filter_map(of_task).collect();
    if !fine.is_empty() {
        return Some(fine.iter().sum());
    }
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain spaces; utime and stime are the 12th and 13th fields after the name.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks * 1e7)
}
