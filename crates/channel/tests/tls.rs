//! Tests of mutual TLS with certificates of the real `ovs-pki`: which peers are accepted, and why other peers are
//! refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use channel::blocking::Client;
use channel::{
    Address, CloseReason, Error, Flushed, Handshake, Listener, Options, PeerCertificate, ReadState,
    Tls, TlsFiles, certificates_not_after, issuers,
};
use common::{Pki, load};
use openflow::{Version, VersionSet};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

const WAIT: Duration = Duration::from_secs(60);
/// A refusal must arrive within this time, and not by a time-out.
const QUICK: Duration = Duration::from_secs(20);

fn listen(tls: &Tls) -> Listener {
    let address = "ssl:127.0.0.1:0".parse::<Address>().unwrap();
    Listener::bind(&address, Some(tls), Options::default()).unwrap()
}

/// Waits until the next connection to `listener` is closed, and returns the reason.
fn server_verdict(mut listener: Listener) -> std::thread::JoinHandle<CloseReason> {
    std::thread::spawn(move || {
        let mut server = Client::accept(&mut listener, WAIT).unwrap();
        server.wait_closed().unwrap()
    })
}

/// The reason of the close that the client sees, either when it connects or when it reads. In TLS 1.3 the handshake of
/// the client ends before the server has checked the client's certificate.
fn client_verdict(address: &Address, tls: Option<&Tls>) -> CloseReason {
    let result = Client::connect(address, tls, WAIT).and_then(|mut client| {
        // A plain HELLO is the first message of a client without TLS.
        let _ = client.send(&[4, 0, 0, 8, 0, 0, 0, 1]);
        client.wait_closed()
    });
    match result {
        Ok(reason) | Err(Error::Closed(reason)) => reason,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_large_exchange_over_tls_is_received_unchanged() {
    let Some(pki) = Pki::new("tls::a_large_exchange_over_tls_is_received_unchanged") else {
        return;
    };
    let switch = load(&pki.switch());
    let mut listener = listen(&load(&pki.controller()));
    let address = listener.address();
    // The data does not fit into all buffers on the path, so both sides see "blocked" and partial records.
    let mut large = vec![4, 2, 0xff, 0xff, 0, 0, 0, 5];
    large.resize(65_535, 7);
    let echo: Vec<u8> = large.repeat(16);

    let expected = echo.clone();
    let switch = std::thread::spawn(move || {
        let mut switch = Client::connect(&address, Some(&switch), WAIT).unwrap();
        assert!(switch.connection().scheme() == channel::Scheme::Ssl);
        let established =
            switch.shake_hands(Handshake::towards_controller(VersionSet::SUPPORTED, 1)).unwrap();
        switch.receive().unwrap();
        let mut reply = vec![4, 6, 0, 32];
        reply.resize(32, 0);
        switch.send(&reply).unwrap();
        let mut got = Vec::new();
        while got.len() < expected.len() {
            got.extend(switch.receive().unwrap());
        }
        assert!(got == expected, "the bytes differ");
        switch.connection().finish();
        established.version
    });
    let mut controller = Client::accept(&mut listener, WAIT).unwrap();
    let features =
        controller.shake_hands(Handshake::towards_switch(VersionSet::SUPPORTED, 2)).unwrap();
    assert_eq!(features.version, Version::V1_3);
    controller.send(&echo).unwrap();
    assert_eq!(controller.wait_closed().unwrap(), CloseReason::PeerClosed, "by close_notify");
    assert_eq!(switch.join().unwrap(), Version::V1_3);
}

#[test]
fn invalid_tls_peers_are_refused_with_the_reason_on_both_sides() {
    let Some(ours) = Pki::new("tls::invalid_tls_peers_are_refused_with_the_reason_on_both_sides")
    else {
        return;
    };
    let (other, same_name) = (ours.other(false), ours.other(true));
    let server = load(&ours.controller());
    assert!(!format!("{server:?}").contains("PrivateKey"), "keys do not get into logs");
    let mixed = |own: TlsFiles, trusted: TlsFiles| {
        load(&TlsFiles { ca_certificate: trusted.ca_certificate, ..own })
    };
    let check = |name: &str, client: Option<Tls>, server_says: &str, client_says: &str| {
        let listener = listen(&server);
        let mut address = listener.address();
        if client.is_none() {
            address.scheme = channel::Scheme::Tcp;
        }
        let start = Instant::now();
        let server = server_verdict(listener);
        let client = client_verdict(&address, client.as_ref()).to_string();
        let server = server.join().unwrap().to_string();
        assert!(server.contains(server_says), "{name}: the server says {server:?}");
        assert!(client.contains(client_says), "{name}: the client says {client:?}");
        assert!(start.elapsed() < QUICK, "{name}: took {:?}", start.elapsed());
    };
    check(
        "a certificate of another CA",
        Some(mixed(other.switch(), ours.switch())),
        "the peer's certificate is not signed by our CA",
        "our certificate is not signed by the peer's CA",
    );
    check(
        "a certificate of another CA of the same name",
        Some(mixed(same_name.switch(), ours.switch())),
        "the peer's certificate is not signed by our CA but by one of the same name",
        "TLS: received fatal alert",
    );
    check(
        "a client that trusts another CA",
        Some(mixed(ours.switch(), other.switch())),
        "our certificate is not signed by the peer's CA",
        "the peer's certificate is not signed by our CA",
    );
    check(
        "a controller's certificate, where a switch's is wanted",
        Some(mixed(ours.controller(), ours.switch())),
        "the peer's certificate is not signed by our CA",
        "our certificate is not signed by the peer's CA",
    );
    for (from, to, server_says) in [
        ("20200101000000Z", "20200102000000Z", "certificate has expired"),
        ("20900101000000Z", "20900102000000Z", "certificate is not valid yet"),
    ] {
        let files = TlsFiles { certificate: signed_for(&ours, from, to), ..ours.switch() };
        check(server_says, Some(load(&files)), server_says, "our certificate has expired, or");
    }
    check("no TLS at all", None, "speaks plain OpenFlow to a TLS", "speaks TLS to a plain");
}

/// The switch's certificate, valid only between two times (YYYYMMDDHHMMSSZ).
fn signed_for(pki: &Pki, from: &str, to: &str) -> std::path::PathBuf {
    let path = pki.path(&format!("sw-{from}-cert.pem"));
    let output = Command::new("openssl")
        .current_dir(pki.path("pki/switchca"))
        .args(["ca", "-config", "ca.cnf", "-batch", "-extensions", "usr_cert"])
        .args(["-startdate", from, "-enddate", to, "-in", "../../sw-req.pem", "-out"])
        .arg(&path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    path
}

#[test]
fn names_fingerprint_expiry_and_issuers_of_a_certificate_are_read() {
    let Some(pki) = Pki::new("tls::names_fingerprint_expiry_and_issuers_of_a_certificate_are_read")
    else {
        return;
    };
    let mut listener = listen(&load(&pki.controller()));
    let address = listener.address();
    let switch = pki.switch();
    let certificate = signed_for(&pki, "20200101000000Z", "20491231235958Z");
    let files = TlsFiles { certificate: certificate.clone(), ..switch.clone() };
    let tls = load(&files);
    assert_eq!(tls.not_after(), Some(2_524_607_998));
    assert_eq!(certificates_not_after(&certificate).unwrap(), Some(2_524_607_998));
    let client = std::thread::spawn(move || client_verdict(&address, Some(&tls)));
    let mut server = Client::accept(&mut listener, WAIT).unwrap();
    server.receive().unwrap();
    let shown = server.connection().peer_certificate().unwrap();
    assert_eq!(shown, PeerCertificate::of_file(&certificate).unwrap());
    assert!(shown.names().iter().any(|name| name == "sw"), "{shown:?}");
    let is = |name: &str| shown.is(&name.parse().unwrap());
    assert!(is("name:sw") && is("name:SW") && is(&shown.fingerprint().to_string()));
    assert!(!is("name:s") && !is("name:ctl"));
    let other = PeerCertificate::of_file(&switch.certificate).unwrap();
    assert!(!shown.is(&other.fingerprint()) && other.is(&"name:sw".parse().unwrap()));
    let printed = Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
        .arg(&certificate)
        .output()
        .unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let (_, digits) = printed.trim().split_once('=').unwrap();
    assert!(is(&format!("sha256:{digits}")), "{printed}");
    drop(server);
    client.join().unwrap();

    let authorities = [pki.switch(), pki.controller()]
        .map(|files| std::fs::read_to_string(files.ca_certificate).unwrap());
    std::fs::write(pki.path("both.pem"), authorities.concat()).unwrap();
    let signed = issuers(&certificate, &pki.path("both.pem")).unwrap();
    std::fs::write(pki.path("signed.pem"), signed).unwrap();
    let only = |path| TlsFiles { ca_certificate: path, ..pki.switch() };
    assert!(load(&only(pki.path("signed.pem"))).shares_authority(&load(&pki.controller())));
    assert!(!load(&only(pki.path("signed.pem"))).shares_authority(&load(&pki.switch())));

    let both = |ours: TlsFiles, theirs: TlsFiles| load(&ours).shares_authority(&load(&theirs));
    assert!(both(pki.switch(), pki.switch()) && !both(pki.switch(), pki.controller()));
}

/// The certificate has no extensions, like certificates of old tools: OpenSSL accepts this certificate, and rustls does
/// not. The error has the reason for our own certificate and for the certificate of a peer (here OpenSSL's own client).
#[test]
fn an_x509_version_1_certificate_is_refused_with_the_reason() {
    let Some(pki) = Pki::new("tls::an_x509_version_1_certificate_is_refused_with_the_reason")
    else {
        return;
    };
    let openssl = |arguments: &str| {
        let output = Command::new("openssl")
            .current_dir(&pki.dir.0)
            .args(arguments.split_whitespace())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        format!("{output:?}")
    };
    openssl(
        "x509 -req -in sw-req.pem -days 30 -set_serial 7 -out v1.pem \
         -CA pki/switchca/cacert.pem -CAkey pki/switchca/private/cakey.pem",
    );
    let files = TlsFiles { certificate: pki.path("v1.pem"), ..pki.switch() };
    let error = Tls::load(&files).unwrap_err().to_string();
    assert!(error.contains("v1.pem: it is not X.509 version 3"), "{error}");

    let listener = listen(&load(&pki.controller()));
    let addr = listener.address().addr;
    let server = server_verdict(listener);
    let client = openssl(&format!(
        "s_client -connect {addr} -cert v1.pem -key sw-privkey.pem -ign_eof \
         -CAfile pki/controllerca/cacert.pem"
    ));
    let server = server.join().unwrap().to_string();
    assert!(server.contains("it is not X.509 version 3"), "{server}; the client: {client}");
}

#[test]
fn a_tls_client_without_certificate_is_refused() {
    let Some(pki) = Pki::new("tls::a_tls_client_without_certificate_is_refused") else { return };
    let listener = listen(&load(&pki.controller()));
    let addr = listener.address().addr;
    let server = server_verdict(listener);

    // Our own client always has a certificate, so the test makes another client.
    let mut roots = rustls::RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(pki.switch().ca_certificate).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        rustls::client::WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone())
            .build()
            .unwrap();
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(NameBlind(verifier)))
        .with_no_client_auth();
    let name = rustls::pki_types::ServerName::IpAddress(addr.ip().into());
    let mut session = rustls::ClientConnection::new(config.into(), name).unwrap();
    let mut socket = TcpStream::connect(addr).unwrap();
    let mut stream = rustls::Stream::new(&mut session, &mut socket);
    let _ = stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]);
    let answer = stream.read(&mut [0; 8]).unwrap_err();

    assert!(answer.to_string().contains("CertificateRequired"), "the client got: {answer}");
    let verdict = server.join().unwrap();
    assert_eq!(verdict, CloseReason::Tls(rustls::Error::NoCertificatesPresented));
    assert!(verdict.to_string().contains("the peer presented no certificate"));
}

/// Checks only signatures, because the test is about the server.
#[derive(Debug)]
struct NameBlind(Arc<rustls::client::WebPkiServerVerifier>);

impl rustls::client::danger::ServerCertVerifier for NameBlind {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[test]
fn a_tls_client_on_a_plain_port_is_recognized_and_closed() {
    let Some(pki) = Pki::new("tls::a_tls_client_on_a_plain_port_is_recognized_and_closed") else {
        return;
    };
    let plain = "tcp:127.0.0.1:0".parse::<Address>().unwrap();
    let listener = Listener::bind(&plain, None, Options::default()).unwrap();
    let address = Address::ssl(listener.address().addr);
    let start = Instant::now();
    let server = server_verdict(listener);
    let client = client_verdict(&address, Some(&load(&pki.switch())));
    assert_eq!(server.join().unwrap(), CloseReason::TlsPeer);
    assert_eq!(client, CloseReason::TlsHandshakeCut);
    assert!(start.elapsed() < QUICK);
}

/// The peer closes the TCP connection once during the TLS handshake, and once after it.
#[test]
fn a_tcp_close_without_close_notify_is_not_an_orderly_tls_close() {
    let Some(pki) = Pki::new("tls::a_tcp_close_without_close_notify_is_not_an_orderly_tls_close")
    else {
        return;
    };
    let tls = load(&pki.controller());
    let listener = listen(&tls);
    let addr = listener.address().addr;
    let server = server_verdict(listener);
    let mut socket = TcpStream::connect(addr).unwrap();
    socket.write_all(&[0x16, 0x03, 0x01]).unwrap();
    drop(socket);
    assert_eq!(server.join().unwrap(), CloseReason::TlsHandshakeCut);

    let mut listener = listen(&tls);
    let address = listener.address();
    let server = std::thread::spawn(move || {
        let mut server = Client::accept(&mut listener, WAIT).unwrap();
        let frame = server.receive().unwrap();
        (frame, server.wait_closed().unwrap())
    });
    let mut client = Client::connect(&address, Some(&load(&pki.switch())), WAIT).unwrap();
    client.send(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    drop(client);
    let (frame, reason) = server.join().unwrap();
    assert_eq!(frame, [4, 0, 0, 8, 0, 0, 0, 1]);
    assert_eq!(reason, CloseReason::TlsTruncated);
}

#[test]
fn frames_to_a_tls_peer_that_never_reads_are_refused_at_the_send_limit() {
    let Some(pki) =
        Pki::new("tls::frames_to_a_tls_peer_that_never_reads_are_refused_at_the_send_limit")
    else {
        return;
    };
    let mut listener = listen(&load(&pki.controller()));
    let address = listener.address();
    let tls = load(&pki.switch());
    let client = std::thread::spawn(move || Client::connect(&address, Some(&tls), WAIT).unwrap());
    let mut server = Client::accept(&mut listener, WAIT).unwrap();
    assert_eq!(server.receive_within(Duration::from_millis(50)).unwrap(), None);
    let _client = client.join().unwrap();

    let connection = server.connection();
    assert!(!connection.is_tls_handshaking());
    let limit = connection.send_buffer().limit();
    let mut accepted = 0;
    while connection.send_buffer().refused_frames() < 100 {
        accepted += usize::from(connection.push(&[4; 1000]).is_ok());
        connection.flush().unwrap();
        assert!(connection.unsent_bytes() <= limit);
        assert!(accepted < 100_000, "somebody swallows without end");
    }
    assert_eq!(connection.receive(1000).state, ReadState::Drained, "still alive");
}

/// Frames that are pushed before the end of the TLS handshake stay in our send buffer, which has a limit and counts
/// refused frames.
#[test]
fn frames_pushed_during_the_tls_handshake_stay_within_the_send_limit() {
    let Some(pki) =
        Pki::new("tls::frames_pushed_during_the_tls_handshake_stay_within_the_send_limit")
    else {
        return;
    };
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::ssl(silent.local_addr().unwrap());
    let options = Options { send_buffer: 10_000, ..Options::default() };
    let mut client =
        channel::Connection::dial(&address, Some(&load(&pki.switch())), &options).unwrap();
    let (mut server, _) = silent.accept().unwrap();
    for _ in 0..20 {
        let _ = client.push(&[4; 1000]);
        assert_eq!(client.flush(), Ok(Flushed::Blocked));
    }
    assert_eq!((client.unsent_bytes(), client.send_buffer().refused_frames()), (10_000, 10));
    assert!(client.is_connected() && client.is_tls_handshaking());
    let mut hello = [0; 3];
    server.read_exact(&mut hello).unwrap();
    assert_eq!(hello, [0x16, 3, 1], "the client's hello has left all the same");
}

#[test]
fn missing_or_invalid_tls_files_are_refused_with_a_reason() {
    let Some(pki) = Pki::new("tls::missing_or_invalid_tls_files_are_refused_with_a_reason") else {
        return;
    };
    let good = pki.switch();
    let empty = pki.path("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let broken = pki.path("broken.pem");
    std::fs::write(&broken, "-----BEGIN CERTIFICATE-----\nAAECAwQ=\n-----END CERTIFICATE-----\n")
        .unwrap();
    let missing = pki.path("missing.pem");
    let check = |name: &str, files: TlsFiles, expected: &str| {
        let error = Tls::load(&files).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error:?} lacks {expected:?}");
    };
    let with_key = |private_key| TlsFiles { private_key, ..good.clone() };
    let with_certificate = |certificate| TlsFiles { certificate, ..good.clone() };
    let with_ca = |ca_certificate| TlsFiles { ca_certificate, ..good.clone() };
    check("no key file", with_key(missing.clone()), "missing.pem: No such file");
    check("key file without key", with_key(good.certificate.clone()), "holds no private key");
    check("another's key", with_key(pki.controller().private_key), "TLS identity: ");
    check("no certificate file", with_certificate(missing.clone()), "certificate ");
    check("certificate file empty", with_certificate(empty.clone()), "holds no certificate");
    check("broken certificate", with_certificate(broken.clone()), "broken.pem: ");
    check("no CA file", with_ca(missing), "CA certificate ");
    check("CA file empty", with_ca(empty), "holds no CA certificate");
    check("broken CA", with_ca(broken), "CA certificate ");
}
