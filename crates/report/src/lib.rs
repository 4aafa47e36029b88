#![forbid(unsafe_code)]
//! What every measuring command hands back: histograms, statistics, tables, figures and the
//! results directory.
//!
//! It deliberately measures nothing and prints nothing: callers record into a [`Histogram`], describe
//! what they saw as [`Results`] and get text, files and verdicts back.
//!
//! Start reading at [`results`] (what a results directory is), then [`histogram`] and [`stats`]
//! (how numbers are made), [`table`], [`figure`] and [`page`] (how they are shown), and [`mod@compare`].

pub mod compare;
pub mod directory;
pub mod environment;
pub mod figure;
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
