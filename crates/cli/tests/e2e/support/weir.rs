//! `weir serve` as an operator starts it: with a configuration file, a state folder and signals.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::{env, fs};

use nix::sys::signal::Signal;

use super::folder::Folder;
use super::program::Program;
use super::{PATIENCE, eventually, free_port, http, repository};

/// os-ken takes a second or two to start, and a long back-off would make the tests wait for the next attempt.
pub const SHORT_BACK_OFF: &str = "[reconnect]\nmax = \"500ms\"\n";

pub struct Weir {
    pub folder: Folder,
    pub openflow: SocketAddr,
    pub api: SocketAddr,
    process: Program,
}

impl Weir {
    /// Serves `tenants` (the configuration without `[listen]`) to switches that dial loopback.
    pub fn serve(tenants: &str) -> Weir {
        Weir::serve_on(IpAddr::V4(Ipv4Addr::LOCALHOST), tenants)
    }

    /// Serves `tenants` to switches that dial `host`, and returns when Weir serves.
    pub fn serve_on(host: IpAddr, tenants: &str) -> Weir {
        let openflow = SocketAddr::new(host, free_port());
        let api = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        Weir::start(Folder::new(), openflow, api, tenants)
    }

    /// Starts Weir with a given folder and given addresses: the folder may have TLS files, and a switch may have the
    /// address already.
    pub fn start(folder: Folder, openflow: SocketAddr, api: SocketAddr, tenants: &str) -> Weir {
        fs::create_dir_all(folder.path().join("state")).expect("a state folder");
        fs::write(folder.path().join("weir.toml"), with_listen(openflow, api, tenants))
            .expect("a configuration");
        let process = spawn(&folder, "state", &[]);
        let weir = Weir { folder, openflow, api, process };
        weir.wait_until_healthy();
        weir
    }

    /// [`Weir::serve`] with a limit of file descriptors.
    pub fn serve_with_descriptors(limit: u32, tenants: &str) -> Weir {
        Weir::serve_within(&format!("ulimit -n {limit}"), tenants)
    }

    /// [`Weir::start`] with a limit of file descriptors.
    pub fn start_with_descriptors(
        limit: u32,
        folder: Folder,
        openflow: SocketAddr,
        api: SocketAddr,
        tenants: &str,
    ) -> Weir {
        Weir::start_within(&format!("ulimit -n {limit}"), folder, openflow, api, tenants)
    }

    /// [`Weir::serve`] with these limits, which a shell sets.
    pub fn serve_within(limits: &str, tenants: &str) -> Weir {
        let openflow = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let api = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        Weir::start_within(limits, Folder::new(), openflow, api, tenants)
    }

    fn start_within(
        limits: &str,
        folder: Folder,
        openflow: SocketAddr,
        api: SocketAddr,
        tenants: &str,
    ) -> Weir {
        fs::create_dir_all(folder.path().join("state")).expect("a state folder");
        fs::write(folder.path().join("weir.toml"), with_listen(openflow, api, tenants))
            .expect("a configuration");
        let mut command = Command::new("sh");
        let script = format!("{limits} && exec \"$0\" serve \"$1\" --state \"$2\"");
        command.args(["-c", &script, &program()]);
        command.args([folder.join("weir.toml"), folder.join("state")]);
        let process = Program::of("weir", command);
        let weir = Weir { folder, openflow, api, process };
        weir.wait_until_healthy();
        weir
    }

    /// All lines of the log so far that contain all `words`.
    pub fn logged(&self, words: &[&str]) -> Vec<String> {
        let has_all = |line: &String| words.iter().all(|word| line.contains(word));
        self.process.stderr.all().into_iter().filter(has_all).collect()
    }

    fn wait_until_healthy(&self) {
        eventually("weir serve answers /healthz", || {
            http::get(self.api, "/healthz").is_some_and(|(status, _)| status == 200)
        });
    }

    /// Kills Weir by kill -9; [`Weir::restart`] starts a new process on the same state.
    pub fn crash(&mut self) {
        self.process.kill();
    }

    pub fn restart(&mut self) {
        self.restart_on("state", &[]);
    }

    /// Starts a new process on the state of this name in the folder, with more options.
    pub fn restart_on(&mut self, state: &str, more: &[&str]) {
        self.process = spawn(&self.folder, state, more);
        self.wait_until_healthy();
    }

    /// Starts a new process on a new state folder, which is filled from a backup.
    pub fn restart_from(&mut self, backup: &str) {
        let (config, state) = (self.folder.join("weir.toml"), self.folder.join("state"));
        fs::rename(&state, self.folder.join("lost")).expect("the state folder is lost");
        let arguments = ["serve", &config, "--state", &state, "--restore", backup];
        self.process = Program::start("weir", &program(), &arguments);
        self.wait_until_healthy();
    }

    /// Sends SIGTERM. Returns the exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        self.process.terminate()
    }

    /// Replaces the configuration by renaming, as editors do; Weir gets no signal.
    pub fn write_config(&self, tenants: &str) {
        let (draft, path) =
            (self.folder.path().join("weir.toml.new"), self.folder.path().join("weir.toml"));
        fs::write(&draft, with_listen(self.openflow, self.api, tenants)).expect("a configuration");
        fs::rename(draft, path).expect("rename the configuration");
    }

    pub fn hang_up(&self) {
        self.process.signal(Signal::SIGHUP);
    }

    /// Returns the number of lines in the log, as a start for [`Weir::expect_log`].
    pub fn log_mark(&self) -> usize {
        self.process.stderr.len()
    }

    /// Waits for a log line after `mark` that contains all `words`.
    pub fn expect_log(&self, mark: usize, words: &[&str]) -> String {
        let has_all =
            |line: &str| words.iter().all(|word| line.contains(word)).then(|| line.to_owned());
        let found = self.process.stderr.wait_for(mark, PATIENCE, has_all);
        found.unwrap_or_else(|| {
            panic!("no log line with {words:?}; saw {:#?}", self.process.stderr.all())
        })
    }

    pub fn get(&self, path: &str) -> (u16, String) {
        http::get(self.api, path)
            .unwrap_or_else(|| panic!("no answer from http://{}{path}", self.api))
    }

    /// The sum of a metric over all series whose labels contain all `labels`, e.g. `tenant="red"`.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let (_, text) = self.get("/metrics");
        let series = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        });
        series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    pub fn wait_for_switches(&self, count: u32) {
        eventually(&format!("{count} switches are connected"), || {
            (self.metric("weir_switches", &[]) - f64::from(count)).abs() < 0.5
        });
    }

    /// Returns the number of open file descriptors.
    pub fn descriptors(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.process.pid());
        fs::read_dir(folder).expect("a running weir").count()
    }

    /// Returns the resident memory in bytes.
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.pid()))
            .expect("a running weir");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("kB")
    }
}

/// The program under test: the program that cargo has built, or another program that `WEIR_TEST_PROGRAM` names.
pub fn program() -> String {
    let other = env::var("WEIR_TEST_PROGRAM").ok().map(|it| repository().join(it));
    other.map_or_else(|| env!("CARGO_BIN_EXE_weir").to_owned(), |it| it.display().to_string())
}

fn spawn(folder: &Folder, state: &str, more: &[&str]) -> Program {
    let (config, state) = (folder.join("weir.toml"), folder.join(state));
    let arguments = [&["serve", &config, "--state", &state], more].concat();
    Program::start("weir", &program(), &arguments)
}

fn with_listen(openflow: SocketAddr, api: SocketAddr, tenants: &str) -> String {
    // Some tests have their own `[listen]`.
    if tenants.contains("[listen]") {
        return tenants.to_owned();
    }
    format!(
        "[listen]\nopenflow = \"{openflow}\"\napi = \"{api}\"\napi_changes = \"loopback\"\n{SHORT_BACK_OFF}{tenants}"
    )
}

/// Runs `weir` with these arguments. Returns the exit code, stdout and stderr.
pub fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut process = Program::start("weir", &program(), arguments);
    let code = process.wait(PATIENCE);
    (code, process.stdout.to_end(), process.stderr.to_end())
}
