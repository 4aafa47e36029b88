//! The modules of a crate that each module uses, read from the sources of the crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// `a::b` of a crate is `["a", "b"]`; the crate's root is empty.
pub(crate) type ModulePath = Vec<String>;
/// The modules that each module names.
pub(crate) type Graph = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// The source of each module of a crate, without its tests.
pub(crate) fn sources(folder: &Path) -> BTreeMap<ModulePath, String> {
    let mut sources = BTreeMap::new();
    collect(&folder.join("src"), &mut Vec::new(), &mut sources);
    sources
}

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

/// Returns the modules that each module names. A name that a module exports for another module counts for both: for the
/// exporting module, and for the module that defines the name. The crate's root is left out, because its items belong
/// to all modules.
pub(crate) fn graph(sources: &BTreeMap<ModulePath, String>) -> Graph {
    let named: BTreeMap<&ModulePath, Vec<Named>> =
        sources.iter().map(|(module, text)| (module, paths(module, text, sources))).collect();
    let uses = named.iter().map(|(module, paths)| {
        let through = paths.iter().filter_map(|one| known(&one.path, sources));
        let stands = paths.iter().filter_map(|one| resolve(&one.path, sources, &named, 8));
        let used = through.map(<[String]>::to_vec).chain(stands);
        ((*module).clone(), used.filter(|used| used != *module && !used.is_empty()).collect())
    });
    uses.collect()
}

/// A path from the crate's root, and its local name.
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

/// Reads `a::b`, `a::{b, c as d}` or `*` from a token on. Returns the index after the path.
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
            // Another token, for example of generic arguments, ends the path.
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

/// Returns the innermost module on a path: the module that has or exports the rest of the path.
fn known<'a>(path: &'a [String], sources: &BTreeMap<ModulePath, String>) -> Option<&'a [String]> {
    let mut heads = (0..=path.len()).rev().map(|length| &path[..length]);
    heads.find(|module| sources.contains_key(*module))
}

/// Returns the module that defines the item of a path, also if another module exports the item by a name of its own.
fn resolve(
    path: &[String],
    sources: &BTreeMap<ModulePath, String>,
    named: &BTreeMap<&ModulePath, Vec<Named>>,
    depth: usize,
) -> Option<ModulePath> {
    let module = known(path, sources)?;
    let next = path.get(module.len());
    let again = next.and_then(|next| {
        let names = named.get(&module.to_vec())?;
        let other = names.iter().find(|one| one.name == *next && one.path.as_slice() != path)?;
        resolve(&other.path, sources, named, depth.checked_sub(1)?)
    });
    Some(again.unwrap_or_else(|| module.to_vec()))
}
