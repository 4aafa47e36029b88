//! Skips tests with a printed reason, by the rule of CONTRIBUTING.md.

use std::env;

use super::app::python;
use super::{faucet, repository};

/// A requirement of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// os-ken in `.venv`.
    OsKen,
    /// Faucet in `.venv-faucet`.
    Faucet,
    /// A validator of OpenAPI documents in `.venv-openapi`.
    OpenApi,
    /// Root, network namespaces and Open vSwitch.
    OpenVSwitch,
    /// A program in PATH.
    Program(&'static str),
}

/// Whether `test` must be skipped here, with a printed reason. Under `CI=true` a missing requirement is a failure.
pub fn skip(test: &str, needs: &[Needs]) -> bool {
    let missing: Vec<_> = needs.iter().flat_map(missing).collect();
    if missing.is_empty() {
        return false;
    }
    let line = format!("SKIPPED {test}: {}", missing.join("; "));
    assert!(env::var("CI").as_deref() != Ok("true"), "{line} (under CI=true this is a failure)");
    eprintln!("{line}");
    true
}

fn missing(need: &Needs) -> Vec<String> {
    match need {
        Needs::OsKen if python().exists() => Vec::new(),
        Needs::OsKen => vec!["os-ken is not installed; run scripts/setup".to_owned()],
        Needs::Faucet if faucet::program().exists() => Vec::new(),
        Needs::Faucet => vec!["Faucet is not installed; run scripts/setup".to_owned()],
        Needs::OpenApi if repository().join(".venv-openapi/bin/python").exists() => Vec::new(),
        Needs::OpenApi => {
            vec!["openapi-spec-validator is not installed; run scripts/setup".to_owned()]
        }
        Needs::OpenVSwitch => {
            lab::Requirements::ALL.check().iter().map(ToString::to_string).collect()
        }
        Needs::Program(name) => {
            let folders = env::var_os("PATH").unwrap_or_default();
            let found = env::split_paths(&folders).any(|folder| folder.join(name).exists());
            if found {
                Vec::new()
            } else {
                vec![format!("{name} is not installed; run scripts/setup")]
            }
        }
    }
}

/// Returns from the test if a requirement is missing.
macro_rules! needs {
    ($test:ident: $($need:expr),+ $(,)?) => {
        if $crate::support::requirements::skip(stringify!($test), &[$($need),+]) {
            return;
        }
    };
}
pub(crate) use needs;
