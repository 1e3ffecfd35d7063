#![doc = include_str!("../README.md")]

mod account;
mod assets;
mod doors;
mod dress;
mod next;
mod page;
mod site;
mod times;
mod visitor;
mod words;

pub use self::{
    dress::Dress,
    site::{Parts, build, routes},
};
