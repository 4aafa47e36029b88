//! Tests of `weir demo`: an interrupted demo leaves no namespaces and no labs, and a demo with an emulated switch names
//! the switch.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::support::PATIENCE;
use crate::support::folder::Folder;
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};

fn start(folder: &Folder, more: &[&str]) -> Program {
    let out = folder.join("results");
    let arguments = [&["demo", "--quick", "--out", &out], more].concat();
    Program::start("weir demo", env!("CARGO_BIN_EXE_weir"), &arguments)
}

/// Returns the network namespaces and labs of the demo with this process id.
fn left_behind(pid: u32) -> Vec<String> {
    let is_its_own = |name: &String| name.contains(&format!("demo{pid}"));
    let names = |folder: &str| {
        let entries = fs::read_dir(Path::new(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    [names("/run/netns"), names("/run/weir/labs")].concat().into_iter().filter(is_its_own).collect()
}

#[test]
fn ovs_an_interrupted_demo_leaves_no_namespaces_or_labs() {
    needs!(ovs_an_interrupted_demo_leaves_no_namespaces_or_labs: Needs::OpenVSwitch);
    let folder = Folder::new();
    let mut demo = start(&folder, &[]);
    let pid = demo.pid();
    let reached =
        demo.stdout.wait_for(0, PATIENCE, |line| line.contains("an answer after").then_some(()));
    assert!(reached.is_some(), "no ping: {:#?}", demo.stdout.all());
    assert!(!left_behind(pid).is_empty(), "it is in the middle of it");
    demo.signal(Signal::SIGINT);
    let code = demo.wait(PATIENCE);
    assert!(!matches!(code, None | Some(0)), "it says that it was interrupted: {code:?}");
    assert_eq!(left_behind(pid), [""; 0]);
}

/// The output also has the results of the demo, and no failed expectation.
#[test]
fn a_demo_with_an_emulated_switch_prints_emulated_in_its_first_line() {
    let folder = Folder::new();
    let mut demo = start(&folder, &["--emulated"]);
    assert_eq!(demo.wait(4 * PATIENCE), Some(0), "{:#?}", demo.stdout.all());
    let text = demo.stdout.to_end();
    assert!(
        text.lines().next().is_some_and(|line| line.to_lowercase().contains("emulated")),
        "{text}"
    );
    for words in ["OFPFMFC_EPERM", "no answer", "PACKET_IN", "Results:"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains('✗'), "{text}");
    assert!(folder.path().join("results/report.html").exists());
}
