//! Runs a private Open vSwitch with its own database, sockets, logs and network namespace.
//!
//! ```text
//!   folder/conf.db ── ovsdb-server ──(folder/db.sock)── ovs-vswitchd ── bridges
//! ```
//!
//! Both daemons write their pid to the folder and run in the namespace, so the daemons can be found
//! after a crash of the process that started them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::command::{find_program, program, run};
use crate::error::{Error, Result};
use crate::namespace;
use crate::process::{self, ProcessIdentity};
use crate::requirements::schema;

const SERVER: &str = "ovsdb-server";
const DAEMON: &str = "ovs-vswitchd";
/// The maximum time that ovs-vswitchd may need for a transaction.
const TRANSACTION: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(3);

/// A private Open vSwitch.
#[derive(Clone, Debug)]
pub struct OpenVSwitch {
    folder: PathBuf,
}

impl OpenVSwitch {
    /// Starts an instance in that existing network namespace, with its files in the new folder `folder`.
    ///
    /// Two userspace `ovs-vswitchd` in one namespace fail, because both need the tap interface
    /// `ovs-netdev`.
    pub fn start(folder: &Path, namespace: &str) -> Result<OpenVSwitch> {
        let schema = schema().ok_or_else(|| {
            Error::Missing(crate::Requirements { switches: true, rates: false }.check())
        })?;
        std::fs::create_dir_all(folder).map_err(Error::path("create", folder))?;
        let instance = OpenVSwitch { folder: folder.to_owned() };
        run(instance
            .program("ovsdb-tool")
            .arg("create")
            .arg(instance.file("conf.db"))
            .arg(schema))?;
        namespace::inside(namespace, || {
            // With --detach each program returns when its daemon is ready, or with the error of the
            // daemon.
            let remote = format!("--remote=punix:{}", instance.file("db.sock").display());
            run(instance.daemon(SERVER).arg(remote).arg(instance.file("conf.db")))?;
            instance.vsctl(["--no-wait", "init"])?;
            run(instance.daemon(DAEMON).arg(instance.database()))
        })?;
        Ok(instance)
    }

    /// Attaches to a running instance with its files in `folder`. The folder of the system's
    /// instance is `/run/openvswitch`.
    pub fn attach(folder: &Path) -> OpenVSwitch {
        OpenVSwitch { folder: folder.to_owned() }
    }

    /// The folder of the database, sockets, pid files and logs (`OVS_RUNDIR`, `OVS_DBDIR`, `OVS_LOGDIR`).
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The address for OVSDB clients, in Open vSwitch's form: `unix:/...`.
    pub fn database(&self) -> String {
        format!("unix:{}", self.file("db.sock").display())
    }

    /// Runs `ovs-vsctl` with these arguments, as one transaction, and returns its stdout.
    pub fn vsctl<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<String> {
        let timeout = format!("--timeout={}", TRANSACTION.as_secs());
        run(self
            .program("ovs-vsctl")
            .arg(format!("--db={}", self.database()))
            .arg(timeout)
            .args(arguments))
    }

    /// Runs `ovs-ofctl` with these arguments and returns its stdout. Bridges are named by their
    /// bridge names.
    pub fn ofctl<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<String> {
        run(self.program("ovs-ofctl").args(arguments))
    }

    /// Runs `ovs-appctl` against its `ovs-vswitchd` and returns its stdout.
    pub fn appctl<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String> {
        let daemon = self.process(DAEMON);
        let socket = daemon.map(|daemon| self.file(&format!("{DAEMON}.{}.ctl", daemon.pid)));
        let target = socket.unwrap_or_else(|| self.file(DAEMON));
        run(self
            .program("ovs-appctl")
            .arg("--timeout=10")
            .arg("--target")
            .arg(target)
            .args(arguments))
    }

    /// Makes a command of Open vSwitch with the environment of this instance. The command runs in
    /// the caller's namespace.
    pub fn program(&self, name: &str) -> Command {
        let mut command = program(name);
        self.environment(&mut command);
        command
    }

    /// Sets the folders of this instance in the environment of a command.
    pub(crate) fn environment(&self, command: &mut Command) {
        for variable in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR"] {
            command.env(variable, &self.folder);
        }
        command.env(process::MARK, &self.folder);
    }

    /// The running daemons: `ovsdb-server` first, `ovs-vswitchd` second.
    pub fn processes(&self) -> Vec<ProcessIdentity> {
        [SERVER, DAEMON].iter().filter_map(|name| self.process(name)).collect()
    }

    /// The identity of `ovs-vswitchd`, to measure its CPU time; `None` if the daemon does not run.
    pub fn switch_process(&self) -> Option<ProcessIdentity> {
        self.process(DAEMON)
    }

    /// The installed version, such as `3.1.0`; `None` if Open vSwitch is not installed.
    pub fn version() -> Option<String> {
        find_program(DAEMON)?;
        let text = run(program(DAEMON).arg("--version")).ok()?;
        text.lines().next()?.rsplit(' ').next().map(str::to_owned)
    }

    /// Ends both daemons, `ovs-vswitchd` first.
    pub fn stop(&self) -> Result<()> {
        [DAEMON, SERVER].iter().try_for_each(|name| match self.process(name) {
            Some(one) => process::end(&[one], PATIENCE),
            None => Ok(()),
        })
    }

    fn daemon(&self, name: &str) -> Command {
        let mut command = self.program(name);
        command.args(["--detach", "--no-chdir", "--log-file", "-vconsole:off"]);
        command.arg(format!("--pidfile={}", self.pid_file(name).display()));
        command
    }

    /// The daemon of that name, if the pid in its pid file is still that daemon's.
    fn process(&self, name: &str) -> Option<ProcessIdentity> {
        let file = self.pid_file(name);
        let pid = std::fs::read_to_string(&file).ok()?.trim().parse().ok()?;
        let identity = ProcessIdentity::of(pid)?;
        // A pid file may remain after the end of its daemon. The daemon of this pid file has the
        // path of the file on its command line.
        let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        // The system's daemon may have another path of the same file, such as /var/run for /run.
        let expected = file.canonicalize().ok()?;
        let is_it = |argument: &[u8]| {
            let path = argument.strip_prefix(b"--pidfile=").map(OsStr::from_bytes);
            path.is_some_and(|path| {
                Path::new(path).canonicalize().is_ok_and(|path| path == expected)
            })
        };
        command_line.split(|byte| *byte == 0).any(is_it).then_some(identity)
    }

    fn pid_file(&self, name: &str) -> PathBuf {
        self.file(&format!("{name}.pid"))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}
