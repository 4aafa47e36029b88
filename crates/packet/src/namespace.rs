//! Network namespaces by name.

use std::fs::File;
use std::io;
use std::path::Path;

use nix::sched::{CloneFlags, setns};

use crate::error::{Error, Result};

/// Runs `work` on a thread of its own inside that network namespace and returns what it returns.
///
/// `namespace` is a name as `ip netns` knows it, or a path such as `/proc/1234/ns/net`. Sockets
/// that `work` makes stay in the namespace; threads and programs that it starts begin there.
pub fn in_namespace<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> Result<T> {
    let path = if namespace.contains('/') {
        namespace.into()
    } else {
        Path::new("/run/netns").join(namespace)
    };
    let file = File::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoSuchNamespace(namespace.to_owned()),
        _ => Error::system(format!("open {}", path.display()), error),
    })?;
    let inside = || {
        setns(&file, CloneFlags::CLONE_NEWNET).map_err(|errno| {
            Error::system(format!("enter network namespace {namespace}"), errno)
        })?;
        Ok(work())
    };
    // A thread of its own: the caller's must not be left in another namespace.
    std::thread::scope(|scope| scope.spawn(inside).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
