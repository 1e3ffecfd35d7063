//! Tests of the built binary: commands, output, exit codes, signals.

#[cfg(test)]
mod accounts;
#[cfg(all(test, feature = "aws"))]
mod aws;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod process;
#[cfg(test)]
mod rooms;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod social;
#[cfg(test)]
mod stores;
