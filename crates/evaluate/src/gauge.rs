//! Numbers from beside the control channel: a local process's CPU time, or what an SNMP agent tells.

use std::fs;

use crate::module::Gauge;
use crate::snmp::Agent;

/// Where gauges are read.
#[derive(Debug, Default)]
pub struct Gauges {
    /// The switch's process, if it is on this machine.
    pub process: Option<u32>,
    /// Its agent, if it has one. CPU time is asked of it if there is no process or if it was said where the agent tells
    /// it; the process's is what is read when it is silent.
    pub snmp: Option<Agent>,
}

impl Gauges {
    /// The value now, if this machine can tell.
    pub(crate) fn read(&self, gauge: &Gauge) -> Option<f64> {
        match gauge {
            Gauge::Cpu => process_cpu(self.process?),
            Gauge::Segments | Gauge::Interface { .. } => None,
        }
    }
}

/// CPU time of all threads of a process so far, ns.
///
/// From `/proc/PID/task/*/schedstat`, which counts ns; where the kernel lacks it, from
/// `/proc/PID/stat`, which counts hundredths of a second.
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
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th fields behind.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks * 1e7)
}
