//! Ports for programs that must be given one and cannot say which one the kernel gave them.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::process;
use std::sync::{Mutex, PoisonError};

/// The first port of the first block.
const FIRST: u16 = 10_000;
/// Ports of one block.
const BLOCK: u16 = 100;
/// The last port is below those that Linux gives to connections.
const BLOCKS: u16 = 220;

/// A port that nobody has, of TCP and of UDP, for a program that binds the port in a moment. No two calls return the
/// same port, also of processes that run side by side.
///
/// Each process takes a block of 100 ports after the other, and keeps a lock on a file `weir-ports-UID/N` in the folder
/// for temporary files until it ends. Processes of two users do not know of each other.
///
/// The ports are below those that Linux gives to connections (32,768 and above, unless `ip_local_port_range` says
/// otherwise): a port that the kernel chose with `bind` to port 0 can become the near end of another program's
/// connection before the program binds the port.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] if all blocks are taken; and if the folder of the locks cannot be made, or belongs to
/// another user.
pub fn free_port() -> io::Result<u16> {
    static PORTS: Mutex<Ports> = Mutex::new(Ports { locks: Vec::new(), left: 0..0 });
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let user = fs::metadata("/proc/self")?.uid();
    ports.next(&env::temp_dir().join(format!("weir-ports-{user}")))
}

/// The ports of one process.
struct Ports {
    /// A lock for each block that the process has taken.
    locks: Vec<File>,
    /// What is left of the last block.
    left: std::ops::Range<u16>,
}

impl Ports {
    fn next(&mut self, folder: &Path) -> io::Result<u16> {
        loop {
            if let Some(port) = self.left.by_ref().find(|port| is_free(*port)) {
                return Ok(port);
            }
            let (lock, block) = take_block(folder)?;
            self.locks.push(lock);
            self.left = FIRST + block * BLOCK..FIRST + (block + 1) * BLOCK;
        }
    }
}

/// Locks a block that no process has, and that this process has not had.
fn take_block(folder: &Path) -> io::Result<(File, u16)> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // Another user could lead the locks to any file of this user.
    if fs::symlink_metadata(folder)?.uid() != fs::metadata("/proc/self")?.uid() {
        let error = format!("{} belongs to another user", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, error));
    }
    let start = (process::id() % u32::from(BLOCKS)) as u16;
    for block in (0..BLOCKS).map(|n| (n + start) % BLOCKS) {
        let path = folder.join(block.to_string());
        let lock = OpenOptions::new().create(true).append(true).open(path)?;
        if lock.try_lock().is_ok() {
            return Ok((lock, block));
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

fn is_free(port: u16) -> bool {
    let everywhere = (Ipv4Addr::UNSPECIFIED, port);
    TcpListener::bind(everywhere).is_ok() && UdpSocket::bind(everywhere).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_is_returned_once_and_never_while_in_use() {
        let first = free_port().unwrap();
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 1));
        let next: Vec<u16> = (0..3).map(|_| free_port().unwrap()).collect();
        assert!(!next.contains(&first), "{first} and {next:?}");
        assert!(held.is_err() || !next.contains(&(first + 1)), "{first} and {next:?}");
    }

    /// A lock counts for each time that a file is opened, so two in one process are as two processes.
    #[test]
    fn two_processes_have_no_port_in_common() {
        let folder = env::temp_dir().join(format!("weir-ports-test-{}", process::id()));
        let mut processes = [(); 2].map(|()| Ports { locks: Vec::new(), left: 0..0 });
        let mut all = Vec::new();
        for _ in 0..=BLOCK {
            for ports in &mut processes {
                all.push(ports.next(&folder).unwrap());
            }
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        drop(processes);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_error_is_returned_when_all_port_blocks_are_in_use() {
        let folder = env::temp_dir().join(format!("weir-ports-none-{}", process::id()));
        let taken: Vec<_> = (0..BLOCKS).map(|_| take_block(&folder).unwrap()).collect();
        assert_eq!(take_block(&folder).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(taken);
        assert!(take_block(&folder).is_ok());
        fs::remove_dir_all(folder).unwrap();
    }
}
