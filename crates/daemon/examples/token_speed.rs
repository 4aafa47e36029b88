//! Measures the cost of one check of a token: its SHA-256 and the look-up, among the maximum number
//! of tokens.
//!
//! `cargo run --release -p weir-daemon --example token_speed`

// A measurement prints its result.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use daemon::access::Reach;
use daemon::access::tokens::{MOST, PREFIX, Tokens, Wish, now};
use daemon::store::Store;

const CHECKS: usize = 200_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::memory()?;
    let tokens = Tokens::load(store.documents())?;
    let wish = |number: usize| Wish {
        reach: Reach::Tenant(format!("tenant{number}")),
        name: String::new(),
        lasts: None,
    };
    let make = |number| tokens.make(wish(number), now(), |_| Ok(())).map(|(text, _)| text);
    let valid = (0..MOST).map(make).collect::<Result<Vec<_>, _>>()?;
    let wrong: Vec<String> = (0..MOST).map(|number| format!("{PREFIX}{number:064x}")).collect();
    for (name, texts, expected) in [("valid", valid, CHECKS), ("wrong", wrong, 0)] {
        let (mut found, since) = (0, Instant::now());
        for text in texts.iter().cycle().take(CHECKS) {
            found += usize::from(tokens.find(black_box(text), black_box(now())).is_some());
        }
        let each = since.elapsed().as_secs_f64() * 1e6 / CHECKS as f64;
        assert_eq!(found, expected);
        println!("{name} tokens: {each:.2} µs each, among {MOST}");
    }
    Ok(())
}
