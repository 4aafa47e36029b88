//! Computes an optimal plan for servers and a traffic matrix (`weir sampling plan`).

use super::options::{CostOptions, SolverOption};
use super::text::{percent, read, write};
use crate::exit::Exit;
use anyhow::Context;
use report::Table;
use report::table::number;
use sampling::{Problem, Solver, input, solve};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Compute how many packets each server samples, and for which servers
///
/// The problem is one JSON document, or two CSV files: servers and a traffic matrix. Exit status 1: there is no plan,
/// because a server cannot forward its own traffic or a minimum rate cannot be met; stderr says which and by how much.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir sampling plan problem.json --out plan/
  weir sampling plan --servers servers.csv --traffic matrix.csv --solver linear --json")]
pub struct Plan {
    /// The problem as JSON
    #[arg(value_name = "PROBLEM", required_unless_present = "servers", conflicts_with_all = ["servers", "traffic"])]
    problem: Option<PathBuf>,
    /// Servers as CSV: server,capacity and, if they differ, alpha,beta,minimum,weight
    #[arg(long, value_name = "FILE", requires = "traffic")]
    servers: Option<PathBuf>,
    /// Packets per second between servers as CSV: a matrix, or a list from,to,volume and, if given, tenant
    #[arg(long, value_name = "FILE", requires = "servers")]
    traffic: Option<PathBuf>,
    /// The solver
    #[arg(long, value_name = "SOLVER", default_value = "auto")]
    solver: SolverOption,
    #[command(flatten)]
    costs: CostOptions,
    /// Write plan.json, flows.csv and servers.csv to this directory
    #[arg(long, value_name = "DIR", value_parser = crate::out::folder)]
    out: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

impl Plan {
    pub fn run(self) -> anyhow::Result<Exit> {
        let problem = self.problem()?;
        let plan = solve(&problem, self.solver.solver(&problem))?;
        let tables = PlanTables { local: alone(&problem)?, problem, plan };
        let mut stdout = std::io::stdout().lock();
        if self.json {
            writeln!(stdout, "{:#}", tables.json())?;
        } else {
            write!(stdout, "{}\n{}", tables.servers(), tables.summary())?;
        }
        if let Some(out) = &self.out {
            std::fs::create_dir_all(out)
                .with_context(|| format!("cannot make {}", out.display()))?;
            write(&out.join("plan.json"), &format!("{:#}\n", tables.json()))?;
            write(&out.join("flows.csv"), &tables.flows().to_csv())?;
            write(&out.join("servers.csv"), &tables.servers().to_csv())?;
        }
        Ok(Exit::Success)
    }

    fn problem(&self) -> anyhow::Result<Problem> {
        if let Some(path) = &self.problem {
            let text = read(path)?;
            return input::problem_from_json(&text).with_context(|| path.display().to_string());
        }
        let (Some(servers), Some(traffic)) = (&self.servers, &self.traffic) else {
            anyhow::bail!("no problem is given");
        };
        let costs = self.costs.costs()?;
        let named = |path: &PathBuf| path.display().to_string();
        let servers = input::servers_from_csv(&read(servers)?, Some(costs))
            .with_context(|| named(servers))?;
        let matrix = input::traffic_from_csv(&read(traffic)?).with_context(|| named(traffic))?;
        input::problem_from_tables(servers, &matrix).with_context(|| named(traffic))
    }
}

/// The number of packets that the servers sample without collaboration. `None` if this solver does not support the
/// problem.
fn alone(problem: &Problem) -> Result<Option<f64>, sampling::Error> {
    match solve(problem, Solver::Local) {
        Ok(plan) => Ok(Some(plan.sampled())),
        Err(sampling::Error::Unsupported { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

struct PlanTables {
    problem: Problem,
    plan: sampling::Plan,
    local: Option<f64>,
}

impl PlanTables {
    fn name(&self, server: usize) -> &str {
        self.problem.servers().get(server).map_or("", |one| &one.name)
    }

    fn tenant(&self, tenant: Option<usize>) -> &str {
        tenant.and_then(|index| self.problem.tenants().get(index)).map_or("", |one| &one.name)
    }

    fn servers(&self) -> Table {
        let mut table = Table::new([
            "server",
            "forwards/s",
            "capacity",
            "used",
            "own/s",
            "sampled",
            "local/s",
            "mirrored/s",
            "for others/s",
        ]);
        let loads = self.plan.loads(&self.problem);
        for ((server, own), load) in
            self.problem.servers().iter().zip(self.problem.own()).zip(loads)
        {
            let sampled = if *own > 0.0 {
                percent((load.local + load.exported) / own)
            } else {
                "–".to_owned()
            };
            let used = if server.capacity > 0.0 {
                percent(load.cost / server.capacity)
            } else {
                "–".to_owned()
            };
            table.row([
                server.name.clone(),
                number(load.forwarded),
                number(server.capacity),
                used,
                number(*own),
                sampled,
                number(load.local),
                number(load.exported),
                number(load.imported),
            ]);
        }
        table
    }

    fn flows(&self) -> Table {
        let mut table = Table::new(["from", "at", "tenant", "volume", "rate"]);
        for flow in &self.plan.flows {
            table.row([
                self.name(flow.origin).to_owned(),
                self.name(flow.processor).to_owned(),
                self.tenant(flow.tenant).to_owned(),
                flow.volume.to_string(),
                flow.rate.to_string(),
            ]);
        }
        table
    }

    fn summary(&self) -> String {
        let (sampled, total) = (self.plan.sampled(), self.problem.total());
        let share =
            |volume: f64| if total > 0.0 { percent(volume / total) } else { "–".to_owned() };
        let mut text = format!(
            "{} of {} packets/s are sampled ({}), by the {} solver",
            number(sampled),
            number(total),
            share(sampled),
            self.plan.solver.name()
        );
        if let Some(local) = self.local {
            text += &format!("; without collaboration {} ({})", number(local), share(local));
        }
        text + ".\n"
    }

    fn json(&self) -> Value {
        let flow = |flow: &sampling::Flow| {
            let mut value = json!({
                "from": self.name(flow.origin), "at": self.name(flow.processor),
                "volume": flow.volume, "rate": flow.rate,
            });
            if flow.tenant.is_some() {
                value["tenant"] = self.tenant(flow.tenant).into();
            }
            value
        };
        let loads = self.plan.loads(&self.problem);
        let server = |(server, load): (&sampling::Server, sampling::ServerLoad)| json!({ "name": server.name, "capacity": server.capacity, "load": load });
        json!({
            "solver": self.plan.solver,
            "sampled": self.plan.sampled(),
            "total": self.problem.total(),
            "without_collaboration": self.local,
            "flows": self.plan.flows.iter().map(flow).collect::<Vec<_>>(),
            "servers": self.problem.servers().iter().zip(loads).map(server).collect::<Vec<_>>(),
        })
    }
}
