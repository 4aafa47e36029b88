//! Whether there is room in the state folder: on the disk, and for each tenant.
//!
//! * **A reserve of disk space** is set aside in a file. When the database cannot be written, the file is given up: so what waits
//!   can be stored, and tenants can delete. From then on what adds to the store is refused
//!   ([`Account::set_store_full`](hypervisor::Account)), until there is room for twice the reserve again.
//! * **A quota of bytes** for each tenant, on all switches together.
//! * **When the disk is nearly full**, only tenants that have less than their equal part of what is stored may add to it.
//!
//! What it finds is in [`Registry`]: tenants' accounts, health and metrics are told from there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hypervisor::policy::TenantId;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

use super::error::StoreError;
use crate::metrics::Registry;

/// Bytes that are set aside: for what waits when the disk is full, and for deleting.
const RESERVE: u64 = 8 << 20;
/// With less than this the disk is nearly full; on a small one with less than an eighth of it.
const NEARLY: u64 = 64 << 20;
/// So much every tenant may have, also when the disk is nearly full.
const LEAST: u64 = 1 << 20;
/// How often it looks.
const LOOK: Duration = Duration::from_millis(500);

/// What a tenant may have in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Its name, for the log.
    pub name: String,
    /// Bytes, on all switches together.
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

    /// The database could not be written. Whether the reserve has been given up for that, so that it may be tried again.
    pub(super) fn failed(&mut self, error: &StoreError, metrics: &Registry) -> bool {
        self.is_failing = true;
        if !self.is_full {
            self.fill(&error.to_string(), metrics);
        }
        give_up(&self.dir)
    }

    /// The database was written.
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

    /// When it wants to look again without being asked: only what it finds then lets tenants go on.
    pub(super) fn wants_look(&self) -> Option<Instant> {
        (self.is_full || self.is_nearly_full).then_some(self.next_look)
    }

    pub(super) fn set_quotas(&mut self, quotas: BTreeMap<TenantId, Quota>) {
        self.quotas = quotas;
    }

    /// Looks whether there is room, at the disk not each time; `usage` is what each tenant has.
    pub(super) fn look(&mut self, usage: &BTreeMap<TenantId, u64>, metrics: &Registry) {
        let now = Instant::now();
        if now >= self.next_look {
            self.next_look = now + LOOK;
            self.is_nearly_full = is_nearly_full(&self.dir);
            if self.is_full && !self.is_failing && set_aside(&self.dir, 2 * RESERVE).is_ok() {
                // What is beyond the reserve was only to see that there is more.
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

/// The tenants that may not add to what they have.
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
        bytes(disk.f_bavail) < NEARLY.min(bytes(disk.f_blocks) / 8)
    })
}

fn reserve(dir: &Path) -> PathBuf {
    dir.join("reserve")
}

/// Makes the reserve so large, or leaves none.
fn set_aside(dir: &Path, bytes: u64) -> io::Result<()> {
    let path = reserve(dir);
    let options = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).clone();
    let made = options.open(&path).and_then(|file| {
        file.set_len(bytes.min(file.metadata()?.len()))?;
        match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            // Without a reserve, as the file system has it.
            Err(Errno::OPNOTSUPP) => Ok(()),
            other => Ok(other?),
        }
    });
    if made.is_err() {
        give_up(dir);
    }
    made
}

/// Gives the reserve up, if there is any.
pub(super) fn give_up(dir: &Path) -> bool {
    fs::remove_file(reserve(dir)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_its_quota_and_on_a_disk_that_is_nearly_full_its_equal_part() {
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
