//! Tests of accounts: an operator creates a tenant's token at the Unix socket, and the tenant uses `weir ctl` with this
//! token over TLS.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use crate::support::folder::Folder;
use crate::support::free_port;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

const TENANTS: &str = "[[tenants]]\nname = \"red\"\nmaxima = { edges = [\"1\"] }\n[tenants.network]\n\
    [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n\
    [[tenants]]\nname = \"blue\"\n[[tenants.flowspace]]\nmatch = \"ip\"\n";

/// Makes the certificates by the commands of docs/access.md.
const CERTIFICATES: &str = r#"set -e; cd "$0"
openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=Weir REST" -keyout ca-privkey.pem -out cacert.pem
openssl req -newkey rsa:2048 -nodes -subj "/CN=weir.example" -keyout api-privkey.pem -out api.csr
echo "subjectAltName=DNS:weir.example,IP:127.0.0.1" > api.ext
openssl x509 -req -in api.csr -CA cacert.pem -CAkey ca-privkey.pem -CAcreateserial -days 365 -extfile api.ext -out api-cert.pem"#;

struct Ctl<'a> {
    folder: &'a Folder,
    api: String,
}

impl Ctl<'_> {
    /// Runs `weir ctl` with this token in the environment. Returns exit code, stdout and stderr.
    fn run(&self, token: &str, words: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["ctl", "--api", &self.api])
            .args(words)
            .env("WEIR_TOKEN", token)
            .current_dir(self.folder.path())
            .output()
            .expect("weir ctl");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Returns stdout of `weir ctl`, which must exit with 0.
    fn prints(&self, token: &str, words: &[&str]) -> String {
        let (code, stdout, stderr) = self.run(token, words);
        assert_eq!(code, Some(0), "{words:?}: {stderr}");
        stdout
    }

    /// Returns stderr of `weir ctl`, which must exit with this code.
    fn fails(&self, token: &str, words: &[&str], expected: i32) -> String {
        let (code, stdout, stderr) = self.run(token, words);
        assert_eq!(code, Some(expected), "{words:?}: {stdout}{stderr}");
        stderr
    }
}

#[test]
fn a_tenant_token_created_at_the_unix_socket_works_over_tls_until_revoked() {
    needs!(a_tenant_token_created_at_the_unix_socket_works_over_tls_until_revoked: Needs::Program("openssl"));
    let folder = Folder::new();
    let made = Command::new("sh").args(["-c", CERTIFICATES]).arg(folder.path()).output();
    assert!(made.is_ok_and(|it| it.status.success()), "certificates");
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (openflow, api, tls) = (local(free_port()), local(free_port()), local(free_port()));
    let config = format!(
        "[listen]\nopenflow = \"{openflow}\"\napi = [\"{api}\", \"unix:api.sock\", \"ssl:{tls}\"]\n\
         [api]\nprivate_key = \"api-privkey.pem\"\ncertificate = \"api-cert.pem\"\n{TENANTS}"
    );
    let mut weir = Weir::start(folder, openflow, api, &config);
    let socket = format!("unix:{}", weir.folder.join("api.sock"));
    let here = Ctl { folder: &weir.folder, api: socket.clone() };
    let elsewhere = Ctl { folder: &weir.folder, api: format!("https://{tls}") };
    let ca = ["--ca", "cacert.pem"];

    let create = ["token", "create", "--role", "tenant", "--tenant", "red", "--name", "alice"];
    let token = here.prints("", &create).trim().to_owned();
    fs::write(weir.folder.join("red.token"), format!("{token}\n")).expect("a file");
    let list = here.prints("", &["token", "list"]);
    let row = list.lines().nth(1).unwrap_or_default().split_whitespace().collect::<Vec<_>>();
    assert_eq!(row, ["1", "tenant", "red", "alice", "in", "90d"], "{list}");
    assert!(!list.contains(&token));

    let with_file = ["--token-file", "red.token", ca[0], ca[1]];
    let shown = elsewhere.prints("", &[&["show", "red"], &with_file[..]].concat());
    assert!(shown.starts_with("red: started"), "{shown}");
    let add = ["add", "red", "port", "0xa1 port 2", "--at", "1 port 2"];
    elsewhere.prints(&token, &[&add[..], &ca].concat());
    let tenants = elsewhere.prints(&token, &[&["tenants"], &ca[..]].concat());
    assert!(tenants.contains("red") && !tenants.contains("blue"), "{tenants}");

    let blue = elsewhere.fails(&token, &[&["show", "blue"], &ca[..]].concat(), 1);
    assert_eq!(blue, elsewhere.fails(&token, &[&["show", "nobody"], &ca[..]].concat(), 1));
    let stranger = elsewhere.fails("", &[&["show", "red"], &ca[..]].concat(), 1);
    assert!(stranger.contains("weir ctl token create"), "{stranger}");
    elsewhere.fails(&token, &["show", "red"], 2);
    elsewhere.fails("password", &[&["show", "red"], &ca[..]].concat(), 2);
    let plain = Ctl { folder: &weir.folder, api: "192.0.2.1:8080".to_owned() };
    assert!(plain.fails(&token, &["tenants"], 2).contains("plain text"));
    here.fails("", &["token", "create", "--role", "tenant"], 1);

    // A token stays valid after a restart, until the operator revokes the token.
    weir.crash();
    weir.restart();
    let here = Ctl { folder: &weir.folder, api: socket };
    let elsewhere = Ctl { folder: &weir.folder, api: format!("https://{tls}") };
    elsewhere.prints(&token, &[&["show", "red"], &ca[..]].concat());
    here.prints("", &["token", "revoke", "1"]);
    let over = elsewhere.fails(&token, &[&["show", "red"], &ca[..]].concat(), 1);
    assert!(over.contains("no token that is in force"), "{over}");
}

#[test]
fn serve_does_not_start_with_only_a_tls_api_and_no_token() {
    needs!(serve_does_not_start_with_only_a_tls_api_and_no_token: Needs::Program("openssl"));
    let folder = Folder::new();
    let made = Command::new("sh").args(["-c", CERTIFICATES]).arg(folder.path()).output();
    assert!(made.is_ok_and(|it| it.status.success()), "certificates");
    let config = format!(
        "[listen]\nopenflow = \"127.0.0.1:{}\"\napi = \"ssl:0.0.0.0:{}\"\n\
         [api]\nprivate_key = \"api-privkey.pem\"\ncertificate = \"api-cert.pem\"\n{TENANTS}",
        free_port(),
        free_port()
    );
    let path = folder.join("weir.toml");
    fs::write(&path, config).expect("a configuration");
    let (code, _, stderr) = crate::support::weir::run(&["serve", &path]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("weir ctl token create"), "{stderr}");
}
