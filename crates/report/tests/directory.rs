//! Tests of a results directory: the directory is written, matches the committed schema, and is read again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are test code too")]

use report::figure::Lines;
use report::page::html;
use report::{
    Better, Environment, Error, Extras, Figure, Finding, Histogram, Interval, Metric, Point,
    Precision, Results, Table, TenantRow, compare,
};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn example() -> (Results, Vec<(String, Histogram)>) {
    let mut histogram = Histogram::new(Precision::Fine);
    (1..=1000).for_each(|us| histogram.record(us * 1000));
    let mut results =
        Results::new("bench relay", 42, Environment::capture(&[("cargo", "cargo", &["-V"])]));
    results.settings.insert("nodelay".into(), true.into());
    results.settings.insert("openflow".into(), "1.0".into());
    let mut point = Point::new("weir", [("rate", 40_000.0), ("tenants", 20.0)]);
    for (name, samples) in
        [("p50_us", vec![81.0, 83.5, 80.0]), ("one_run", vec![1.0]), ("none", vec![])]
    {
        point.metrics.insert(name.into(), Metric::new("µs", Better::Lower, samples));
    }
    point.latency.insert("latency".into(), histogram.summary());
    point.latency.insert("nothing".into(), Histogram::new(Precision::Coarse).summary());
    point.tenants.push(TenantRow { tenant: "red, \"1\"".into(), sent: 5, ..TenantRow::default() });
    point.intervals.push(Interval { received: 3, ..Interval::default() });
    results.points.push(point);
    results.findings.push(Finding { code: "leak".into(), text: "a packet leaked".into() });
    (results, vec![("weir latency".into(), histogram)])
}

fn fresh_dir(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("weir-report-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    dir
}

#[test]
fn results_are_written_to_a_directory_and_read_back() {
    let dir = fresh_dir("directory");
    let (results, histograms) = example();
    results.write(&dir, &histograms, Duration::from_secs(20)).unwrap();
    assert_eq!(Results::read(&dir).unwrap(), results);
    assert_eq!(Results::read(&dir.join("result.json")).unwrap(), results);
    for file in ["histograms.hlog", "metrics.csv", "tenants.csv", "report.html"] {
        assert!(fs::metadata(dir.join(file)).unwrap().len() > 100, "{file}");
    }
    let csv = fs::read_to_string(dir.join("tenants.csv")).unwrap();
    assert!(csv.contains("\"red, \"\"1\"\"\""), "{csv}");
    assert_eq!(compare(&[("a".into(), results.clone()), ("b".into(), results)]).lines.len(), 2);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn errors_for_unreadable_results_have_the_reason() {
    let dir = fresh_dir("unreadable");
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("result.json");
    assert!(matches!(Results::read(&dir), Err(Error::Io(path, _)) if path == file));
    fs::write(&file, "{}").unwrap();
    assert!(matches!(Results::read(&dir), Err(Error::Format(..))));
    let (results, _) = example();
    // An older schema and a newer schema are refused. With another schema the rest of the file may have any form.
    for schema in [0, 9] {
        let other = format!("\"schema\": {schema}");
        for text in [results.to_json().replace("\"schema\": 1", &other), format!("{{{other}}}")] {
            fs::write(&file, text).unwrap();
            let error = Results::read(&dir).unwrap_err();
            assert!(matches!(error, Error::Schema(_, found) if found == schema));
            let says = format!("result.json: has schema {schema}, this program reads 1");
            assert!(error.to_string().ends_with(&says), "{error}");
        }
    }
    // Half a file is left after a run that was killed while it wrote.
    let json = results.to_json();
    fs::write(&file, json.split_at(json.len() / 2).0).unwrap();
    assert!(matches!(Results::read(&dir), Err(Error::Format(..))));
    fs::remove_file(&file).unwrap();
    let compressed = dir.join("result.json.gz");
    fs::write(&compressed, "{}").unwrap();
    assert!(matches!(Results::read(&dir), Err(Error::Io(path, _)) if path == compressed));
    fs::write(dir.join("figures.json"), "{").unwrap();
    assert!(matches!(Results::read_extras(&dir), Err(Error::Format(..))));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn written_results_match_the_json_schema() {
    let schema: Value = serde_json::from_str(include_str!("../schema/result.schema.json")).unwrap();
    let (results, _) = example();
    let value: Value = serde_json::from_str(&results.to_json()).unwrap();
    assert_eq!(errors(&schema, &schema, &value, "$"), Vec::<String>::new());
    // The schema refuses wrong values.
    for (pointer, wrong) in [
        ("/schema", Value::from(2)),
        ("/seed", "x".into()),
        ("/environment/cpus", Value::Null),
        ("/points/0/metrics/p50_us/better", "sideways".into()),
        ("/points/0/latency/latency/cdf/0/0", "x".into()),
    ] {
        let mut bad = value.clone();
        *bad.pointer_mut(pointer).unwrap() = wrong;
        assert_eq!(errors(&schema, &schema, &bad, "$").len(), 1, "{pointer}");
    }
    let mut bad = value;
    bad["points"][0]["surplus"] = 1.into();
    bad["tool"].take();
    assert_eq!(errors(&schema, &schema, &bad, "$").len(), 2);
}

/// Checks a value by a schema, with the keywords of JSON Schema that our schema uses, and returns the errors.
fn errors(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        return errors(root, target, value, at);
    }
    if let Some(wanted) = schema.get("const") {
        return if wanted == value { vec![] } else { vec![format!("{at}: is not {wanted}")] };
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        return if allowed.contains(value) { vec![] } else { vec![format!("{at}: is {value}")] };
    }
    let types = match &schema["type"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(several) => several.iter().map(|t| t.as_str().unwrap().to_owned()).collect(),
        other => panic!("{at}: type {other}"),
    };
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("{at}: type {other}"),
    };
    if !types.iter().any(|name| is(name)) {
        return vec![format!("{at}: {value} is none of {types:?}")];
    }
    let mut found = Vec::new();
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if value.get(required.as_str().unwrap()).is_none() {
            found.push(format!("{at}: {required} is missing"));
        }
    }
    for (key, item) in value.as_object().into_iter().flatten() {
        let place = format!("{at}.{key}");
        match (schema["properties"].get(key), &schema["additionalProperties"]) {
            (Some(sub), _) => found.extend(errors(root, sub, item, &place)),
            (None, Value::Bool(false)) => found.push(format!("{place}: is not known")),
            (None, sub) => found.extend(errors(root, sub, item, &place)),
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(errors(root, &schema["items"], item, &format!("{at}[{index}]")));
    }
    found
}

#[test]
fn extra_figures_are_written_as_files_and_shown_in_the_page() {
    let dir = fresh_dir("figures");
    let (results, histograms) = example();
    let lines = Lines { title: "A figure".into(), ..Lines::default() };
    let mut table = Table::new(["published"]);
    table.row(["7 ms"]);
    let figure =
        Figure { name: "3a".into(), drawing: lines.draw(), caption: "Said <of> it".into() };
    let extras = Extras { figures: vec![figure], tables: vec![("Side by side".into(), table)] };
    results.write_with(&dir, &histograms, Duration::from_secs(1), &extras).unwrap();
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    for part in ["A figure", "Said &lt;of&gt; it", "Side by side", "7 ms"] {
        assert!(page.contains(part), "{part}");
    }
    // The page has the figure for a wide page and for a phone.
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(page.contains("href=\"figures/3a.csv\"") && dir.join("figures/3a.csv").exists());
    assert_eq!(Results::read_extras(&dir).unwrap().unwrap(), extras);
    assert!(fs::read_to_string(dir.join("figures/3a.svg")).unwrap().starts_with("<svg"));
    assert_eq!(dir.join("figures/3a.png").exists(), cfg!(feature = "png"));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn reports_in_the_repository_equal_the_drawing_of_this_version() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduce")];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        folders.extend(entries.filter(|path| path.is_dir()));
        if !folder.join("report.html").exists() {
            continue;
        }
        count += 1;
        let results = Results::read(&folder).unwrap();
        let extras = Results::read_extras(&folder).unwrap().unwrap_or_default();
        let kept = fs::read_to_string(folder.join("report.html")).unwrap();
        let is_same = html(&results, &extras) == kept;
        assert!(is_same, "draw it again: weir report draw {}", folder.display());
        for figure in report::page::figures(&results, &extras) {
            let name = format!("figures/{}.csv", report::page::file_name(&figure.name));
            let kept = fs::read_to_string(folder.join(&name)).unwrap();
            assert!(figure.drawing.csv() == kept, "{name} of {}", folder.display());
        }
    }
    assert!(count >= 7, "{count}");
}
