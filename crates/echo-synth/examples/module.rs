//! Writes a module to standard output: `cargo run -p echo-synth --example module -- SHAPE INSTRUCTIONS PAIRS [SEED [locations]]`, with
//! SHAPE one of many, few, one, plain. For looking at one, and for comparing what two versions of Echo-SR make of it.

use std::process::ExitCode;

use echo_synth::{Request, Shape, module};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match request(&arguments) {
        Some(request) => {
            print!("{}", module(&request).text);
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("usage: module many|few|one|plain INSTRUCTIONS PAIRS [SEED [locations]]");
            ExitCode::from(2)
        }
    }
}

fn request(arguments: &[String]) -> Option<Request> {
    let number = |index: usize| arguments.get(index)?.parse().ok();
    Some(Request {
        shape: match arguments.first()?.as_str() {
            "many" => Shape::ManyFunctions,
            "few" => Shape::FewFunctions,
            "one" => Shape::OneFunction,
            "plain" => Shape::Plain,
            _ => return None,
        },
        instructions: number(1)?,
        pairs: number(2)?,
        seed: if arguments.len() > 3 { u64::try_from(number(3)?).ok()? } else { 1 },
        locations: arguments.get(4).is_some_and(|word| word == "locations"),
    })
}
