#![doc = include_str!("../README.md")]

mod account;
mod art;
mod assets;
mod control;
mod doors;
mod dress;
mod money;
mod next;
mod page;
#[cfg(test)]
mod samples;
mod shop;
mod site;
mod times;
mod visitor;
mod words;

pub use self::{
    dress::Dress,
    site::{Parts, ROLE, build, described, routes},
};
