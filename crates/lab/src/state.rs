//! Stores the state of labs in a folder: the existing labs, and everything that each lab made.
//!
//! ```text
//!   STATE/NAME/lab.json     the list of the parts, written before any part is made
//!   STATE/NAME/openvswitch/ the private Open vSwitch
//! ```
//!
//! The folder `STATE/NAME` claims the name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::address::ControlLink;
use crate::controller::Controller;
use crate::error::{Error, Result};
use crate::process::ProcessIdentity;
use crate::topology::Topology;

const FILE: &str = "lab.json";

/// A folder of labs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDirectory {
    path: PathBuf,
}

/// The progress of a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The lab is being made, or a process that ended left the lab incomplete.
    Starting,
    /// The lab is up.
    Up,
}

/// One lab as `weir lab list` shows it.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The lab's name.
    pub name: String,
    /// The progress of the lab.
    pub phase: Phase,
    /// Whether the lab belonged to a process that has ended.
    pub abandoned: bool,
    /// Number of switches.
    pub switches: usize,
    /// Number of hosts.
    pub hosts: usize,
    /// The addresses of the controllers of its switches.
    pub controllers: Vec<String>,
    /// The time at which the lab was made.
    pub created: SystemTime,
}

/// Everything that a lab made, or is about to make.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) version: u32,
    pub(crate) name: String,
    pub(crate) phase: Phase,
    /// The time at which the lab was made, in seconds since 1970.
    pub(crate) created: u64,
    /// The process with which the lab ends; `None` for a lab that stays until a user takes the lab
    /// down.
    pub(crate) owner: Option<ProcessIdentity>,
    pub(crate) topology: Topology,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) namespaces: Vec<String>,
    pub(crate) control: Option<ControlLink>,
    pub(crate) processes: Vec<ProcessIdentity>,
}

impl Record {
    pub(crate) const VERSION: u32 = 1;

    pub(crate) fn now() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    fn summary(&self) -> Summary {
        Summary {
            name: self.name.clone(),
            phase: self.phase,
            abandoned: self.owner.is_some_and(|owner| !owner.is_alive()),
            switches: self.topology.switches().len(),
            hosts: self.topology.hosts().len(),
            controllers: self.controllers.iter().map(ToString::to_string).collect(),
            created: UNIX_EPOCH + std::time::Duration::from_secs(self.created),
        }
    }
}

impl Default for StateDirectory {
    /// The folder `/run/weir/labs` for root, else `$XDG_RUNTIME_DIR/weir/labs`.
    fn default() -> Self {
        let user =
            std::env::var_os("XDG_RUNTIME_DIR").filter(|_| !nix::unistd::geteuid().is_root());
        let base = user.map_or_else(|| PathBuf::from("/run"), PathBuf::from);
        StateDirectory { path: base.join("weir").join("labs") }
    }
}

impl StateDirectory {
    /// Uses that folder. The folder is created with the first lab and removed with the last lab.
    pub fn at(path: impl Into<PathBuf>) -> StateDirectory {
        StateDirectory { path: path.into() }
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The labs that exist, by name.
    pub fn list(&self) -> Result<Vec<Summary>> {
        let mut summaries = Vec::new();
        for name in self.names()? {
            match self.read(&name) {
                Ok(record) => summaries.push(record.summary()),
                // The lab was taken down in the meantime, or its record is not written yet.
                Err(Error::NoSuchLab { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(summaries)
    }

    /// Names of the existing labs, also of labs with a state that cannot be read.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(Error::path("read", &self.path))?,
        };
        let mut names: Vec<_> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| check_name(name).is_ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Claims a name with the record that `describe` makes. The name is `wanted`, or the first of
    /// `lab1`, `lab2`, ... that is free in this folder and for which `is_free` holds.
    pub(crate) fn claim(
        &self,
        wanted: Option<&str>,
        is_free: impl Fn(&str) -> bool,
        describe: impl Fn(&str) -> Record,
    ) -> Result<Record> {
        if let Some(name) = wanted {
            check_name(name)?;
            return self
                .try_claim(describe(name))?
                .ok_or_else(|| Error::NameTaken(name.to_owned()));
        }
        for number in 1..=u16::MAX {
            let name = format!("lab{number}");
            let claimed = if is_free(&name) { self.try_claim(describe(&name))? } else { None };
            if let Some(record) = claimed {
                return Ok(record);
            }
        }
        Err(Error::NameTaken("lab1 and so on".to_owned()))
    }

    /// Claims the name and writes the record in one step, the rename of a prepared folder. So a
    /// crash never leaves a claimed name without a record.
    fn try_claim(&self, record: Record) -> Result<Option<Record>> {
        let folder = self.folder(&record.name);
        if folder.exists() {
            return Ok(None);
        }
        let prepared =
            self.path.join(format!(".{}.{:?}", std::process::id(), std::thread::current().id()));
        // Another lab that goes down may remove the empty parent folder before this step. Then this
        // step is repeated.
        let made = (0..10)
            .map(|_| fs::create_dir_all(&prepared))
            .find(|made| !gone(made))
            .unwrap_or(Ok(()));
        made.map_err(Error::path("create", &prepared))?;
        let outcome =
            self.write_to(&prepared, &record).and_then(|()| match fs::rename(&prepared, &folder) {
                Ok(()) => Ok(true),
                // A folder that is not empty cannot be replaced.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
                Err(source) => Err(Error::path("create", &folder)(source)),
            });
        if matches!(outcome, Ok(true)) {
            return Ok(Some(record));
        }
        let _ = fs::remove_dir_all(&prepared);
        outcome.map(|_| None)
    }

    /// Removes the lab's folder, and the state directory if no other lab is in the state directory.
    pub(crate) fn release(&self, name: &str) -> Result<()> {
        let folder = self.folder(name);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::path("remove", &folder)(error));
            }
            _ => {}
        }
        // The removal of a folder that is not empty fails, as intended.
        let mut empty = fs::remove_dir(&self.path).is_ok() && self.path.ends_with("weir/labs");
        for parent in self.path.ancestors().skip(1).take_while(|parent| parent.ends_with("weir")) {
            empty = empty && fs::remove_dir(parent).is_ok();
        }
        Ok(())
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Result<Record> {
        let path = self.file(name);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.no_such_lab(name));
            }
            other => other.map_err(Error::path("read", &path))?,
        };
        let wrong = |message: String| Error::State { path: path.clone(), message };
        let record: Record =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if record.version != Record::VERSION {
            return Err(wrong(format!(
                "its version is {}, not {}",
                record.version,
                Record::VERSION
            )));
        }
        Ok(record)
    }

    /// Writes the record atomically: a reader gets either the old record or the new record, even
    /// after a crash.
    pub(crate) fn write(&self, record: &Record) -> Result<()> {
        self.write_to(&self.folder(&record.name), record)
    }

    fn write_to(&self, folder: &Path, record: &Record) -> Result<()> {
        let path = folder.join(FILE);
        let fresh = path.with_extension("json.new");
        let text = serde_json::to_vec_pretty(record)
            .map_err(|error| Error::State { path: path.clone(), message: error.to_string() })?;
        fs::write(&fresh, text).map_err(Error::path("write", &fresh))?;
        fs::rename(&fresh, &path).map_err(Error::path("replace", &path))
    }

    pub(crate) fn no_such_lab(&self, name: &str) -> Error {
        Error::NoSuchLab { name: name.to_owned(), existing: self.names().unwrap_or_default() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder(name).join(FILE)
    }
}

fn gone(outcome: &io::Result<()>) -> bool {
    outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Checks the name of a lab, because the name becomes part of the names of namespaces and folders.
fn check_name(name: &str) -> Result<()> {
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let letters =
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if starts && letters && name.len() <= 32 {
        return Ok(());
    }
    let message =
        format!("{name:?} is not a lab's name: letters, digits, - and _, 32 characters at most");
    Err(Error::Option { option: "name", message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> Record {
        Record {
            version: Record::VERSION,
            name: name.to_owned(),
            phase: Phase::Starting,
            created: 1,
            owner: None,
            topology: Topology::default(),
            controllers: Vec::new(),
            namespaces: Vec::new(),
            control: None,
            processes: Vec::new(),
        }
    }

    fn place(name: &str) -> StateDirectory {
        StateDirectory::at(
            std::env::temp_dir().join(format!("weir-state-{}-{name}", std::process::id())),
        )
    }

    #[test]
    fn a_lab_name_is_claimed_once_and_free_again_after_release() {
        let state = place("claim");
        assert_eq!(state.list().unwrap().len(), 0);
        let claimed: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| state.claim(None, |_| true, record))).collect();
            threads.into_iter().map(|one| one.join().unwrap().unwrap().name).collect()
        });
        let mut sorted = claimed.clone();
        sorted.sort();
        assert_eq!(sorted, ["lab1", "lab2", "lab3", "lab4", "lab5", "lab6", "lab7", "lab8"]);
        assert!(matches!(state.claim(Some("lab3"), |_| true, record), Err(Error::NameTaken(_))));
        state.release("lab3").unwrap();
        assert_eq!(state.claim(None, |name| name != "lab3", record).unwrap().name, "lab9");
        assert_eq!(state.claim(Some("lab3"), |_| true, record).unwrap().name, "lab3");
        for name in state.names().unwrap() {
            state.release(&name).unwrap();
        }
        assert!(!state.path().exists());
    }

    #[test]
    fn lab_names_that_are_no_plain_file_names_are_refused() {
        let long = "x".repeat(33);
        for name in ["..", ".", "", "a/b", "-a", "a.b", "a b", "é", &long] {
            let outcome = place("names").claim(Some(name), |_| true, record);
            assert!(matches!(outcome, Err(Error::Option { option: "name", .. })), "{name:?}");
        }
    }

    #[test]
    fn a_damaged_state_file_is_named_in_the_error() {
        let state = place("damaged");
        state.claim(Some("x"), |_| true, record).unwrap();
        for text in ["", "{", "{\"version\": 1}", "[1]"] {
            fs::write(state.file("x"), text).unwrap();
            let error = state.read("x").unwrap_err().to_string();
            assert!(error.contains("lab.json: "), "{error}");
        }
        let newer = Record { version: 2, ..record("x") };
        state.write(&newer).unwrap();
        assert!(state.read("x").unwrap_err().to_string().contains("its version is 2, not 1"));
        state.release("x").unwrap();
    }

    #[test]
    fn a_lab_is_abandoned_when_its_owner_process_has_ended() {
        let own = ProcessIdentity::own();
        let earlier = own.map(|own| ProcessIdentity { start: own.start - 1, ..own });
        for (owner, expected) in [(None, false), (own, false), (earlier, true)] {
            assert_eq!(Record { owner, ..record("x") }.summary().abandoned, expected, "{owner:?}");
        }
    }
}
