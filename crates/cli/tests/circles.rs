//! Modules that use each other in a circle, held by a test.
//!
//! In a circle no module can be understood, tested or moved without all others. No crate has one.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use support::{Graph, ModulePath, graph, sources};

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(crates).expect("the crates folder") {
        let folder = entry.expect("a folder entry").path();
        if !folder.join("src").exists() {
            continue;
        }
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        for circle in circles(&graph(&sources(&folder))) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            wrong.push(format!("{name}: {}", names.join(" ")));
        }
    }
    wrong.sort();
    assert!(wrong.is_empty(), "\n  {}", wrong.join("\n  "));
}

#[test]
fn a_circle_is_seen_through_groups_parents_children_and_other_names() {
    let source = |path: &str, text: &str| {
        (
            path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            text.to_owned(),
        )
    };
    let sources: BTreeMap<ModulePath, String> = [
        source("", "pub use a::b::Kind;\npub mod a; mod c; mod d;"),
        source("a", "use crate::{c, d::{self, Deep as Other}};"),
        source("a::b", "fn f() { super::super::c::g() }"),
        source("c", "//! crate::d is not used.\nuse crate::Kind;"),
        source("d", "use std::fmt;"),
    ]
    .into();
    let graph = graph(&sources);
    let named = |set: &BTreeSet<ModulePath>| -> Vec<String> {
        set.iter().map(|module| module.join("::")).collect()
    };
    let uses = |of: &str| named(&graph[&of.split("::").map(str::to_owned).collect::<Vec<_>>()]);
    assert_eq!(
        (uses("a"), uses("a::b"), uses("c")),
        (vec!["c".to_owned(), "d".to_owned()], vec!["c".to_owned()], vec!["a::b".to_owned()],)
    );
    let circles = circles(&graph);
    assert_eq!(circles.iter().map(named).collect::<Vec<_>>(), [["a::b", "c"]]);
}

/// Sets of modules each of which reaches all others of its set, if there are two at least.
fn circles(graph: &Graph) -> Vec<BTreeSet<ModulePath>> {
    let reached: Graph = graph
        .keys()
        .map(|start| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
            while let Some(module) = open.pop() {
                open.extend(
                    graph
                        .get(module)
                        .into_iter()
                        .flatten()
                        .filter(|next| seen.insert((*next).clone())),
                );
            }
            (start.clone(), seen)
        })
        .collect();
    let circle = |module: &ModulePath| -> BTreeSet<ModulePath> {
        let back = reached[module]
            .iter()
            .filter(|other| reached.get(*other).is_some_and(|all| all.contains(module)));
        back.cloned().collect()
    };
    let mut circles: Vec<_> = graph.keys().map(circle).filter(|circle| circle.len() > 1).collect();
    circles.sort();
    circles.dedup();
    circles
}
