//! One emulated switch on a socket, to try clients by hand: `cargo run --example switch -- ADDRESS [HOSTS]`.
//!
//! It listens on ADDRESS (say `tcp:127.0.0.1:6634`) until standard input ends.
#![allow(clippy::print_stdout, reason = "this is a program for a terminal")]

use emulate::{Network, Runner, SwitchIndex};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "tcp:127.0.0.1:6634".to_owned()).parse()?;
    let hosts = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let switch = SwitchIndex(0);
    let running = Runner::new(Network::single(hosts, |_| {})).listen(switch, address).start()?;
    if let Some(address) = running.listening_on(switch) {
        println!("{address}");
    }
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    running.stop()?;
    Ok(())
}
