//! The audit log: each line is a JSON object with a change, its account, time and address. The lines are in the order
//! in which changes are stored.
//!
//! Weir writes a line before it stores the change, so no change lacks a line. If the store then fails, a second line
//! says that the change of the first line was not made. If Weir cannot write the line, Weir does not make the change.
//! The file survives the end of the process, like the store. There are at most [`FILES`] files of [`LARGEST`] bytes;
//! the oldest file is deleted.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use serde::Serialize;
use serde_json::Value;

use crate::lock::lock;
use crate::store::StoreError;
use crate::system::{now_ms, open_private};

/// The newest file, in the state folder; older files have the suffix `.1` and so on.
pub const FILE: &str = "audit.jsonl";
/// The number of files, including the newest.
pub const FILES: usize = 5;
/// The most bytes of a file.
pub const LARGEST: u64 = 16 << 20;
/// The most bytes of a line's difference; further parts are only counted.
const LONGEST: usize = 256 << 10;

/// The contents of a line about a change.
#[derive(Debug, Serialize)]
pub struct Change<'a> {
    /// The account.
    pub who: &'a str,
    /// The role of the account.
    pub role: &'a str,
    /// The address of the client.
    pub from: &'a str,
    /// The kind of change.
    pub what: &'a str,
    /// The tenant that the change concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<&'a str>,
    /// The differences, part by part.
    pub difference: Vec<Value>,
}

#[derive(Serialize)]
struct Line<'a> {
    /// The number of the line: 1, 2, 3 and so on.
    seq: u64,
    /// Milliseconds of Unix time.
    at_ms: u64,
    #[serde(flatten)]
    change: &'a Change<'a>,
    /// The number of omitted parts of the difference.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
}

#[derive(Serialize)]
struct Undone<'a> {
    seq: u64,
    at_ms: u64,
    /// The line whose change was not made.
    not_made: u64,
    why: &'a str,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The log. Without a state folder there is no audit log.
pub struct Audit {
    /// The lock of a change, held from before its line is written until the change is stored.
    turn: Mutex<()>,
    writer: Mutex<Option<Writer>>,
}

struct Writer {
    dir: PathBuf,
    largest: u64,
    file: File,
    length: u64,
    next: u64,
}

impl Audit {
    /// Opens the log, and continues at the end of the newest file.
    pub fn open(dir: Option<&Path>) -> Result<Audit, StoreError> {
        let writer = dir.map(|dir| Writer::open(dir, LARGEST)).transpose();
        let writer = writer.map_err(failed)?;
        Ok(Audit { turn: Mutex::new(()), writer: Mutex::new(writer) })
    }

    /// Locks the log for one change, so that lines are in the order of the store.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// Writes the line of a change before the change is stored; returns the line's number.
    pub fn write(&self, change: &mut Change<'_>) -> Result<u64, StoreError> {
        let left_out = shorten(&mut change.difference);
        let mut writer = lock(&self.writer);
        let Some(writer) = &mut *writer else { return Ok(0) };
        let seq = writer.next;
        writer.line(&Line { seq, at_ms: now_ms(), change, left_out }).map_err(failed)?;
        Ok(seq)
    }

    /// Writes that the change of a line was not made.
    pub fn undo(&self, not_made: u64, why: &str) {
        let mut writer = lock(&self.writer);
        let Some(writer) = &mut *writer else { return };
        let line = Undone { seq: writer.next, at_ms: now_ms(), not_made, why };
        if let Err(error) = writer.line(&line) {
            tracing::error!(%error, not_made, why, "a line is missing in the audit log: that change was not made");
        }
    }
}

fn failed(error: io::Error) -> StoreError {
    StoreError::Io { doing: "writing the audit log".to_owned(), error: error.to_string() }
}

/// Omits parts beyond the limit, and returns their number.
fn shorten(difference: &mut Vec<Value>) -> usize {
    let (mut bytes, all) = (0, difference.len());
    let fits = difference.iter().take_while(|part| {
        bytes += part.to_string().len() + 1;
        bytes <= LONGEST
    });
    let fits = fits.count();
    difference.truncate(fits);
    all - fits
}

impl Writer {
    fn open(dir: &Path, largest: u64) -> io::Result<Writer> {
        let mut file = open_private(&dir.join(FILE))?;
        let length = file.metadata()?.len();
        let (whole, last) = last_line(&mut file, length)?;
        // Removes an incomplete line that a killed process has left.
        file.set_len(whole)?;
        let last = match last {
            Some(seq) => seq,
            None => match File::open(older(dir, 1)) {
                Ok(mut file) => {
                    let length = file.metadata()?.len();
                    last_line(&mut file, length)?.1.unwrap_or(0)
                }
                Err(_) => 0,
            },
        };
        file.seek(SeekFrom::Start(whole))?;
        Ok(Writer { dir: dir.to_owned(), largest, file, length: whole, next: last + 1 })
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        if self.length > 0 && self.length + bytes.len() as u64 > self.largest {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(&bytes) {
            // An incomplete line is worse than no line. If it cannot be removed now, the next start removes it.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
            return Err(error);
        }
        self.length += bytes.len() as u64;
        self.next += 1;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        for age in (1..FILES - 1).rev() {
            match fs::rename(older(&self.dir, age), older(&self.dir, age + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(self.dir.join(FILE), older(&self.dir, 1))?;
        let next = self.next;
        *self = Writer::open(&self.dir, self.largest)?;
        self.next = self.next.max(next);
        Ok(())
    }
}

fn older(dir: &Path, age: usize) -> PathBuf {
    dir.join(format!("{FILE}.{age}"))
}

/// The end of the last complete line, and its number.
fn last_line(file: &mut File, length: u64) -> io::Result<(u64, Option<u64>)> {
    // A line is not much longer than its difference.
    let from = length.saturating_sub(4 * LONGEST as u64);
    file.seek(SeekFrom::Start(from))?;
    let mut end = Vec::new();
    file.take(length - from).read_to_end(&mut end)?;
    let Some(last) = end.iter().rposition(|byte| *byte == b'\n') else {
        return Ok((if from == 0 { 0 } else { length }, None));
    };
    let line = &end[..last];
    let line = line.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let seq = serde_json::from_slice::<Value>(line).ok().and_then(|line| line["seq"].as_u64());
    Ok((from + last as u64 + 1, seq))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder;

    fn folder(name: &str) -> Folder {
        let folder = Folder::new(&format!("audit-{name}"));
        fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    fn lines(folder: &Folder, file: &str) -> Vec<Value> {
        let text = fs::read_to_string(folder.0.join(file)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn change<'a>(difference: Vec<Value>) -> Change<'a> {
        let (who, role, from) = ("token 1", "admin", "here");
        Change { who, role, from, what: "change", tenant: Some("red"), difference }
    }

    #[test]
    fn audit_numbers_continue_after_a_restart_and_a_partial_line_is_removed() {
        let folder = folder("restart");
        let audit = Audit::open(Some(&folder.0)).unwrap();
        assert_eq!(audit.write(&mut change(vec!["a".into()])).unwrap(), 1);
        audit.undo(1, "the disk is full");
        drop(audit);
        let path = folder.0.join(FILE);
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"seq\": 3, \"at_");
        fs::write(&path, text).unwrap();
        let audit = Audit::open(Some(&folder.0)).unwrap();
        assert_eq!(audit.write(&mut change(Vec::new())).unwrap(), 3);
        let lines = lines(&folder, FILE);
        assert_eq!(lines.len(), 3);
        assert_eq!((&lines[0]["tenant"], &lines[0]["difference"][0]), (&"red".into(), &"a".into()));
        assert_eq!((&lines[1]["not_made"], &lines[2]["seq"]), (&1.into(), &3.into()));
    }

    #[test]
    fn audit_log_files_and_lines_are_bounded() {
        let folder = folder("bounds");
        let writer = Writer::open(&folder.0, 2_000).unwrap();
        let audit = Audit { turn: Mutex::new(()), writer: Mutex::new(Some(writer)) };
        for number in 1..=100 {
            assert_eq!(audit.write(&mut change(vec!["x".repeat(100).into()])).unwrap(), number);
        }
        let mut names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|it| it.unwrap()).collect();
        names.sort_by_key(|it| it.file_name());
        assert_eq!(names.len(), FILES);
        assert!(names.iter().all(|it| it.metadata().unwrap().len() <= 2_000));
        assert_eq!(lines(&folder, FILE).last().unwrap()["seq"], 100);
        let (older, newer) = (lines(&folder, "audit.jsonl.1"), lines(&folder, FILE));
        let number = |line: &Value| line["seq"].as_u64().unwrap();
        assert_eq!(number(older.last().unwrap()) + 1, number(&newer[0]));
        // Without the newest file, the sequence numbers continue after the last number of the older file.
        fs::remove_file(folder.0.join(FILE)).unwrap();
        let after = number(older.last().unwrap()) + 1;
        assert_eq!(Writer::open(&folder.0, 2_000).unwrap().next, after);

        let mut large = change(vec!["y".repeat(LONGEST / 2).into(); 5]);
        Audit::open(Some(&folder.0)).unwrap().write(&mut large).unwrap();
        assert_eq!(lines(&folder, FILE).last().unwrap()["left_out"], 4);
    }

    #[test]
    fn without_a_folder_no_audit_line_is_written() {
        assert_eq!(Audit::open(None).unwrap().write(&mut change(Vec::new())).unwrap(), 0);
    }
}
