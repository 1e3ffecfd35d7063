//! What goes on without anybody asking: people are let in, purchases free slots, old rooms are closed.

pub(crate) mod admission;
pub(crate) mod purchases;
pub(crate) mod sampling;
pub(crate) mod tidy;
