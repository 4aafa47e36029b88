//! Tests of the architecture: the dependencies of crates and modules, and the contents of source files.
//!
//! ARCHITECTURE.md says which crate may depend on which, and what no source file may contain. The lists here say the
//! same as data, and `MODULES` adds the modules of each crate. A change that adds a dependency changes the list and
//! ARCHITECTURE.md in the same commit.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use support::{ModulePath, graph, sources};

/// The crates that each crate may depend on. A crate without a row is a failure, and so is a dependency that is not
/// listed.
const ARROWS: &[(&str, &[&str])] = &[
    ("openflow", &[]),
    ("flowspace", &["openflow"]),
    ("fabric", &[]),
    ("simulate", &["fabric", "report"]),
    ("compile", &["openflow", "flowspace", "fabric"]),
    ("hypervisor", &["openflow", "flowspace", "fabric", "compile"]),
    ("channel", &["openflow"]),
    ("daemon", &["openflow", "flowspace", "fabric", "hypervisor", "channel"]),
    ("packet", &[]),
    ("emulate", &["openflow", "flowspace", "channel"]),
    ("rest", &[]),
    ("bench", &["openflow", "channel", "emulate", "packet", "report", "rest"]),
    ("evaluate", &["openflow", "channel", "emulate", "packet", "report", "lab"]),
    ("sampling", &[]),
    ("sampling-loop", &["sampling", "agent", "lab", "packet", "report"]),
    ("agent", &["sampling", "fabric", "packet"]),
    ("lab", &["fabric"]),
    ("demo", &["openflow", "channel", "emulate", "packet", "bench", "lab", "report"]),
    ("report", &[]),
    (
        "papers",
        &[
            "bench",
            "evaluate",
            "sampling",
            "sampling-loop",
            "agent",
            "fabric",
            "packet",
            "lab",
            "report",
        ],
    ),
];

/// A module, and the modules that it uses.
type Row = (&'static str, &'static [&'static str]);

/// The modules of its own crate that each module uses, including all modules in its folder. The list is exact. Each
/// module uses only modules above itself in the list. The crate's root may use all modules. Inside a folder,
/// `circles.rs` forbids circles, and [`OF_SWITCH`] has the order for `switch`.
#[rustfmt::skip] // One name per line would make the list long.
const MODULES: &[(&str, &[Row])] = &[
    (
        "compile",
        &[
            ("ids", &[]),
            ("refusal", &[]),
            ("metadata", &["refusal"]),
            ("wire", &["refusal"]),
            ("network", &["refusal"]),
            ("action_set", &[]),
            ("packet_in_len", &[]),
            ("ownership", &["ids", "network"]),
            ("target", &["metadata", "wire"]),
            ("rule", &["metadata", "refusal", "wire"]),
            ("class", &["network", "refusal", "wire"]),
            ("instances", &["class", "network"]),
            ("context", &["ids", "instances", "network", "ownership", "refusal", "target", "wire"]),
            (
                "slice",
                &["action_set", "context", "ownership", "packet_in_len", "refusal", "rule", "wire"],
            ),
            (
                "list",
                &[
                    "class",
                    "context",
                    "instances",
                    "network",
                    "packet_in_len",
                    "refusal",
                    "rule",
                    "wire",
                ],
            ),
            ("delivery", &["action_set", "class", "metadata", "network"]),
            ("egress_group", &["action_set", "network", "wire"]),
            ("last_table", &["delivery", "list", "metadata", "network", "rule", "wire"]),
            (
                "group",
                &[
                    "action_set",
                    "class",
                    "context",
                    "egress_group",
                    "instances",
                    "list",
                    "network",
                    "refusal",
                    "rule",
                    "slice",
                ],
            ),
            (
                "entry",
                &[
                    "action_set",
                    "class",
                    "context",
                    "delivery",
                    "group",
                    "list",
                    "metadata",
                    "network",
                    "packet_in_len",
                    "refusal",
                    "rule",
                    "slice",
                    "wire",
                ],
            ),
            (
                "infra",
                &[
                    "ids",
                    "last_table",
                    "metadata",
                    "network",
                    "ownership",
                    "rule",
                    "target",
                    "wire",
                ],
            ),
            ("packet", &["class", "context", "list", "metadata", "network", "refusal", "wire"]),
        ],
    ),
    (
        "hypervisor",
        &[
            ("buffers", &[]),
            ("counters", &[]),
            ("ids", &[]),
            ("label", &[]),
            ("lookups", &[]),
            ("outbox", &[]),
            ("port_desc", &[]),
            ("sheet", &[]),
            ("work", &[]),
            ("policy", &["ids", "sheet"]),
            ("semantics", &["policy"]),
            ("parts", &["semantics"]),
            ("account", &["policy"]),
            ("cookie", &["policy"]),
            ("store", &["policy"]),
            ("named", &["store"]),
            ("north", &["account", "counters", "ids", "outbox"]),
            ("pool", &[]),
            ("tally", &["cookie", "policy"]),
            (
                "south",
                &["counters", "ids", "named", "outbox", "policy", "semantics", "sheet", "store", "tally"],
            ),
            ("flows", &["named", "south", "store", "tally", "work"]),
            ("v10", &["buffers", "flows", "label", "parts", "port_desc", "south", "tally"]),
            (
                "v13",
                &[
                    "buffers",
                    "flows",
                    "ids",
                    "label",
                    "named",
                    "parts",
                    "policy",
                    "port_desc",
                    "south",
                    "store",
                    "tally",
                ],
            ),
            ("messages", &["buffers", "flows", "label", "port_desc", "south", "tally", "v10", "v13"]),
            ("refusals", &["flows", "messages", "south"]),
            ("big_switch", &[
                "cookie", "flows", "messages", "named", "outbox", "parts", "policy", "port_desc", "refusals",
                "semantics", "south", "store", "tally", "v10", "v13",
            ]),
            ("switch", &[
                "account", "buffers", "cookie", "counters", "flows", "ids", "label", "lookups", "messages",
                "named", "north", "outbox", "parts", "policy", "pool", "port_desc", "refusals", "semantics",
                "sheet", "south", "store", "tally", "v10", "v13", "work",
            ]),
        ],
    ),
];

/// The same list for `hypervisor::switch` and all modules in it, down to files: a module, and the modules of `switch`
/// that it uses. The row `switch` is the type `Switch`. The types of its fields are above this row, and its methods are
/// below.
const OF_SWITCH: &str = include_str!("support/switch_modules.txt");

/// The crates that the tests of any crate may depend on, beside the dependencies of the crate itself.
const TEST_PEERS: &[&str] =
    &["openflow", "flowspace", "channel", "emulate", "packet", "lab", "report", "rest"];

/// Crates that measure any system as a black box. Not even their tests may depend on Weir's insides.
const BLACK_BOX: &[&str] = &["bench", "evaluate", "papers", "demo"];
const INSIDES: &[&str] = &["hypervisor", "daemon"];

/// Crates with `no_std`: the compiler proves that these crates use no socket, file, clock or thread.
const PURE: &[&str] = &["openflow", "flowspace", "fabric", "compile", "hypervisor"];

/// External crates that a pure crate may use. Each of these crates is `no_std`.
const PURE_MAY_USE: &[&str] =
    &["bitflags", "hashbrown", "heapless", "smallvec", "siphasher", "zerocopy", "rustc-hash"];

/// Crates with ring buffers, which need `unsafe`. All other crates forbid `unsafe`.
const MAY_BE_UNSAFE: &[&str] = &["channel", "packet"];

/// The most lines of a file. A longer file must be split by meaning.
const LONGEST_FILE: usize = 800;

/// Crates whose types are closed: the methods of a type are in the type's own module.
const CLOSED: &[&str] = &["hypervisor", "compile"];

/// The most fields of a type. In a type with more fields, fields that belong together must become a type.
const MOST_FIELDS: usize = 15;

/// Types with more fields, and the number of their fields. The list is exact, and no type may be added.
const MORE_FIELDS: &[(&str, usize)] = &[];

/// Types with fields that the whole crate may change (`pub(crate)`), and the number of these fields. No type may be
/// added. A plain record, which holds values without a rule about the values, has `pub` fields.
const OPEN_FIELDS: &[(&str, usize)] = &[];

/// The modules of the core that name a version of OpenFlow: the crate, the module with all modules in its folder, and
/// the reason. The list is exact. For all other modules, a difference between versions is a fact in `semantics`, an
/// ability in
/// `compile::Target`, or a function in `messages`.
const NAME_VERSIONS: &[(&str, &str, &str)] = &[
    ("compile", "wire", "writes actions of the version"),
    ("compile", "target", "says what a switch of the version can do"),
    ("compile", "infra", "makes infrastructure rules: 1.0 has one table, 1.3 several"),
    ("compile", "last_table", "makes the last table, which only 1.3 has"),
    ("compile", "list", "puts a label in front of a packet's own tags, as 1.3 does"),
    ("compile", "rule", "knows the length of an entry in flow statistics of the version"),
    ("hypervisor", "semantics", "has the facts of each version"),
    ("hypervisor", "messages", "calls the function that reads or writes a message of the version"),
    ("hypervisor", "v10", "reads and writes messages of 1.0"),
    ("hypervisor", "v13", "reads and writes messages of 1.3"),
    ("hypervisor", "switch::dispatch", "calls what a switch does with a message of the version"),
    ("hypervisor", "switch::trace", "follows actions of 1.0, or instructions of 1.3"),
    ("hypervisor", "big_switch::wire", "writes messages of both versions"),
];

#[test]
fn crates_depend_only_on_listed_crates() {
    let mut wrong = Vec::new();
    for member in members() {
        if member.name == "cli" {
            continue; // The binary may use everything.
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == member.name) else {
            wrong.push(format!("crate `{}` has no row in ARROWS", member.name));
            continue;
        };
        for used in member.own_dependencies(&["dependencies", "build-dependencies"]) {
            if !allowed.contains(&used.as_str()) {
                wrong.push(format!("`{}` must not depend on `{used}`", member.name));
            }
        }
        for used in member.own_dependencies(&["dev-dependencies"]) {
            let peer = TEST_PEERS.contains(&used.as_str()) || allowed.contains(&used.as_str());
            if !peer {
                wrong.push(format!("the tests of `{}` must not depend on `{used}`", member.name));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn modules_use_exactly_the_modules_listed_for_their_crate() {
    let mut wrong = Vec::new();
    for (name, rows) in MODULES {
        let graph = graph(&sources(&repository().join("crates").join(name)));
        let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, uses) in graph.iter().filter(|(module, _)| !module.is_empty()) {
            let others = uses.iter().filter(|used| used[0] != module[0]);
            used.entry(module[0].clone()).or_default().extend(others.map(|used| used[0].clone()));
        }
        let listed: BTreeMap<String, BTreeSet<String>> = rows
            .iter()
            .map(|(module, used)| {
                ((*module).to_owned(), used.iter().map(|used| (*used).to_owned()).collect())
            })
            .collect();
        let modules: BTreeSet<&String> = used.keys().chain(listed.keys()).collect();
        for module in modules {
            if used.get(module) != listed.get(module) {
                wrong.push(format!(
                    "`{name}::{module}` uses {:?}, and MODULES lists {:?}",
                    used.get(module),
                    listed.get(module)
                ));
            }
        }
        for (at, (module, used)) in rows.iter().enumerate() {
            let is_above = |used: &&&str| rows[..at].iter().any(|(above, _)| above == *used);
            for below in used.iter().filter(|used| !is_above(used)) {
                wrong.push(format!("`{name}::{module}` uses `{below}`, which stands below it"));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn modules_of_switch_use_exactly_the_listed_modules() {
    let name = |module: &ModulePath| match module.split_first()? {
        (first, []) if first == "switch" => Some("switch".to_owned()),
        (first, rest) if first == "switch" => Some(rest.join("::")),
        _ => None,
    };
    let graph = graph(&sources(&repository().join("crates/hypervisor")));
    let found = graph.iter().filter_map(|(module, uses)| {
        let used: BTreeSet<String> = uses.iter().filter_map(name).collect();
        let used: String = used.iter().map(|used| format!(" {used}")).collect();
        Some(format!("{}:{used}", name(module)?))
    });
    let found: BTreeSet<String> = found.collect();
    let listed: BTreeSet<String> = OF_SWITCH.lines().map(str::to_owned).collect();
    let mut wrong: Vec<String> = found.difference(&listed).map(|it| format!("is: {it}")).collect();
    wrong.extend(listed.difference(&found).map(|it| format!("is listed: {it}")));
    let mut above = BTreeSet::new();
    for line in OF_SWITCH.lines() {
        let (module, used) = line.split_once(' ').unwrap_or((line, ""));
        let module = module.trim_end_matches(':');
        let below = used.split(' ').filter(|used| !used.is_empty() && !above.contains(used));
        wrong.extend(below.map(|used| format!("`{module}` uses `{used}`, which stands below it")));
        above.insert(module);
    }
    assert_none(&wrong);
}

#[test]
fn measuring_crates_do_not_depend_on_hypervisor_or_daemon() {
    for name in BLACK_BOX {
        let reached = reachable(name);
        let seen: Vec<_> = INSIDES.iter().filter(|inside| reached.contains(**inside)).collect();
        assert!(seen.is_empty(), "`{name}` reaches {seen:?}");
    }
}

#[test]
fn pure_crates_cannot_do_io() {
    let mut wrong = Vec::new();
    for member in members().into_iter().filter(|member| PURE.contains(&member.name.as_str())) {
        let root = member.root_file();
        if !attributes(&root).contains("#![no_std]") {
            wrong.push(format!("{} lacks #![no_std]", shown(&root)));
        }
        for file in member.sources() {
            // A test module may use std, and the library may not.
            let text = before_tests(&read(&file)).to_owned();
            if text.contains("extern crate std") && !text.contains("#[cfg(test)]\nextern crate std")
            {
                wrong.push(format!("{} brings std back", shown(&file)));
            }
        }
        for used in member.foreign_dependencies("dependencies") {
            if !PURE_MAY_USE.contains(&used.as_str()) {
                wrong.push(format!(
                    "`{}` must not use `{used}`: it is not known to be no_std",
                    member.name
                ));
            }
        }
    }
    assert_none(&wrong);
}

/// Crates that use std for their solvers, so the compiler does not prove that these crates are pure. The following test
/// keeps these crates pure, and so does the `clippy.toml` of `sampling`.
const COMPUTES: &[&str] = &["sampling", "simulate"];

#[test]
fn planner_and_simulation_use_no_network_files_processes_threads_or_clock() {
    // Each word is written in halves, so that the test does not find this file.
    let forbidden = [
        concat!("std::", "net"),
        concat!("std::", "fs"),
        concat!("std::", "process"),
        concat!("std::", "thread"),
        concat!("Instant", "::"),
        concat!("System", "Time"),
    ];
    let mut wrong = Vec::new();
    for member in members().into_iter().filter(|it| COMPUTES.contains(&it.name.as_str())) {
        let library = member.folder.join("src");
        for file in member.sources().iter().filter(|file| file.starts_with(&library)) {
            let text = read(file);
            let found = forbidden.iter().filter(|word| text.contains(**word));
            wrong.extend(found.map(|word| format!("{} names {word}", shown(file))));
        }
    }
    assert_none(&wrong);
}

#[test]
fn unsafe_code_is_forbidden_outside_channel_and_packet() {
    let mut wrong = Vec::new();
    for member in members() {
        let root = member.root_file();
        if MAY_BE_UNSAFE.contains(&member.name.as_str()) {
            for file in member.sources() {
                wrong.extend(unreasoned_unsafe(&file));
            }
        } else if !attributes(&root).contains("#![forbid(unsafe_code)]") {
            wrong.push(format!("{} lacks #![forbid(unsafe_code)]", shown(&root)));
        }
    }
    assert_none(&wrong);
}

#[test]
fn source_files_are_short_and_have_a_description() {
    let mut wrong = Vec::new();
    for file in members().iter().flat_map(Member::sources) {
        let text = read(&file);
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            wrong.push(format!("{} has {lines} lines; split it by meaning", shown(&file)));
        }
        // The parent module describes a file `tests.rs`.
        let is_described =
            file.ends_with("tests.rs") || text.lines().any(|line| line.starts_with("//! "));
        if !is_described {
            wrong.push(format!("{} does not open with //! and what it is", shown(&file)));
        }
    }
    assert_none(&wrong);
}

#[test]
fn types_have_few_fields() {
    let many = |fields: &[&str]| Some(fields.len()).filter(|fields| *fields > MOST_FIELDS);
    assert_fields("fields", MORE_FIELDS, many);
}

#[test]
fn types_have_no_crate_visible_fields() {
    let open = |fields: &[&str]| {
        let open = fields.iter().filter(|field| field.starts_with("pub(crate) ")).count();
        Some(open).filter(|open| *open > 0)
    };
    assert_fields("fields with `pub(crate)`", OPEN_FIELDS, open);
}

#[test]
fn types_have_their_methods_in_their_folder() {
    let mut wrong = Vec::new();
    for name in CLOSED {
        let sources = sources(&repository().join("crates").join(name));
        let mut homes: BTreeMap<&str, Vec<&ModulePath>> = BTreeMap::new();
        for (module, text) in &sources {
            let words: Vec<&str> = text.split_whitespace().collect();
            for pair in words.windows(2).filter(|pair| ["struct", "enum"].contains(&pair[0])) {
                homes.entry(first_name(pair[1])).or_default().push(module);
            }
        }
        for (module, text) in &sources {
            let impls =
                text.lines().filter(|line| line.starts_with("impl") && !line.contains(" for "));
            for line in impls {
                let type_ = line.trim_start_matches("impl").trim_start();
                let behind = type_.split_once("> ").filter(|_| type_.starts_with('<'));
                let type_ = first_name(behind.map_or(type_, |(_, type_)| type_));
                let is_home = |home: &&ModulePath| module.starts_with(home);
                if !homes.get(type_).is_some_and(|homes| homes.iter().any(is_home)) {
                    wrong.push(format!("`{name}::{}` has methods of `{type_}`", module.join("::")));
                }
            }
        }
    }
    assert_none(&wrong);
}

/// The name that a text begins with.
fn first_name(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

#[test]
fn openflow_versions_are_named_only_in_listed_modules() {
    // A version has one name in headers and another name in the compiler.
    let names = |text: &str| ["Version::V1_", "Wire::V1"].iter().any(|name| text.contains(name));
    for crate_ in CLOSED {
        let of_crate = NAME_VERSIONS.iter().filter(|(of, ..)| of == crate_);
        let listed: BTreeSet<&str> = of_crate.map(|(_, module, _)| *module).collect();
        let mut found = BTreeSet::new();
        let sources = sources(&repository().join("crates").join(crate_));
        for (module, _) in sources.iter().filter(|(_, text)| names(text)) {
            let module = module.join("::");
            let is_in = |of: &&str| module == **of || module.starts_with(&format!("{of}::"));
            let name = listed.iter().copied().find(|of| is_in(of));
            found.insert(name.map_or(module.clone(), str::to_owned));
        }
        let listed: BTreeSet<String> = listed.into_iter().map(str::to_owned).collect();
        assert_eq!(found, listed, "these modules of `{crate_}` name a version, and those may");
    }
}

/// Counts fields of each type of the closed crates, and compares with a list.
#[track_caller]
fn assert_fields(what: &str, listed: &[(&str, usize)], count: impl Fn(&[&str]) -> Option<usize>) {
    let mut counted = BTreeMap::new();
    let mut types = 0;
    for name in CLOSED {
        for (module, text) in sources(&repository().join("crates").join(name)) {
            let path = [&[(*name).to_owned()], module.as_slice()].concat().join("::");
            for (type_, fields) in structs(&text) {
                types += 1;
                let count = count(&fields);
                counted.extend(count.map(|count| (format!("{path}::{type_}"), count)));
            }
        }
    }
    assert!(types > 100, "found only {types} types");
    let listed: BTreeMap<String, usize> =
        listed.iter().map(|(type_, count)| ((*type_).to_owned(), *count)).collect();
    let types: BTreeSet<&String> = counted.keys().chain(listed.keys()).collect();
    let differs = types.into_iter().filter(|type_| counted.get(*type_) != listed.get(*type_));
    let wrong: Vec<String> = differs
        .map(|type_| {
            let (counted, listed) = (counted.get(type_), listed.get(type_));
            format!("`{type_}` has {counted:?} {what}, and the list says {listed:?}")
        })
        .collect();
    assert_none(&wrong);
}

/// The structs with named fields in a formatted source, and the lines of their fields.
fn structs(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((before, after)) = line.split_once("struct ") else { continue };
        let is_type = before.is_empty() || before.starts_with("pub") && before.ends_with(' ');
        if !is_type || !line.ends_with('{') {
            continue;
        }
        let name = after.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let body = lines.by_ref().take_while(|line| *line != "}");
        // A long type continues in lines with more indentation.
        let fields = body.filter_map(|line| line.strip_prefix("    "));
        let is_field = |line: &&str| !line.starts_with([' ', '/', '#', '}', ')', '>']);
        found.push((name, fields.filter(is_field).collect()));
    }
    found
}

#[test]
fn source_files_contain_no_todo_marks() {
    // Each word is written in halves, so that the test does not find this file.
    let forbidden = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("X", "XX:"),
        concat!("To be ", "filled"),
    ];
    assert_none(&occurrences(&forbidden));
}

#[test]
fn tests_named_on_the_security_page_exist() {
    let mut files = Vec::new();
    collect(&repository().join("crates"), "rs", &mut files);
    let sources: Vec<String> = files.iter().map(|file| read(file)).collect();
    let page = read(&repository().join("docs/security.md"));
    // A test's name has more than three underscores, and a metric's name begins with `weir_`.
    let is_test = |word: &&str| {
        let is_name =
            word.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_');
        is_name && word.matches('_').count() > 3 && !word.starts_with("weir_")
    };
    let quoted = page.split('`').skip(1).step_by(2);
    let named: BTreeSet<&str> = quoted.filter(is_test).collect();
    assert!(named.len() > 20, "{named:?}");
    let is_there = |name: &&&str| sources.iter().any(|it| it.contains(&format!("fn {name}(")));
    let missing: Vec<&&str> = named.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn no_file_contains_machine_specific_paths() {
    let forbidden = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/tmp/tar", "get"),
    ];
    assert_none(&occurrences(&forbidden));
}

/// One crate of the workspace.
struct Member {
    /// The name without the prefix `weir-`.
    name: String,
    folder: PathBuf,
    manifest: toml::Table,
}

impl Member {
    fn own_dependencies(&self, sections: &[&str]) -> Vec<String> {
        sections
            .iter()
            .flat_map(|section| self.dependencies(section))
            .filter_map(|name| name.strip_prefix("weir-").map(str::to_owned))
            .collect()
    }

    fn foreign_dependencies(&self, section: &str) -> Vec<String> {
        self.dependencies(section).into_iter().filter(|name| !name.starts_with("weir-")).collect()
    }

    fn dependencies(&self, section: &str) -> Vec<String> {
        let direct = self.manifest.get(section).and_then(toml::Value::as_table);
        let by_target = self.manifest.get("target").and_then(toml::Value::as_table);
        let conditional = by_target
            .into_iter()
            .flat_map(toml::Table::values)
            .filter_map(|target| target.get(section).and_then(toml::Value::as_table));
        direct.into_iter().chain(conditional).flat_map(toml::Table::keys).cloned().collect()
    }

    fn root_file(&self) -> PathBuf {
        let lib = self.folder.join("src/lib.rs");
        if lib.exists() { lib } else { self.folder.join("src/main.rs") }
    }

    /// Returns all source files: the library, its tests, benchmarks, examples and fuzz targets.
    fn sources(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.folder, "rs", &mut found);
        found
    }
}

fn members() -> Vec<Member> {
    let mut members: Vec<_> = fs::read_dir(repository().join("crates"))
        .expect("the crates folder")
        .map(|entry| entry.expect("a folder entry").path())
        .filter(|folder| folder.join("Cargo.toml").exists())
        .map(|folder| {
            let manifest: toml::Table =
                read(&folder.join("Cargo.toml")).parse().expect("a manifest");
            let package = manifest["package"]["name"].as_str().expect("a package name");
            let name = package.strip_prefix("weir-").expect("packages are named weir-*").to_owned();
            Member { name, folder, manifest }
        })
        .collect();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(members.len() > 5, "found only {} crates", members.len());
    members
}

/// Returns each crate that `name` depends on, directly or through other crates, tests included.
fn reachable(name: &str) -> BTreeSet<String> {
    let members = members();
    let mut reached = BTreeSet::new();
    let mut sections: &[&str] = &["dependencies", "build-dependencies", "dev-dependencies"];
    let mut frontier = vec![name.to_owned()];
    while let Some(next) = frontier.pop() {
        for member in members.iter().filter(|member| member.name == next) {
            frontier.extend(
                member
                    .own_dependencies(sections)
                    .into_iter()
                    .filter(|used| reached.insert(used.clone())),
            );
        }
        // Only the tests of the first crate count, not the tests of its dependencies.
        sections = &["dependencies", "build-dependencies"];
    }
    reached
}

/// Returns each `unsafe` without a `SAFETY` reason in the lines just above.
fn unreasoned_unsafe(file: &Path) -> Vec<String> {
    const LINES_ABOVE: usize = 8;
    let text = read(file);
    let lines: Vec<_> = text.lines().collect();
    let mut wrong = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let opens = ["unsafe {", "unsafe impl"].iter().any(|opening| code.contains(opening));
        let above = &lines[index.saturating_sub(LINES_ABOVE)..=index];
        if opens && !above.iter().any(|line| line.contains("SAFETY:")) {
            wrong.push(format!("{}:{}: unsafe without a SAFETY reason", shown(file), index + 1));
        }
    }
    wrong
}

fn occurrences(forbidden: &[&str]) -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["crates", "scripts", "docs", "examples", ".ci"] {
        for extension in ["rs", "toml", "md", "py", "sh", "txt", ""] {
            collect(&repository().join(folder), extension, &mut files);
        }
    }
    for name in
        ["Makefile", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "deny.toml"]
    {
        files.extend(Some(repository().join(name)).filter(|file| file.exists()));
    }
    let mut found = Vec::new();
    for file in files {
        // Fuzz corpora and captured bytes have no extension either, and are not text.
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for (index, line) in text.lines().enumerate() {
            if let Some(word) = forbidden.iter().find(|word| line.contains(**word)) {
                found.push(format!("{}:{}: {word}", shown(&file), index + 1));
            }
        }
    }
    found
}

/// Collects the files below `folder` that end in `.extension` (empty: without one), except generated files.
fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    const GENERATED: [&str; 4] = ["target", "corpus", "artifacts", "__pycache__"];
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("a folder entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !GENERATED.contains(&name) {
                collect(&path, extension, found);
            }
        } else if path.extension().and_then(|found| found.to_str()).unwrap_or_default() == extension
        {
            found.push(path);
        }
    }
    found.sort();
}

fn attributes(file: &Path) -> String {
    read(file).lines().filter(|line| line.starts_with("#![")).collect::<Vec<_>>().join("\n")
}

fn before_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn shown(file: &Path) -> String {
    file.strip_prefix(repository()).unwrap_or(file).display().to_string()
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[track_caller]
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n  {}", wrong.join("\n  "));
}
