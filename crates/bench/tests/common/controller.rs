//! The process of a controller under test.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The process of a controller. The process ends when this value is dropped.
pub(crate) struct Controller {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    /// Files that are removed at the end, because a killed process does not remove them.
    pub(crate) leftovers: Vec<PathBuf>,
}

impl Controller {
    pub(crate) fn start(command: impl FnOnce(u16) -> Command) -> Self {
        let free = SocketAddr::from(([127, 0, 0, 1], packet::free_port().unwrap()));
        let child = command(free.port()).stderr(Stdio::null()).spawn().unwrap();
        let controller = Self { child, address: free, leftovers: Vec::new() };
        controller.wait_listening();
        controller
    }

    pub(crate) fn wait_listening(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(self.address).is_err() {
            assert!(Instant::now() < deadline, "the controller does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn ovs_testcontroller() -> Self {
        Self::ovs_testcontroller_as("ptcp", |_| {})
    }

    /// Starts `ovs-testcontroller` with more arguments. The controller listens with the given scheme.
    pub(crate) fn ovs_testcontroller_as(scheme: &str, more: impl FnOnce(&mut Command)) -> Self {
        let socket = |port| std::env::temp_dir().join(format!("weir-bench-controller-{port}.ctl"));
        let mut controller = Self::start(|port| {
            let mut command = Command::new("ovs-testcontroller");
            command.arg(format!("{scheme}:{port}:127.0.0.1")).stdout(Stdio::null());
            more(&mut command);
            command.arg(format!("--unixctl={}", socket(port).display()));
            command
        });
        controller.leftovers.push(socket(controller.address.port()));
        controller
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for file in &self.leftovers {
            let _ = std::fs::remove_file(file);
        }
    }
}
