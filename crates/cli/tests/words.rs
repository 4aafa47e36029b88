//! Tests of the words in pages, sources and comments.
//!
//! `GLOSSARY` has words of an older private language, and the technical term for each. No page, no source file of
//! `compile` or `hypervisor`, and no comment of another crate or its tests may use an old word.
//!
//! The tests ignore code blocks and code spans in pages, because these show the output of programs.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

/// The old words, in all their forms, and the replacement for each.
const GLOSSARY: &[(&[&str], &str)] = &[
    (&["amid"], "during"),
    (&["anew"], "again"),
    (&["astray"], "received elsewhere than it sends"),
    (&["bear", "bears", "bore"], "carry a label"),
    (&["beneath"], "below; for rules: shadowed"),
    (&["comes to what", "come to what"], "has the result that"),
    (&["condemned"], "to be deleted"),
    (&["crowded", "crowded port"], "hairpin port"),
    (&["doom", "doomed"], "to be deleted with what they name"),
    (&["hang on", "hangs on"], "depends on"),
    (&["kept packet", "kept packets"], "buffered packet"),
    (&["nobody's"], "without an owner"),
    (&["pardon", "pardoned"], "keep"),
    (&["port of entry", "ports of entry"], "ingress port"),
    (&["puppet", "puppets"], "scripted peer"),
    (&["spoken of"], "described"),
    (&["stand behind", "stands behind"], "is ordered behind"),
    (&["taken back", "takes back", "take back"], "restored"),
    (&["tell", "tells", "told"], "sent, reported, shown"),
    (&["that which", "of whom", "whereto", "whoever"], "the noun"),
    (&["the way back"], "restoring the state before a change"),
    (&["way in", "ways in"], "ingress"),
    (&["way out", "ways out"], "egress"),
];

/// Words that only sources may not have. In pages these words are ordinary English.
const IN_SOURCES: &[(&[&str], &str)] = &[
    (&["exits"], "egress group"),
    (&["piece", "pieces"], "rule"),
    (&["retired"], "removed, counters awaited"),
    (&["unplaced"], "uninstalled"),
];

#[test]
fn documentation_contains_no_words_of_the_old_glossary() {
    let mut found = Vec::new();
    for page in pages() {
        let text = without_code(&read(&page));
        found.extend(occurrences(&page, &text, GLOSSARY));
    }
    assert!(found.is_empty(), "\n  {}", found.join("\n  "));
}

#[test]
fn compiler_and_hypervisor_sources_contain_no_words_of_the_old_glossary() {
    let mut found = Vec::new();
    for file in ["compile", "hypervisor"].into_iter().flat_map(sources) {
        let text = read(&file);
        found.extend(occurrences(&file, &text, GLOSSARY));
        found.extend(occurrences(&file, &text, IN_SOURCES));
    }
    assert!(found.is_empty(), "\n  {}", found.join("\n  "));
}

/// In code and strings some old words are names, or only look like old words: `for way in ways`.
#[test]
fn comments_contain_no_words_of_the_old_glossary() {
    let mut found = Vec::new();
    for file in files_below(&repository().join("crates")) {
        if !file.ends_with("cli/tests/words.rs") {
            found.extend(occurrences(&file, &comments(&read(&file)), GLOSSARY));
        }
    }
    assert!(found.is_empty(), "\n  {}", found.join("\n  "));
}

#[test]
fn architecture_md_has_at_most_2000_words() {
    let words = read(&repository().join("ARCHITECTURE.md")).split_whitespace().count();
    assert!(words <= 2000, "ARCHITECTURE.md has {words} words");
}

#[test]
fn modules_and_tests_named_in_architecture_pages_exist() {
    let mut missing = Vec::new();
    let all_sources: Vec<String> =
        files_below(&repository().join("crates")).iter().map(|it| read(it)).collect();
    for page in pages().iter().filter(|page| {
        page.ends_with("ARCHITECTURE.md") || page.parent().is_some_and(|it| it.ends_with("design"))
    }) {
        let text = read(page);
        for span in text.split('`').skip(1).step_by(2) {
            let mut names = span.split("::");
            let folder = repository().join("crates").join(names.next().unwrap_or_default());
            let rest: Vec<&str> = names.collect();
            let is_path = !rest.is_empty() && folder.exists();
            if is_path && !is_module(&folder.join("src"), &rest) {
                missing.push(format!("{}: {span}", shown(page)));
            }
        }
        for line in text.lines().filter_map(|line| line.split("Tests: ").nth(1)) {
            let tests = repository().join("crates/hypervisor/tests/behaviour");
            for name in line.split('`').skip(1).step_by(2).filter(|name| !name.contains('/')) {
                let file = name.split("::").next().unwrap_or_default();
                let function = format!("fn {name}(");
                let is_there = tests.join(format!("{file}.rs")).exists()
                    || all_sources.iter().any(|source| source.contains(&function));
                if !is_there {
                    missing.push(format!("{}: the test {name}", shown(page)));
                }
            }
        }
    }
    // The tables of modules omit the name of the crate.
    for (title, name) in [("of the compiler", "compile"), ("of the core", "hypervisor")] {
        let map = read(&repository().join("ARCHITECTURE.md"));
        let section = map.split(&format!("## Modules {title}\n")).nth(1).expect("the section");
        let rows = section.split("\n## ").next().unwrap_or_default().lines();
        let source = repository().join("crates").join(name).join("src");
        for cell in rows.filter_map(|row| row.strip_prefix("| ")?.split(" |").next()) {
            for span in cell.split('`').skip(1).step_by(2) {
                if !is_file(&source.join(span.replace("::", "/"))) {
                    missing.push(format!("ARCHITECTURE.md, modules {title}: {span}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "\n  {}", missing.join("\n  "));
}

#[test]
fn the_head_of_switch_rs_lists_all_modules_of_switch() {
    let source = read(&repository().join("crates/hypervisor/src/switch.rs"));
    let rows = source.lines().filter_map(|line| line.strip_prefix("//! |")?.split('|').nth(1));
    let named: Vec<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let modules = source
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_once("mod ").and_then(|(_, name)| name.strip_suffix(';')));
    let modules: Vec<&str> = modules.collect();
    assert!(modules.len() > 40, "{modules:?}");
    let missing: Vec<_> = modules.iter().filter(|name| !named.contains(name)).collect();
    let gone: Vec<_> = named.iter().filter(|name| !modules.contains(name)).collect();
    assert!(missing.is_empty() && gone.is_empty(), "not named: {missing:?}; gone: {gone:?}");
}

/// Whether the names are the path of a file, or of an item in a file: the last name is the item.
fn is_module(source: &Path, names: &[&str]) -> bool {
    let there = |names: &[&str]| is_file(&source.join(names.join("/")));
    match names {
        [] => false,
        [item] => there(names) || item_in(&source.join("lib.rs"), item),
        [modules @ .., item] => {
            let file = source.join(modules.join("/")).with_extension("rs");
            there(names) || item_in(&file, item)
        }
    }
}

/// Whether a module has a file, given the path without its ending.
fn is_file(module: &Path) -> bool {
    module.with_extension("rs").exists() || module.join("mod.rs").exists()
}

fn item_in(file: &Path, item: &str) -> bool {
    file.exists() && count(&read(file), item) > 0
}

/// Returns the places where a text has words of a glossary.
fn occurrences(file: &Path, text: &str, glossary: &[(&[&str], &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (old, new) in glossary {
            for word in old.iter().filter(|word| count(line, word) > 0) {
                found.push(format!("{}:{}: \"{word}\": {new}", shown(file), number + 1));
            }
        }
    }
    found
}

/// Returns the comments of a source file, each in its line.
fn comments(source: &str) -> String {
    let lines = source.lines().map(str::trim_start);
    let lines = lines.map(|line| if line.starts_with("//") { line } else { "" });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns how often a text has a whole word or group of words, in upper or lower case. `_` and digits end a word.
fn count(text: &str, word: &str) -> usize {
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    let is_whole = |at: usize| {
        let (before, after) = (text.get(..at), text.get(at + word.len()..));
        !is_letter(before.and_then(|it| it.chars().next_back()))
            && !is_letter(after.and_then(|it| it.chars().next()))
    };
    text.match_indices(&word).filter(|(at, _)| is_whole(*at)).count()
}

/// Returns a page without the contents of code blocks and code spans, with the same number of lines.
fn without_code(page: &str) -> String {
    let mut text = String::new();
    let mut in_block = false;
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !in_block && !is_fence {
            text.extend(line.split('`').step_by(2));
        }
        in_block ^= is_fence;
        text.push('\n');
    }
    text
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![repository().join("README.md"), repository().join("ARCHITECTURE.md")];
    for folder in ["docs", "docs/design", "docs/how-to", "docs/tutorial"] {
        pages.extend(files(&repository().join(folder), "md"));
    }
    pages
}

fn sources(name: &str) -> Vec<PathBuf> {
    files_below(&repository().join("crates").join(name).join("src"))
}

/// Returns the Rust files in a folder and its subfolders.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        found.extend(files(&folder, "rs"));
        let entries =
            fs::read_dir(&folder).expect("a folder").map(|it| it.expect("an entry").path());
        folders.extend(entries.filter(|path| path.is_dir() && !path.ends_with("target")));
    }
    found.sort();
    found
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry").path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == extension)).collect();
    found.sort();
    found
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
