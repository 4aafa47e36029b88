//! Reproduces Basta, Blenk, Kellerer, Schmid: *Logically Isolated, Actually Unpredictable? Measuring Hypervisor
//! Performance in Multi-Tenant SDNs* (HotConNet 2017). The module covers the runs of Table 1, figures 3a, 3b, 3c, 4, 5
//! and 6, and the multi-tenant PACKET_IN row of the table, for which the paper has no figure.
//!
//! [`TABLE_1`] contains the table as data. [`Plan::comparison`] makes one case per system and combination from the
//! table. A further system, such as another mode of a hypervisor, is one more entry of [`Plan::systems`]. `published`
//! contains the paper's values, and `figures` draws published and measured values.

mod earlier;
mod figures;
mod published;
mod table;

pub use table::{Figure, Row, TABLE_1};

use bench::{Case, Comparison, Error, Kind, Load, Options, Setup, Shape, Stream, System, Verdict};
use report::Extras;
use std::path::Path;

/// The result of the experiment in the form of the paper.
#[derive(Debug)]
pub struct Reproduction {
    /// The points, measured and published, and the findings.
    pub verdict: Verdict,
    /// The paper's figures, and a table of published and measured values.
    pub extras: Extras,
}

impl Reproduction {
    /// Writes the results directory; the folder `figures/` contains the figures.
    ///
    /// # Errors
    /// [`Error::Report`].
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let Verdict { results, histograms, window, .. } = &self.verdict;
        Ok(results.write_with(dir, histograms, *window, &self.extras)?)
    }
}

/// The plan of the measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The wanted figures; the plan measures only rows that the figures need.
    pub figures: Vec<Figure>,
    /// The systems: [`System::Direct`] is the switch-only case of the paper.
    pub systems: Vec<System>,
    /// Whether to measure fewer numbers of tenants; every figure states this.
    pub quick: bool,
    /// Whether to send the messages of each millisecond at once, as the paper's generator does, instead of evenly.
    pub bursts: bool,
}

impl Plan {
    /// The comparison with all runs of the plan.
    ///
    /// # Errors
    /// [`Error::Setting`] names the setting that is missing or out of range.
    pub fn comparison(&self, options: &Options) -> Result<Comparison, Error> {
        let is_wanted = |row: &&Row| row.figures.iter().any(|figure| self.figures.contains(figure));
        let mut cases = Vec::new();
        for row in TABLE_1.iter().filter(is_wanted) {
            for &tenants in if self.quick { row.quick_tenants } else { row.tenants } {
                for &rate in row.rates.iter().filter(|&&rate| self.shows(row, rate)) {
                    for &nodelay in row.nodelay {
                        for system in &self.systems {
                            cases.push(self.case(
                                row.message,
                                tenants,
                                rate,
                                nodelay,
                                system,
                                options,
                            ));
                        }
                    }
                }
            }
        }
        if cases.is_empty() {
            return Err(Error::Setting {
                name: "figures or systems".to_owned(),
                value: "an empty list".to_owned(),
                range: "at least one of each".to_owned(),
            });
        }
        // The user gets errors before the first run, not between runs.
        cases.iter().try_for_each(Case::check)?;
        let tool = "reproduce basta2017".to_owned();
        let (is_real, has_figure_4) = (options.switches.is_some(), self.has_earlier(options));
        let others = self.others();
        let criteria = Box::new(move |points: &[report::Point]| {
            let of_figure_4 = has_figure_4.then(|| earlier::criteria(points, others.as_deref()));
            let beside = is_real.then(|| earlier::networks_beside_slices(points));
            of_figure_4.into_iter().chain(beside).flatten().collect()
        });
        Ok(Comparison { tool, cases, criteria, kind: Kind::PacketOut })
    }

    /// Whether a wanted figure shows a rate of a row.
    fn shows(&self, row: &Row, rate: f64) -> bool {
        let mut wanted = row.figures.iter().filter(|figure| self.figures.contains(figure));
        wanted.any(|&figure| figure != Figure::OneRate || rate == 40_000.0)
    }

    fn case(
        &self,
        message: Kind,
        tenants: usize,
        rate: f64,
        nodelay: bool,
        system: &System,
        options: &Options,
    ) -> Case {
        let each = rate / tenants as f64;
        let burst = Shape::Burst((each / 1e3).round().max(1.0) as u32);
        let shape = if self.bursts { burst } else { Shape::Constant };
        let stream = |tenant| Stream::new(tenant, message, shape.at(each));
        Case {
            system: system.clone(),
            parameters: vec![
                ("message", message.name().into()),
                ("rate", rate.into()),
                ("tenants", tenants.into()),
                ("tcp", if nodelay { "ND" } else { "AGG" }.into()),
            ],
            // The paper's switch has its own TCP: AGG and ND apply to the controllers only.
            setup: Setup { tenants, nodelay, switch_nodelay: Some(true), ..options.setup.clone() },
            load: Load {
                cut_ms: options.cut_ms,
                // An overloaded real switch loses messages; a longer wait recovers no message.
                drain_ms: 500,
                ..Load::new((0..tenants).map(stream).collect(), options.duration_ms)
            },
            afterwards: None,
            beside: None,
        }
    }

    /// Measures, and draws published and measured values. The run calls `talk` with progress messages.
    ///
    /// # Errors
    /// As [`Comparison::run`].
    pub fn run(
        &self,
        options: &Options,
        talk: &mut dyn FnMut(&str),
    ) -> Result<Reproduction, Error> {
        let mut verdict = self.comparison(options)?.run(options, talk)?;
        verdict.results.points.extend(published::points());
        verdict.results.settings.insert("quick".to_owned(), self.quick.into());
        verdict.results.settings.insert("bursts".to_owned(), self.bursts.into());
        let note = self.note(options);
        let mut extras = figures::extras(&verdict.results.points, &self.figures, &note);
        if self.has_earlier(options) {
            extras.tables.push(earlier::table(&verdict.results.points, self.others().as_deref()));
        }
        Ok(Reproduction { verdict, extras })
    }

    /// Whether figure 4 can be compared with the earlier measurement, which used a real switch.
    fn has_earlier(&self, options: &Options) -> bool {
        options.switches.is_some() && self.figures.contains(&Figure::Tenants)
    }

    /// The first system that is an external, running hypervisor, if any.
    fn others(&self) -> Option<String> {
        let is_other = |system: &&System| matches!(system, System::External { .. });
        self.systems.iter().find(is_other).map(|system| system.name().to_owned())
    }

    /// The note on every figure.
    fn note(&self, options: &Options) -> String {
        let switch = options.switches.as_ref().map_or("emulated switch".to_owned(), |it| it.name());
        let seconds = |ms: u64| report::table::number(ms as f64 / 1e3);
        let runs = if options.runs == 1 { "run" } else { "runs" };
        let effort = format!(
            "{} {runs} of {} s, {} s cut at each end; {switch}",
            options.runs,
            seconds(options.duration_ms),
            seconds(options.cut_ms)
        );
        if self.quick { format!("QUICK LOOK: {effort}") } else { effort }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use std::path::PathBuf;

    fn plan(figures: &[Figure], quick: bool) -> Plan {
        let systems = vec![
            System::Direct,
            System::External {
                name: "fv".to_owned(),
                switch_address: SocketAddr::from(([127, 0, 0, 1], 6633)),
                controllers: SocketAddr::from(([127, 0, 0, 1], 6701)),
                watched: None,
            },
        ];
        Plan { figures: figures.to_vec(), systems, quick, bursts: false }
    }

    #[test]
    fn each_figure_belongs_to_exactly_one_row_of_table_1() {
        for figure in Figure::ALL {
            let rows = TABLE_1.iter().filter(|row| row.figures.contains(&figure)).count();
            assert_eq!((rows, figure.name().parse()), (1, Ok(figure)));
        }
        assert!("7".parse::<Figure>().unwrap_err().contains("3a, 3b"));
    }

    #[test]
    fn only_the_cases_of_the_selected_figures_are_measured() {
        let options = Options::new(System::Direct, PathBuf::new());
        for (figures, quick, systems_times) in [
            (&[Figure::OneRate][..], false, 1),
            (&[Figure::PortStats], true, 4),
            (&[Figure::Cpu, Figure::Fairness], true, 6),
            (&[Figure::Tenants], false, 10),
            (&Figure::ALL, true, 4 + 4 + 4 + 6),
            (&Figure::ALL, false, 4 + 4 + 10 + 10),
        ] {
            let comparison = plan(figures, quick).comparison(&options).unwrap();
            assert_eq!(comparison.cases.len(), 2 * systems_times, "{figures:?}");
        }
        assert!(plan(&[], true).comparison(&options).is_err());
    }

    #[test]
    fn the_total_rate_is_divided_among_tenants() {
        let options = Options::new(System::Direct, PathBuf::new());
        for bursts in [false, true] {
            let plan = Plan { bursts, ..plan(&[Figure::Tenants], false) };
            let comparison = plan.comparison(&options).unwrap();
            let twenty = comparison.cases.iter().rfind(|case| case.setup.tenants == 20).unwrap();
            let each = twenty.load.streams[0].arrivals.mean_rate(1.0).unwrap();
            // The paper states 6k; 60k over 20 tenants is 3k.
            assert!((each - 3000.0).abs() < 1e-6, "{each}");
            assert_eq!((twenty.setup.nodelay, twenty.setup.switch_nodelay), (true, Some(true)));
        }
    }
}
