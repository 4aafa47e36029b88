//! Tests of the tutorial and the how-to pages of the book: each command runs, and its output is as on the page.
//!
//! - A `sh` block runs in a shell. All blocks of a page use the same shell, and all parts of the tutorial use the same
//!   shell.
//! - A `text` block is the output of the `sh` block before. Times, cookies and labels may differ, and a line `...`
//!   matches any lines. A command whose output differs runs again for a while, because some changes take a moment.
//! - A `toml`, `json` or `yaml` block is a file. The paragraph before the block names the file. `$REPOSITORY` is this
//!   repository.
//! - A comment `<!-- sh` ... `-->` has commands that run and are not shown. `<!-- not run: REASON -->` and `<!-- not
//!   compared: REASON -->` apply to the next block.
//!
//! The shell runs in namespaces of its own with an empty `/run`: the commands affect no other test, and leave nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use crate::support::folder::Folder;
use crate::support::program::{GUARDED, Program};
use crate::support::repository;
use crate::support::requirements::{Needs, needs};

/// How long a command may take, and how long a command is repeated.
const PATIENCE: Duration = Duration::from_secs(60);

const TUTORIAL: [&str; 3] = ["two-tenants.md", "network.md", "failure.md"];

#[test]
fn ovs_commands_of_the_tutorial_print_the_documented_output() {
    needs!(
        ovs_commands_of_the_tutorial_print_the_documented_output: Needs::OpenVSwitch, Needs::Program("ovs-testcontroller"), Needs::Program("curl")
    );
    let pages = TUTORIAL.map(|name| repository().join("docs/tutorial").join(name));
    assert_eq!(pages.len(), pages_in("docs/tutorial").len(), "a page is not read");
    let mut shell = Shell::start();
    for page in pages {
        shell.read(&page);
    }
}

#[test]
fn ovs_commands_of_the_how_to_pages_print_the_documented_output() {
    needs!(
        ovs_commands_of_the_how_to_pages_print_the_documented_output: Needs::OpenVSwitch, Needs::Program("ovs-testcontroller"), Needs::Program("curl"),
        Needs::Program("openssl"), Needs::Program("promtool"), Needs::Program("ovs-pki")
    );
    for page in pages_in("docs/how-to") {
        Shell::start().read(&page);
    }
}

#[test]
fn output_comparison_ignores_times_cookies_and_tags() {
    let same = |page: &str, printed: &str| {
        let [page, printed] = [page, printed].map(|text| text.lines().collect::<Vec<_>>());
        is_as_expected(&page, &printed)
    };
    assert!(same("3 of 4  up", "3 of 4 up"));
    assert!(!same("3 of 4 up", "2 of 4 up"));
    assert!(!same("one\ntwo", "one"));
    assert!(same("one\n...\nlast", "one\n2\n3\nlast") && same("...", "") && !same("...\nx", "y"));
    assert!(same("time=0.4 ms", "time=12.25 ms") && !same("10.0.0.1", "10.0.0.2"));
    assert!(same("2026-11-21T06:47:29.744298Z INFO up", "2027-01-02T03:04:05.6Z INFO up"));
    assert!(
        same("cookie=0x5d06, tag 2000", "cookie=0x57ff, tag 2013") && !same("tags 1", "tags 2")
    );
    assert!(same("time 1002ms", "time 998ms"));
}

/// A step of a page.
enum Step {
    Write { name: String, text: String },
    Run { commands: String, expected: Expected },
}

/// The expected end of commands.
enum Expected {
    /// Exit status 0 at the first run.
    Success,
    /// Exit status 0 after some repetitions.
    SuccessInTheEnd,
    /// This output after some repetitions.
    Output(String),
}

/// The shell of a reader, in namespaces that look like an empty machine.
struct Shell {
    program: Program,
    folder: Folder,
}

impl Shell {
    fn start() -> Shell {
        let folder = Folder::new();
        let weir = Path::new(env!("CARGO_BIN_EXE_weir")).parent().expect("a folder");
        let mut command = Command::new(GUARDED[0]);
        command
            .args(&GUARDED[1..])
            .args([
                "unshare",
                "--net",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ])
            .args(["bash", "--norc"])
            .current_dir(folder.path())
            .env("REPOSITORY", repository())
            .env(
                "PATH",
                format!(
                    "{}:{}:/usr/sbin:/sbin",
                    weir.display(),
                    std::env::var("PATH").unwrap_or_default()
                ),
            );
        let mut shell = Shell { program: Program::of("shell", command), folder };
        let (status, printed) = shell
            .run("exec 2>&1; mount -t tmpfs tmpfs /run && mkdir /run/netns && ip link set lo up");
        assert_eq!(status, 0, "{printed:?}");
        shell
    }

    /// Carries out the steps of a page.
    fn read(&mut self, page: &Path) {
        let text =
            fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        for step in steps(&text) {
            match step {
                Step::Write { name, text } => {
                    fs::write(self.folder.path().join(name), text).expect("a file");
                }
                Step::Run { commands, expected } => self.carry_out(page, &commands, &expected),
            }
        }
    }

    fn carry_out(&mut self, page: &Path, commands: &str, expected: &Expected) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (status, printed) = self.run(commands);
            let printed: Vec<&str> = printed.iter().map(String::as_str).collect();
            let is_well = match expected {
                Expected::Output(text) => {
                    is_as_expected(&text.lines().collect::<Vec<_>>(), &printed)
                }
                Expected::Success | Expected::SuccessInTheEnd => status == 0,
            };
            if is_well {
                return;
            }
            let hopeless = matches!(expected, Expected::Success) || Instant::now() > deadline;
            let page = page.display();
            assert!(!hopeless, "{page}: {commands}: status {status}\n{}\n", printed.join("\n"));
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Returns the exit status of the last command, and all printed lines.
    fn run(&mut self, commands: &str) -> (i32, Vec<String>) {
        const END: &str = "@the-end ";
        let from = self.program.stdout.len();
        self.program
            .write_line(&format!("{{ {commands}\n}} </dev/null; printf '\\n{END}%s\\n' $?"));
        let ended = |line: &str| line.strip_prefix(END)?.parse().ok();
        let status = self.program.stdout.wait_for(from, PATIENCE, ended);
        let status = status.unwrap_or_else(|| panic!("no end of: {commands}"));
        let mut printed = self.program.stdout.all().split_off(from);
        printed.truncate(printed.iter().position(|line| line.starts_with(END)).unwrap_or_default());
        // The line break before the end mark is from `run`, unless the last line of the output had no line break.
        if printed.last().is_some_and(String::is_empty) {
            printed.pop();
        }
        (status, printed)
    }
}

/// Returns the steps of a page, in order.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut language, mut text, mut spans) = (String::new(), String::new(), Vec::new());
    let (mut is_run, mut is_compared, mut was_run) = (true, true, false);
    for event in Parser::new(page) {
        match event {
            Event::Start(Tag::Paragraph) => spans.clear(),
            Event::Code(span) => spans.push(span.to_string()),
            Event::Html(html) => text.push_str(&html),
            Event::Start(Tag::HtmlBlock) => text.clear(),
            Event::End(TagEnd::HtmlBlock) => {
                let comment = text.trim().trim_start_matches("<!--").trim_end_matches("-->").trim();
                if let Some(commands) = comment.strip_prefix("sh\n") {
                    steps.push(Step::Run {
                        commands: commands.to_owned(),
                        expected: Expected::Success,
                    });
                }
                is_run &= !comment.starts_with("not run:");
                is_compared &= !comment.starts_with("not compared:");
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                (language, text) = (info.to_string(), String::new());
            }
            Event::Text(part) => text.push_str(&part),
            Event::End(TagEnd::CodeBlock) => {
                let is_wanted = std::mem::replace(&mut is_run, true);
                if language == "sh" {
                    was_run = is_wanted;
                }
                match (language.as_str(), steps.last_mut()) {
                    ("sh", _) if is_wanted => {
                        let commands = text.trim_end().to_owned();
                        steps.push(Step::Run { commands, expected: Expected::Success });
                    }
                    ("text", Some(Step::Run { expected, .. })) if was_run => {
                        let is_text = std::mem::replace(&mut is_compared, true);
                        *expected = if is_text {
                            Expected::Output(text.clone())
                        } else {
                            Expected::SuccessInTheEnd
                        };
                    }
                    ("toml" | "json" | "yaml", _) if is_wanted => {
                        let ending = if language == "yaml" { "yml" } else { &language };
                        let name = spans.iter().rfind(|span| span.ends_with(&format!(".{ending}")));
                        let name = name.unwrap_or_else(|| panic!("a file without a name:\n{text}"));
                        steps.push(Step::Write { name: name.clone(), text: text.clone() });
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    steps
}

/// Whether the output is as on the page. A line `...` of the page matches any number of lines.
fn is_as_expected(page: &[&str], printed: &[&str]) -> bool {
    match page {
        [] => printed.is_empty(),
        [first, rest @ ..] if first.trim() == "..." => {
            (0..=printed.len()).any(|skipped| is_as_expected(rest, &printed[skipped..]))
        }
        [first, rest @ ..] => printed.split_first().is_some_and(|(line, others)| {
            lasting(first) == lasting(line) && is_as_expected(rest, others)
        }),
    }
}

/// Returns the part of a line that is the same in each run: without times, fractions, cookies, labels and column
/// widths.
fn lasting(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let is_label = words.last().is_some_and(|before| before == "tag");
        let is_moment = word.starts_with("20") && word.contains('T') && word.ends_with('Z');
        words.push(if is_label || is_moment { "#".to_owned() } else { without_fractions(word) });
    }
    words.join(" ")
}

/// Returns a word with `#` for each number with one point, each number of milliseconds, and each cookie.
fn without_fractions(word: &str) -> String {
    let (mut kept, mut rest) = (String::new(), word);
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let is_cookie = before.ends_with("cookie=") && from.starts_with("0x");
        let belongs = |c: char| {
            if is_cookie { c.is_ascii_alphanumeric() } else { c.is_ascii_digit() || c == '.' }
        };
        let (number, after) = from.split_at(from.find(|c: char| !belongs(c)).unwrap_or(from.len()));
        let is_fraction = number.matches('.').count() == 1 && !number.ends_with('.');
        kept.push_str(before);
        kept.push_str(if is_cookie || is_fraction || after.starts_with("ms") {
            "#"
        } else {
            number
        });
        rest = after;
    }
    kept + rest
}

fn pages_in(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join(folder)).expect("a folder of pages");
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    pages.sort();
    pages
}
