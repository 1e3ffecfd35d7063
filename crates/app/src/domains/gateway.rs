//! The role `gateway`: forwards requests to roles that run in other processes. The guards run at
//! every public listener, with this role or without.

use super::{Declaration, Part};

pub(crate) static ROLE: Declaration = Declaration::new("gateway", |_| Ok(Some(Part::default())));
