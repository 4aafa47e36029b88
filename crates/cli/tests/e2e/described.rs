//! Tests of the OpenAPI document: an independent validator accepts the document, and the document has each path that
//! `weir ctl` requests.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::repository;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

fn document(weir: &Weir) -> String {
    let (status, text) = weir.get("/api/v1/openapi.json");
    assert_eq!(status, 200);
    text
}

#[test]
fn the_openapi_document_is_valid() {
    needs!(the_openapi_document_is_valid: Needs::OpenApi);
    let weir = Weir::serve("");
    let file = weir.folder.join("openapi.json");
    fs::write(&file, document(&weir)).expect("a file");
    let output = Command::new(repository().join(".venv-openapi/bin/python"))
        .args(["-m", "openapi_spec_validator", &file])
        .output()
        .expect("the validator");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn each_rest_path_of_weir_ctl_is_in_the_openapi_document() {
    let weir = Weir::serve("");
    let document: Value = serde_json::from_str(&document(&weir)).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let asked = asked_by(&repository().join("crates/cli/src/commands"));
    assert!(asked.len() >= 9, "{asked:?}");
    for asked in asked {
        let (path, query) = asked.split_once('?').unwrap_or((&asked, ""));
        let described = paths.iter().find(|(described, _)| fits(described, path));
        let (_, methods) = described.unwrap_or_else(|| panic!("{asked} is not described"));
        let methods = methods.to_string();
        for parameter in query.split('&').filter_map(|part| part.split('=').next()) {
            let named = format!("\"name\":\"{parameter}\"");
            assert!(parameter.is_empty() || methods.contains(&named), "{asked}: {parameter}");
        }
    }
}

/// Returns the paths in the sources of `weir ctl`, each with its query.
fn asked_by(commands: &Path) -> BTreeSet<String> {
    let folder = fs::read_dir(commands.join("ctl")).expect("a folder");
    let files = folder.map(|entry| entry.expect("an entry").path());
    let mut asked = BTreeSet::new();
    for file in files.chain([commands.join("ctl.rs")]) {
        let text = fs::read_to_string(file).expect("a source file");
        for rest in text.split("\"/api/v1").skip(1) {
            asked.insert(format!("/api/v1{}", rest.split('"').next().unwrap_or_default()));
        }
    }
    // `weir ctl` writes a path of networks with placeholders for the part after the tenant and for a dry run.
    let networks = "/api/v1/networks/{}{rest}{how}";
    assert!(asked.remove(networks), "{asked:?}");
    for end in ["", "?dry_run=true", "/changes", "/changes?dry_run=true"] {
        asked.insert(format!("/api/v1/networks/{{}}{end}"));
    }
    asked.insert("/api/v1/tenants/{}/switches/{}/flows?side={side}&after={next}".to_owned());
    asked
}

/// Whether a requested path fits a described path. A placeholder fits each placeholder.
fn fits(described: &str, asked: &str) -> bool {
    let (parts, asked) = (described.split('/'), asked.split('/'));
    let is_hole = |part: &str| part.starts_with('{');
    parts.clone().count() == asked.clone().count()
        && parts.zip(asked).all(|(part, asked)| part == asked || is_hole(part) && is_hole(asked))
}
