//! Watches the room in the state folder: on the disk, and for each tenant.
//!
//! * **A reserve of disk space** is a file. When the database cannot be written, Weir deletes the file, so that waiting
//!   changes can be stored and tenants can delete. From then on additions are refused
//!   ([`Account::set_store_full`](hypervisor::Account)), until there is room for twice the reserve again.
//! * **A quota of bytes** for each tenant, on all switches together.
//! * **When the disk is nearly full**, only tenants with less than an equal part of the stored bytes may add to the
//!   store.
//!
//! The results are in [`Registry`], for tenants' accounts, health and metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hypervisor::policy::TenantId;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

use super::error::StoreError;
use crate::metrics::Registry;
use crate::system::open_private;

/// The bytes of the reserve: for waiting changes when the disk is full, and for deletions.
const RESERVE: u64 = 8 << 20;
/// With less free bytes the disk is nearly full; a small disk with less than an eighth of its size.
const NEARLY: u64 = 64 << 20;
/// The bytes that every tenant may have, also when the disk is nearly full.
const LEAST: u64 = 1 << 20;
/// The time between two looks at the disk.
const LOOK: Duration = Duration::from_millis(500);

/// The quota of a tenant in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The name of the tenant, for the log.
    pub name: String,
    /// The most bytes, on all switches together.
    pub bytes: u64,
}

pub(super) struct Room {
    dir: PathBuf,
    quotas: BTreeMap<TenantId, Quota>,
    is_full: bool,
    /// Whether the last commit failed.
    is_failing: bool,
    is_nearly_full: bool,
    over: BTreeSet<TenantId>,
    next_look: Instant,
}

impl Room {
    pub(super) fn new(dir: &Path, metrics: &Registry) -> Room {
        let mut room = Room {
            dir: dir.to_owned(),
            quotas: BTreeMap::new(),
            is_full: false,
            is_failing: false,
            is_nearly_full: false,
            over: BTreeSet::new(),
            next_look: Instant::now(),
        };
        if let Err(error) = set_aside(dir, RESERVE) {
            room.fill(&error.to_string(), metrics);
        }
        room
    }

    /// Notes that the database could not be written. Returns whether the reserve was deleted, so that the commit can be
    /// tried again.
    pub(super) fn failed(&mut self, error: &StoreError, metrics: &Registry) -> bool {
        self.is_failing = true;
        if !self.is_full {
            self.fill(&error.to_string(), metrics);
        }
        give_up(&self.dir)
    }

    /// Notes that the database was written.
    pub(super) fn stored(&mut self) {
        self.is_failing = false;
    }

    fn fill(&mut self, reason: &str, metrics: &Registry) {
        tracing::warn!(
            reason,
            "state cannot be stored; what tenants add is refused until there is room"
        );
        self.is_full = true;
        self.next_look = Instant::now() + LOOK;
        metrics.set_store_full(Some(reason.to_owned()));
    }

    /// The time of the next look at the disk while additions are refused: only this look lets tenants continue.
    pub(super) fn wants_look(&self) -> Option<Instant> {
        (self.is_full || self.is_nearly_full).then_some(self.next_look)
    }

    pub(super) fn set_quotas(&mut self, quotas: BTreeMap<TenantId, Quota>) {
        self.quotas = quotas;
    }

    /// Checks the room; not each call looks at the disk. `usage`: the bytes of each tenant.
    pub(super) fn look(&mut self, usage: &BTreeMap<TenantId, u64>, metrics: &Registry) {
        let now = Instant::now();
        if now >= self.next_look {
            self.next_look = now + LOOK;
            self.is_nearly_full = is_nearly_full(&self.dir);
            if self.is_full && !self.is_failing && set_aside(&self.dir, 2 * RESERVE).is_ok() {
                // The second half of the reserve was only a test for more room.
                let _ = set_aside(&self.dir, RESERVE);
                self.is_full = false;
                tracing::info!("there is room for state again");
                metrics.set_store_full(None);
            }
        }
        let over = over(&self.quotas, usage, self.is_nearly_full);
        if over != self.over {
            for tenant in over.difference(&self.over) {
                let name = self.quotas.get(tenant).map_or("", |quota| quota.name.as_str());
                let bytes = usage.get(tenant);
                tracing::warn!(
                    tenant = name,
                    bytes,
                    "the tenant has its part of the store; what it adds is refused"
                );
            }
            metrics.set_store_over(over.clone());
            self.over = over;
        }
    }
}

/// The tenants that may not add to the store.
fn over(
    quotas: &BTreeMap<TenantId, Quota>,
    usage: &BTreeMap<TenantId, u64>,
    is_nearly_full: bool,
) -> BTreeSet<TenantId> {
    let part = usage.values().sum::<u64>() / quotas.len().max(1) as u64;
    let bound = |quota: &Quota| match is_nearly_full {
        true => quota.bytes.min(part.max(LEAST)),
        false => quota.bytes,
    };
    let has = |tenant| usage.get(tenant).copied().unwrap_or(0);
    quotas.iter().filter(|(tenant, quota)| has(tenant) > bound(quota)).map(|(id, _)| *id).collect()
}

fn is_nearly_full(dir: &Path) -> bool {
    statvfs(dir).is_ok_and(|disk| {
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        is_little(bytes(disk.f_bavail), bytes(disk.f_blocks))
    })
}

/// Whether a disk of this size with so many free bytes is nearly full.
fn is_little(free: u64, size: u64) -> bool {
    free < NEARLY.min(size / 8)
}

fn reserve(dir: &Path) -> PathBuf {
    dir.join("reserve")
}

/// Creates the reserve with this size, or deletes it if this fails.
fn set_aside(dir: &Path, bytes: u64) -> io::Result<()> {
    let path = reserve(dir);
    let made = open_private(&path).and_then(|file| {
        file.set_len(bytes.min(file.metadata()?.len()))?;
        match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            // This file system cannot reserve space, so there is no reserve.
            Err(Errno::OPNOTSUPP) => Ok(()),
            other => Ok(other?),
        }
    });
    if made.is_err() {
        give_up(dir);
    }
    made
}

/// Deletes the reserve, and returns whether there was one.
pub(super) fn give_up(dir: &Path) -> bool {
    fs::remove_file(reserve(dir)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logging::Format;
    use crate::logging::tests::logged_of;
    use crate::store::tests::Folder;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_disk_is_nearly_full_with_less_than_an_eighth_and_less_than_64_mib_free() {
        for (free, size, is_nearly_full) in [
            (63 * MIB, 1_000_000 * MIB, true),
            (64 * MIB, 1_000_000 * MIB, false),
            (9 * MIB, 80 * MIB, true),
            (10 * MIB, 80 * MIB, false),
        ] {
            assert_eq!(is_little(free, size), is_nearly_full, "{free} of {size}");
        }
    }

    /// Two writes to the database fail, and only the first failure is logged. A tenant over the quota is logged by name
    /// when a check finds this first, and again after a check that found the tenant below the quota.
    #[test]
    fn failed_writes_and_tenants_over_the_quota_are_logged_once_until_there_is_room() {
        let folder = Folder::new("room");
        fs::create_dir_all(&folder.0).unwrap();
        let registry = Registry::new();
        let mut room = Room::new(&folder.0, &registry);
        let reserved = || fs::metadata(reserve(&folder.0)).map(|file| file.len()).ok();
        assert_eq!(reserved(), Some(8 * MIB));
        let quota = Quota { name: "red".to_owned(), bytes: 100 };
        room.set_quotas(BTreeMap::from([(TenantId(1), quota)]));
        let full = StoreError::Database("no space left".to_owned());
        let log = logged_of(Format::Text, None, || {
            assert!(room.failed(&full, &registry), "the reserve was there");
            assert!(!room.failed(&full, &registry), "and is given up once");
            for bytes in [101, 102, 50, 103] {
                room.look(&BTreeMap::from([(TenantId(1), bytes)]), &registry);
            }
        });
        assert_eq!(reserved(), None);
        let lines: Vec<&str> = log.lines().collect();
        let [cannot, over, again] = lines[..] else { panic!("{log}") };
        assert!(cannot.contains("WARN") && cannot.contains("state cannot be stored"), "{cannot}");
        assert!(cannot.contains("reason=\"") && cannot.contains("no space left"), "{cannot}");
        assert!(over.contains("WARN") && over.contains("has its part of the store"), "{over}");
        assert!(over.contains("tenant=\"red\" bytes=101"), "{over}");
        assert!(again.contains("tenant=\"red\" bytes=103"), "{again}");
    }

    /// A file system of 40 MiB that only a child process sees. The child process ends when this value is dropped.
    struct SmallDisk(Child, PathBuf);

    impl SmallDisk {
        fn mount(at: &Path) -> Option<SmallDisk> {
            let script = "mount -t tmpfs -o size=40m weir \"$1\" && echo mounted && exec cat";
            let mut command = Command::new("unshare");
            command.args(["-m", "sh", "-c", script, "sh"]).arg(at);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().ok()?;
            let mut line = String::new();
            BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
            let inside = format!("/proc/{}/root{}", child.id(), at.display()).into();
            let disk = SmallDisk(child, inside);
            (line == "mounted\n").then_some(disk)
        }

        /// Fills the disk up to this number of free bytes.
        fn leave(&self, free: u64) {
            let file = fs::File::create(self.1.join("filler")).unwrap();
            let disk = statvfs(&self.1).unwrap();
            let filled = disk.f_bavail * disk.f_frsize - free;
            fallocate(&file, FallocateFlags::empty(), 0, filled).unwrap();
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "what is skipped is said loudly")]
    fn additions_are_refused_until_16_mib_are_free() {
        let folder = Folder::new("resumes");
        fs::create_dir_all(&folder.0).unwrap();
        let Some(disk) = SmallDisk::mount(&folder.0) else {
            eprintln!("SKIPPED additions_are_refused_until_16_mib_are_free: root is needed");
            return;
        };
        let registry = Registry::new();
        let mut room = Room::new(&disk.1, &registry);
        let reserved = || fs::metadata(reserve(&disk.1)).map(|file| file.len()).ok();
        let is_refused = |room: &mut Room| {
            // The next look at the disk is due at once.
            room.next_look = Instant::now();
            room.look(&BTreeMap::new(), &registry);
            registry.store_full().is_some()
        };
        disk.leave(0);
        assert!(!is_refused(&mut room), "nothing had to be written");
        let full = StoreError::Database("no space left".to_owned());
        assert!(room.failed(&full, &registry), "the reserve makes room");
        disk.leave(16 * MIB);
        assert!(is_refused(&mut room), "the database could not be written since");
        room.stored();
        for free in [0, 8 * MIB, 16 * MIB - 4096] {
            disk.leave(free);
            assert!(is_refused(&mut room), "{free} bytes are free");
            assert_eq!(
                reserved(),
                None,
                "the free room is for changes that wait and for deletions"
            );
        }
        disk.leave(16 * MIB);
        assert!(!is_refused(&mut room));
        assert_eq!(reserved(), Some(8 * MIB));
    }

    #[test]
    fn a_tenant_is_limited_by_quota_and_on_a_nearly_full_disk_by_equal_share() {
        let quota = |bytes| Quota { name: String::new(), bytes };
        let mega = |n: u64| n << 20;
        let quotas = BTreeMap::from([1, 2, 3].map(|id| (TenantId(id), quota(mega(50)))));
        let usage = |of: [u64; 3]| (1..).map(TenantId).zip(of.map(mega)).collect();
        let check = |of, is_nearly_full, expected: &[u16]| {
            let found = over(&quotas, &usage(of), is_nearly_full);
            assert!(found.iter().map(|id| id.0).eq(expected.iter().copied()), "{of:?}: {found:?}");
        };
        check([50, 0, 0], false, &[]);
        check([51, 10, 60], false, &[1, 3]);
        check([40, 10, 10], true, &[1]);
        check([20, 20, 20], true, &[]);
        check([1, 0, 0], true, &[]);
        check([51, 60, 60], true, &[1, 2, 3]);
        check([0, 0, 0], true, &[]);
    }
}
