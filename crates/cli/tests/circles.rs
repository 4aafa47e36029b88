//! Modules that use each other in a circle, held by a test.
//!
//! In a circle no module can be understood, tested or moved without all others. `CIRCLES` says how many modules each
//! circle of each crate has; a new circle or a larger one fails, and so does a smaller one until its number is lowered.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The circles of a crate, by how many modules they have, largest first. Crates that are missing here have none.
const CIRCLES: &[(&str, &[usize])] = &[
    ("channel", &[3, 2]),
    ("daemon", &[30, 9, 3, 3, 2, 2, 2]),
    ("emulate", &[11, 5, 3, 2]),
    ("evaluate", &[16, 11]),
    ("fabric", &[7, 4, 4, 3, 3, 2]),
    ("flowspace", &[5, 4, 3]),
    ("hypervisor", &[48, 3]),
    ("lab", &[12]),
    ("openflow", &[6]),
];

/// `a::b` of a crate as `["a", "b"]`; the crate's root is empty.
type ModulePath = Vec<String>;
type Graph = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

#[test]
fn circles_of_modules_only_shrink() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(crates).expect("the crates folder") {
        let folder = entry.expect("a folder entry").path();
        if !folder.join("src").exists() {
            continue;
        }
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let mut sources = BTreeMap::new();
        collect(&folder.join("src"), &mut Vec::new(), &mut sources);
        let circles = circles(&graph(&sources));
        let sizes: Vec<usize> = circles.iter().map(BTreeSet::len).collect();
        let known = CIRCLES.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, known)| known);
        if sizes != known {
            let largest = circles.iter().map(|circle| {
                let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
                format!("\n    {}", names.join(" "))
            });
            wrong.push(format!(
                "{name} has circles of {sizes:?} modules, not of {known:?}{}",
                largest.collect::<String>()
            ));
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

/// The source of each module, without its tests.
fn collect(folder: &Path, at: &mut ModulePath, sources: &mut BTreeMap<ModulePath, String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("a folder entry").path();
        let stem = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let is_test = stem == "tests" || stem.ends_with("_tests") || stem == "bin";
        if is_test {
            continue;
        }
        let is_root = ["lib", "main", "mod"].contains(&stem.as_str());
        if !is_root {
            at.push(stem);
        }
        if path.is_dir() {
            collect(&path, at, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            sources.entry(at.clone()).or_default().push_str(text);
        }
        if !is_root {
            at.pop();
        }
    }
}

/// Which modules each module names.
fn graph(sources: &BTreeMap<ModulePath, String>) -> Graph {
    let named: BTreeMap<&ModulePath, Vec<Named>> =
        sources.iter().map(|(module, text)| (module, paths(module, text, sources))).collect();
    let uses = named.iter().map(|(module, paths)| {
        let used = paths.iter().filter_map(|one| resolve(&one.path, sources, &named, 8));
        ((*module).clone(), used.filter(|used| used != *module && !used.is_empty()).collect())
    });
    uses.collect()
}

/// A path from the crate's root, and the name that it has where it stands.
struct Named {
    path: ModulePath,
    name: String,
}

/// All paths in a module's source that begin at the crate's root, at a parent or at a child.
fn paths(module: &ModulePath, text: &str, sources: &BTreeMap<ModulePath, String>) -> Vec<Named> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_start = at == 0 || tokens[at - 1] != "::";
        let leads_on = tokens.get(at + 1).is_some_and(|next| next == "::");
        let child = [module.as_slice(), &tokens[at..=at]].concat();
        let start = match tokens[at].as_str() {
            _ if !is_start || !leads_on => None,
            "crate" => Some((Vec::new(), at + 2)),
            "self" => Some((module.clone(), at + 2)),
            "super" => {
                let (mut parent, mut next) = (module.clone(), at);
                while tokens[next] == "super" && tokens.get(next + 1).is_some_and(|t| t == "::") {
                    parent.pop();
                    next += 2;
                }
                Some((parent, next))
            }
            _ if sources.contains_key(&child) => Some((module.clone(), at)),
            _ => None,
        };
        at = match start {
            Some((prefix, next)) => tree(&tokens, next, prefix, &mut found).max(at + 1),
            None => at + 1,
        };
    }
    found
}

/// Reads `a::b`, `a::{b, c as d}` or `*` from there on; gives the place behind it.
fn tree(tokens: &[String], mut at: usize, mut path: ModulePath, found: &mut Vec<Named>) -> usize {
    let token = |at: usize| tokens.get(at).map_or("", String::as_str);
    loop {
        match token(at) {
            "{" => {
                at += 1;
                while !matches!(token(at), "}" | "") {
                    at = tree(tokens, at, path.clone(), found);
                    at += usize::from(token(at) == ",");
                }
                return at + 1;
            }
            "*" | "self" => {
                found.push(Named { name: path.last().cloned().unwrap_or_default(), path });
                return at + 1;
            }
            word if word.starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
                path.push(word.to_owned());
                at += 1;
                if token(at) == "::" {
                    at += 1;
                    continue;
                }
                let mut name = word.to_owned();
                if token(at) == "as" {
                    name = token(at + 1).to_owned();
                    at += 2;
                }
                found.push(Named { path, name });
                return at;
            }
            // Generic arguments, say: the path has ended.
            _ => {
                found.push(Named { name: String::new(), path });
                return at + 1;
            }
        }
    }
}

/// Words, `::` and single signs, without comments.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for line in text.lines() {
        let mut rest = line.split("//").next().unwrap_or_default();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (token, behind) = rest.split_at(length);
            if !first.is_whitespace() {
                tokens.push(token.to_owned());
            }
            rest = behind;
        }
    }
    tokens
}

/// The module in which what a path names stands, also if another module gives it a name of its own.
fn resolve(
    path: &[String],
    sources: &BTreeMap<ModulePath, String>,
    named: &BTreeMap<&ModulePath, Vec<Named>>,
    depth: usize,
) -> Option<ModulePath> {
    let known = (0..=path.len()).rev().map(|length| &path[..length]);
    let module = known.into_iter().find(|module| sources.contains_key(*module))?;
    let next = path.get(module.len());
    let again = next.and_then(|next| {
        let names = named.get(&module.to_vec())?;
        let other = names.iter().find(|one| one.name == *next && one.path.as_slice() != path)?;
        resolve(&other.path, sources, named, depth.checked_sub(1)?)
    });
    Some(again.unwrap_or_else(|| module.to_vec()))
}

/// Sets of modules each of which reaches all others of its set, if there are two at least; the largest first.
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
    circles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    circles.dedup();
    circles
}
