//! Tests of reports in a real browser: headless Chromium lays out every kind of page at the width of a desktop and of a
//! phone, and a script in the page compares the boxes of all texts.
//!
//! All pages are frames of one document, so one run of Chromium is enough: the media queries of a page see the width of
//! its frame. Without Chromium the tests are skipped by name.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests are test code too"
)]

use report::figure::{HeatMap, Line, Lines, Mark, Marks, Scale, Shape, draw_groups};
use report::page::{Block, Sheet, html, sheet};
use report::{
    Better, Environment, Extras, Figure, Finding, Histogram, Interval, Metric, Point, Precision,
    Results, Table, TenantRow,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const WIDTHS: [u32; 2] = [1440, 390];

/// The script finds texts that overlap or are cut off, a page that is wider than its window, two series that look
/// alike, and a system with two colours.
const CHECK: &str = r#"
function problems(doc, width) {
  for (const folded of doc.querySelectorAll('details')) folded.open = true;
  const found = [], shown = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
  const name = e => (e.lastChild ? e.lastChild.textContent : '').trim().slice(0, 60);
  if (doc.documentElement.scrollWidth > width + 1)
    found.push('the page is ' + doc.documentElement.scrollWidth + ' wide');
  const colours = {}, dashes = {};
  for (const svg of doc.querySelectorAll('svg')) {
    if (!shown(svg)) continue;
    const frame = svg.getBoundingClientRect(), styles = {};
    const texts = [...svg.querySelectorAll('text')].filter(shown);
    const boxes = texts.map(t => t.getBoundingClientRect());
    boxes.forEach((a, i) => {
      if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
        found.push('cut off: ' + name(texts[i]));
      for (let j = i + 1; j < boxes.length; j++) {
        const b = boxes[j];
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5)
          found.push('overlap: ' + name(texts[i]) + ' | ' + name(texts[j]));
      }
    });
    for (const path of svg.querySelectorAll('path[data-system]')) {
      const system = path.dataset.system, variant = path.dataset.variant;
      const colour = path.getAttribute('stroke'), dash = path.getAttribute('stroke-dasharray') || 'solid';
      const key = system + ' / ' + variant, style = colour + ' ' + dash;
      if (styles[style] && styles[style] !== key) found.push('alike: ' + styles[style] + ' | ' + key);
      styles[style] = key;
      if (colours[system] && colours[system] !== colour) found.push('two colours: ' + system);
      colours[system] = colour;
      if (dashes[variant] && dashes[variant] !== dash) found.push('two styles: ' + variant);
      dashes[variant] = dash;
    }
  }
  const blocks = [...doc.querySelectorAll('h1,h2,p,figcaption,summary,pre,th,td,li')].filter(shown);
  blocks.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
  blocks.forEach((e, i) => {
    const a = e.getBoundingClientRect();
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0) found.push('wider than its box: ' + name(e));
    for (let j = i + 1; j < blocks.length; j++) {
      const b = blocks[j].getBoundingClientRect();
      if (b.top > a.bottom) break;
      if (e.contains(blocks[j]) || blocks[j].contains(e)) continue;
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - b.top > 1)
        found.push('overlap: ' + name(e) + ' | ' + name(blocks[j]));
    }
  });
  return found;
}
window.onload = () => {
  const out = [];
  for (const frame of document.querySelectorAll('iframe')) {
    const doc = frame.contentDocument;
    const texts = [...doc.querySelectorAll('svg text')].filter(e => e.getBoundingClientRect().width > 0).length;
    for (const what of problems(doc, frame.clientWidth)) out.push('@' + frame.title + ': ' + what);
    out.push('@' + frame.title + ' has ' + texts + ' texts');
  }
  document.body.textContent = out.join('\n') + '\n@end';
};
"#;

/// The command of Chromium with the options of all runs, if Chromium is installed.
fn chromium(test: &str, profile: &Path) -> Option<Command> {
    let program = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok());
    let Some(program) = program else {
        let line = "no chromium (as root on Debian: apt-get install chromium)";
        eprintln!("SKIPPED {test}: {line}");
        assert!(std::env::var_os("CI").is_none(), "chromium is missing");
        return None;
    };
    let mut command = Command::new(program);
    // Root can run Chromium only without its sandbox. The pages are our own.
    command.args(["--headless", "--no-sandbox", "--disable-gpu"]);
    command.arg(format!("--user-data-dir={}", profile.display()));
    Some(command)
}

/// Opens the pages in Chromium at both widths, and returns the findings, one per line.
fn look_at(test: &str, pages: &[(String, String)]) -> Option<Vec<String>> {
    let dir = std::env::temp_dir().join(format!("weir-browser-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let mut document = format!("<!DOCTYPE html><meta charset=utf-8><script>{CHECK}</script><body>");
    for (name, page) in pages {
        for width in WIDTHS {
            let source = page.replace('&', "&amp;").replace('"', "&quot;");
            let name = report::figure::escape(name);
            document += &format!(
                "<iframe title=\"{name} at {width}\" style=\"width:{width}px;height:900px;border:0\" srcdoc=\"{source}\"></iframe>"
            );
        }
    }
    let file = dir.join("pages.html");
    fs::write(&file, document).unwrap();
    let mut command = chromium(test, &dir.join("profile"))?;
    let output = command
        .args(["--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    fs::remove_dir_all(&dir).unwrap();
    // The text before this `<body>` is the script.
    let text = text.rsplit_once("<body>").map_or("", |(_, body)| body);
    assert!(text.contains("@end"), "{text} {}", String::from_utf8_lossy(&output.stderr));
    Some(text.lines().filter_map(|line| Some(line.split_once('@')?.1.to_owned())).collect())
}

fn check(test: &str, pages: &[(String, String)]) {
    let Some(lines) = look_at(test, pages) else { return };
    let (counts, problems): (Vec<String>, Vec<String>) = lines
        .into_iter()
        .filter(|line| !line.starts_with("end"))
        .partition(|line| line.contains(" has "));
    assert_eq!(counts.len(), pages.len() * WIDTHS.len());
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// The results of a load generator for these systems, with this number of cases.
fn load(systems: &[String], cases: usize, tenants: usize) -> Results {
    let mut results = Results::new("bench run", 1, Environment::default());
    results.started = "2026-11-26T00:00:00Z".into();
    results.environment.command = vec!["weir".into(), "bench".into(), "run ".repeat(60)];
    for (number, system) in systems.iter().enumerate() {
        for case in 0..cases {
            let rate = [10_000.0, 20_000.0, 60_000.0].get(case % 3).copied().unwrap();
            let tcp = if case / 3 % 2 == 0 { "AGG" } else { "ND" };
            let mut point = Point::new(system, [("rate", rate), ("case", (case / 6) as f64)]);
            point.parameters.insert("tcp".into(), tcp.into());
            let mut histogram = Histogram::new(Precision::Coarse);
            (1..50).for_each(|step| histogram.record((step * step + number as u64 * 40) * 900));
            for metric in ["p50_us", "p99_us", "cpu_percent", "rate_per_s"] {
                let value = 12_345.678 + number as f64 * 321.0 + case as f64;
                let metric_of = Metric::new("µs", Better::Lower, vec![value, value * 1.2, value]);
                point.metrics.insert(metric.into(), metric_of);
            }
            point.latency.insert("latency".into(), histogram.summary());
            let row = TenantRow { latency: histogram.summary(), ..TenantRow::default() };
            point.tenants = vec![row; tenants];
            let interval = |second: u32| Interval {
                start_s: f64::from(second),
                received: 5,
                mean_us: 30.0 + f64::from(second),
                max_us: 90.0,
            };
            point.intervals = (0..4).map(interval).collect();
            results.points.push(point);
            let text = format!("{system} rate={rate}: the generator fell behind its schedule");
            results.findings.push(Finding { code: "generator-behind".into(), text });
        }
    }
    results
}

fn named(count: usize) -> Vec<String> {
    let long = |index: usize| match index % 3 {
        0 => format!("system {index}"),
        1 => format!("a system with quite a long name, number {index}"),
        _ => format!("hypervisor-{index}-in-another-mode-that-is-named-in-one-word"),
    };
    (0..count).map(long).collect()
}

#[test]
fn load_reports_have_no_texts_that_overlap_or_are_cut() {
    let page = |results: &Results| html(results, &Extras::default());
    let known = ["direct", "weir", "weir-networks", "haproxy"].map(str::to_owned);
    let mut partial = load(&known, 1, 2);
    partial.mark_partial("interrupted in run 2 of 9");
    let markup =
        ["<b>bold</b><script>document.title='x'</script>", "a & b \"quoted\" 'so'", "👍 系統"];
    let none = Results::new("bench <i>", 1, Environment::default());
    let pages = [
        ("four systems".to_owned(), page(&load(&known, 6, 20))),
        ("one case".to_owned(), page(&load(&known, 1, 3))),
        ("nine systems".to_owned(), page(&load(&named(9), 7, 2))),
        ("sixty systems".to_owned(), page(&load(&named(60), 1, 0))),
        ("two thousand cases".to_owned(), page(&load(&named(60), 34, 0))),
        ("half a result".to_owned(), page(&partial)),
        ("markup".to_owned(), page(&load(&markup.map(str::to_owned), 3, 2))),
        ("a thousand tenants".to_owned(), page(&load(&known[..1], 1, 1_000))),
        ("nothing".to_owned(), page(&none)),
    ];
    check("load_reports_have_no_texts_that_overlap_or_are_cut", &pages);
}

/// The name of an experiment, the values that vary, and the metrics with their units.
type Module = (&'static str, &'static [f64], &'static [(&'static str, &'static str)]);

/// The results of experiments on a switch.
fn evaluation() -> Results {
    let mut results = Results::new("evaluate all", 1, Environment::default());
    let modules: [Module; 4] = [
        (
            "insert",
            &[1.0, 10.0, 100.0, 1000.0],
            &[("barrier_us", "µs"), ("last_rule_us", "µs"), ("sent_us", "µs")],
        ),
        ("modify", &[], &[("median_us", "µs"), ("loss_percent", "%"), ("throughput_mbps", "Mb/s")]),
        (
            "packet-in",
            &[1_000.0, 64_000.0],
            &[("median_us", "µs"), ("highest_loss_free_per_s", "1/s")],
        ),
        ("statistics", &[0.0, 1.0, 50.0], &[("cpu_percent", "%")]),
    ];
    for (module, values, metrics) in modules {
        for case in ["exact", "wildcard", "destination-mac+vlan-priority"] {
            let values: Vec<Option<f64>> = if values.is_empty() {
                vec![None]
            } else {
                values.iter().copied().map(Some).collect()
            };
            for value in values {
                let place = [("module", module), ("match", case)];
                let mut point = Point::new("Open vSwitch 3.1.0", place);
                if let Some(value) = value {
                    point.parameters.insert("rules".into(), value.into());
                }
                for (name, unit) in metrics {
                    let mean = 10.0 * value.unwrap_or(7.0) + 1.0;
                    let samples = vec![mean, mean * 1.3, mean * 0.9];
                    point.metrics.insert((*name).into(), Metric::new(unit, Better::Lower, samples));
                }
                results.points.push(point);
            }
        }
    }
    results
}

fn own_figures() -> Extras {
    let line = |index: usize, dashed| Line {
        name: format!("system {index}, {}", if dashed { "published" } else { "mean" }),
        points: (0..30).map(|x| (f64::from(x), 0.05 * f64::from(x * (index as i32 + 1)))).collect(),
        errors: vec![0.1; 30],
        dashed,
        ..Line::default()
    };
    let lines = |count: usize| Lines {
        title: "Figure 4: a title that says in many words what is to be seen in this figure here"
            .into(),
        x_label: "seconds".into(),
        y_label: "control latency, ms (mean)".into(),
        lines: (0..count).flat_map(|index| [line(index, false), line(index, true)]).collect(),
        ..Lines::default()
    };
    let mean = |name: String| Mark {
        category: name.clone(),
        system: name,
        shape: Shape { dot: Some(3.0), ..Shape::default() },
        ..Mark::default()
    };
    let means = Marks {
        title: "Figure 3a: means".into(),
        value_label: "control latency, ms".into(),
        scale: Scale::Logarithmic,
        marks: named(12).into_iter().map(mean).collect(),
        ..Marks::default()
    };
    let cells = |scale: f64| (0..400).map(|index| Some(f64::from(index) * scale)).collect();
    let map = |scale: f64| HeatMap {
        title: "Gain over local sampling, 5 servers".into(),
        x_label: "p: dispersion of the load (1: even)".into(),
        y_label: "V / (nC): mean load of a server".into(),
        value_label: "gain, %".into(),
        columns: (0..20).map(|it| 0.05 * f64::from(it)).collect(),
        rows: (0..20).map(|it| 0.05 * f64::from(it)).collect(),
        cells: cells(scale),
        range: Some((0.0, 100.0)),
    };
    let groups: Vec<(String, Vec<f64>)> =
        named(7).into_iter().map(|name| (name, vec![1.0, 20.5, 300.0])).collect();
    let drawings = [
        ("4", lines(3).draw().with_note("10 runs of 1.50 s, 0.250 s cut at each end; Open vSwitch 3.1.0, userspace datapath")),
        ("5", lines(40).draw()),
        ("3a", means.draw()),
        ("bars", draw_groups("Who gets what", "Mbit/s of frames", &["A→B, bought 8", "C→D", "E→F"], &groups)),
        ("map", map(0.1).draw()),
        ("map2", map(0.25).draw()),
    ];
    let figure = |(name, drawing): (&str, report::figure::Drawing)| Figure {
        name: name.into(),
        drawing,
        caption: "Means over runs, with 95 % confidence intervals.".into(),
    };
    let mut table = Table::new(["case", "published, in words and with a long heading", "here"]);
    table.row(["message=PACKET_OUT rate=60,000 tcp=AGG tenants=20", "3 ms", "1.5 ms"]);
    Extras {
        figures: drawings.into_iter().map(figure).collect(),
        tables: vec![("Published beside measured".into(), table)],
    }
}

#[test]
fn paper_and_evaluation_reports_have_no_texts_that_overlap_or_are_cut() {
    let mut papers = Vec::new();
    for tool in ["reproduce basta2017", "reproduce elbouanani2019", "reproduce riggio2013"] {
        let results = Results::new(tool, 1, Environment::default());
        papers.push((tool.to_owned(), html(&results, &own_figures())));
    }
    papers.push(("evaluation".to_owned(), html(&evaluation(), &Extras::default())));
    papers.push(("data sheet".to_owned(), sheet(&data_sheet())));
    check("paper_and_evaluation_reports_have_no_texts_that_overlap_or_are_cut", &papers);
}

fn data_sheet() -> Sheet {
    let line = |name: &str, factor: f64| Line {
        name: name.into(),
        points: [1.0, 10.0, 100.0].map(|x| (x, x * factor)).to_vec(),
        ..Line::default()
    };
    let lines = Lines {
        title: "Until the last entry is real".into(),
        x_label: "flow entries".into(),
        y_label: "time, ms".into(),
        lines: ["insert", "change", "delete"].map(|name| line(name, name.len() as f64)).into(),
        ..Lines::default()
    };
    let bar = |number: u32| (format!("flow mod {number}: 12,345"), vec![f64::from(number + 1)]);
    let bars: Vec<(String, Vec<f64>)> = (0..14).map(bar).collect();
    let figures = [lines.draw(), draw_groups("Safe rates", "per second", &["rate"], &bars)];
    let block = |number: usize| {
        Block {
        heading: "Safe rates".into(),
        sentence: "At these rates nothing was lost and everything became true. The least is statistics, flow: 10 per second.".into(),
        figure: figures.get(usize::from(number.is_multiple_of(5))).cloned(),
    }
    };
    Sheet {
        heading: "Data sheet of Open vSwitch 3.1.0".into(),
        about: "Measured 2026-11-26T00:00:00Z by Weir 0.1.0; channels eth0 at port 1, eth0 at port 2, eth0 at port 3; openflow 1.0.".into(),
        blocks: (0..6).map(block).collect(),
        findings: load(&named(9), 3, 0).findings,
    }
}

/// The data sheet has six blocks, two of them with the largest number of rows.
#[test]
fn a_data_sheet_fits_on_a_single_printed_page() {
    let test = "a_data_sheet_fits_on_a_single_printed_page";
    let dir = std::env::temp_dir().join(format!("weir-browser-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let pages = |name: &str, page: String| {
        let (html, pdf) = (dir.join("page.html"), dir.join(name));
        fs::write(&html, page).unwrap();
        let mut command = chromium(test, &dir.join("profile"))?;
        command.args(["--no-pdf-header-footer", &format!("--print-to-pdf={}", pdf.display())]);
        let output = command.arg(format!("file://{}", html.display())).output().unwrap();
        let pdf = fs::read(&pdf).unwrap_or_default();
        let text = String::from_utf8_lossy(&pdf);
        assert!(text.starts_with("%PDF"), "{}", String::from_utf8_lossy(&output.stderr));
        Some(text.matches("/Type /Page\n").count())
    };
    if let Some(count) = pages("sheet.pdf", sheet(&data_sheet())) {
        assert_eq!(count, 1);
        // A report has more pages, so the count of pages works.
        let report = html(&load(&named(9), 3, 2), &Extras::default());
        assert!(pages("report.pdf", report).unwrap() > 1);
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn reports_in_the_repository_have_no_texts_that_overlap_or_are_cut() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduce");
    let mut folders: Vec<PathBuf> = vec![root];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with("report.html") {
                pages.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(pages.len() >= 7, "{}", pages.len());
    check("reports_in_the_repository_have_no_texts_that_overlap_or_are_cut", &pages);
}

#[test]
fn the_browser_check_finds_overlapping_texts_and_equal_series_colours() {
    let text =
        |x: u32, word: &str| format!("<text x=\"{x}\" y=\"50\" font-size=\"11\">{word}</text>");
    let path = |system: &str, colour: &str| {
        format!(
            "<path d=\"M0 0L9 9\" stroke=\"{colour}\" data-system=\"{system}\" data-variant=\"\"/>"
        )
    };
    let svg = |parts: &[String]| {
        format!(
            "<svg width=\"300\" height=\"100\" viewBox=\"0 0 300 100\">{}</svg>",
            parts.concat()
        )
    };
    let bad = [
        svg(&[text(10, "one"), text(20, "two")]),
        svg(&[text(280, "beyond the edge")]),
        svg(&[path("a", "#111111"), path("b", "#111111")]),
        svg(&[path("c", "#222222")]) + &svg(&[path("c", "#333333")]),
        "<div style=\"width:3000px\">wide</div>".to_owned(),
    ];
    let good =
        svg(&[text(10, "one"), text(100, "two"), path("a", "#111111"), path("b", "#222222")]);
    let name = "the_browser_check_finds_overlapping_texts_and_equal_series_colours";
    let pages: Vec<(String, String)> = bad
        .iter()
        .chain([&good])
        .enumerate()
        .map(|(index, page)| (index.to_string(), page.clone()))
        .collect();
    let Some(lines) = look_at(name, &pages) else { return };
    for (index, word) in
        ["overlap: one", "cut off: beyond", "alike: a", "two colours: c", "wide"].iter().enumerate()
    {
        for width in WIDTHS {
            let start = format!("{index} at {width}: ");
            let found = lines.iter().any(|line| line.starts_with(&start) && line.contains(word));
            assert!(found, "{word}: {lines:?}");
        }
    }
    assert!(!lines.iter().any(|line| line.starts_with("5 at") && line.contains(": ")), "{lines:?}");
}
