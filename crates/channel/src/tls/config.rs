//! From PEM files to rustls configurations for both roles.
//!
//! Certificates made by `ovs-pki` name their holder by a label and a UUID, not by host name or IP
//! address, and Open vSwitch checks the chain alone. So do we: a peer is accepted if its
//! certificate is signed by the CA given for it, is valid now, and may be used in the peer's role.
//! The name in it is not compared with the address. Such a CA exists to certify controllers (or
//! switches) and nothing else; do not give a public CA here. Which of its holders the peer is, is
//! for the caller to ask: [`Connection::peer_certificate`](crate::Connection::peer_certificate).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};

use super::certificate;
use crate::address::{Address, Scheme};
use crate::error::{Error, NOT_VERSION_3, is_unsupported_version};

/// The three PEM files of a TLS identity, as in `ovs-vsctl set-ssl KEY CERT CA`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TlsFiles {
    /// Our private key (PKCS #8, PKCS #1 or SEC 1).
    pub private_key: PathBuf,
    /// Our certificate, followed by intermediate certificates if there are any.
    pub certificate: PathBuf,
    /// The CA certificates by which we know our peers: for a controller that is the switches' CA
    /// (`switchca/cacert.pem` of `ovs-pki`), for a switch the controllers' CA.
    pub ca_certificate: PathBuf,
}

/// Who we are and whom we trust, ready for both roles. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    pub(super) server: Arc<ServerConfig>,
    pub(super) client: Arc<ClientConfig>,
    not_after: Option<u64>,
    authorities: Arc<Vec<CertificateDer<'static>>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configurations hold the private key.
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// The identity for an address: plain TCP uses none, and TLS cannot do without.
    pub(crate) fn for_address<'a>(
        address: &Address,
        tls: Option<&'a Tls>,
    ) -> Result<Option<&'a Tls>, Error> {
        match address.scheme {
            Scheme::Tcp => Ok(None),
            Scheme::Ssl => tls.map(Some).ok_or(Error::TlsMissing(*address)),
        }
    }

    /// Reads and checks the files: keys of a usable kind, key and certificate belonging together.
    pub fn load(files: &TlsFiles) -> Result<Self, Error> {
        let key = read_key(&files.private_key)?;
        let chain = read_chain(&files.certificate)?;
        let authorities = read_certificates(&files.ca_certificate, CA_CERTIFICATE)?;
        let roots = Arc::new(roots(&files.ca_certificate, &authorities)?);
        let not_after = certificates_not_after(&files.certificate)?;
        let provider = Arc::new(ring::default_provider());

        let clients = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .build()
            .map_err(Error::identity)?;
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(Error::identity)?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(Error::identity)?;
        // Connections live for days; a resumed session would only skip the certificate checks.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;

        let servers = Arc::new(ChainVerifier { roots, provider: provider.clone() });
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Error::identity)?
            .dangerous()
            .with_custom_certificate_verifier(servers)
            .with_client_auth_cert(chain, key)
            .map_err(Error::identity)?;
        client.resumption = Resumption::disabled();
        client.enable_sni = false;

        let (server, client) = (Arc::new(server), Arc::new(client));
        Ok(Tls { server, client, not_after, authorities: Arc::new(authorities) })
    }

    /// Until when our own certificate, and those between it and its authority, are valid, in seconds of Unix time.
    pub fn not_after(&self) -> Option<u64> {
        self.not_after
    }

    /// Whether there is an authority that both trust.
    pub fn shares_authority(&self, other: &Tls) -> bool {
        self.authorities.iter().any(|authority| other.authorities.contains(authority))
    }
}

/// Until when the certificates in a PEM file are valid, all of them, in seconds of Unix time.
pub fn certificates_not_after(path: &Path) -> Result<Option<u64>, Error> {
    let chain = read_certificates(path, "certificate")?;
    Ok(chain.iter().filter_map(|der| certificate::not_after(der)).min())
}

/// Those of the authorities in a PEM file that have signed a certificate, as PEM.
pub fn issuers(certificate: &Path, authorities: &Path) -> Result<String, Error> {
    const END: &str = "-----END CERTIFICATE-----";
    let what = "CA certificate";
    let failed = |error: std::io::Error| unreadable(authorities, what, pem::Error::Io(error));
    let text = std::fs::read_to_string(authorities).map_err(failed)?;
    let own = read_certificates(certificate, "certificate")?;
    let provider = ring::default_provider();
    let algorithms = provider.signature_verification_algorithms.all;
    let has_signed = |authority: &str| {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(authority.as_bytes()).ok()?;
        roots.add(authority).ok()?;
        let (first, between) = own.split_first()?;
        let first = ParsedCertificate::try_from(first).ok()?;
        let now = UnixTime::now();
        verify_server_cert_signed_by_trust_anchor(&first, &roots, between, now, algorithms).ok()
    };
    let all = text.split_inclusive(END).filter(|authority| has_signed(authority).is_some());
    Ok(all.collect::<String>() + "\n")
}

/// Accepts a server whose certificate chains to our CA, whatever its name is (see the module's
/// text for why).
#[derive(Debug)]
struct ChainVerifier {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ChainVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &self.roots,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

pub(super) fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let key = PrivateKeyDer::from_pem_file(path)
        .map_err(|error| unreadable(path, "private key", error))?;
    if let Err(error) = ring::default_provider().key_provider.load_private_key(key.clone_key()) {
        let reason = format!("{error}; use an RSA key of at least 2048 bits, or an EC key");
        return Err(Error::TlsFile { path: path.to_owned(), what: "private key", reason });
    }
    Ok(key)
}

/// Our own certificates; the first, which is for our key, must be readable to any strict peer.
pub(super) fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let what = "certificate";
    let chain = read_certificates(path, what)?;
    if let Some(Err(error)) = chain.first().map(ParsedCertificate::try_from) {
        let reason = match is_unsupported_version(&error) {
            true => NOT_VERSION_3.to_owned(),
            false => error.to_string(),
        };
        return Err(Error::TlsFile { path: path.to_owned(), what, reason });
    }
    Ok(chain)
}

pub(super) fn read_certificates(
    path: &Path,
    what: &'static str,
) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(|iter| iter.collect())
        .map_err(|error| unreadable(path, what, error))?;
    if certificates.is_empty() {
        return Err(unreadable(path, what, pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

pub(super) fn roots(
    path: &Path,
    authorities: &[CertificateDer<'static>],
) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in authorities {
        roots.add(certificate.clone()).map_err(|error| Error::TlsFile {
            path: path.to_owned(),
            what: CA_CERTIFICATE,
            reason: error.to_string(),
        })?;
    }
    Ok(roots)
}

pub(super) const CA_CERTIFICATE: &str = "CA certificate";

fn unreadable(path: &Path, what: &'static str, error: pem::Error) -> Error {
    let reason = match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("holds no {what} in PEM form"),
        other => other.to_string(),
    };
    Error::TlsFile { path: path.to_owned(), what, reason }
}
