//! Reads and writes a results directory. The directory has the files `result.json` (or `result.json.gz`),
//! `histograms.hlog`, `metrics.csv`, `tenants.csv` and `report.html`, and the figures of the result in `figures/`.

use crate::figure::{Figure, WIDE, palette_of};
use crate::histogram::{Histogram, write_log};
use crate::page;
use crate::results::{Extras, Results, SCHEMA};
use crate::table::Table;
use flate2::read::GzDecoder;
use serde::Deserialize;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An error of a results directory.
#[derive(Debug)]
pub enum Error {
    /// A file could not be read or written.
    Io(PathBuf, io::Error),
    /// `result.json` does not follow the schema.
    Format(PathBuf, serde_json::Error),
    /// A version of Weir with another schema wrote `result.json`.
    Schema(PathBuf, u32),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Format(path, error) => write!(f, "{}: not a result: {error}", path.display()),
            Self::Schema(path, version) => {
                write!(f, "{}: has schema {version}, this program reads {SCHEMA}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {}

impl Results {
    /// Writes the whole directory, and creates the directory if it is missing.
    ///
    /// `histograms` are the raw distributions by name. `window` is the measured time of a run.
    ///
    /// # Errors
    /// [`Error::Io`] with the file that could not be written.
    pub fn write(
        &self,
        dir: &Path,
        histograms: &[(String, Histogram)],
        window: Duration,
    ) -> Result<(), Error> {
        self.write_with(dir, histograms, window, &Extras::default())
    }

    /// Writes the directory as [`Results::write`] does, with more figures and more tables. The
    /// figures also become files under `figures/` (SVG and, with the feature `png`, PNG).
    ///
    /// # Errors
    /// [`Error::Io`] with the file that could not be written.
    pub fn write_with(
        &self,
        dir: &Path,
        histograms: &[(String, Histogram)],
        window: Duration,
        extras: &Extras,
    ) -> Result<(), Error> {
        fs::create_dir_all(dir).map_err(|error| Error::Io(dir.to_owned(), error))?;
        put(dir, "result.json", self.to_json().as_bytes())?;
        let mut log = Vec::new();
        let named = histograms.iter().map(|(name, histogram)| (name.as_str(), histogram));
        write_log(&mut log, named, window)
            .map_err(|error| Error::Io(dir.join("histograms.hlog"), error))?;
        put(dir, "histograms.hlog", &log)?;
        put(dir, "metrics.csv", self.metrics_table().to_csv().as_bytes())?;
        put(dir, "tenants.csv", self.tenants_table().to_csv().as_bytes())?;
        self.write_page(dir, extras)
    }

    /// Writes the drawings of a result: `report.html`, and under `figures/` each figure as SVG and CSV. With the
    /// feature `png` the result's own figures are also written as PNG. `figures.json` has the figures and tables that
    /// cannot be drawn from `result.json` alone, so that everything can be drawn again.
    ///
    /// # Errors
    /// [`Error::Io`] with the file that could not be written.
    pub fn write_page(&self, dir: &Path, extras: &Extras) -> Result<(), Error> {
        put(dir, "report.html", page::html(self, extras).as_bytes())?;
        let figures = page::figures(self, extras);
        if *extras != Extras::default() {
            let text = serde_json::to_string(extras).unwrap_or_default() + "\n";
            put(dir, "figures.json", text.as_bytes())?;
        }
        if figures.is_empty() {
            return Ok(());
        }
        let folder = dir.join("figures");
        fs::create_dir_all(&folder).map_err(|error| Error::Io(folder.clone(), error))?;
        let palette = palette_of(figures.iter().map(|figure| &figure.drawing));
        for Figure { name, drawing, .. } in &figures {
            let name = page::file_name(name);
            put(dir, &format!("figures/{name}.svg"), drawing.svg_in(WIDE, &palette).as_bytes())?;
            put(dir, &format!("figures/{name}.csv"), drawing.csv().as_bytes())?;
            #[cfg(feature = "png")]
            if !extras.figures.is_empty()
                && let Some(png) = drawing.png_in(&palette)
            {
                put(dir, &format!("figures/{name}.png"), &png)?;
            }
        }
        Ok(())
    }

    /// Reads the result's own figures and tables from `figures.json`. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read_extras(dir: &Path) -> Result<Option<Extras>, Error> {
        let path = dir.join("figures.json");
        match fs::read_to_string(&path) {
            Ok(text) => {
                serde_json::from_str(&text).map(Some).map_err(|error| Error::Format(path, error))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Io(path, error)),
        }
    }

    /// Reads `result.json` or `result.json.gz` from a results directory, or from that file itself.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let path = if path.is_dir() { result_in(path) } else { path.to_owned() };
        let text = read_text(&path).map_err(|error| Error::Io(path.clone(), error))?;
        // With another schema the rest of the file may have any form, so the schema number is read
        // first.
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let version: Version =
            serde_json::from_str(&text).map_err(|error| Error::Format(path.clone(), error))?;
        if version.schema != SCHEMA {
            return Err(Error::Schema(path, version.schema));
        }
        serde_json::from_str(&text).map_err(|error| Error::Format(path, error))
    }

    fn metrics_table(&self) -> Table {
        let header = "system parameters metric unit runs mean ci95 variance samples";
        let mut table = Table::new(header.split(' '));
        let text = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
        for point in &self.points {
            for (name, metric) in &point.metrics {
                let samples: Vec<String> = metric.samples.iter().map(f64::to_string).collect();
                table.row([
                    point.system.clone(),
                    point.label(),
                    name.clone(),
                    metric.unit.clone(),
                    metric.samples.len().to_string(),
                    text(metric.mean),
                    text(metric.ci95),
                    text(metric.variance),
                    samples.join(" "),
                ]);
            }
        }
        table
    }

    fn tenants_table(&self) -> Table {
        let header = "system parameters tenant sent received p50_us p90_us p99_us max_us";
        let mut table = Table::new(header.split(' '));
        for point in &self.points {
            for tenant in &point.tenants {
                let latency = &tenant.latency;
                table.row([
                    point.system.clone(),
                    point.label(),
                    tenant.tenant.clone(),
                    tenant.sent.to_string(),
                    tenant.received.to_string(),
                    latency.p50_us.to_string(),
                    latency.p90_us.to_string(),
                    latency.p99_us.to_string(),
                    latency.max_us.to_string(),
                ]);
            }
        }
        table
    }
}

fn put(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let path = dir.join(name);
    fs::write(&path, bytes).map_err(|error| Error::Io(path, error))
}

/// The result file of a results directory. The file may be compressed in a directory that is stored for a long time.
fn result_in(dir: &Path) -> PathBuf {
    let (plain, compressed) = (dir.join("result.json"), dir.join("result.json.gz"));
    if !plain.exists() && compressed.exists() { compressed } else { plain }
}

/// Reads the text of a plain file or of a gzip file.
fn read_text(path: &Path) -> io::Result<String> {
    if path.extension().is_none_or(|it| it != "gz") {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    GzDecoder::new(fs::File::open(path)?).read_to_string(&mut text)?;
    Ok(text)
}
