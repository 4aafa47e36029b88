//! TLS for a service beside OpenFlow, which has clients of other kinds: REST by HTTPS.
//!
//! Unlike a switch, a client need not have a certificate; one that it shows has to be signed by the authority for
//! clients. And unlike a switch, a client of ours asks by a name or an address, which has to be in the server's
//! certificate.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, ClientConnection, ServerConfig, StreamOwned};

use super::config::{CA_CERTIFICATE, read_certificates, read_chain, read_key, roots};
use crate::Error;

/// The PEM files of a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceFiles {
    /// Its private key.
    pub private_key: PathBuf,
    /// Its certificate, followed by intermediate certificates if there are any.
    pub certificate: PathBuf,
    /// Who signs for clients; without one clients show no certificates.
    pub client_ca: Option<PathBuf>,
}

impl ServiceFiles {
    /// Reads and checks the files.
    pub fn server(&self) -> Result<Arc<ServerConfig>, Error> {
        let key = read_key(&self.private_key)?;
        let chain = read_chain(&self.certificate)?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(Error::identity)?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let authorities = read_certificates(path, CA_CERTIFICATE)?;
                let roots = Arc::new(roots(path, &authorities)?);
                let clients = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(Error::identity)?;
                builder.with_client_cert_verifier(clients)
            }
        };
        let mut server = builder.with_single_cert(chain, key).map_err(Error::identity)?;
        // A certificate that has ended, or that is not signed for any more, opens no connection again.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(server))
    }
}

/// Whom a client of a service trusts, and who it is.
#[derive(Clone, Debug)]
pub struct ServiceTrust {
    /// Who signs for the service; a certificate that signs for itself is its own authority.
    pub ca_certificate: PathBuf,
    /// The client's private key and certificate, if it has them.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl ServiceTrust {
    /// Speaks TLS with the service at the other end, which has to have a certificate for this name or address.
    pub fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<impl Read + Write + use<>, Error> {
        let authorities = read_certificates(&self.ca_certificate, CA_CERTIFICATE)?;
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(Error::identity)?
            .with_root_certificates(roots(&self.ca_certificate, &authorities)?);
        let client = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((key, certificate)) => builder
                .with_client_auth_cert(read_chain(certificate)?, read_key(key)?)
                .map_err(Error::identity)?,
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| Error::TlsIdentity(format!("{host}: {error}")))?;
        let connection = ClientConnection::new(Arc::new(client), name).map_err(Error::identity)?;
        Ok(StreamOwned::new(connection, stream))
    }
}
