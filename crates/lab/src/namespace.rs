//! Enters named network namespaces, and finds their processes.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::linux::fs::MetadataExt;
use std::path::PathBuf;

use nix::sched::{CloneFlags, setns};

use crate::error::{Error, Result};

/// The file of a namespace of `ip netns`.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from("/run/netns").join(name)
}

/// Runs `work` on a separate thread inside the namespace. Programs that `work` starts run in the
/// namespace too.
pub(crate) fn inside<T: Send>(name: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let path = path(name);
    let file = File::open(&path).map_err(Error::path("open", &path))?;
    let enter = || {
        setns(&file, CloneFlags::CLONE_NEWNET)
            .map_err(|errno| Error::io(format!("enter namespace {name}"))(errno.into()))?;
        work()
    };
    // The thread is separate, because the caller's thread must not stay in another namespace.
    std::thread::scope(|scope| scope.spawn(enter).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns a function that tests whether a process is in one of these namespaces.
pub(crate) fn membership(names: &[String]) -> impl Fn(i32) -> bool + use<> {
    let identity = |metadata: fs::Metadata| (metadata.st_dev(), metadata.st_ino());
    let namespaces: HashSet<_> =
        names.iter().filter_map(|name| fs::metadata(path(name)).ok()).map(identity).collect();
    move |pid| {
        fs::metadata(format!("/proc/{pid}/ns/net"))
            .is_ok_and(|one| namespaces.contains(&identity(one)))
    }
}
