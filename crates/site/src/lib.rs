#![doc = include_str!("../README.md")]

mod account;
mod assets;
mod control;
mod error_pages;
mod generated_poster;
mod money;
mod next;
mod page;
#[cfg(test)]
mod samples;
mod shop;
mod sign_in;
mod site;
mod times;
mod visitor;
mod words;

pub use self::{
    error_pages::ErrorPages,
    site::{Parts, ROLE, build, described, routes},
};
