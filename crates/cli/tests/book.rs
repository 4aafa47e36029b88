//! Tests of the book: each page of `docs/` is in `docs/SUMMARY.md`, and each link has a target, in the repository and
//! in the book that `scripts/book` builds.
//!
//! `e2e/pages.rs` tests the output of the commands on the tutorial and how-to pages.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::{env, fs};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Pages outside of `docs/`.
const OTHERS: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "examples/os-ken/README.md",
];

#[test]
fn every_link_of_a_documentation_page_has_a_target() {
    let mut pages = below(&repository().join("docs"), "md");
    pages.extend(OTHERS.map(|page| repository().join(page)));
    let dead = dead_links(&repository(), &pages);
    assert!(dead.is_empty(), "\n  {}", dead.join("\n  "));
}

#[test]
fn dead_links_are_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/book");
    let dead = dead_links(&root, &below(&root, "md"));
    let expected = [
        "README.md: docs/gone.md",
        "README.md: docs/missing.md",
        "README.md: docs/page.md#the-third",
        "README.md: picture.png",
        "docs/page.md: #the-2",
    ];
    assert_eq!(dead, expected);
}

#[test]
fn the_summary_lists_every_documentation_page_once() {
    let summary = repository().join("docs/SUMMARY.md");
    // A title above other pages has no page, so its link is empty.
    let links = Page::read(&summary).links.into_iter().filter(|link| !link.is_empty());
    let listed: Vec<PathBuf> = links.map(|link| resolved(&summary, &link)).collect();
    let unique: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), unique.len(), "docs/SUMMARY.md has a page twice");
    let mut pages: BTreeSet<PathBuf> =
        below(&repository().join("docs"), "md").into_iter().collect();
    pages.extend(OTHERS.map(|page| repository().join(page)));
    let differing: Vec<_> = pages.symmetric_difference(&unique).collect();
    assert!(
        differing.is_empty(),
        "in docs/SUMMARY.md, or in docs/, and not in both: {differing:#?}"
    );
}

/// Checks each `href` and `src` in the HTML pages of the built book.
#[test]
fn the_built_book_has_no_dead_links() {
    let test = "the_built_book_has_no_dead_links";
    let folder = env::temp_dir().join(format!("weir-book-{}", process::id()));
    let mut command = Command::new(repository().join("scripts/book"));
    let output = command.arg(&folder).stdin(Stdio::null()).output().expect("start scripts/book");
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("mdbook is not installed") {
        eprintln!("SKIPPED {test}: mdbook is not installed; run scripts/setup");
        assert!(env::var_os("CI").is_none(), "{test}: mdbook is not installed (under CI=true)");
        return;
    }
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    let html = folder.join("html");
    let pages: BTreeMap<PathBuf, String> =
        below(&html, "html").into_iter().map(|page| (page.clone(), read(&page))).collect();
    let mut dead = Vec::new();
    for (page, text) in &pages {
        for target in [" href=\"", " src=\""].iter().flat_map(|name| text.split(name).skip(1)) {
            let target = target.split('"').next().unwrap_or_default().replace("&amp;", "&");
            let (file, section) = target.split_once('#').unwrap_or((&target, ""));
            let mut path = resolved(page, file);
            if path.is_dir() {
                path.push("index.html");
            }
            let has_section =
                || pages.get(&path).is_some_and(|it| it.contains(&format!("id=\"{section}\"")));
            if !is_outside(&target) && (!path.exists() || !section.is_empty() && !has_section()) {
                dead.push(format!("{}: {target}", shown(&html, page)));
            }
        }
    }
    fs::remove_dir_all(&folder).expect("the book goes");
    assert!(pages.contains_key(&html.join("index.html")));
    assert!(dead.is_empty(), "\n  {}", dead.join("\n  "));
}

/// A page's links and the names of its sections.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    sections: BTreeSet<String>,
}

impl Page {
    fn read(path: &Path) -> Page {
        let text = read(path);
        let mut page = Page::default();
        let mut title = None;
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => title = Some(String::new()),
                Event::Text(part) | Event::Code(part) => {
                    if let Some(title) = &mut title {
                        title.push_str(&part);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    page.add_section(&title.take().unwrap_or_default())
                }
                _ => {}
            }
        }
        page
    }

    /// Adds the name by which links reach the section. mdBook and GitHub make the same name.
    fn add_section(&mut self, title: &str) {
        let title = title.trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut unique = name.clone();
        for number in 1.. {
            if self.sections.insert(unique) {
                return;
            }
            unique = format!("{name}-{number}");
        }
    }
}

/// Returns the links of these pages that have no target file or no target section.
fn dead_links(root: &Path, pages: &[PathBuf]) -> Vec<String> {
    let mut dead = Vec::new();
    for path in pages {
        let page = Page::read(path);
        for link in page.links.iter().filter(|link| !is_outside(link)) {
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let target = resolved(path, file);
            let is_alive = target.exists()
                && (section.is_empty() || Page::read(&target).sections.contains(section));
            if !is_alive {
                dead.push(format!("{}: {link}", shown(root, path)));
            }
        }
    }
    dead.sort();
    dead
}

fn is_outside(link: &str) -> bool {
    link.contains("://") || link.starts_with("mailto:") || link.starts_with("data:")
}

/// Returns the file of a link on a page: the page itself if the link has only a section.
fn resolved(page: &Path, file: &str) -> PathBuf {
    if file.is_empty() {
        return page.to_owned();
    }
    let mut path = page.parent().expect("a folder").to_owned();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    path.components().collect()
}

/// Returns the files with this ending in a folder and its subfolders.
fn below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn shown(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
