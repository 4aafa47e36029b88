#![forbid(unsafe_code)]
//! The results of measuring commands: histograms, statistics, tables, figures and the results
//! directory.
//!
//! The crate deliberately measures nothing and prints nothing. Callers record values into a [`Histogram`], describe the
//! measurement as [`Results`], and get text, files and verdicts.
//!
//! Start reading at [`results`] (the content of a results directory), then read [`histogram`] and [`stats`] (the
//! computation of numbers), [`table`], [`figure`] and [`page`] (the output), and [`mod@compare`].

pub mod compare;
pub mod directory;
pub mod environment;
pub mod figure;
mod groups;
pub mod histogram;
pub mod names;
pub mod pace;
pub mod page;
pub mod results;
pub mod stats;
pub mod table;
pub mod terminal;

pub use compare::{Compared, Comparison, Verdict, compare};
pub use directory::Error;
pub use environment::Environment;
pub use figure::Figure;
pub use histogram::{Histogram, LatencySummary, Precision};
pub use results::{Better, Extras, Finding, Interval, Metric, Point, Results, Scalar, TenantRow};
pub use table::Table;
