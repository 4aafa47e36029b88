//! Tests of the loss of the state folder: Weir restores the state from a backup.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::kill9::{Rules, on_switch};
use crate::slices::by_port;
use crate::support::network::{Network, V10};
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::{
    BARRIER_REPLY, BARRIER_REQUEST, Controller, FLOW_MOD, Message, Peer, add_flow,
};
use crate::support::weir::run;

#[test]
fn ovs_a_restored_backup_undoes_later_flow_mods() {
    needs!(ovs_a_restored_backup_undoes_later_flow_mods: Needs::OpenVSwitch);
    let network = Network::single(&["10.0.0.1", "10.0.0.2"], V10);
    let red = Controller::listen();
    let config = by_port("red", &red.name(), [1, 2]);
    let mut weir = network.serve(&config);
    let peer = red.switch(0);
    let change = |peer: &Peer, xid, deletes: bool, priority, port| {
        let mut body = add_flow(1, port, priority, 0);
        body[49] = 4 * u8::from(deletes);
        peer.send(&Message::new(FLOW_MOD, xid, &body));
        peer.send(&Message::new(BARRIER_REQUEST, xid, &[]));
        peer.expect_reply(BARRIER_REPLY, xid);
    };
    (1..=3).for_each(|priority| change(&peer, u32::from(priority), false, priority, 2));
    let backup = weir.folder.join("monday.backup");
    let api = weir.api.to_string();
    let ask = || run(&["ctl", "--api", &api, "backup", &backup]);
    let (code, _, stderr) = ask();
    assert_eq!(code, Some(0), "{stderr}");
    let (code, _, stderr) = ask();
    assert!(code == Some(2) && stderr.contains("is there already"), "{stderr}");
    // `ulimit -f 0` makes writes fail, as a full disk does.
    let cut = weir.folder.join("cut.backup");
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" ctl --api \"$1\" backup \"$2\"";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_weir"), &api, &cut])
        .output()
        .expect("sh");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(!Path::new(&cut).exists(), "what is left of it is removed");

    change(&peer, 11, false, 4, 2);
    change(&peer, 12, true, 2, 2);
    change(&peer, 13, false, 3, 0xfffd);
    let since = Rules::from([(1, 2), (3, 0xfffd), (4, 2)]);
    assert_eq!(on_switch(&network, 1), since);

    let before = red.connections();
    weir.crash();
    weir.restart_from(&backup);
    let peer = red.switch(before);
    peer.send(&Message::new(BARRIER_REQUEST, 21, &[]));
    peer.expect_reply(BARRIER_REPLY, 21);
    assert_eq!(on_switch(&network, 1), Rules::from([(1, 2), (2, 2), (3, 2)]));

    // A restart with the same `--restore` is refused, because the state folder exists: Weir must not return to an old
    // backup.
    assert_eq!(weir.terminate(), Some(0));
    let (config, state) = (weir.folder.join("weir.toml"), weir.folder.join("state"));
    let (code, _, stderr) = run(&["serve", &config, "--state", &state, "--restore", &backup]);
    assert!(code == Some(3) && stderr.contains("is there already"), "{stderr}");
    // Weir also refuses a backup file that is cut off.
    let bytes = fs::read(&backup).expect("the backup");
    fs::write(&cut, &bytes[..bytes.len() - 9]).expect("a file");
    let other = weir.folder.join("other");
    let (code, _, stderr) = run(&["serve", &config, "--state", &other, "--restore", &cut]);
    assert!(code == Some(3) && stderr.contains("it is damaged, or cut off"), "{stderr}");
}
