//! Runs published measurements again on this machine (`weir reproduce`). Each paper has one file.

mod basta2017;
mod elbouanani2019;
mod oflops2012;
mod output;
mod riggio2013;
mod riggio2013_edge;

use crate::exit::Exit;

/// Run a paper's measurements again, and draw its figures with published beside measured values
///
/// stdout is the values, published and measured, case by case; --out writes the figures as SVG and PNG too. What a
/// figure shows that was measured in short is said on it.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir reproduce basta2017 --quick --out results/
  weir reproduce elbouanani2019 --quick --out results/
  weir reproduce oflops2012 --quick --out results/
  weir reproduce riggio2013 --quick --out results/
  weir reproduce riggio2013-edge

See docs/reproduce/.")]
pub struct Reproduce {
    #[command(subcommand)]
    paper: Paper,
}

#[derive(clap::Subcommand)]
enum Paper {
    Basta2017(basta2017::Basta2017),
    Elbouanani2019(elbouanani2019::Elbouanani2019),
    Oflops2012(Box<oflops2012::Oflops2012>),
    Riggio2013(riggio2013::Riggio2013),
    #[command(name = "riggio2013-edge")]
    Riggio2013Edge(riggio2013_edge::Riggio2013Edge),
}

impl Reproduce {
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.paper {
            Paper::Basta2017(paper) => paper.run(),
            Paper::Elbouanani2019(paper) => paper.run(),
            Paper::Oflops2012(paper) => paper.run(),
            Paper::Riggio2013(paper) => paper.run(),
            Paper::Riggio2013Edge(paper) => paper.run(),
        }
    }
}
