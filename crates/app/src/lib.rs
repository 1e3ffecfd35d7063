//! The `urr` binary: command line, configuration, wiring, roles, lifecycle. No domain logic.
//!
//! This is the only crate that knows the configuration, and the only one that depends on more than
//! one domain. [`main`] reads the command line and the environment once; `wire` builds every part
//! from the resulting configuration, top to bottom.

mod admin;
mod aws;
mod bench;
mod cli;
mod clocks;
mod config;
mod doctor;
mod domains;
mod failure;
mod files;
mod gateway;
mod lifecycle;
mod mails;
mod migrate;
mod outbox;
mod queue;
mod ready;
mod remote;
mod roles;
mod say;
mod serve;
mod startup;
mod stores;
mod token;
mod waiting;
mod watch;
mod wire;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser as _;
use urr_stampede::report::Report;

use crate::{
    cli::{Cli, Command, ConfigCommand, Flags, StampedeCommand, VwrCommand},
    config::{Config, Input, Values},
    failure::Failure,
    say::{complain, say},
};

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(Failure(lines)) => {
            for line in lines {
                complain!("urr: {line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let flags = cli.flags;
    match cli.command.unwrap_or(Command::Serve) {
        Command::Version => say!("urr {}", env!("CARGO_PKG_VERSION")),
        Command::Config(ConfigCommand::Docs) => say!("{}", config::markdown().trim_end()),
        Command::CheckConfig => {
            let (values, config) = load(&flags)?;
            say!("{}", config::effective(&values).trim_end());
            block_on(stores::check(&config))??;
        }
        Command::Serve => {
            let (values, config) = load(&flags)?;
            block_on(serve::serve(values, config))??;
        }
        Command::Migrate => block_on(migrate::migrate(&load(&flags)?.1))??,
        Command::Doctor => block_on(doctor::doctor(&load(&flags)?.1))??,
        Command::Token(args) => token::token(&config::gather(&input(&flags))?, &args)?,
        Command::Admin(command) => block_on(admin::admin(load(&flags)?, command))??,
        Command::Bench(command) => return Ok(print(&urr_stampede::bench::run(&command, &bench::App)?)),
        Command::Stampede(StampedeCommand::Queue(args)) => {
            if flags.config.is_some() || !flags.settings().is_empty() {
                return Err(Failure::new(
                    "`urr stampede` starts its own server on loopback and takes no settings; remove the flags",
                ));
            }
            return Ok(print(&urr_stampede::crowd::run(&args)?));
        }
        Command::Queue(command) => {
            let verdict =
                load(&flags).and_then(|(_, config)| block_on(queue::queue(&config, command)).flatten());
            return Ok(queue::exit(verdict));
        }
        Command::Vwr(VwrCommand::Export { file, api }) => waiting::export(file.as_deref(), &api)?,
        Command::Mails(command) => block_on(mails::mails(&load(&flags)?.1, command))??,
        Command::Outbox(command) => block_on(outbox::outbox(&load(&flags)?.1, command))??,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a report. Returns 1 if it has faults, and 128 + n after signal n, as a shell does.
fn print(report: &Report) -> ExitCode {
    say!("{}", report.text.trim_end());
    for fault in &report.faults {
        complain!("urr: {fault}");
    }
    match (report.interrupted_by, report.faults.is_empty()) {
        (Some(signal), _) => ExitCode::from(128 + signal),
        (None, true) => ExitCode::SUCCESS,
        (None, false) => ExitCode::FAILURE,
    }
}

fn load(flags: &Flags) -> Result<(Values, Config), Failure> {
    Ok(config::load(&input(flags))?)
}

/// The one place that reads the environment.
#[expect(clippy::disallowed_methods, reason = "the environment is part of the configuration")]
fn input(flags: &Flags) -> Input {
    Input {
        file: flags.config.clone(),
        working_dir: PathBuf::new(),
        env: std::env::vars_os().collect(),
        flags: flags.settings(),
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::because("the async runtime did not start", &error))?;
    let done = runtime.block_on(work);
    // Do not wait for leftover tasks, such as a request to an unreachable broker.
    runtime.shutdown_background();
    Ok(done)
}
