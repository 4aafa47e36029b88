//! rustls over a non-blocking stream.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, InvalidMessage, ServerConnection};

use super::certificate::PeerCertificate;
use super::config::Tls;
use crate::{CloseReason, Error};

/// Plaintext that rustls may hold until the socket takes it. The rest waits in the send buffer,
/// where it is counted.
const PLAINTEXT_LIMIT: usize = 64 << 10;

/// The TLS state of one connection. It owns no socket: the caller hands in the one to use.
///
/// [`crate::Connection`] is built on it; it is for callers that have a loop and buffers of their own.
#[derive(Debug)]
pub struct TlsStream {
    session: Connection,
    /// The end of the stream has been read below TLS.
    at_end: bool,
    /// TLS has failed; what was decrypted before is still handed out.
    failed: Option<CloseReason>,
}

impl TlsStream {
    /// As the server, for a stream that was accepted.
    pub fn accept(tls: &Tls) -> Result<Self, Error> {
        let session = ServerConnection::new(tls.server.clone()).map_err(Error::identity)?;
        Ok(Self::new(session.into()))
    }

    /// As the client, for a stream to `peer`; its certificate is not compared with the address.
    pub fn connect(tls: &Tls, peer: SocketAddr) -> Result<Self, Error> {
        let name = ServerName::IpAddress(peer.ip().into());
        let session = ClientConnection::new(tls.client.clone(), name).map_err(Error::identity)?;
        Ok(Self::new(session.into()))
    }

    fn new(mut session: Connection) -> Self {
        session.set_buffer_limit(Some(PLAINTEXT_LIMIT));
        TlsStream { session, at_end: false, failed: None }
    }

    /// True until both sides have shown their certificates.
    pub fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// The peer's certificate, once its chain has been checked.
    pub fn peer_certificate(&self) -> Option<PeerCertificate> {
        let chain = self.session.peer_certificates().filter(|_| !self.session.is_handshaking())?;
        chain.first().map(|der| PeerCertificate::new(der))
    }

    /// True if records wait for the socket.
    pub fn wants_write(&self) -> bool {
        self.session.wants_write()
    }

    /// Reads decrypted bytes: `Ok(None)` if there are none now, `Ok(Some(0))` at the orderly end. Less than
    /// `out` holds means that no decrypted bytes are left: an event of the socket comes when there are
    /// more.
    pub fn read<S: Read + Write>(
        &mut self,
        socket: &mut S,
        out: &mut [u8],
    ) -> Result<Option<usize>, CloseReason> {
        loop {
            match self.session.reader().read(out) {
                Ok(n) => return Ok(Some(n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(self.cut());
                }
                Err(error) => return Err(CloseReason::from_io(&error)),
            }
            if let Some(reason) = &self.failed {
                return Err(reason.clone());
            }
            if self.at_end {
                return Err(self.cut());
            }
            match self.session.read_tls(socket) {
                Ok(0) => self.at_end = true,
                Ok(_) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::Interrupted => continue,
                    _ => return Err(CloseReason::from_io(&error)),
                },
            }
            let handshaking = self.session.is_handshaking();
            if let Err(error) = self.session.process_new_packets() {
                // The alert has the reason for the peer. It is sent now or never.
                let _ = self.write_records(socket);
                self.failed = Some(describe(error, handshaking));
            } else if self.session.wants_write() {
                self.write_records(socket)?;
            }
        }
    }

    /// The socket's end came without close_notify.
    fn cut(&self) -> CloseReason {
        match self.session.is_handshaking() {
            true => CloseReason::TlsHandshakeCut,
            false => CloseReason::TlsTruncated,
        }
    }

    /// Encrypts as much of `bytes` as rustls takes now, and says how much that was.
    pub fn encrypt(&mut self, bytes: &[u8]) -> Result<usize, CloseReason> {
        self.session.writer().write(bytes).map_err(|error| CloseReason::from_io(&error))
    }

    /// Writes waiting records until none is left (`true`) or the socket is full (`false`).
    pub fn write_records<W: Write>(&mut self, socket: &mut W) -> Result<bool, CloseReason> {
        while self.session.wants_write() {
            match self.session.write_tls(socket) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(false),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(CloseReason::from_io(&error)),
                },
            }
        }
        Ok(true)
    }

    /// Queues close_notify: the peer can then distinguish an end from a cut (RFC 8446 §6.1).
    pub fn finish(&mut self) {
        self.session.send_close_notify();
    }
}

/// A first record that is none comes from a peer that does not speak TLS at all.
fn describe(error: rustls::Error, handshaking: bool) -> CloseReason {
    match error {
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) if handshaking => {
            CloseReason::PlainPeer
        }
        error => CloseReason::Tls(error),
    }
}
