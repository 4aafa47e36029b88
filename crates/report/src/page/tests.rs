//! Tests of the content and the order of a page, and that the page fetches and runs nothing.

use super::*;
use crate::environment::Environment;
use crate::results::{Better, Finding, Interval, Metric};
use crate::{Histogram, Precision, TenantRow};

fn example() -> Results {
    let mut environment = Environment::capture(&[]);
    environment.command = vec!["weir".into(), "bench".into(), "it's <b>".into()];
    let mut results = Results::new("bench relay", 7, environment);
    let mut histogram = Histogram::new(Precision::Fine);
    (1..100).for_each(|us| histogram.record(us * 1000));
    let mut point = Point::new("<i>weir</i>", [("rate", 40_000.0)]);
    for metric in ["cpu_percent", "p50_us"] {
        let metric_of = Metric::new("%", Better::Lower, vec![1.0, 2.0]);
        point.metrics.insert(metric.into(), metric_of);
    }
    point.latency.insert("latency".into(), histogram.summary());
    let row = TenantRow { latency: histogram.summary(), ..TenantRow::default() };
    point.tenants = vec![row.clone(), row];
    point.intervals = vec![Interval { received: 5, mean_us: 3.0, ..Interval::default() }; 2];
    results.points.push(point);
    for number in 0..54 {
        let text = format!("a < b, {number} times");
        results.findings.push(Finding { code: "leak".into(), text });
    }
    results
}

#[test]
fn the_page_has_its_parts_in_order_and_no_external_resources() {
    let page = html(&example(), &Extras::default());
    let parts = [
        "<h1>Weir and HAProxy as relays</h1>",
        "class=\"says\"",
        "<svg",
        "leak</b> × 54: a &lt; b, … times",
        "Rates and latencies",
        "<td>rate=40,000",
        "weir bench 'it'\\''s &lt;b&gt;'",
    ];
    let places: Vec<usize> = parts
        .iter()
        .map(|part| page.find(part).unwrap_or_else(|| panic!("{part} is missing")))
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    // The page has five figures, each for a wide page and for a phone.
    assert_eq!(page.matches("<svg").count(), 10);
    assert!(page.contains("name=\"viewport\"") && page.contains("prefers-color-scheme:dark"));
    for part in ["src=", "<script", "@import", "url(", "<i>weir", "href=\"http", "href=\"/"] {
        assert!(
            !page.contains(part),
            "{part} would fetch or run something, or is a system's markup"
        );
    }
}

#[test]
fn the_page_names_the_paper_and_marks_a_partial_result() {
    let mut results = example();
    results.tool = "reproduce oflops2012".into();
    results.mark_partial("interrupted in experiment 2 of 9");
    let page = html(&results, &Extras::default());
    for part in [
        "OFLOPS: An Open Framework",
        "Table 2 and figures 2 to 6",
        "Half a result: </b>interrupted",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_page_with_sixty_systems_and_two_thousand_cases_has_a_limited_size() {
    let mut results = Results::new("bench run", 1, Environment::default());
    for index in 0..2_000_u32 {
        let mut point = example().points.remove(0);
        point.system = format!("system {} <b>", index % 60);
        point.parameters.insert("case".into(), (index / 60).into());
        point.intervals.clear();
        results.points.push(point);
    }
    let page = html(&results, &Extras::default());
    assert!(page.contains("more panels are not drawn") && page.contains("1500 more rows are in"));
    assert!(page.len() < 8_000_000, "{}", page.len());
    assert!(!page.contains("<b>\"") && page.contains("system 1 &lt;b&gt;"));
}

#[test]
fn file_names_of_figures_cannot_leave_the_folder() {
    for (name, file) in
        [("3a", "3a"), ("../x", "figure..-x"), ("", "figure"), ("a/b µ", "a-b-µ"), ("<b>", "-b-")]
    {
        assert_eq!(file_name(name), file);
    }
}
