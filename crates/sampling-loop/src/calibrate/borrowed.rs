//! A running Open vSwitch that a calibration uses: it gets ports, which are removed at the end.
//!
//! ```text
//!   h1 ══ weir-cal1 ┐
//!                   the named bridge        its other ports stay as they are
//!   h2 ══ weir-cal2 ┘
//!   h3 ══ weir-cal3 ┐
//!                   weir-calref             a bridge of the same kind, made for it
//!   h4 ══ weir-cal4 ┘
//!   remote ══ weir-cal5                     beside the bridge
//! ```

use super::place::Place;
use agent::ovsdb::Database;
use anyhow::{Context, bail, ensure};
use lab::{OpenVSwitch, tools};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::fs;
use std::path::PathBuf;

const PORTS: [&str; 5] = ["weir-cal1", "weir-cal2", "weir-cal3", "weir-cal4", "weir-cal5"];
const REFERENCE: &str = "weir-calref";
const TUNNEL: &str = "weir-caltun";

/// The bridge whose costs are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub bridge: String,
    /// The folder of its Open vSwitch's sockets.
    pub folder: PathBuf,
}

/// The added ports and bridges; dropping this removes them.
pub(crate) struct Borrowed {
    switch: OpenVSwitch,
    namespace: String,
    /// The CPUs of the switch's threads before.
    cpus: Vec<(Pid, CpuSet)>,
    is_there: bool,
}

impl Borrowed {
    /// Moves the interfaces eth0 to eth4 of the namespace to the switch's namespace, and the switch to the CPU.
    pub(crate) fn join(
        target: &Target,
        ends: &str,
        cpu: usize,
    ) -> anyhow::Result<(Borrowed, Place)> {
        let Target { bridge, folder } = target;
        let switch = OpenVSwitch::attach(folder);
        let process = switch.switch_process();
        let process =
            process.with_context(|| format!("no Open vSwitch runs in {}", folder.display()))?.pid;
        let namespace = format!("/proc/{process}/ns/net");
        let mut borrowed =
            Borrowed { switch, namespace: namespace.clone(), cpus: Vec::new(), is_there: true };
        // Removes everything that a killed calibration left.
        borrowed.clear()?;
        let kind = borrowed.kind(bridge)?;
        let mut moves = String::new();
        for (index, port) in PORTS.iter().enumerate() {
            moves += &format!("link set eth{index} netns {process} name {port}\n");
        }
        tools::ip(Some(ends), &moves)?;
        let up: String = PORTS.iter().map(|port| format!("link set {port} up\n")).collect();
        tools::ip(Some(&namespace), &up)?;
        let [first, second, third, fourth, remote] = PORTS;
        let kind = format!("datapath_type={kind}");
        let add = ["--", "add-port"];
        let mut words = vec!["add-port", bridge, first];
        words.extend(add.into_iter().chain([bridge.as_str(), second]));
        words.extend(["--", "add-br", REFERENCE, "--", "set", "Bridge", REFERENCE, &kind]);
        words.extend(add.into_iter().chain([REFERENCE, third]));
        words.extend(add.into_iter().chain([REFERENCE, fourth]));
        borrowed.switch.vsctl(words)?;
        borrowed.pin(process, cpu)?;
        let place = Place {
            bridge: bridge.clone(),
            ports: [first, second].map(str::to_owned),
            remote: remote.to_owned(),
            tunnel: TUNNEL.to_owned(),
            namespace,
            folder: folder.clone(),
            process,
        };
        Ok((borrowed, place))
    }

    /// The bridge's kind of datapath; an error if the bridge may not be used.
    fn kind(&self, bridge: &str) -> anyhow::Result<String> {
        let socket = self.switch.folder().join("db.sock");
        if Database::connect(&socket)?.is_sampling(bridge)? {
            bail!("{bridge} samples by sFlow already: to measure that it would have to be ended");
        }
        let kind = self.switch.vsctl(["get", "Bridge", bridge, "datapath_type"])?;
        Ok(datapath(&kind).to_owned())
    }

    fn pin(&mut self, process: i32, cpu: usize) -> anyhow::Result<()> {
        let mut one = CpuSet::new();
        one.set(cpu).context("there is no such CPU")?;
        let tasks =
            fs::read_dir(format!("/proc/{process}/task")).context("Open vSwitch has ended")?;
        for task in tasks.flatten() {
            let Some(thread) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let thread = Pid::from_raw(thread);
            // A thread may end at any time.
            let Ok(before) = sched_getaffinity(thread) else { continue };
            self.cpus.push((thread, before));
            sched_setaffinity(thread, &one).context("cannot move Open vSwitch to one CPU")?;
        }
        ensure!(!self.cpus.is_empty(), "Open vSwitch has ended");
        Ok(())
    }

    /// Removes everything that was added.
    pub(crate) fn leave(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<()> {
        if !std::mem::take(&mut self.is_there) {
            return Ok(());
        }
        for (thread, before) in self.cpus.drain(..) {
            // A thread that has ended needs no restored CPU set.
            let _ = sched_setaffinity(thread, &before);
        }
        self.clear()
    }

    fn clear(&self) -> anyhow::Result<()> {
        let mut words = vec!["--if-exists", "del-br", REFERENCE];
        for port in PORTS {
            words.extend(["--", "--if-exists", "del-port", port]);
        }
        self.switch.vsctl(words)?;
        for interface in PORTS.iter().chain([&TUNNEL]) {
            // A missing interface is no failure; an interface that cannot be removed goes with its other end.
            let _ = tools::ip(Some(&self.namespace), &format!("link del {interface}\n"));
        }
        Ok(())
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // The caller reports the earlier error.
        let _ = self.end();
    }
}

/// The `datapath_type` that ovs-vsctl printed; without a value the datapath is the kernel's (ovs-vswitchd.conf.db(5)).
fn datapath(printed: &str) -> &str {
    match printed.trim().trim_matches('"') {
        "" => "system",
        named => named,
    }
}

#[cfg(test)]
mod tests {
    use super::datapath;

    #[test]
    fn a_bridge_without_datapath_type_uses_the_kernel_datapath() {
        assert_eq!(
            ["\"\"\n", "netdev\n", "system\n"].map(datapath),
            ["system", "netdev", "system"]
        );
    }
}
