//! Tests that no crate has modules that use each other in a circle.
//!
//! A module of a circle cannot be understood, tested or moved without all other modules of the circle. A module that
//! exports a name of another module counts as used by each module that takes the name from it.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use support::{Graph, ModulePath, graph, sources};

#[test]
fn no_crate_has_cyclic_module_dependencies() {
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
fn a_module_cycle_is_found_through_use_groups_parents_children_and_aliases() {
    let graph = graph_of([
        ("", "pub use a::b::Kind;\npub mod a; mod c; mod d;"),
        ("a", "use crate::{c, d::{self, Deep as Other}};"),
        ("a::b", "fn f() { super::super::c::g() }"),
        ("c", "//! crate::d is not used.\nuse crate::Kind;"),
        ("d", "use std::fmt;"),
    ]);
    let uses = |of: &str| named(&graph[&of.split("::").map(str::to_owned).collect::<Vec<_>>()]);
    assert_eq!(
        (uses("a"), uses("a::b"), uses("c")),
        (vec!["c".to_owned(), "d".to_owned()], vec!["c".to_owned()], vec!["a::b".to_owned()],)
    );
    assert_eq!(circles(&graph).iter().map(named).collect::<Vec<_>>(), [["a::b", "c"]]);
}

#[test]
fn a_module_cycle_is_found_through_a_module_that_re_exports_the_name() {
    let found = |of_child: &str, of_other: &str| -> Vec<Vec<String>> {
        let graph = graph_of([
            ("", "pub mod a; mod b;"),
            ("a", "mod kind; mod work; pub use kind::Kind; use work::run;"),
            ("a::kind", "pub struct Kind;"),
            ("a::work", of_child),
            ("b", of_other),
        ]);
        circles(&graph).iter().map(named).collect()
    };
    let none: [[&str; 0]; 0] = [];
    assert_eq!(found("use super::kind::Kind; use crate::b::f;", "use crate::a::kind::Kind;"), none);
    assert_eq!(found("use super::Kind;", ""), [["a", "a::work"]]);
    let through_another_folder = found("use crate::b::f;", "use crate::a::Kind;");
    assert_eq!(through_another_folder, [["a", "a::work", "b"]]);
}

/// Returns the graph of these modules, given by name and source.
fn graph_of<const N: usize>(sources: [(&str, &str); N]) -> Graph {
    let sources: BTreeMap<ModulePath, String> = sources
        .map(|(path, text)| {
            let parts = path.split("::").filter(|part| !part.is_empty());
            (parts.map(str::to_owned).collect(), text.to_owned())
        })
        .into();
    graph(&sources)
}

fn named(modules: &BTreeSet<ModulePath>) -> Vec<String> {
    modules.iter().map(|module| module.join("::")).collect()
}

/// Returns each set of at least two modules in which each module reaches all other modules.
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
