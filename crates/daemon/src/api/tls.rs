//! Weir's certificate towards REST clients, which can be read again while Weir runs.

use std::sync::{Arc, Mutex};

use channel::{Error, ServiceFiles};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::lock::lock;

/// The files, and their last valid contents. Cheap to clone.
#[derive(Clone)]
pub struct Identity {
    files: ServiceFiles,
    server: Arc<Mutex<Arc<ServerConfig>>>,
}

impl Identity {
    /// Reads the files.
    pub fn load(files: &ServiceFiles) -> Result<Identity, Error> {
        let server = files.server()?;
        Ok(Identity { files: files.clone(), server: Arc::new(Mutex::new(server)) })
    }

    /// Reads the files again, for new connections; if they cannot be read, the old contents stay in
    /// use.
    pub fn reload(&self) {
        match self.files.server() {
            Ok(server) => *lock(&self.server) = server,
            Err(error) => tracing::error!(%error, "[api]: the old certificate stays in use"),
        }
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&lock(&self.server)).into()
    }
}
