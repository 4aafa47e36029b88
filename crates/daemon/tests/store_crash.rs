//! Tests of the store with a real process and a real file: acknowledged changes survive SIGKILL, a limit of the file
//! size and a full disk, and a second process on the same folder is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use daemon::metrics::Registry;
use daemon::store::{Store, Sync};

mod support;
use support::{DPID, replay};

/// The batches in flight of the writer: the store may have at most this number of batches more than acknowledged.
const IN_FLIGHT: u64 = 8;
/// The longest wait for the next line of the writer.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn acknowledged_batches_survive_sigkill() {
    for (round, sync, acknowledged) in
        [(0, "100", 40), (1, "100", 700), (2, "60000", 333), (3, "always", 25), (4, "100", 5_000)]
    {
        let folder = Folder::new(&format!("kill-{round}"));
        let mut child = writer(folder.path(), &[sync]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut last = 0;
        while last < acknowledged {
            last = last.max(acknowledged_by(&lines.next().unwrap().unwrap()).unwrap());
        }
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        // The lines that the process wrote before SIGKILL count, too; the last line may be incomplete.
        for line in lines.map_while(Result::ok) {
            last = last.max(acknowledged_by(&line).unwrap_or(0));
        }
        assert_prefix(folder.path(), last, &format!("sync {sync}, killed after {last}"));
    }
}

#[test]
fn a_file_size_limit_is_reported_and_no_acknowledged_batch_is_lost() {
    let folder = Folder::new("full");
    // A limit on file size replaces the full disk: the same system calls fail, with another error.
    let script = "ulimit -f 3000; trap '' XFSZ; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(example()).arg(folder.path()).args(["100", "30000", "1"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\nfailed "), "the limit was reached");
    let last = |what| text.lines().filter_map(|line| line.strip_prefix(what)?.parse().ok()).max();
    let (safe, stored): (Option<u64>, Option<u64>) = (last("safe "), last("stored "));
    assert!(stored > Some(100) && safe > stored, "it worked until then; {stored:?}, {safe:?}");
    // Batches that the database could not store were acknowledged, too, because the journal has them.
    let stored = open(folder.path()).load(DPID).unwrap();
    let model = replay(safe.unwrap());
    assert!(model.into_iter().eq(stored), "exactly what was acknowledged is there");
}

/// The writer runs on a file system of 40 MB in a mount namespace of its own.
#[test]
#[allow(clippy::print_stderr, reason = "what is skipped is said loudly")]
fn after_a_full_disk_storing_continues_and_no_acknowledged_batch_is_lost() {
    let mut probe = Command::new("unshare");
    if !probe.args(["-m", "true"]).stderr(Stdio::null()).status().is_ok_and(|it| it.success()) {
        eprintln!(
            "SKIPPED after_a_full_disk_storing_continues_and_no_acknowledged_batch_is_lost: root is needed"
        );
        return;
    }
    let (mount, copied) = (Folder::new("small"), Folder::new("small-copied"));
    let script =
        "mount -t tmpfs -o size=40m weir \"$1\" && exec \"$0\" \"$1\" 100 100000000 8 300 again";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(example()).arg(mount.path());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = lines_of(&mut child);
    let mut last = 0;
    let mut until = |wanted: &dyn Fn(&str) -> bool| {
        loop {
            let line = lines.recv_timeout(LONG).unwrap();
            last = last.max(acknowledged_by(&line).unwrap_or(0));
            if wanted(&line) {
                return last;
            }
        }
    };
    until(&|line| line.starts_with("stored "));
    // The path of the folder as the writer sees the folder.
    let inside = PathBuf::from(format!("/proc/{}/root{}", child.id(), mount.path().display()));
    let filler = inside.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    // An open file would keep its space on the disk after its removal.
    drop(file);
    let stored_after = |last: u64| {
        move |line: &str| {
            line.strip_prefix("stored ").is_some_and(|seq| seq.parse::<u64>().unwrap() > last)
        }
    };
    // The test looks at the length of the reserve file: a check of the disk creates the file for a moment, without
    // space.
    let reserved = || fs::metadata(inside.join("reserve")).map_or(0, |file| file.len());
    assert_eq!(reserved(), 8 << 20);
    let then = until(&|line| line == "full");
    // The waiting changes are stored in the space of the reserve.
    until(&stored_after(then));
    assert_eq!(reserved(), 0);
    fs::remove_file(&filler).unwrap();
    let then = until(&|line| line == "room");
    assert_eq!(reserved(), 8 << 20);
    let last = until(&stored_after(then));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    for entry in fs::read_dir(&inside).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), copied.path().join(entry.file_name())).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Before SIGSTOP, the writer may have written more lines than the test has read.
    let said = lines.iter().filter_map(|line| acknowledged_by(&line)).max();
    assert_prefix(copied.path(), last.max(said.unwrap_or(0)), "after a full disk");
}

#[test]
fn a_second_process_on_a_state_folder_is_refused_with_the_first_process_id() {
    let folder = Folder::new("lock");
    let mut child = writer(folder.path(), &["100", "1000000", "1", "1000"]);
    let mut line = String::new();
    // The pipe stays open, because a writer that cannot write its lines ends, and unlocks the directory.
    let mut said = BufReader::new(child.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    let error =
        Store::open(folder.path(), Sync::default(), Registry::new()).err().map(|e| e.to_string());
    let mut second = writer(folder.path(), &["100"]);
    drop(second.stdout.take());
    let mut complaint = String::new();
    second.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    let status = second.wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(said);
    let error = error.expect("refused");
    assert!(error.contains(&format!("in use by another weir (process {})", child.id())), "{error}");
    assert!(!status.success() && complaint.contains("Locked"), "{complaint}");
    drop(open(folder.path()));
}

/// The store has exactly the items of some number of whole batches, at least `acknowledged`.
fn assert_prefix(dir: &Path, acknowledged: u64, what: &str) {
    let store = open(dir);
    let stored = store.load(DPID).unwrap();
    let fits = (acknowledged..=acknowledged + IN_FLIGHT)
        .any(|last| replay(last).into_iter().eq(stored.iter().cloned()));
    assert!(fits, "{what}: {} entries, which no prefix of the batches leaves", stored.len());
    assert!(!dir.join("weir.redb.damaged-1").exists(), "{what}: taken for damaged");
}

fn open(dir: &Path) -> Store {
    Store::open(dir, Sync::Every(Duration::from_millis(100)), Registry::new()).unwrap()
}

/// The lines of a child's standard output, until the child ends.
fn lines_of(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    thread::spawn(move || said.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

/// The newest safe batch in a line of the writer: in a journal, or in the database.
fn acknowledged_by(line: &str) -> Option<u64> {
    line.strip_prefix("safe ").or(line.strip_prefix("stored "))?.parse().ok()
}

fn writer(dir: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(example());
    command
        .arg(dir)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Cargo puts examples beside tests: `target/debug/deps/store_crash-…` and `target/debug/examples/store_writer`. Cargo
/// builds examples with the tests only if no test is chosen by name, so a missing example is built here.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples/store_writer");
    if !path.exists() {
        let arguments = ["build", "--quiet", "-p", "weir-daemon", "--example", "store_writer"];
        let built = Command::new(env!("CARGO")).args(arguments).status().unwrap();
        assert!(built.success() && path.exists(), "{} cannot be built", path.display());
    }
    path
}

/// A folder that is deleted when this value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-daemon-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
