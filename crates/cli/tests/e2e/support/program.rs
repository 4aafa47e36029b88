//! A child process whose output is read while it runs and which does not outlive its test.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::PATIENCE;

/// How long a process may take to end by itself after its test.
const TERM_TIME: Duration = Duration::from_secs(3);

pub struct Program {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    pub stdout: Lines,
    pub stderr: Lines,
}

/// The words before a program and its arguments. The kernel then ends the program also when the test is killed and does
/// not run `drop`.
pub const GUARDED: [&str; 4] = ["setpriv", "--pdeathsig", "KILL", "--"];

impl Program {
    pub fn start(name: &str, program: &str, arguments: &[&str]) -> Program {
        let mut command = Command::new(GUARDED[0]);
        command.args(&GUARDED[1..]).arg(program).args(arguments).env("RUST_BACKTRACE", "1");
        Program::of(name, command)
    }

    pub fn of(name: &str, mut command: Command) -> Program {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: cannot start {command:?}: {error}"));
        let stdout = Lines::gather(child.stdout.take().expect("a piped stdout"));
        let stderr = Lines::gather(child.stderr.take().expect("a piped stderr"));
        Program { name: name.to_owned(), stdin: child.stdin.take(), child, stdout, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("wait for a child").is_none()
    }

    pub fn write_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("write to a child");
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).expect("a pid"));
        kill(pid, signal).unwrap_or_else(|error| panic!("{}: {signal}: {error}", self.name));
    }

    /// Sends SIGKILL: the process cannot clean up.
    pub fn kill(&mut self) {
        if self.is_running() {
            self.signal(Signal::SIGKILL);
            self.child.wait().expect("wait for a child");
        }
    }

    /// Sends SIGTERM, and returns the exit code: `None` if the process had to be killed.
    pub fn terminate(&mut self) -> Option<i32> {
        self.terminate_within(PATIENCE)
    }

    fn terminate_within(&mut self, at_most: Duration) -> Option<i32> {
        if self.is_running() {
            self.signal(Signal::SIGTERM);
        }
        self.wait(at_most)
    }

    /// Waits until the process ends by itself, and returns the exit code: `None` if the process had to be killed.
    pub fn wait(&mut self, at_most: Duration) -> Option<i32> {
        let deadline = Instant::now() + at_most;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("wait for a child") {
                return status.code();
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.kill();
        None
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stdin = None;
        self.terminate_within(TERM_TIME);
        if thread::panicking() {
            for (stream, lines) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
                eprintln!("--- {} {stream} (last lines)\n{}", self.name, lines.tail(40));
            }
        }
    }
}

/// The lines that a process has written so far. A reader can wait for a later line.
#[derive(Clone)]
pub struct Lines {
    shared: Arc<(Mutex<Gathered>, Condvar)>,
}

#[derive(Default)]
struct Gathered {
    lines: Vec<String>,
    ended: bool,
}

impl Lines {
    fn gather(stream: impl Read + Send + 'static) -> Lines {
        let lines = Lines { shared: Arc::default() };
        let writer = lines.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                let (all, arrived) = &*writer.shared;
                all.lock().expect("lines").lines.push(String::from_utf8_lossy(&line).into_owned());
                arrived.notify_all();
            }
            writer.shared.0.lock().expect("lines").ended = true;
            writer.shared.1.notify_all();
        });
        lines
    }

    pub fn all(&self) -> Vec<String> {
        self.shared.0.lock().expect("lines").lines.clone()
    }

    pub fn len(&self) -> usize {
        self.shared.0.lock().expect("lines").lines.len()
    }

    /// Returns the whole output, after the process has closed the stream.
    pub fn to_end(&self) -> String {
        let (gathered, arrived) = &*self.shared;
        let mut gathered = gathered.lock().expect("lines");
        while !gathered.ended {
            gathered = arrived.wait(gathered).expect("lines");
        }
        gathered.lines.join("\n")
    }

    fn tail(&self, count: usize) -> String {
        let all = self.all();
        all[all.len().saturating_sub(count)..].join("\n")
    }

    /// Returns the first result of `find` in the lines from index `from` on. Waits for this line at most for `at_most`.
    pub fn wait_for<T>(
        &self,
        from: usize,
        at_most: Duration,
        find: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + at_most;
        let (gathered, arrived) = &*self.shared;
        let mut gathered = gathered.lock().expect("lines");
        let mut next = from;
        loop {
            while let Some(line) = gathered.lines.get(next) {
                if let Some(found) = find(line) {
                    return Some(found);
                }
                next += 1;
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            gathered = arrived.wait_timeout(gathered, left).expect("lines").0;
        }
    }
}
